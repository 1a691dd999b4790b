//! Turns counts since a process began into counts of the intervals between two snapshots.
//!
//! The law: as long as nothing is reset, the intervals of a process add up, call path by call path, to its last
//! snapshot less its first. No sample is counted twice, no count is below zero, and a lost snapshot costs only
//! resolution in time.
//!
//! - A snapshot that is not after the last one used is superseded: its samples have been counted.
//! - A *first snapshot* is one of which no sample is known to be new; all its samples are carried over. It is the first
//!   of a process, one whose total has fallen (a container that crashed keeps its pod and start time, so that only this
//!   shows the crash), or one further from the last than the window is long, whose samples would otherwise all be dated
//!   now. The next interval begins with it.
//! - If the process is known to have begun within the window, and after the last snapshot (or there is none), the
//!   interval began with the process, at zero.
//! - Values, such as bytes, are subtracted path by path as samples are, but never say what a snapshot is.
//! - If the count of a path falls while the total does not (counts that were scaled up and rounded may vary), the path
//!   has new samples only once it exceeds what was already counted. Therefore the largest count seen of each path is
//!   kept.
//!
//! NB: a process that crashed, and has counted more than before by the next snapshot, looks as if it had continued.
//! Then only what exceeds the old counts, path by path, is counted.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use crate::counts::ids::PathId;
use crate::counts::paths::{decode_paths, encode_paths};

/// Samples by cohort and call path, each cohort as bytes of [`encode_paths`].
pub type PathSamples = BTreeMap<Cohort, Vec<u8>>;

/// What a process had counted at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When.
    pub at: Nanos,
    /// Its counts since the process began.
    pub samples: PathSamples,
    /// The values of these samples; empty if they have none.
    pub values: PathSamples,
}

/// What a snapshot contributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// What was counted since an instant, up to the moment of the snapshot; cohorts without samples are left out.
    Interval {
        /// When the interval began.
        since: Nanos,
        /// Its samples.
        samples: PathSamples,
        /// Their values.
        values: PathSamples,
    },
    /// Nothing yet: it is a first snapshot, and the next interval begins here.
    First,
    /// Nothing: it is superseded.
    Superseded,
}

/// What is kept of one process: the largest count of each call path since the first snapshot, about three bytes per
/// path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Process {
    last: Option<Last>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Last {
    at: Nanos,
    total: u64,
    most: PathSamples,
    most_values: PathSamples,
}

impl Process {
    /// The moment of the last snapshot used.
    pub fn last(&self) -> Option<Nanos> {
        self.last.as_ref().map(|last| last.at)
    }

    /// The call paths that are kept; one may come several times.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        let parts = self.last.iter().flat_map(|last| last.most.values().chain(last.most_values.values()));
        parts.flat_map(|paths| decode_paths(paths)).map(|(path, _)| path)
    }

    /// Takes a snapshot of the process that began at `start`, if known. No interval is longer than `longest`.
    pub fn take(&mut self, snapshot: Snapshot, start: Option<Nanos>, longest: Nanos) -> Taken {
        let Snapshot { at, samples, values } = snapshot;
        if self.last.as_ref().is_some_and(|last| at <= last.at) {
            return Taken::Superseded;
        }
        let total = samples.values().map(|paths| total_of(paths)).sum();
        let before = self.last.take();
        let began = start.filter(|start| *start <= at && before.as_ref().is_none_or(|last| last.at < *start));
        let known = match (began, before) {
            (Some(began), _) => Some((began, [PathSamples::new(), PathSamples::new()])),
            (None, Some(last)) if last.total <= total => Some((last.at, [last.most, last.most_values])),
            _ => None,
        };
        match known.filter(|(since, _)| at.since(*since) <= longest) {
            Some((since, [mut most, mut most_values])) => {
                let samples = raise(&mut most, samples);
                let values = raise(&mut most_values, values);
                self.last = Some(Last { at, total, most, most_values });
                Taken::Interval { since, samples, values }
            }
            None => {
                self.last = Some(Last { at, total, most: samples, most_values: values });
                Taken::First
            }
        }
    }
}

/// Raises the largest count of each path to the current one, and gives the differences.
fn raise(most: &mut PathSamples, now: PathSamples) -> PathSamples {
    let mut new = PathSamples::new();
    for (cohort, paths) in now {
        let known = most.entry(cohort.clone()).or_default();
        let (highest, risen) = beyond(known, &paths);
        *known = encode_paths(highest);
        if !risen.is_empty() {
            new.insert(cohort, encode_paths(risen));
        }
    }
    new
}

type Counted = Vec<(PathId, u64)>;

/// The larger count of each path, and by how much `now` exceeds `known`, where it does.
fn beyond(known: &[u8], now: &[u8]) -> (Counted, Counted) {
    let (mut highest, mut risen) = (Counted::new(), Counted::new());
    let mut known = decode_paths(known).peekable();
    for (path, count) in decode_paths(now) {
        while let Some(gone) = known.next_if(|(other, _)| *other < path) {
            highest.push(gone);
        }
        let before = known.next_if(|(other, _)| *other == path).map_or(0, |(_, count)| count);
        highest.push((path, before.max(count)));
        if count > before {
            risen.push((path, count - before));
        }
    }
    highest.extend(known);
    (highest, risen)
}

fn total_of(paths: &[u8]) -> u64 {
    decode_paths(paths).map(|(_, count)| count).sum()
}

#[cfg(test)]
#[path = "cumulative/tests.rs"]
mod tests;
