//! Counts since a start to counts of windows: what a series has grown by from point to point.
//!
//! The law: points of one pod in the order of their ends give windows that do not overlap, and as many requests as were served
//! between the first point and the last, but for what a reset hides. Points must come in the same order whoever read them, so this
//! belongs to where a hop is closed and all its points are known; it is no part of decoding.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{PodId, Service};
use fleetdiff_schemas::profile::{Requests, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::Point;

/// What became of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many requests within a window.
    Counted(Requests),
    /// The first of its series, or the first after a reset that says no start: what comes is counted from here.
    Baseline,
    /// Not after the last point of its series: it came late or twice.
    Superseded,
}

/// Whose a series is.
type Key = (Service, PodId, u64);

/// The last point of each series.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    last: BTreeMap<Key, Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    window: TimeRange,
    count: u64,
}

impl Differences {
    /// Takes the next point.
    ///
    /// A delta is its own window. Of cumulative points: the first is a baseline; one with the start of the last counts what the
    /// series has grown by since; one with a later start counts from that start; one that has fallen is a reset and a baseline.
    pub fn take(&mut self, point: &Point) -> Outcome {
        if point.temporality == Temporality::Delta {
            return Outcome::Counted(Requests { count: point.count, window: point.window });
        }
        let now = Last { window: point.window, count: point.count };
        let key = (point.identity.service.clone(), point.identity.pod.clone(), point.series);
        let Some(last) = self.last.get(&key).copied() else {
            self.last.insert(key, now);
            return Outcome::Baseline;
        };
        if now.window.end <= last.window.end {
            return Outcome::Superseded;
        }
        self.last.insert(key, now);
        now.since(last)
    }

    /// Takes the points of a closed hop, in the order of (end, start, series, count) whatever the order in which they are given,
    /// and adds up the series of each pod: all that it served within each window.
    pub fn close(&mut self, mut points: Vec<Point>) -> BTreeMap<(Service, PodId), Vec<Requests>> {
        points.sort_by_key(|point| (point.window.end, point.window.start, point.series, point.count));
        let mut sums: BTreeMap<(Service, PodId), BTreeMap<(Nanos, Nanos), u64>> = BTreeMap::new();
        for point in &points {
            let Outcome::Counted(requests) = self.take(point) else { continue };
            let pod = (point.identity.service.clone(), point.identity.pod.clone());
            let window = (requests.window.start, requests.window.end);
            let sum = sums.entry(pod).or_default().entry(window).or_default();
            *sum = sum.saturating_add(requests.count);
        }
        let listed = |windows: BTreeMap<(Nanos, Nanos), u64>| {
            let windows = windows.into_iter();
            windows.map(|((start, end), count)| Requests { count, window: TimeRange { start, end } }).collect()
        };
        sums.into_iter().map(|(pod, windows)| (pod, listed(windows))).collect()
    }

    /// Forgets series that have been silent since before an instant: their next point is a baseline again.
    pub fn forget(&mut self, before: Nanos) {
        self.last.retain(|_, last| last.window.end >= before);
    }

    /// How many series are remembered.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

impl Last {
    fn since(self, last: Last) -> Outcome {
        let begun_anew = self.window.start > last.window.start;
        let (start, count) = if begun_anew {
            // NB: a start that lies before the last point is of a clock that was set; nothing is counted twice.
            (self.window.start.max(last.window.end), Some(self.count))
        } else {
            (last.window.end, self.count.checked_sub(last.count))
        };
        let window = TimeRange { start, end: self.window.end };
        count.map_or(Outcome::Baseline, |count| Outcome::Counted(Requests { count, window }))
    }
}
