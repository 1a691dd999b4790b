//! Stacks of both sides as the JSON of speedscope: two profiles, base and head, over one table of frames.
//!
//! Weights are the sums of raw samples of all runs of a side, without a unit; of times without
//! a period, the sums of nanoseconds. NB: fleetdiff itself reads the profiles
//! of one file as threads of one process and sums them; to compare the two sides again, keep the original profiles.

use std::collections::BTreeMap;

use fleetdiff_formats::Values;
use serde::Serialize;

use super::{NotExported, columns::saturated};
use crate::compare::Recording;
use crate::sides::Sides;
use crate::stacks::{self, Path};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The file; `name` is shown above it.
///
/// # Errors
/// [`NotExported::NoStacks`] for a run that came without stacks.
pub fn speedscope(sides: &Sides<Vec<Recording>>, name: &str) -> Result<String, NotExported> {
    let (base, head) = (stacks::of_side(&sides.base)?, stacks::of_side(&sides.head)?);
    let is_timed = sides.base.iter().chain(&sides.head).any(|run| run.values == Values::Times);
    let unit = if is_timed { "nanoseconds" } else { "none" };
    let mut frames = Frames::default();
    let profiles = [frames.profile("base", unit, &base), frames.profile("head", unit, &head)];
    let file = File {
        schema: SCHEMA,
        exporter: concat!("fleetdiff@", env!("CARGO_PKG_VERSION")),
        name,
        active_profile_index: 0,
        shared: Shared { frames: frames.list },
        profiles,
    };
    Ok(serde_json::to_string(&file)?)
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: u32,
    shared: Shared<'a>,
    profiles: [Profile; 2],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: u64,
    end_value: i64,
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// The table of frames, each name once, in the order in which stacks first name them.
#[derive(Default)]
struct Frames<'a> {
    places: BTreeMap<&'a str, usize>,
    list: Vec<Frame<'a>>,
}

impl<'a> Frames<'a> {
    fn profile(&mut self, name: &'static str, unit: &'static str, stacks: &BTreeMap<Path<'a>, u64>) -> Profile {
        let samples = stacks.keys().map(|path| path.iter().map(|name| self.place(name)).collect()).collect();
        let weights: Vec<i64> = stacks.values().map(|count| saturated(*count)).collect();
        let end_value = weights.iter().fold(0i64, |sum, weight| sum.saturating_add(*weight));
        Profile { kind: "sampled", name, unit, start_value: 0, end_value, samples, weights }
    }

    fn place(&mut self, name: &'a str) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            self.list.push(Frame { name });
            self.list.len() - 1
        })
    }
}
