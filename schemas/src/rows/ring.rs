//! A function's path over the rings of a roll-out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ArmFigures, CellKey, Interval};
use crate::identity::{Build, Service};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::time::Nanos;
use crate::verdict::{RowReason, Verdict};

/// In which builds of a roll-out a finding stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InRings {
    /// The build that introduced it, if the ring before it does not have it.
    pub introduced_by: Option<Build>,
    /// The builds in which it stands, in the order of rings.
    pub found_in: Vec<String>,
}

/// One function in one cell and one ring: what it costs there, against the ring before it and against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingRow {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// What a count represents.
    pub measure: Measure,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Function name, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub function: Arc<str>,
    /// The place of the ring among those that run side by side, from 1.
    pub ring: i64,
    /// Its build.
    pub build: Build,
    /// Start of the window.
    pub window_start_at: Nanos,
    /// End of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// The ring's figures, as its comparison with the ring before it has them, or else that with the first.
    pub figures: ArmFigures,
    /// Against the ring before it.
    pub previous: RingStep,
    /// Against the first ring.
    pub first: RingStep,
}

/// A ring against an earlier one; nothing is known in the first ring, or where the two are not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingStep {
    /// The build of the earlier ring.
    pub build: Option<Build>,
    /// How many times as expensive the function is: after normalization, or per request.
    pub ratio: Option<Interval>,
    /// The verdict of the row of the window.
    pub verdict: Option<Verdict>,
    /// Why it has this verdict.
    pub reason: Option<RowReason>,
}
