//! What the pods of two arms served, and what their samples stood for while both ran: bytes, or time.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId};
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use crate::counts::bucket::Addition;
use crate::counts::cell::CellCounts;

/// Fewer snapshots of a pod say nothing of growth,
const SNAPSHOTS: u64 = 3;
/// nor do those of a shorter time.
const SPAN: Nanos = Nanos::from_seconds(300);

/// A kind of machine, and the age of processes on it.
type Place<'a> = (&'a Hardware, bool);

/// First and last hop.
type Span = (Hop, Hop);

/// Pods by kind of machine and whether they are of the head, and by bucket.
pub(super) type Pods = BTreeMap<(Hardware, bool), BTreeMap<Bucket, Vec<PodTally>>>;

/// Which column holds a kind of count.
pub(super) fn column(kind: CountKind) -> usize {
    match kind {
        CountKind::SelfCount => 0,
        CountKind::Total => 1,
    }
}

/// When and where both arms ran at the same time and at the same age.
#[derive(Debug)]
pub(super) struct Concurrent<'a> {
    id: &'a ComparisonId,
    /// Of each kind of machine: whether the smaller arm has the most buckets of young pods, and when both arms ran at that age.
    places: BTreeMap<&'a Hardware, (bool, Span)>,
}

/// Bytes, or nanoseconds, of a pod, and the samples that stand for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figure {
    pub(super) value: u64,
    pub(super) samples: u64,
    /// Snapshots with a byte.
    held_in: u64,
    /// Sum of ln bytes times the hours from the mean snapshot.
    moment: f64,
}

/// What one pod did.
#[derive(Clone, Debug, Default)]
pub(super) struct PodTally {
    pub(super) requests: u64,
    /// Profiles with samples.
    pub(super) snapshots: u64,
    /// Sum of the squares of their hours from the mean; 0 if they are too few or too close together.
    spread: f64,
    pub(super) all: Figure,
    /// Self and total by the cell's number.
    pub(super) functions: BTreeMap<usize, [Figure; 2]>,
}

impl<'a> Concurrent<'a> {
    /// Finds it in the window of a cell; `None` if neither arm has a sample there.
    pub(super) fn of(counts: &'a CellCounts, id: &'a ComparisonId) -> Option<Self> {
        let mut spans: BTreeMap<(Place<'_>, bool), Span> = BTreeMap::new();
        for (addition, is_head) in counted(counts, id) {
            let place = (&addition.hardware, addition.age.is_young());
            let span = spans.entry((place, is_head)).or_insert((addition.own, addition.own));
            *span = (span.0.min(addition.own), span.1.max(addition.own));
        }
        if spans.is_empty() {
            return None;
        }
        let in_both = spans.iter().filter(|((_, is_head), _)| *is_head).filter_map(|((place, _), head)| {
            let base = spans.get(&(*place, false))?;
            let both = (head.0.max(base.0), head.1.min(base.1));
            (both.0 <= both.1).then_some((*place, both))
        });
        let shared: BTreeMap<Place<'_>, Span> = in_both.collect();
        let mut buckets: BTreeMap<(Place<'_>, bool), BTreeSet<Bucket>> = BTreeMap::new();
        for (addition, is_head) in counted(counts, id) {
            let place = (&addition.hardware, addition.age.is_young());
            if shared.get(&place).is_some_and(|span| holds(*span, addition.own)) {
                buckets.entry((place, is_head)).or_default().insert(addition.bucket);
            }
        }
        let of_arm = |place, is_head| buckets.get(&(place, is_head)).map_or(0, BTreeSet::len);
        let smaller = |place| of_arm(place, true).min(of_arm(place, false));
        let mut places: BTreeMap<&Hardware, (bool, Span)> = BTreeMap::new();
        // Old before young, which must have more.
        for (&(hardware, age), &span) in &shared {
            let known = places.get(hardware).map(|(age, _)| smaller((hardware, *age)));
            if known.is_none_or(|known| smaller((hardware, age)) > known) {
                places.insert(hardware, (age, span));
            }
        }
        Some(Self { id, places })
    }

    /// What the pods did there. For a level, each profile is a snapshot.
    pub(super) fn pods(&self, counts: &CellCounts, clock: HopClock, is_level: bool) -> Pods {
        let mut pods: BTreeMap<(&Hardware, bool, Bucket, &PodId), Vec<&Addition>> = BTreeMap::new();
        for (addition, is_head) in in_arms(counts, self.id) {
            let place = self.places.get(&addition.hardware);
            if place.is_some_and(|(age, span)| *age == addition.age.is_young() && holds(*span, addition.own)) {
                let key = (&addition.hardware, is_head, addition.bucket, &addition.pod);
                pods.entry(key).or_default().push(addition);
            }
        }
        let mut buckets = Pods::new();
        for ((hardware, is_head, bucket, _), additions) in pods {
            if let Some(tally) = PodTally::of(&additions, counts, clock, is_level) {
                let arm = buckets.entry((hardware.clone(), is_head)).or_default();
                arm.entry(bucket).or_default().push(tally);
            }
        }
        buckets
    }
}

fn holds(span: Span, hop: Hop) -> bool {
    span.0 <= hop && hop <= span.1
}

/// What the window holds of both arms, each with whether it is of the head.
fn in_arms<'a>(counts: &'a CellCounts, id: &'a ComparisonId) -> impl Iterator<Item = (&'a Addition, bool)> {
    let arm_of = |build: &Build| if *build == id.head { Some(true) } else { id.base.contains(build).then_some(false) };
    counts.in_window().filter_map(move |(_, addition)| Some((addition, arm_of(&addition.build)?)))
}

/// The same without what only served requests.
fn counted<'a>(counts: &'a CellCounts, id: &'a ComparisonId) -> impl Iterator<Item = (&'a Addition, bool)> {
    in_arms(counts, id).filter(|(addition, _)| addition.samples > 0)
}

