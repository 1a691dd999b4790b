//! A cell's counts, on their way to the operator that merges cells.
//!
//! The row over several cells is the stratified test with (cell, stratum) as strata: the residuals of a bucket of pods
//! are summed over its cells before they are squared, since cohorts share pods. That needs the counts of the cells, not
//! their results.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::number::{float, index_of, table_count};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::verdict::Support;
use fleetdiff_statistics::{Arm, Arms, BucketCounts, BucketRow, Contrast, Stratum, Untested};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use super::requests::are_known;
use super::strata::hop_concentration;
use super::tests::support_of;
use crate::counts::functions::CellFunctions;
use crate::counts::functions::which_of_several;
use crate::counts::plane::{Plane, SUMMED, sums};

/// The counts of one cell, by stratum, arm and bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Stable hash and name of each function, ascending by hash.
    functions: Arc<[(u64, Arc<str>)]>,
    /// One entry a stratum.
    strata: Vec<[Vec<Arc<SnapshotBucket>>; 2]>,
    /// Strata that both arms share.
    kept: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SnapshotBucket {
    bucket: u8,
    samples: u64,
    requests: u64,
    hop_squares: u128,
    pods: Vec<PodId>,
    own: KindCounts<Vec<(u32, u64)>>,
    total: KindCounts<Vec<(u32, u64)>>,
}

/// Counts of one kind and pairs of samples that share a profile, by place in the snapshot's list of functions, ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KindCounts<C> {
    counts: C,
    pairs: C,
}

impl Snapshot {
    /// The counts of a cell's arms.
    pub fn of(functions: &CellFunctions, arms: &CellArms<'_>) -> Self {
        let by_number = functions.entries();
        let mut numbers: Vec<usize> = (0..by_number.len()).collect();
        numbers.sort_unstable_by_key(|&number| by_number[number].0);
        let places: Vec<usize> = numbers.iter().map(|&number| index_of(functions.places()[number])).collect();
        let mut all = vec![0; places.iter().max().map_or(0, |&last| last + 1)];
        let mut strata: Vec<[Vec<Arc<SnapshotBucket>>; 2]> = Vec::new();
        arms.for_each_row(|stratum, side, bucket, states| {
            if stratum >= strata.len() {
                strata.resize_with(stratum + 1, Default::default);
            }
            let mut sparse = |planes: Vec<&Plane>| sparse(&planes, &places, &mut all);
            let mut of_kind = |kind| KindCounts {
                counts: sparse(states.iter().flat_map(|state| state.planes(kind)).collect()),
                pairs: sparse(states.iter().flat_map(|state| state.pairs(kind)).collect()),
            };
            let pods: BTreeSet<_> = states.iter().flat_map(|state| state.pods.keys().cloned()).collect();
            strata[stratum][index(side)].push(Arc::new(SnapshotBucket {
                bucket: bucket.0,
                samples: states.iter().map(|state| state.samples).sum(),
                requests: states.iter().map(|state| state.requests).sum(),
                hop_squares: states.iter().map(|state| state.hop_squares).sum(),
                pods: pods.into_iter().collect(),
                own: of_kind(CountKind::SelfCount),
                total: of_kind(CountKind::Total),
            }));
        });
        let functions = numbers.iter().map(|&number| by_number[number].clone()).collect();
        Self { functions, strata, kept: arms.kept }
    }
}

/// The sums of columns at these places that are more than 0, each with its index in the list; `all` has room for the sums at all places.
fn sparse(planes: &[&Plane], places: &[usize], all: &mut [u64]) -> Vec<(u32, u64)> {
    for (start, block) in (0..).step_by(SUMMED).zip(all.chunks_mut(SUMMED)) {
        sums(planes, start, block);
    }
    let numbered = (0u32..).zip(places.iter().map(|&place| all[place]));
    numbered.filter(|&(_, count)| count > 0).collect()
}

