//! What a request cost in one function, minute by minute, and under which load.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CellKey, ComparisonKey};
use crate::comparison::Side;
use crate::time::Nanos;

/// One minute of one arm in one cell, for one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCurveRow {
    /// What is compared.
    pub comparison: ComparisonKey,
    /// Which cell.
    pub cell: CellKey,
    /// Function name, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub function: Arc<str>,
    /// Which arm.
    pub arm: Side,
    /// Start of the minute.
    pub minute_at: Nanos,
    /// End of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// Pods that served.
    pub pods: i64,
    /// Requests that they served.
    pub requests: i64,
    /// Their samples of the function itself.
    pub count: i64,
    /// Requests a pod.
    pub load: f64,
    /// Samples a request.
    pub per_request: f64,
}
