//! A cell's counts, on their way to the operator that merges cells.
//!
//! The row over several cells is the stratified test with (cell, stratum) as strata: the residuals of a bucket of pods
//! are summed over its cells before they are squared, since cohorts share pods. That needs the counts of the cells, not
//! their results.

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
use crate::counts::plane::Plane;

/// The counts of one cell, by stratum, arm and bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Stable hash and name of each function, by the cell's number.
    functions: Vec<(u64, Arc<str>)>,
    /// One entry a stratum.
    strata: Vec<[Vec<SnapshotBucket>; 2]>,
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

/// Counts of one kind and pairs of samples that share a profile, by function, ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KindCounts<C> {
    counts: C,
    pairs: C,
}

impl Snapshot {
    /// The counts of a cell's arms.
    pub fn of(functions: &CellFunctions, arms: &CellArms<'_>) -> Self {
        let mut strata: Vec<[Vec<SnapshotBucket>; 2]> = Vec::new();
        arms.for_each_row(|stratum, side, bucket, states| {
            if stratum >= strata.len() {
                strata.resize_with(stratum + 1, Default::default);
            }
            let sparse = |planes: Vec<&Plane>| {
                let sums =
                    functions.places().iter().map(|&f| planes.iter().map(|plane| plane.get(index_of(f))).sum::<u64>());
                let numbered = (0u32..).zip(sums);
                numbered.filter(|&(_, count)| count > 0).collect::<Vec<_>>()
            };
            let of_kind = |kind| KindCounts {
                counts: sparse(states.iter().flat_map(|state| state.planes(kind)).collect()),
                pairs: sparse(states.iter().flat_map(|state| state.pairs(kind)).collect()),
            };
            let pods: BTreeSet<_> = states.iter().flat_map(|state| state.pods.keys().cloned()).collect();
            strata[stratum][index(side)].push(SnapshotBucket {
                bucket: bucket.0,
                samples: states.iter().map(|state| state.samples).sum(),
                requests: states.iter().map(|state| state.requests).sum(),
                hop_squares: states.iter().map(|state| state.hop_squares).sum(),
                pods: pods.into_iter().collect(),
                own: of_kind(CountKind::SelfCount),
                total: of_kind(CountKind::Total),
            });
        });
        Self { functions: functions.entries().to_vec(), strata, kept: arms.kept }
    }
}

impl Snapshot {
    /// The base alone, the pods of some buckets as head against those of the others; `None` if no stratum has both.
    pub(crate) fn halves_of_base(&self, is_head: impl Fn(u8) -> bool) -> Option<Self> {
        let halves = |[_, base]: &[Vec<SnapshotBucket>; 2]| -> [Vec<SnapshotBucket>; 2] {
            let (head, base) = base.iter().cloned().partition(|bucket| is_head(bucket.bucket));
            [head, base]
        };
        let strata: Vec<_> =
            self.strata.iter().map(halves).filter(|arms| arms.iter().all(|arm| !arm.is_empty())).collect();
        let kept = strata.len();
        (kept > 0).then(|| Self { functions: self.functions.clone(), kept, strata })
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
    /// The cell's number of the function with this stable hash.
    fn number_of(&self, hash: u64) -> Option<u32> {
        let place = self.functions.iter().position(|(other, _)| *other == hash);
        place.and_then(|place| u32::try_from(place).ok())
    }
}

impl SnapshotBucket {
    /// `counted` is a function's number and kind; `None` for all samples.
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
pub(crate) struct Together {
    /// Stable hash and name of each function, ascending.
    pub functions: Vec<(u64, Arc<str>)>,
    /// Strata of the cells that both arms share; all strata if none is.
    strata: Vec<[Vec<Bucket>; 2]>,
    /// Strata of the cells that both arms share.
    pub kept: usize,
}

#[derive(Debug)]
struct Bucket {
    bucket: u8,
    samples: u64,
    requests: u64,
    hop_squares: u128,
    pods: Vec<PodId>,
    own: KindCounts<Sparse>,
    total: KindCounts<Sparse>,
}

/// Counts of the functions that have any, ascending.
#[derive(Debug)]
struct Sparse(Vec<(usize, u64)>);

impl BucketCounts for Sparse {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        let from = self.0.partition_point(|&(f, _)| f < start);
        let end = start + out.len();
        for &(f, count) in self.0[from..].iter().take_while(|&&(f, _)| f < end) {
            out[f - start] += float(count);
        }
    }