impl Snapshot {
    /// The base alone, the pods of some buckets as head against those of the others; `None` if no stratum has both.
    pub(crate) fn halves_of_base(&self, is_head: impl Fn(u8) -> bool) -> Option<Self> {
        let halves = |[_, base]: &[Vec<Arc<SnapshotBucket>>; 2]| -> [Vec<Arc<SnapshotBucket>>; 2] {
            let (head, base) = base.iter().cloned().partition(|bucket| is_head(bucket.bucket));
            [head, base]
        };
        let strata: Vec<_> =
            self.strata.iter().map(halves).filter(|arms| arms.iter().all(|arm| !arm.is_empty())).collect();
        let kept = strata.len();
        (kept > 0).then(|| Self { functions: Arc::clone(&self.functions), kept, strata })
    }
}

/// One bucket of pods in one arm and stratum, with the counts of one function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketFigures {
    /// Number of the stratum, over all cells.
    pub stratum: usize,
    /// Head or base.
    pub arm: Side,
    /// The bucket's number.
    pub bucket: u8,
    /// Distinct pods of the arm in the bucket, over all strata of all cells.
    pub pods: usize,
    /// Its samples.
    pub samples: u64,
    /// Its requests.
    pub requests: u64,
    /// Samples of the function; all samples if there is none.
    pub count: u64,
    /// Pairs of samples of the function that share a profile.
    pub pairs: u64,
    /// Sum of squared samples of profiles, over the square of their sum.
    pub concentration: f64,
}

/// The buckets of several cells, in the order given, with the counts of a function by its stable hash, or, for `None`, of all
/// samples: in the strata that both arms share.
pub(crate) fn counts_behind(cells: &[&Snapshot], function: Option<(u64, CountKind)>) -> Vec<BucketFigures> {
    let mut pods: BTreeMap<(Side, u8), BTreeSet<&PodId>> = BTreeMap::new();
    let mut figures = Vec::new();
    let mut strata = 0;
    for cell in cells.iter().filter(|cell| cell.kept > 0) {
        let counted = function.map(|(hash, kind)| (cell.number_of(hash), kind));
        for arms in &cell.strata {
            for (arm, buckets) in Side::BOTH.into_iter().zip(arms) {
                for bucket in buckets {
                    pods.entry((arm, bucket.bucket)).or_default().extend(&bucket.pods);
                    figures.push(bucket.figures(strata, arm, counted));
                }
            }
            strata += 1;
        }
    }
    for figure in &mut figures {
        figure.pods = pods.get(&(figure.arm, figure.bucket)).map_or(0, BTreeSet::len);
    }
    figures
}

impl Snapshot {
    /// The place of the function with this stable hash.
    fn number_of(&self, hash: u64) -> Option<u32> {
        let place = self.functions.binary_search_by_key(&hash, |(other, _)| *other).ok()?;
        u32::try_from(place).ok()
    }
}

impl SnapshotBucket {
    /// `counted` is a function's place and kind; `None` for all samples.
    fn figures(&self, stratum: usize, arm: Side, counted: Option<(Option<u32>, CountKind)>) -> BucketFigures {
        let of = |counts: &[(u32, u64)], number: Option<u32>| {
            let found = number.and_then(|number| counts.binary_search_by_key(&number, |(other, _)| *other).ok());
            found.map_or(0, |place| counts[place].1)
        };
        let (count, pairs) = match counted {
            None => (self.samples, 0),
            Some((number, CountKind::SelfCount)) => (of(&self.own.counts, number), of(&self.own.pairs, number)),
            Some((number, CountKind::Total)) => (of(&self.total.counts, number), of(&self.total.pairs, number)),
        };
        BucketFigures {
            stratum,
            arm,
            bucket: self.bucket,
            pods: 0,
            samples: self.samples,
            requests: self.requests,
            count,
            pairs,
            concentration: hop_concentration(self.hop_squares, self.samples),
        }
    }
}

/// Several cells as one, over the union of their functions.
#[derive(Debug)]
pub(crate) struct Together<'a> {
    /// Stable hash and name of each function, ascending.
    pub functions: Vec<(u64, Arc<str>)>,
    /// Strata of the cells that both arms share; all strata if none is.
    strata: Vec<[Vec<Bucket<'a>>; 2]>,
    /// Strata of the cells that both arms share.
    pub kept: usize,
}

