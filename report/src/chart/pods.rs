//! Pods as dots: the share of a function in each bucket of pods, one lane for each arm.

use fleetdiff_schemas::number::{length_float, signed_float};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{AXIS, Ink, UNITS, Undrawn, above_axis, picture, printable, stroke, trimmed, written};
use crate::document::Tone;

/// Height of a lane in pixels.
const LANE: u32 = 92;

/// The share of a function in one bucket of pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// Its number, which only moves the dot up or down.
    pub(crate) number: i64,
    /// Of all samples of its pods, 0 to 1.
    pub(crate) share: f64,
}

/// The buckets of an arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    /// The arm in words.
    pub(crate) name: String,
    /// Its buckets.
    pub(crate) buckets: Vec<Bucket>,
    /// The share of all of them.
    pub(crate) share: Option<f64>,
    /// The colour of its dots.
    pub(crate) tone: Tone,
}

/// The lanes, first on top.
pub(crate) fn pods(lanes: &[Lane], describes: &str) -> Result<String, Undrawn> {
    let height = LANE * u32::try_from(lanes.len()).unwrap_or(1) + AXIS;
    picture(height, describes, &[], |area| {
        let shares = || lanes.iter().flat_map(|lane| lane.buckets.iter().map(|bucket| bucket.share * 100.0));
        let (low, high) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
        let room = ((high - low) * 0.06).max(0.01);
        let (low, high) = ((low - room).max(0.0), high + room);
        let mut chart = above_axis(area, low..high, lanes.len(), |place| format!("{} %", trimmed(place)))?;
        for (place, lane) in lanes.iter().enumerate() {
            let top = length_float(place);
            let ink = Ink::of(lane.tone);
            let name = Text::new(printable(&lane.name), (low, top + 0.14), written(Ink::Text, HPos::Left));
            chart.draw_series([name]).map_err(Undrawn::of)?;
            let dots = lane.buckets.iter().map(|bucket| {
                let height = top + 0.36 + signed_float(bucket.number * 37 % 64) / 64.0 * 0.52;
                Circle::new((bucket.share * 100.0, height), 4 * UNITS, ink.colour().mix(0.55).filled())
            });
            chart.draw_series(dots).map_err(Undrawn::of)?;
            if let Some(share) = lane.share {
                let mean = vec![(share * 100.0, top + 0.3), (share * 100.0, top + 0.94)];
                chart.draw_series([PathElement::new(mean, stroke(Ink::Text, 2))]).map_err(Undrawn::of)?;
            }
        }
        Ok(())
    })
}
