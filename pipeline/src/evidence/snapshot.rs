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
use fleetdiff_statistics::{Arm, BucketCounts, BucketRow, Contrast, Stratum};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use crate::counts::functions::CellFunctions;
use crate::counts::plane::Plane;

/// The counts of one cell, by stratum, arm and bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Stable hash and name of each function, by the cell's number.
    functions: Vec<(u64, Arc<str>)>,
    /// One entry a stratum.
    strata: Vec<[Vec<SnapshotBucket>; 2]>,
    /// Strata that both arms share, and those in which one is missing.
    kept: usize,
    dropped: usize,
    /// Whether the base is history.
    of_history: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SnapshotBucket {
    bucket: u8,
    samples: u64,
    requests: u64,
    pods: Vec<PodId>,
    /// (function, count), ascending, of each kind.
    own: Vec<(u32, u64)>,
    total: Vec<(u32, u64)>,
}

impl Snapshot {
    /// The counts of a cell's arms.
    pub fn of(functions: &CellFunctions, arms: &CellArms<'_>) -> Self {
        let mut strata: Vec<[Vec<SnapshotBucket>; 2]> = Vec::new();
        arms.for_each_row(|stratum, side, bucket, states| {
            if stratum >= strata.len() {
                strata.resize_with(stratum + 1, Default::default);
            }
            let sparse = |kind| {
                let planes: Vec<&Plane> = states.iter().flat_map(|state| state.planes(kind)).collect();
                let sums =
                    functions.places().iter().map(|&f| planes.iter().map(|plane| plane.get(index_of(f))).sum::<u64>());
                let numbered = (0u32..).zip(sums);
                numbered.filter(|&(_, count)| count > 0).collect::<Vec<_>>()
            };
            let pods: BTreeSet<_> = states.iter().flat_map(|state| state.pods.keys().cloned()).collect();
            strata[stratum][index(side)].push(SnapshotBucket {
                bucket: bucket.0,
                samples: states.iter().map(|state| state.samples).sum(),
                requests: states.iter().map(|state| state.requests).sum(),
                pods: pods.into_iter().collect(),
                own: sparse(CountKind::SelfCount),
                total: sparse(CountKind::Total),
            });
        });
        Self {
            functions: functions.entries().to_vec(),
            strata,
            kept: arms.kept,
            dropped: arms.dropped,
            of_history: arms.of_history,
        }
    }
}

impl Snapshot {
    /// The base alone, its pods in even buckets as head against those in odd ones; `None` if no stratum has both.
    pub(crate) fn halves_of_base(&self) -> Option<Self> {
        let halves = |[_, base]: &[Vec<SnapshotBucket>; 2]| -> [Vec<SnapshotBucket>; 2] {
            let (even, odd) = base.iter().cloned().partition(|bucket| bucket.bucket % 2 == 0);
            [even, odd]
        };
        let strata: Vec<_> =
            self.strata.iter().map(halves).filter(|arms| arms.iter().all(|arm| !arm.is_empty())).collect();
        let kept = strata.len();
        (kept > 0).then(|| Self {
            functions: self.functions.clone(),
            dropped: self.strata.len() - kept,
            kept,
            strata,
            of_history: self.of_history,
        })
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
    dropped: usize,
    of_history: bool,
}

#[derive(Debug)]
struct Bucket {
    bucket: u8,
    samples: u64,
    requests: u64,
    pods: Vec<PodId>,
    own: Sparse,
    total: Sparse,
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
        let dropped = cells.iter().map(|cell| cell.dropped).sum();
        let of_history = cells.iter().any(|cell| cell.of_history);
        Self { functions, strata, kept: cells.iter().map(|cell| cell.kept).sum(), dropped, of_history }
    }

    /// The input of the tests for one kind of count.
    pub fn contrast(&self, kind: CountKind, untested: Option<usize>) -> Contrast<'_> {
        let strata =
            self.strata.iter().map(|[head, base]| Stratum { head: arm(head, kind), base: arm(base, kind) }).collect();
        let mut contrast = Contrast::new(
            self.functions.len(),
            strata,
            self.pods_by_bucket(Side::Head),
            self.pods_by_bucket(Side::Base),
        );
        contrast.strata_dropped = self.dropped;
        contrast.imbalance = self.of_history;
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

    /// Samples of each function in an arm.
    pub fn counts(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let mut sums = vec![0.0; self.functions.len()];
        self.buckets(side).for_each(|bucket| bucket.counts(kind).add_to(0, &mut sums));
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
    fn counts(&self, kind: CountKind) -> &Sparse {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

fn arm(buckets: &[Bucket], kind: CountKind) -> Arm<'_> {
    let row = |bucket| row_of(bucket, kind);
    Arm { rows: buckets.iter().map(row).collect() }
}

fn row_of(bucket: &Bucket, kind: CountKind) -> BucketRow<'_> {
    BucketRow { bucket: u16::from(bucket.bucket), exposure: bucket.samples, counts: vec![bucket.counts(kind)] }
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
    let each = buckets.iter().map(|bucket| Bucket {
        bucket: bucket.bucket,
        samples: bucket.samples,
        requests: bucket.requests,
        pods: bucket.pods.clone(),
        own: sparse(&bucket.own),
        total: sparse(&bucket.total),
    });
    each.collect()
}

fn index(side: Side) -> usize {
    match side {
        Side::Head => 0,
        Side::Base => 1,
    }
}