#[derive(Debug)]
struct Bucket<'a> {
    of_cell: &'a SnapshotBucket,
    own: KindCounts<Renumbered<'a>>,
    total: KindCounts<Renumbered<'a>>,
}

/// Counts of a cell's bucket, by the places of functions in the union.
#[derive(Debug)]
struct Renumbered<'a> {
    counts: &'a [(u32, u64)],
    /// By place in the cell's list: the place in the union, ascending.
    places: Arc<[u32]>,
    /// Where the last read ended, since most begin there.
    read: Cell<usize>,
}

impl Renumbered<'_> {
    #[inline]
    fn get(&self, at: usize) -> Option<(u32, u64)> {
        self.counts.get(at).map(|&(f, count)| (self.places[index_of(f)], count))
    }

    /// The first that is not before this place in the union.
    fn first_from(&self, start: u32) -> usize {
        let read = self.read.get();
        let is_before = |at: usize| self.get(at).is_some_and(|(f, _)| f < start);
        if (read == 0 || is_before(read - 1)) && !is_before(read) {
            return read;
        }
        self.counts.partition_point(|&(f, _)| self.places[index_of(f)] < start)
    }
}

impl BucketCounts for Renumbered<'_> {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        let mut at = self.first_from(u32::try_from(start).unwrap_or(u32::MAX));
        while let Some((f, count)) = self.get(at)
            && let Some(sum) = out.get_mut(index_of(f) - start)
        {
            *sum += float(count);
            at += 1;
        }
        self.read.set(at);
    }

    fn add_only(&self, functions: &[u32], out: &mut [f64]) {
        let Some(&first) = functions.first() else { return };
        let mut at = self.first_from(first);
        for (sum, &function) in out.iter_mut().zip(functions) {
            while self.get(at).is_some_and(|(f, _)| f < function) {
                at += 1;
            }
            if let Some((_, count)) = self.get(at).filter(|(f, _)| *f == function) {
                *sum += float(count);
                at += 1;
            }
        }
        self.read.set(at);
    }
}

/// The functions of some cells, each once, ascending by hash.
fn union(cells: &[&Snapshot]) -> Vec<(u64, Arc<str>)> {
    let mut all: Vec<&(u64, Arc<str>)> = Vec::new();
    for cell in cells {
        let (before, mut more) = (std::mem::take(&mut all), cell.functions.iter().peekable());
        all.reserve(before.len());
        for one in before {
            all.extend(std::iter::from_fn(|| more.next_if(|other| other.0 < one.0)));
            while more.next_if(|other| other.0 == one.0).is_some() {}
            all.push(one);
        }
        all.extend(more);
    }
    all.dedup_by_key(|one| one.0);
    all.into_iter().cloned().collect()
}

/// The places of a cell's functions in a list that has all of them.
fn places_in(all: &[(u64, Arc<str>)], cell: &Snapshot) -> Arc<[u32]> {
    let mut numbered = (0u32..).zip(all).peekable();
    let place = |(hash, _): &(u64, Arc<str>)| {
        while numbered.next_if(|(_, other)| other.0 < *hash).is_some() {}
        numbered.peek().map_or(u32::MAX, |(place, _)| *place)
    };
    cell.functions.iter().map(place).collect()
}

impl<'a> Together<'a> {
    /// Merges cells, in the order given.
    pub fn of(cells: &[&'a Snapshot]) -> Self {
        let functions = union(cells);
        let any_kept = cells.iter().any(|cell| cell.kept > 0);
        let mut strata = Vec::new();
        for cell in cells.iter().filter(|cell| !any_kept || cell.kept > 0) {
            let places = places_in(&functions, cell);
            let arm =
                |arm: &'a Vec<Arc<SnapshotBucket>>| arm.iter().map(|bucket| Bucket::of(bucket, &places)).collect();
            strata.extend(cell.strata.iter().map(|arms| arms.each_ref().map(arm)));
        }
        Self { functions, strata, kept: cells.iter().map(|cell| cell.kept).sum() }
    }

    /// The input of the tests for one kind of count.
    pub fn contrast(&self, kind: CountKind, untested: Untested) -> Contrast<'_> {
        let strata =
            self.strata.iter().map(|[head, base]| Stratum { head: arm(head, kind), base: arm(base, kind) }).collect();
        let pods = Arms { head: self.pods_by_bucket(Side::Head), base: self.pods_by_bucket(Side::Base) };
        let mut contrast = Contrast::new(self.functions.len(), strata, pods);
        contrast.untested = untested;
        contrast
    }

