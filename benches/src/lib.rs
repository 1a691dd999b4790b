//! What fleetdiff costs: workloads, the dataflow under a clock, and what stands beside it.
//!
//! | question | file |
//! |---|---|
//! | What is counted? | [`workload`] |
//! | What does one cell hold by itself? | [`cell`] |
//! | How is the dataflow driven, and what is inside the clock? | [`drive`] |
//! | What should it have flagged? | [`plain`] |
//! | What could this machine do at most? | [`roof`] |
//! | What is decoded, beside what is recorded? | [`large`] |
//! | What is compared on a laptop? | [`pair`] |
//! | What stands beside deltas? | [`peer`] |
//! | How are measurements told? | [`spread`] |
//!
//! `README.md` in this folder says how to read the figures.

pub mod cell;
pub mod drive;
pub mod large;
pub mod pair;
pub mod peer;
pub mod plain;
pub mod roof;
pub mod spread;
pub mod workload;