    fn add_only(&self, functions: &[u32], out: &mut [f64]) {
        let Some(&first) = functions.first() else { return };
        let from = self.0.partition_point(|&(f, _)| f < index_of(first));
        let mut held = self.0[from..].iter().peekable();
        for (sum, &function) in out.iter_mut().zip(functions) {
            let function = index_of(function);
            while held.next_if(|(f, _)| *f < function).is_some() {}
            *sum += held.next_if(|(f, _)| *f == function).map_or(0.0, |&(_, count)| float(count));
        }
    }
}

impl Together {
    /// Merges cells, in the order given.
    pub fn of(cells: &[&Snapshot]) -> Self {
        let union: BTreeMap<u64, Arc<str>> = cells.iter().flat_map(|cell| cell.functions.iter().cloned()).collect();
        let functions: Vec<_> = union.into_iter().collect();
        let any_kept = cells.iter().any(|cell| cell.kept > 0);
        let mut strata = Vec::new();
        for cell in cells.iter().filter(|cell| !any_kept || cell.kept > 0) {
            let numbers: Vec<usize> =
                cell.functions.iter().map(|(hash, _)| functions.partition_point(|(other, _)| other < hash)).collect();
            strata.extend(cell.strata.iter().map(|arms| arms.each_ref().map(|arm| renumbered(arm, &numbers))));
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
        let buckets = || self.buckets(side);
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
        let known = |side| are_known(self.buckets(side).map(|of| (of.bucket, of.requests)));
        known(Side::Head) && known(Side::Base)
    }

    /// The support that the pods of both arms give; none without a stratum in common.
    pub fn support(&self) -> Support {
        let pods = |side| self.figures(side).pods;
        if self.kept > 0 { support_of(pods(Side::Head), pods(Side::Base), f64::INFINITY) } else { Support::Untestable }
    }

    /// The pods of an arm that share a bucket, ascending.
    pub fn pods_of_bucket(&self, side: Side, bucket: u16) -> Vec<String> {
        let here = self.buckets(side).filter(|of| u16::from(of.bucket) == bucket);
        let pods: BTreeSet<&PodId> = here.flat_map(|bucket| &bucket.pods).collect();
        pods.into_iter().map(|pod| pod.as_str().to_owned()).collect()
    }

    /// Samples of each function in an arm.
    pub fn counts(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let mut sums = vec![0.0; self.functions.len()];
        self.buckets(side).for_each(|bucket| bucket.of_kind(kind).counts.add_to(0, &mut sums));
        sums
    }

    fn buckets(&self, side: Side) -> impl Iterator<Item = &Bucket> {
        self.strata.iter().flat_map(move |arms| &arms[index(side)])
    }

    fn pods_by_bucket(&self, side: Side) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<&PodId>> = BTreeMap::new();
        self.buckets(side).for_each(|bucket| pods.entry(u16::from(bucket.bucket)).or_default().extend(&bucket.pods));
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(u32::MAX))).collect()
    }
}

impl Bucket {
    fn of_kind(&self, kind: CountKind) -> &KindCounts<Sparse> {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

fn arm(buckets: &[Bucket], kind: CountKind) -> Arm<'_> {
    let pairs = |bucket| -> &dyn BucketCounts { &Bucket::of_kind(bucket, kind).pairs };
    Arm {
        rows: buckets.iter().map(|bucket| row_of(bucket, kind)).collect(),
        hop_pairs: buckets.iter().map(pairs).collect(),
    }
}

fn row_of(bucket: &Bucket, kind: CountKind) -> BucketRow<'_> {
    BucketRow {
        bucket: u16::from(bucket.bucket),
        samples: bucket.samples,
        requests: bucket.requests,
        hop_concentration: hop_concentration(bucket.hop_squares, bucket.samples),
        counts: vec![&bucket.of_kind(kind).counts],
    }
}

fn renumbered(buckets: &[SnapshotBucket], numbers: &[usize]) -> Vec<Bucket> {
    let sparse = |counts: &[(u32, u64)]| {
        let mut counts: Vec<_> = counts
            .iter()
            .filter_map(|&(f, count)| {
                usize::try_from(f).ok().and_then(|f| numbers.get(f)).map(|&number| (number, count))
            })
            .collect();
        counts.sort_unstable();
        Sparse(counts)
    };
    let of_kind =
        |kind: &KindCounts<Vec<(u32, u64)>>| KindCounts { counts: sparse(&kind.counts), pairs: sparse(&kind.pairs) };
    let each = buckets.iter().map(|bucket| Bucket {
        bucket: bucket.bucket,
        samples: bucket.samples,
        requests: bucket.requests,
        hop_squares: bucket.hop_squares,
        pods: bucket.pods.clone(),
        own: of_kind(&bucket.own),
        total: of_kind(&bucket.total),
    });
    each.collect()
}

fn index(side: Side) -> usize {
    match side {
        Side::Head => 0,
        Side::Base => 1,
    }
}
