//! Every format from bytes to profiles: against outside programs, against slow readings of the same bytes, there and
//! back, and under bytes that nobody meant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "formats/delta.rs"]
mod delta;
#[path = "formats/faults.rs"]
mod faults;
#[path = "formats/fixtures.rs"]
mod fixtures;
#[path = "formats/folded.rs"]
mod folded;
#[path = "formats/mutations.rs"]
mod mutations;
#[path = "formats/pprof.rs"]
mod pprof;
#[path = "formats/pprof_delta.rs"]
mod pprof_delta;
#[path = "formats/pprof_oracle.rs"]
mod pprof_oracle;