impl PodTally {
    /// What was added of one pod; `None` without samples. Its requests count from its first profile to its last.
    fn of(additions: &[&Addition], counts: &CellCounts, clock: HopClock, is_level: bool) -> Option<Self> {
        let with_samples = || additions.iter().filter(|addition| addition.samples > 0);
        let span = (with_samples().map(|one| one.own).min()?, with_samples().map(|one| one.own).max()?);
        let hours = |hop: Hop| clock.length_of(hop.0.saturating_sub(span.0.0)).as_seconds() / 3600.0;
        let mut tally = Self {
            requests: additions.iter().filter(|one| holds(span, one.own)).map(|one| one.requests).sum(),
            snapshots: with_samples().map(|_| 1).sum(),
            ..Self::default()
        };
        let mean = with_samples().map(|one| hours(one.own)).sum::<f64>() / float(tally.snapshots);
        let is_long = clock.length_of(span.1.0 - span.0.0) >= SPAN;
        if is_level && is_long && tally.snapshots >= SNAPSHOTS {
            tally.spread = with_samples().map(|one| (hours(one.own) - mean) * (hours(one.own) - mean)).sum();
        }
        for addition in additions {
            let from_mean = if is_level { hours(addition.own) - mean } else { 0.0 };
            tally.all.add(addition.value, addition.samples, from_mean);
            for (number, own_and_total) in counts.entries_with_values(addition) {
                let sums = tally.functions.entry(number).or_default();
                for (sum, (value, samples)) in sums.iter_mut().zip(own_and_total) {
                    sum.add(value, samples, from_mean);
                }
            }
        }
        Some(tally)
    }

    /// By how much ln of a figure grows in an hour; `None` if the snapshots are too few, or one has nothing of it.
    pub(super) fn slope(&self, figure: &Figure) -> Option<f64> {
        (self.spread > 0.0 && figure.held_in == self.snapshots).then(|| figure.moment / self.spread)
    }
}

impl Figure {
    fn add(&mut self, value: u64, samples: u64, from_mean: f64) {
        self.value += value;
        self.samples += samples;
        if value > 0 {
            self.held_in += 1;
            self.moment += libm::log(float(value)) * from_mean;
        }
    }
}
