//! What fleetdiff costs: workloads, the dataflow under a clock, and what it is compared with.
//!
//! | question | file |
//! |---|---|
//! | What is counted? | [`workload`] |
//! | What does one cell hold? | [`cell`] |
//! | How is the dataflow driven, and what is inside the clock? | [`drive`] |
//! | What should it have flagged? | [`plain`] |
//! | What is the limit of this machine? | [`roof`] |
//! | What do data frames and stream processors run? | [`article`] |
//! | What is decoded, besides recordings? | [`large`] |
//! | What is compared on a laptop? | [`pair`] |
//! | What are deltas compared with? | [`peer`] |
//! | What is a bench asked for? | [`asked`] |
//! | How are measurements summarized? | [`spread`] |
//!
//! `README.md` in this folder says how to read the figures.

pub mod article;
pub mod asked;
pub mod cell;
pub mod drive;
pub mod large;

pub mod pair;
pub mod peer;
pub mod plain;
pub mod roof;
pub mod spread;
pub mod workload;
