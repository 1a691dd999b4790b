//! Commands as their users run them: what is found, what is not, what is printed, and what other readers see in the
//! output folder.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../connectors/tests/support/alertmanager.rs"]
#[expect(dead_code, reason = "other tests stop it, and wait for it")]
mod alertmanager;
#[path = "commands/bad_input.rs"]
mod bad_input;
#[path = "commands/bad_records.rs"]
mod bad_records;
#[path = "commands/calibrate.rs"]
mod calibrate;
#[path = "commands/cumulative.rs"]
mod cumulative;
#[path = "commands/demo.rs"]
mod demo;
#[path = "commands/deploy.rs"]
mod deploy;
#[path = "commands/diff.rs"]
mod diff;
#[path = "commands/diff_command_line.rs"]
mod diff_command_line;
#[path = "commands/diff_exports.rs"]
mod diff_exports;
#[path = "commands/diff_reading.rs"]
mod diff_reading;
#[path = "commands/diff_times.rs"]
mod diff_times;
#[path = "commands/history.rs"]
mod history;
#[path = "../../connectors/tests/support/hook.rs"]
#[expect(dead_code, reason = "other tests let it fail")]
mod hook;
#[path = "commands/leak.rs"]
mod leak;
#[path = "commands/load.rs"]
mod load;
#[path = "commands/method.rs"]
mod method;
#[path = "commands/outputs.rs"]
mod outputs;
#[path = "commands/perf_diff.rs"]
mod perf_diff;
#[path = "commands/power.rs"]
mod power;
#[path = "commands/program.rs"]
mod program;
#[path = "commands/pull.rs"]
mod pull;
#[path = "commands/pyroscope.rs"]
mod pyroscope;
#[path = "commands/receivers.rs"]
mod receivers;
#[path = "commands/replay.rs"]
mod replay;
#[path = "commands/report.rs"]
mod report;
#[path = "commands/same_formats.rs"]
mod same_formats;
#[path = "support/served.rs"]
mod served;
#[path = "../../connectors/tests/support/tools.rs"]
mod tools;
#[path = "commands/words.rs"]
mod words;
