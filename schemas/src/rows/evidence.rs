//! What a significant row was computed from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CellKey, ComparisonKey};
use crate::comparison::Side;
use crate::profile::CountKind;
use crate::time::Nanos;
use crate::verdict::Scope;

/// One bucket of pods in one arm and stratum of a row of `cells`, with what the row's test takes from other functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceRow {
    /// Window or epoch.
    pub scope: Scope,
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Whether it covers several cells.
    pub is_roll_up: bool,
    /// Function name, or [`super::ALL_FUNCTIONS`].
    pub function: Arc<str>,
    /// The end of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// Number of the stratum within the row, from 0.
    pub stratum: i64,
    /// Head or base.
    pub arm: Side,
    /// Number of the bucket, 0 to 63.
    pub bucket: i64,
    /// Distinct pods of the arm in the bucket, over all strata of the row.
    pub pods: i64,
    /// Samples of the bucket in the stratum.
    pub samples: i64,
    /// Requests that it served there; 0 where none are known.
    pub requests: i64,
    /// Samples of the function.
    pub count: i64,
    /// Ordered pairs of samples of the function that share a profile.
    pub pairs: i64,
    /// Sum of squared samples of profiles, over the square of their sum.
    pub concentration: f64,
    /// What the test takes from other functions.
    pub shared: SharedFigures,
}

/// What the test of one function in one arm takes from all functions of the cell together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedFigures {
    /// Variance between the arm's pods of the logarithm of a share.
    pub pod_variance: f64,
    /// Degrees of freedom that the prior of the arm's dispersion is worth; 0 without a prior.
    pub prior_df: f64,
    /// The dispersion that it expects.
    pub prior_dispersion: f64,
    /// The part of `prior_df` that the function earns, 0 to 1.
    pub calm: f64,
    /// The normalization factor that decides.
    pub normalization_factor: f64,
    /// The smallest admissible one.
    pub smallest_factor: f64,
    /// The largest.
    pub largest_factor: f64,
}
