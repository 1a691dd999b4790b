//! The runs of both sides through the dataflow of fleets, as pods of two builds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_pipeline::config::{CellBy, Comparing, Config};
use fleetdiff_pipeline::operators::deliver::{Sink, SinkError};
use fleetdiff_pipeline::run::{RunError, run};
use fleetdiff_schemas::identity::{Bucket, Identity, PodId};
use fleetdiff_schemas::profile::{Decoded, Position, Profile, Temporality};
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::{Hop, Nanos, TimeRange};

use super::recording::Recording;
use super::settings::Settings;
use crate::sides::Sides;

const BASE: &str = "base";
const HEAD: &str = "head";

/// When all runs are said to have been: at one moment, far from the turn of an hour.
const WHEN: TimeRange =
    TimeRange { start: Nanos::from_seconds(1_000_001_000), end: Nanos::from_seconds(1_000_001_002) };

/// The rows of the one cell.
pub(super) fn rows(sides: &Sides<Vec<Recording>>, settings: &Settings) -> Result<Vec<CellRow>, RunError> {
    let config = Config {
        warm_up: Nanos(0),
        baseline: Nanos(0),
        cell_by: CellBy::All,
        comparing: Comparing::Named { base: vec![BASE.into()], head: HEAD.into() },
        q: settings.q,
        delta: settings.delta,
        min_count: settings.min_count,
        min_head_pods: 1,
        ..Config::default()
    };
    let collected = Collected::default();
    let records = Mutex::new(Some(records(sides)));
    // One worker reads, since there is one moment.
    let sources = move |_, _| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let records = records.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        if let Some(records) = records {
            sources.push(Box::new(Runs { records: records.into_iter() }));
        }
        Ok(sources)
    };
    run(&config, 1, Arc::new(sources), Box::new(collected.clone()))?;
    let mut tables = std::mem::take(&mut *collected.0.lock().unwrap_or_else(PoisonError::into_inner));
    tables.sort();
    Ok(tables.cells)
}

/// Each run as the profile of a pod of its own, in a bucket of its own as long as there are some.
fn records(sides: &Sides<Vec<Recording>>) -> Vec<Decoded> {
    let mut records = Vec::new();
    for (build, side) in [(BASE, &sides.base), (HEAD, &sides.head)] {
        let mut taken = BTreeSet::new();
        for recording in side {
            let pod = pod(&recording.label, &mut taken);
            let offset = i64::try_from(records.len()).unwrap_or(i64::MAX);
            records.push(record(build, pod, &recording.profile, offset));
        }
    }
    records
}

/// The pod of a run: called like the run, so that rows can name it, and more where another has its bucket.
fn pod(label: &str, taken: &mut BTreeSet<Bucket>) -> PodId {
    /// Names that are tried for a bucket that nobody has.
    const TRIED: usize = 10_000;
    let named = |number: usize| {
        if number == 0 { PodId::from(label) } else { PodId::from(format!("{label} ({number})").as_str()) }
    };
    let found = (0..TRIED).map(named).find(|pod| !taken.contains(&Bucket::of(None, pod)));
    let pod = found.unwrap_or_else(|| named(TRIED + taken.len()));
    taken.insert(Bucket::of(None, &pod));
    pod
}

fn record(build: &str, pod: PodId, profile: &Profile, offset: i64) -> Decoded {
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
    let profile =
        Profile { identity: Arc::new(identity), temporality, window: WHEN, requests: None, ..profile.clone() };
    let position = Position { source: "runs".into(), partition: 0, offset, file: None };
    Decoded { position, broker_time: None, parts: vec![Ok(profile)], points: Vec::new() }
}

/// All runs, as the one partition of a source.
struct Runs {
    records: std::vec::IntoIter<Decoded>,
}

impl Source for Runs {
    fn name(&self) -> &str {
        "runs"
    }

    fn partitions(&self) -> Vec<i32> {
        vec![0]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        Ok(self.records.next().map_or(Polled::End, |record| Polled::Record(Box::new(record))))
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// Keeps the rows.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Tables>>);

impl Sink for Collected {
    fn take(&mut self, _: Hop, rows: Tables) -> Result<(), SinkError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cells.extend(rows.cells);
        Ok(())
    }
}
