//! Samples by stack in the cell of a comparison that changed most.

use serde::{Deserialize, Serialize};

use super::{CellKey, ComparisonKey};
use crate::time::Nanos;

/// The last frame of stacks that are too rare to be listed one by one, below the callers that they share.
pub const RARE_STACKS: &str = "(rare stacks)";

/// One stack in one cell of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackRow {
    /// What is compared.
    pub comparison: ComparisonKey,
    /// Which cell.
    pub cell: CellKey,
    /// Start of the epoch.
    pub window_start_at: Nanos,
    /// End of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// Names of functions, root first.
    pub stack: Vec<String>,
    /// Samples of the head that end there.
    pub head_samples: i64,
    /// Samples of the base.
    pub base_samples: i64,
}
