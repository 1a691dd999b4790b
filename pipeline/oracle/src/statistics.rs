//! The statistics of the oracle: a plain port of the reference programs (`reference_ql.py`, `reference_decide.py` and
//! `reference_outliers.py` in `pipeline/statistics/testdata`), nested loops over arrays, checked against the test
//! vectors that those programs wrote.
//!
//! Probabilities are logarithms throughout. Nothing here is shared with the statistics that it checks.

pub mod decide;
pub mod families;
pub mod likelihood;
pub mod moderation;
pub mod outliers;
pub mod rare;
pub mod strata;
pub mod tails;

/// Below this many tested functions nothing is moderated and the normalization factor is 1.
pub const ENOUGH_FUNCTIONS: usize = 20;
