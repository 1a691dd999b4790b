//! Recorded fleets: the two in the repository to the last sample, written ones read back, and what becomes of bad ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "files/faults.rs"]
mod faults;
#[path = "files/formats.rs"]
mod formats;
#[path = "files/reading.rs"]
mod reading;
#[path = "files/recorded.rs"]
mod recorded;
#[path = "files/records.rs"]
mod records;
#[path = "files/written.rs"]
mod written;
