//! The file as it stands.

use std::borrow::Cow;

use fleetdiff_schemas::time::{Nanos, TimeRange};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::json::{List, Lists, Text};

/// The file.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(default = "first_version")]
    pub(super) version: u32,
    #[serde(borrow)]
    pub(super) flamebearer: Flamebearer<'a>,
    #[serde(borrow)]
    pub(super) metadata: Metadata<'a>,
    pub(super) timeline: Option<Timeline>,
    #[serde(rename = "leftTicks")]
    pub(super) left_ticks: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Flamebearer<'a> {
    #[serde(borrow)]
    pub(super) names: List<Text<'a>>,
    pub(super) levels: Lists<i64>,
    pub(super) num_ticks: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) format: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) units: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(default)]
    pub(super) sample_rate: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Timeline {
    pub(super) start_time: i64,
    #[serde(default)]
    pub(super) samples: Option<List<IgnoredAny>>,
    #[serde(default)]
    pub(super) duration_delta: i64,
}

fn first_version() -> u32 {
    1
}

impl Document<'_> {
    pub(super) fn window(&self) -> Option<TimeRange> {
        let timeline = self.timeline.as_ref().filter(|timeline| timeline.start_time > 0)?;
        let steps = timeline.samples.as_ref().map_or(0, |samples| samples.len());
        let seconds = i64::try_from(steps).ok()?.checked_mul(timeline.duration_delta.max(0))?;
        let nanos = |seconds: i64| seconds.checked_mul(1_000_000_000).map(Nanos);
        let end = timeline.start_time.checked_add(seconds)?;
        Some(TimeRange { start: nanos(timeline.start_time)?, end: nanos(end)? })
    }
}