    /// Figures of an arm, except those of the function.
    pub fn figures(&self, side: Side) -> ArmFigures {
        let buckets = || self.of_cells(side);
        let requests: u64 = buckets().map(|bucket| bucket.requests).sum();
        let pods: BTreeSet<_> = buckets().flat_map(|bucket| &bucket.pods).collect();
        let occupied: BTreeSet<_> = buckets().map(|bucket| bucket.bucket).collect();
        ArmFigures {
            count: 0,
            total: table_count(buckets().map(|bucket| bucket.samples).sum::<u64>()),
            share: None,
            pods: table_count(pods.len()),
            buckets: table_count(occupied.len()),
            requests: (requests > 0).then(|| table_count(requests)),
        }
    }

    /// The places of what stands for several functions, which is not tested.
    pub fn untested(&self) -> Untested {
        let mut untested = [None; 2];
        for (place, (hash, _)) in self.functions.iter().enumerate() {
            if let Some(which) = which_of_several(*hash) {
                untested[which] = Some(place);
            }
        }
        untested
    }

    /// Whether each bucket of both arms has requests in some stratum.
    pub fn knows_requests(&self) -> bool {
        let known = |side| are_known(self.of_cells(side).map(|of| (of.bucket, of.requests)));
        known(Side::Head) && known(Side::Base)
    }

    /// The support that the pods of both arms give; none without a stratum in common.
    pub fn support(&self) -> Support {
        let pods = |side| self.figures(side).pods;
        if self.kept > 0 { support_of(pods(Side::Head), pods(Side::Base), f64::INFINITY) } else { Support::Untestable }
    }

    /// The pods of an arm that share a bucket, ascending.
    pub fn pods_of_bucket(&self, side: Side, bucket: u16) -> Vec<String> {
        let here = self.of_cells(side).filter(|of| u16::from(of.bucket) == bucket);
        let pods: BTreeSet<&PodId> = here.flat_map(|bucket| &bucket.pods).collect();
        pods.into_iter().map(|pod| pod.as_str().to_owned()).collect()
    }

    /// Samples of each function in an arm.
    pub fn counts(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let mut sums = vec![0.0; self.functions.len()];
        self.buckets(side).for_each(|bucket| bucket.of_kind(kind).counts.add_to(0, &mut sums));
        sums
    }

    fn of_cells(&self, side: Side) -> impl Iterator<Item = &'a SnapshotBucket> {
        self.buckets(side).map(|bucket| bucket.of_cell)
    }

    fn buckets(&self, side: Side) -> impl Iterator<Item = &Bucket<'a>> {
        self.strata.iter().flat_map(move |arms| &arms[index(side)])
    }

    fn pods_by_bucket(&self, side: Side) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<&PodId>> = BTreeMap::new();
        self.of_cells(side).for_each(|bucket| pods.entry(u16::from(bucket.bucket)).or_default().extend(&bucket.pods));
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(u32::MAX))).collect()
    }
}

impl<'a> Bucket<'a> {
    fn of(of_cell: &'a SnapshotBucket, places: &Arc<[u32]>) -> Self {
        let renumbered =
            |counts: &'a Vec<(u32, u64)>| Renumbered { counts, places: Arc::clone(places), read: Cell::new(0) };
        let of_kind = |kind: &'a KindCounts<Vec<(u32, u64)>>| KindCounts {
            counts: renumbered(&kind.counts),
            pairs: renumbered(&kind.pairs),
        };
        Self { of_cell, own: of_kind(&of_cell.own), total: of_kind(&of_cell.total) }
    }

    fn of_kind(&self, kind: CountKind) -> &KindCounts<Renumbered<'a>> {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

