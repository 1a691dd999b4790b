//! Every format from bytes to profiles: against outside programs, against slow readings of the same bytes, there and
//! back, and under bytes that nobody meant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "formats/changes.rs"]
mod changes;
#[path = "formats/chrome_trace.rs"]
mod chrome_trace;
#[path = "formats/cpuprofile.rs"]
mod cpuprofile;
#[path = "formats/delta.rs"]
mod delta;
#[path = "formats/every.rs"]
mod every;
#[path = "formats/examples.rs"]
mod examples;
#[path = "formats/faults.rs"]
mod faults;
#[path = "formats/fixtures.rs"]
mod fixtures;
#[path = "formats/folded.rs"]
mod folded;
#[path = "formats/foreign.rs"]
mod foreign;
#[path = "formats/gecko.rs"]
mod gecko;
#[path = "formats/heapprofile.rs"]
mod heapprofile;
#[path = "formats/jfr.rs"]
mod jfr;
#[path = "formats/jfr_written.rs"]
#[expect(dead_code, reason = "tests of memory use the rest")]
mod jfr_written;
#[path = "formats/large.rs"]
mod large;
#[path = "formats/metrics_proto.rs"]
mod metrics_proto;
#[path = "formats/mutated_messages.rs"]
mod mutated_messages;
#[path = "formats/mutations.rs"]
mod mutations;
#[path = "formats/names.rs"]
mod names;
#[path = "formats/otlp.rs"]
mod otlp;
#[path = "formats/otlp_async_profiler.rs"]
mod otlp_async_profiler;
#[path = "formats/otlp_faults.rs"]
mod otlp_faults;
#[path = "formats/otlp_metrics.rs"]
mod otlp_metrics;
#[path = "formats/otlp_oracle.rs"]
mod otlp_oracle;
#[path = "formats/otlp_rules.rs"]
mod otlp_rules;
#[path = "formats/otlp_slow.rs"]
mod otlp_slow;
#[path = "formats/perf_data.rs"]
mod perf_data;
#[path = "formats/perf_data_damaged.rs"]
mod perf_data_damaged;
#[path = "formats/perf_data_written.rs"]
mod perf_data_written;
#[path = "formats/perf_script.rs"]
mod perf_script;
#[path = "formats/perf_script_written.rs"]
mod perf_script_written;
#[path = "formats/pprof.rs"]
mod pprof;
#[path = "formats/pprof_delta.rs"]
mod pprof_delta;
#[path = "formats/pprof_oracle.rs"]
mod pprof_oracle;
#[path = "formats/pyroscope.rs"]
mod pyroscope;
#[path = "formats/reading.rs"]
mod reading;
#[path = "formats/reading_others.rs"]
mod reading_others;
#[path = "formats/reading_otlp.rs"]
mod reading_otlp;
#[path = "formats/reading_perf_script.rs"]
mod reading_perf_script;
#[path = "formats/reading_pprof.rs"]
mod reading_pprof;
#[path = "formats/reading_times.rs"]
mod reading_times;
#[path = "formats/speedscope.rs"]
mod speedscope;
#[path = "formats/stackprof.rs"]
mod stackprof;
#[path = "formats/units.rs"]
mod units;
