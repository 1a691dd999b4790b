//! Every format from bytes to profiles: against outside programs, against slow readings of the same bytes, there and
//! back, and under bytes that nobody meant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
#[path = "formats/mutations.rs"]
mod mutations;
#[path = "formats/perf_script.rs"]
mod perf_script;
#[path = "formats/pprof.rs"]
mod pprof;
#[path = "formats/pprof_oracle.rs"]
mod pprof_oracle;
#[path = "formats/pyroscope.rs"]
mod pyroscope;
#[path = "formats/speedscope.rs"]
mod speedscope;