fn arm<'t>(buckets: &'t [Bucket<'_>], kind: CountKind) -> Arm<'t> {
    let pairs = |bucket: &'t Bucket<'_>| -> &'t dyn BucketCounts { &bucket.of_kind(kind).pairs };
    Arm {
        rows: buckets.iter().map(|bucket| row_of(bucket, kind)).collect(),
        hop_pairs: buckets.iter().map(pairs).collect(),
    }
}

fn row_of<'t>(bucket: &'t Bucket<'_>, kind: CountKind) -> BucketRow<'t> {
    let of_cell = bucket.of_cell;
    BucketRow {
        bucket: u16::from(of_cell.bucket),
        samples: of_cell.samples,
        requests: of_cell.requests,
        hop_concentration: hop_concentration(of_cell.hop_squares, of_cell.samples),
        counts: vec![&bucket.of_kind(kind).counts],
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Head => 0,
        Side::Base => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cell with one bucket in each arm; `counts` by hash of the function.
    fn cell(counts: &BTreeMap<u64, [u64; 2]>) -> Snapshot {
        let arm = |side: usize| {
            let held = (0u32..).zip(counts.values().map(|counts| counts[side])).filter(|(_, count)| *count > 0);
            let counts: Vec<_> = held.collect();
            let kind = || KindCounts { counts: counts.clone(), pairs: Vec::new() };
            let samples = counts.iter().map(|(_, count)| count).sum();
            let bucket = SnapshotBucket {
                bucket: 3,
                samples,
                requests: 0,
                hop_squares: 0,
                pods: Vec::new(),
                own: kind(),
                total: kind(),
            };
            vec![Arc::new(bucket)]
        };
        let functions = counts.keys().map(|&hash| (hash, Arc::from(format!("f{hash}")))).collect();
        Snapshot { functions, strata: vec![[arm(0), arm(1)]], kept: 1 }
    }

    proptest! {
        /// Law: a function of several cells together has the samples that it has in each, however they are read.
        #[test]
        fn together_is_the_sum_of_cells(
            cells in proptest::collection::vec(proptest::collection::btree_map(0u64..40, [0u64..9, 0u64..9], 0..30), 0..5),
            start in 0usize..40,
        ) {
            let snapshots: Vec<Snapshot> = cells.iter().map(cell).collect();
            let together = Together::of(&snapshots.iter().collect::<Vec<_>>());
            let hashes: BTreeSet<u64> = cells.iter().flat_map(BTreeMap::keys).copied().collect();
            prop_assert!(together.functions.iter().map(|(hash, _)| *hash).eq(hashes.iter().copied()));
            for (index, side) in Side::BOTH.into_iter().enumerate() {
                let of = |hash: &u64| cells.iter().filter_map(|cell| cell.get(hash)).map(|counts| counts[index]).sum::<u64>();
                let expected: Vec<f64> = hashes.iter().map(|hash| float(of(hash))).collect();
                prop_assert_eq!(&together.counts(side, CountKind::SelfCount), &expected);
                let from = start.min(expected.len());
                let (mut some, mut odd) = (vec![0.0; expected.len() - from], vec![0.0; expected.len() / 2]);
                let odds: Vec<u32> = (0u32..).skip(1).step_by(2).take(odd.len()).collect();
                for bucket in together.buckets(side) {
                    for (start, block) in (from..).step_by(7).zip(some.chunks_mut(7)) {
                        bucket.total.counts.add_to(start, block);
                    }
                    bucket.total.counts.add_only(&odds, &mut odd);
                }
                prop_assert_eq!(&some[..], &expected[from..]);
                prop_assert!(odd.iter().zip(&odds).all(|(&sum, &place)| sum.to_bits() == expected[index_of(place)].to_bits()));
            }
        }
    }
}
