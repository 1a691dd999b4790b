//! Requests reported by metrics, joined with the counted windows of the same pod.
//!
//! A metric says how many requests a pod served within an interval, a profile what it cost within a window, and their
//! bounds are unrelated. Every pair of a counted window and an interval of the same pod and build gives the part of the
//! requests that falls into both, assuming that they are spread evenly, whichever of the two is known first. Parts are
//! whole numbers of requests, and adjacent windows share an interval without remainder.
//!
//! The law: the parts do not depend on the order in which points and windows become known, and windows that together
//! cover an interval exactly once get all of its requests.
//!
//! If points count since a start, an interval is the growth of a series from one point to the next. The first point of
//! a series counts from its own start if that is known and lies at most one window back; otherwise the next interval
//! begins with it. The same holds for a point that has fallen without a later start.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::{Build, Cohort, Identity};
use fleetdiff_schemas::profile::{ProfileType, RequestPoint, Temporality};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos, TimeRange};
use serde::{Deserialize, Serialize};

/// A window whose samples of one type were counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedWindow {
    /// Whose.
    pub identity: Arc<Identity>,
    /// Of what.
    pub profile_type: ProfileType,
    /// Under which hop.
    pub own: Hop,
    /// When its process began.
    pub started: Nanos,
    /// When.
    pub window: TimeRange,
}

/// Requests of a counted window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which window.
    pub of: CountedWindow,
    /// For whom they were served.
    pub cohort: Cohort,
    /// How many, at least 1.
    pub count: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Interval {
    build: Build,
    cohort: Cohort,
    window: TimeRange,
    count: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Last {
    window: TimeRange,
    count: u64,
}

type WindowKey = (Build, ProfileType, TimeRange);

/// What is remembered of one pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Served {
    last: BTreeMap<(Build, u64), Last>,
    intervals: Vec<Interval>,
    windows: BTreeMap<WindowKey, CountedWindow>,
}

impl Served {
    /// Takes the points and windows of one closed hop, in any order, and gives the new parts.
    ///
    /// A window with the same build, type and bounds as an earlier one adds nothing: its requests are known. Points are
    /// taken in order of their moments; a point that is not after the last of its series is late or a duplicate, and
    /// adds nothing.
    pub fn close(&mut self, mut points: Vec<RequestPoint>, windows: Vec<CountedWindow>, longest: Nanos) -> Vec<Part> {
        points.sort_by_key(|point| (point.window.end, point.window.start, point.series, point.count));
        let grown: Vec<Interval> = points.iter().filter_map(|point| self.interval(point, longest)).collect();
        let grown = added_up(grown);
        let mut parts = Vec::new();
        for interval in &grown {
            parts.extend(self.windows.values().filter_map(|window| part(window, interval)));
        }
        self.intervals.extend(grown);
        for window in windows {
            let key = (window.identity.build.clone(), window.profile_type, window.window);
            if !self.windows.contains_key(&key) {
                parts.extend(self.intervals.iter().filter_map(|interval| part(&window, interval)));
                self.windows.insert(key, window);
            }
        }
        parts
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty() && self.intervals.is_empty() && self.windows.is_empty()
    }

    /// Drops everything that cannot be joined with anything applied from `hop` on, given windows of `hops` hops. A
    /// series that is silent for as long starts again.
    pub fn forget(&mut self, hop: Hop, clock: HopClock, hops: u64) {
        self.windows.retain(|_, window| window.own.plus(hops) > hop);
        let at_hand = |end: Nanos| clock.hop_of(end).plus(hops.saturating_mul(2)) > hop;
        self.intervals.retain(|interval| at_hand(interval.window.end));
        self.last.retain(|_, last| at_hand(last.window.end));
    }

    /// The contribution of a point.
    fn interval(&mut self, point: &RequestPoint, longest: Nanos) -> Option<Interval> {
        let now = Last { window: point.window, count: point.count };
        let key = (point.identity.build.clone(), point.series);
        let last = self.last.get(&key).copied();
        if last.is_some_and(|last| now.window.end <= last.window.end) {
            return None;
        }
        self.last.insert(key, now);
        let (start, count) = match (point.temporality, last) {
            (Temporality::Cumulative, Some(last)) => now.since(last)?,
            (Temporality::Cumulative, None)
                if now.window.start.0 <= 0 || now.window.end.since(now.window.start) > longest =>
            {
                return None;
            }
            _ => (now.window.start, now.count),
        };
        let window = TimeRange { start, end: now.window.end };
        Some(Interval { build: point.identity.build.clone(), cohort: point.identity.cohort.clone(), window, count })
    }
}

impl Last {
    /// Since when, and by how much, a series has grown; `None` if it has fallen.
    fn since(self, last: Self) -> Option<(Nanos, u64)> {
        if self.window.start > last.window.start {
            // NB: a start before the last point means that a clock was set; nothing is counted twice.
            return Some((self.window.start.max(last.window.end), self.count));
        }
        Some((last.window.end, self.count.checked_sub(last.count)?))
    }
}

/// One interval for all series that report the same time.
fn added_up(intervals: Vec<Interval>) -> Vec<Interval> {
    let mut sums: BTreeMap<(Build, Cohort, TimeRange), u64> = BTreeMap::new();
    for Interval { build, cohort, window, count } in intervals {
        let sum = sums.entry((build, cohort, window)).or_default();
        *sum = sum.saturating_add(count);
    }
    let whole = |((build, cohort, window), count)| Interval { build, cohort, window, count };
    sums.into_iter().map(whole).filter(|interval| interval.count > 0).collect()
}

fn part(of: &CountedWindow, interval: &Interval) -> Option<Part> {
    if of.identity.build != interval.build {
        return None;
    }
    let until = |at: Nanos| served_until(interval, at);
    let count = until(of.window.end).saturating_sub(until(of.window.start));
    (count > 0).then(|| Part { of: of.clone(), cohort: interval.cohort.clone(), count })
}

/// How many whole requests of an interval came before an instant, if they are spread evenly. An interval without length
/// has all of them at once.
fn served_until(interval: &Interval, at: Nanos) -> u64 {
    let TimeRange { start, end } = interval.window;
    if at >= end {
        return interval.count;
    }
    let length = i128::from(end.since(start).0);
    let passed = i128::from(at.since(start).0).clamp(0, length);
    let so_far = if length == 0 { 0 } else { i128::from(interval.count) * passed / length };
    u64::try_from(so_far).unwrap_or(interval.count)
}
