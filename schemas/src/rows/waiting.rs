//! What requests wait for: time on a processor and off it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CellKey, LevelFace};
use crate::identity::{Build, Service};
use crate::profile::CountKind;
use crate::time::Nanos;
use crate::verdict::{Support, TimeMeasure, TimePer};

/// Time of one function, of a thread, or of all, in one cell of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingRow {
    /// What is deployed.
    pub service: Service,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// Which time.
    pub measure: TimeMeasure,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Function name, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub function: Arc<str>,
    /// The threads that it ran in; `None` for all, and where threads are not known.
    pub thread: Option<Arc<str>>,
    /// Start of the window.
    pub window_start_at: Nanos,
    /// The end of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// What the time is divided by.
    pub per: TimePer,
    /// The time.
    pub time: LevelFace,
    /// The part of it on a processor, in the head.
    pub cpu_head: Option<f64>,
    /// The same in the base.
    pub cpu_base: Option<f64>,
    /// The part of it off a processor, in the head.
    pub off_cpu_head: Option<f64>,
    /// The same in the base.
    pub off_cpu_base: Option<f64>,
    /// Samples, or contentions, of the head.
    pub samples_head: i64,
    /// The same in the base.
    pub samples_base: i64,
    /// How many pods the row rests on.
    pub support: Support,
}
