//! The runs of both sides through the dataflow of fleets, as pods of two builds.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_pipeline::run::RunError;
use fleetdiff_pipeline::run::in_memory::{records, run_in_memory};
use fleetdiff_schemas::config::{CellBy, Comparing, Config};
use fleetdiff_schemas::identity::{Bucket, Identity, PodId};
use fleetdiff_schemas::profile::{Profile, Temporality};
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::outcome::Measured;
use super::recording::Recording;
use super::settings::Settings;
use crate::sides::Sides;

const BASE: &str = "base";
const HEAD: &str = "head";

/// The assumed time of all runs: the same moment, far from the end of an hour.
const WHEN: TimeRange =
    TimeRange { start: Nanos::from_seconds(1_000_001_000), end: Nanos::from_seconds(1_000_001_002) };

/// The rows of the one cell.
pub(super) fn rows(
    sides: &Sides<Vec<Recording>>,
    settings: &Settings,
    times: Option<Measured>,
) -> Result<Vec<CellRow>, RunError> {
    let config = Config {
        warm_up: Nanos(0),
        history: Nanos(0),
        // Files are compared whole: a flame graph beside the findings shows all of their stacks.
        idle_defaults: false,
        cell_by: CellBy::All,
        comparing: Comparing::Named { base: vec![BASE.into()], head: HEAD.into() },
        q: settings.q,
        min_effect: settings.min_effect,
        min_count: settings.min_count,
        min_head_pods: 1,
        ..Config::default()
    };
    // One worker reads, since there is only one moment.
    Ok(run_in_memory(&config, vec![records(profiles(sides, times))], 1)?.cells)
}

/// Each run as the profile of a separate pod, in a separate bucket as long as there are free ones.
fn profiles(sides: &Sides<Vec<Recording>>, times: Option<Measured>) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for (build, side) in [(BASE, &sides.base), (HEAD, &sides.head)] {
        let mut taken = BTreeSet::new();
        for recording in side {
            let pod = pod(&recording.label, &mut taken);
            let profile = match times {
                None => Cow::Borrowed(&recording.profile),
                Some(times) => Cow::Owned(times.in_grains(&recording.profile)),
            };
            profiles.push(profile_of(build, pod, &profile));
        }
    }
    profiles
}

/// The pod of a run: it has the run's name, so that rows can name it, with a suffix if another pod has its bucket.
fn pod(label: &str, taken: &mut BTreeSet<Bucket>) -> PodId {
    /// How many names are tried to find a free bucket.
    const TRIED: usize = 10_000;
    let named = |number: usize| {
        if number == 0 { PodId::from(label) } else { PodId::from(format!("{label} ({number})").as_str()) }
    };
    let found = (0..TRIED).map(named).find(|pod| !taken.contains(&Bucket::of(None, pod)));
    let pod = found.unwrap_or_else(|| named(TRIED + taken.len()));
    taken.insert(Bucket::of(None, &pod));
    pod
}

fn profile_of(build: &str, pod: PodId, profile: &Profile) -> Profile {
    let identity = Identity {
        service: "diff".into(),
        build: build.into(),
        region: "-".into(),
        cohort: "-".into(),
        hardware: "-".into(),
        node: None,
        pod,
        process_start: None,
    };
    let temporality = if profile.profile_type.is_level() { Temporality::Gauge } else { Temporality::Delta };
    Profile { identity: Arc::new(identity), temporality, window: WHEN, requests: None, ..profile.clone() }
}
