//! The dataflow of fleetdiff: from profiles of single pods to flags of a fleet.
//!
//! [`dataflow`] is the whole program on one page. Its steps are [`operators`]; what they compute is pure: counts
//! ([`counts`]), tests ([`fleetdiff_statistics`]), the test results of a cell ([`evidence`]), decisions ([`rules`]).

pub mod checkpoint;
pub mod counts;
pub(crate) mod dataflow;
pub mod evidence;
pub mod operators;
pub mod rules;
pub mod run;
