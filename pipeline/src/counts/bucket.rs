//! What a profile adds, and what the pods of one bucket have added up to.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};

use super::encoding::{Entry, decode};
use super::functions::CellFunctions;
use super::plane::Plane;

/// How long the process of a pod had been running, as far as it matters for comparing it with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Age {
    /// Long enough to have warmed up, or of unknown age.
    Old,
    /// It may still be warming up: so many times its age could double before it would be old, at most [`Age::YOUNGEST`].
    Young(u8),
}

impl Age {
    /// What is younger than a quarter of the time after which it is old is of one age.
    pub const YOUNGEST: u8 = 2;

    /// Of a process that has run for `age`, where it is old after `young`.
    ///
    /// ```
    /// use fleetdiff_pipeline::counts::bucket::Age;
    /// use fleetdiff_schemas::time::Nanos;
    ///
    /// let minutes = |minutes: i64| Nanos::from_seconds(60 * minutes);
    /// let of = |age| Age::of(minutes(age), minutes(10));
    /// assert_eq!([of(12), of(10), of(9), of(5)], [Age::Old, Age::Old, Age::Young(0), Age::Young(0)]);
    /// assert_eq!([of(4), of(3), of(2), of(0)], [Age::Young(1), Age::Young(1), Age::Young(2), Age::Young(2)]);
    /// ```
    pub fn of(age: Nanos, young: Nanos) -> Self {
        if age >= young {
            return Self::Old;
        }
        let is_below = |halvings: &u8| age.0 < young.0 >> halvings;
        Self::Young((1..=Self::YOUNGEST).take_while(is_below).last().unwrap_or(0))
    }

    /// Whether it may still be warming up.
    pub fn is_young(self) -> bool {
        self != Self::Old
    }
}

/// A time block, a kind of machine and an age; only samples of the same stratum are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StratumKey {
    /// First hop of the time block.
    pub block: Hop,
    /// The kind of machine.
    pub hardware: Hardware,
    /// How old the pods were.
    pub age: Age,
}

/// What one profile of one pod adds to a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// The hop of its event time.
    pub own: Hop,
    /// The kind of machine.
    pub hardware: Hardware,
    /// The build.
    pub build: Build,
    /// The replicate.
    pub pod: PodId,
    /// Its bucket.
    pub bucket: Bucket,
    /// When its process began, if known.
    pub started: Nanos,
    /// How old the process was at this hop.
    pub age: Age,
    /// Samples in all.
    pub samples: u64,
    /// Operations served.
    pub requests: u64,
    /// Counts by function, see [`super::encoding`].
    #[serde(with = "serde_bytes")]
    pub functions: Vec<u8>,
    /// Samples by call path, see [`super::paths`]; empty if the profile came without stacks.
    #[serde(with = "serde_bytes")]
    pub paths: Vec<u8>,
    /// Values of the samples by function, as `functions` has their counts; empty if the profile does not say them, or if each sample
    /// stands for as much.
    #[serde(with = "serde_bytes")]
    pub values: Vec<u8>,
    /// Their sum.
    pub value: u64,
}

impl Addition {
    /// What each sample stands for, if that is the same for all and known.
    pub(crate) fn value_of_each(&self) -> Option<u64> {
        let is_same = self.values.is_empty() && self.value > 0 && self.samples > 0;
        is_same.then(|| self.value / self.samples)
    }

    /// Whole minutes from the start of the process to that of the hop.
    pub(super) fn minutes_old(&self, clock: HopClock) -> u64 {
        let minute = Nanos::from_seconds(60).0;
        u64::try_from(clock.start_of(self.own).since(self.started).0 / minute).unwrap_or(0)
    }
}

/// Counts of the pods of one build that share a bucket, in one stratum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BucketState {
    /// Samples in all.
    pub samples: u64,
    /// Operations served.
    pub requests: u64,
    /// Sum over profiles of the square of their samples: how unevenly the samples are spread over time.
    pub hop_squares: u128,
    /// Counts by function where it is the leaf, and where it is above the leaf. They are separate because most
    /// functions are nearly always one or the other, so that a sample touches one column.
    columns: [Plane; 2],
    /// Sums over profiles of the pairs of samples that share a function, split as the counts are; 0 for most functions.
    pairs: [Plane; 2],
    /// Distinct pods with samples, and how many additions hold each.
    pub pods: BTreeMap<PodId, u32>,
}

impl BucketState {
    /// Counts that were kept elsewhere: entries by place in columns, and the pods that had samples.
    pub(super) fn kept(sizes: KeptSizes, pods: impl Iterator<Item = PodId>) -> Self {
        let KeptSizes { samples, requests, hop_squares } = sizes;
        let pods = pods.map(|pod| (pod, 1)).collect();
        Self { samples, requests, hop_squares, pods, ..Self::default() }
    }

