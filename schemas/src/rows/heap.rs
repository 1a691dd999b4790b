//! What became of memory: what requests allocate, what stays in use, and whether that grows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CellKey, InRings, Interval};
use crate::identity::{Build, Service};
use crate::profile::CountKind;
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, HeapClass, LevelDirection, LevelReason, Severity, Support};

/// Memory of one function, or of all, in one cell of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeapRow {
    /// What is deployed.
    pub service: Service,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Function name, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub function: Arc<str>,
    /// Start of the window.
    pub window_start_at: Nanos,
    /// The end of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// Bytes allocated per request.
    pub alloc: LevelFace,
    /// Bytes in use of a pod.
    pub live: LevelFace,
    /// By how much ln of these grows in an hour; the change is a difference.
    pub slope: LevelFace,
    /// How many pods the row rests on.
    pub support: Support,
    /// What they say together.
    pub class: HeapClass,
    /// Why the class is unknown.
    pub reason: Option<LevelReason>,
}

impl HeapRow {
    /// Its three figures.
    pub fn faces(&self) -> [&LevelFace; 3] {
        [&self.alloc, &self.live, &self.slope]
    }

    /// Whether a figure went up or down.
    pub fn moved(&self) -> bool {
        self.faces().iter().any(|face| matches!(face.direction, LevelDirection::Up | LevelDirection::Down))
    }
}

/// One figure of memory in both arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelFace {
    /// Mean over pods of the head.
    pub head: Option<f64>,
    /// Mean over pods of the base.
    pub base: Option<f64>,
    /// Head over base, or head less base.
    pub change: Option<Interval>,
    /// ln p of no change.
    pub ln_p: Option<f64>,
    /// The smallest false-discovery rate at which it is significant.
    pub q_value: Option<f64>,
    /// Tests of the family in which that is so.
    pub tests: Option<i64>,
    /// Which way it went.
    pub direction: LevelDirection,
    /// Why that is unknown.
    pub reason: Option<LevelReason>,
}

impl LevelFace {
    /// A figure of which nothing is known, because of this.
    pub fn unknown(reason: LevelReason) -> Self {
        Self {
            head: None,
            base: None,
            change: None,
            ln_p: None,
            q_value: None,
            tests: None,
            direction: LevelDirection::Unknown,
            reason: Some(reason),
        }
    }
}

/// A head that keeps more memory from hour to hour: found, found in another cell, or over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeapFindingRow {
    /// What is deployed.
    pub service: Service,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// What was found.
    pub class: HeapClass,
    /// What happened.
    pub state: FlagState,
    /// Who should look.
    pub severity: Severity,
    /// When it was found first.
    pub raised_at: Nanos,
    /// When this happened: the end of the hop `sequence`.
    pub changed_at: Nanos,
    /// The hop at whose close it happened.
    pub sequence: Hop,
    /// Where it was found, in the fewest words.
    pub leaks_in: Vec<String>,
    /// The functions that keep the most beyond what they keep in the base, in the cell that keeps the most.
    pub carried_by: Vec<String>,
    /// Head over base of bytes allocated per request in that cell.
    pub alloc_ratio: Option<Interval>,
    /// Head over base of bytes in use of a pod.
    pub live_ratio: Option<Interval>,
    /// By how much more ln of these grows in an hour.
    pub slope_difference: Option<Interval>,
    /// In which builds of a roll-out it stands.
    pub rings: InRings,
    /// For `cleared`: why.
    pub cleared_because: Option<String>,
    /// What was found, where and by how much, in a sentence.
    pub summary: String,
    /// What to do.
    pub action: String,
}
