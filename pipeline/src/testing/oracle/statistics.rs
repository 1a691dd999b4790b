//! The statistics of the oracle: a plain port of the reference programs (`testdata/statistics/reference_ql.py` and
//! `reference_decide.py`), nested loops over vectors, held against the vectors that those programs wrote.
//!
//! Probabilities are logarithms throughout. Nothing here is shared with the statistics that it is there to check.

pub mod decide;
pub mod families;
pub mod likelihood;
pub mod moderation;
pub mod rare;
pub mod strata;
pub mod tails;

/// Below this many tested functions nothing is moderated and the scale is 1.
pub const ENOUGH_FUNCTIONS: usize = 20;