    /// Adds counts of several profiles.
    #[inline(always)]
    pub(super) fn add_counts(&mut self, function: usize, counts: Entry) {
        for_column(counts, |column, count| self.columns[column].add(function, count));
    }

    /// Adds pairs of samples of several profiles.
    pub(super) fn add_pairs(&mut self, function: usize, pairs: Entry) {
        for_column(pairs, |column, count| self.pairs[column].add(function, count));
    }

    /// The columns that add up to a kind of count.
    pub(crate) fn planes(&self, kind: CountKind) -> &[Plane] {
        of_kind(&self.columns, kind)
    }

    /// The columns that add up to the pairs of samples of a profile that share a function.
    pub(crate) fn pairs(&self, kind: CountKind) -> &[Plane] {
        of_kind(&self.pairs, kind)
    }

    /// Marks the places of functions that have samples.
    pub(super) fn mark_used(&self, used: &mut [bool]) {
        self.columns.iter().chain(&self.pairs).for_each(|plane| plane.mark_used(used));
    }

    /// Bytes of its columns.
    pub fn size(&self) -> usize {
        self.columns.iter().chain(&self.pairs).map(Plane::size).sum()
    }

    pub(super) fn add(&mut self, addition: &Addition) {
        self.samples += addition.samples;
        self.requests += addition.requests;
        self.hop_squares += square(addition.samples);
        if addition.samples == 0 {
            return;
        }
        match self.pods.get_mut(&addition.pod) {
            Some(held) => *held += 1,
            None => drop(self.pods.insert(addition.pod.clone(), 1)),
        }
    }

    /// Adds entries of one profile.
    #[inline]
    pub(super) fn add_entries(&mut self, entries: impl Iterator<Item = (usize, Entry)>) {
        for (function, entry) in entries {
            self.add_counts(function, entry);
            if entry.total > 1 {
                self.add_pairs(function, entry.pairs());
            }
        }
    }

    pub(super) fn subtract(&mut self, addition: &Addition, functions: &CellFunctions) {
        self.samples -= addition.samples;
        self.requests -= addition.requests;
        self.hop_squares -= square(addition.samples);
        if addition.samples > 0 {
            self.release(&addition.pod, 1);
        }
        for (function, entry) in known(addition, functions) {
            for_column(entry, |column, count| self.columns[column].subtract(function, count));
            if entry.total > 1 {
                for_column(entry.pairs(), |column, count| self.pairs[column].subtract(function, count));
            }
        }
    }

    fn release(&mut self, pod: &PodId, times: u32) {
        if let Some(held) = self.pods.get_mut(pod) {
            *held -= times;
            if *held == 0 {
                self.pods.remove(pod);
            }
        }
    }

    /// The counts less those of `other`, which is a part of this bucket.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.samples -= other.samples;
        rest.requests -= other.requests;
        rest.hop_squares -= other.hop_squares;
        other.pods.iter().for_each(|(pod, &times)| rest.release(pod, times));
        rest.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.take_back(other));
        rest.pairs.iter_mut().zip(&other.pairs).for_each(|(column, other)| column.take_back(other));
        rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.samples == 0 && self.requests == 0
    }
}

/// What was kept of a bucket, besides counts by function.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptSizes {
    pub samples: u64,
    pub requests: u64,
    pub hop_squares: u128,
}

pub(super) fn square(samples: u64) -> u128 {
    u128::from(samples) * u128::from(samples)
}

fn of_kind(columns: &[Plane; 2], kind: CountKind) -> &[Plane] {
    match kind {
        CountKind::SelfCount => &columns[..1],
        CountKind::Total => columns,
    }
}

/// Which column gets how much of an entry. A function is in both columns only if it calls itself, or calls something in
/// some of its samples.
#[inline(always)]
fn for_column(entry: Entry, mut act: impl FnMut(usize, u64)) {
    let above = entry.total.saturating_sub(entry.own);
    if entry.own > 0 && above > 0 {
        act(0, entry.own);
        act(1, above);
    } else {
        act(usize::from(entry.own == 0), entry.total);
    }
}

/// The entries of an addition whose functions the cell has met, with their places in columns.
pub(super) fn known<'a>(
    addition: &'a Addition,
    functions: &'a CellFunctions,
) -> impl Iterator<Item = (usize, Entry)> + 'a {
    decode(&addition.functions).filter_map(|entry| Some((functions.place(entry.function)?, entry)))
}
