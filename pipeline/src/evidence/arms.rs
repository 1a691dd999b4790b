//! The builds of a cell as two arms, stratum by stratum.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::{Bucket, Build, PodId};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;

use crate::counts::cell::{Arms, BucketState, CellCounts};
use crate::rules::comparisons::OpenComparison;
use crate::statistics::{Arm, BucketCounts, BucketRow, Contrast, Stratum};

/// One bucket of one arm in one stratum: a state for each of the arm's builds that has one.
#[derive(Debug)]
struct Row<'a> {
    bucket: Bucket,
    states: Vec<&'a BucketState>,
}

impl Row<'_> {
    fn samples(&self) -> u64 {
        self.states.iter().map(|state| state.samples).sum()
    }
}

/// One stratum of one comparison.
#[derive(Debug)]
struct StratumArms<'a> {
    block: Hop,
    head: Vec<Row<'a>>,
    base: Vec<Row<'a>>,
}

/// Which of the two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The build in question.
    Head,
    /// What it is compared with.
    Base,
}

/// The arms of one comparison in one cell and scope. If no stratum has both arms, all strata are held, for the figures.
#[derive(Debug)]
pub struct CellArms<'a> {
    functions: usize,
    strata: Vec<StratumArms<'a>>,
    /// Strata that both arms share.
    pub kept: usize,
    /// Strata in which an arm is missing.
    pub dropped: usize,
    /// Time blocks of the strata that both arms share.
    pub blocks: usize,
}

impl<'a> CellArms<'a> {
    /// The arms of a comparison.
    pub fn of(cell: &'a CellCounts, scope: Scope, comparison: &OpenComparison) -> Self {
        let of = |arms: &'a Arms, builds: &[Build]| rows(arms, builds);
        let all: Vec<_> = cell
            .strata(scope, comparison.epoch)
            .map(|(key, arms)| StratumArms {
                block: key.block,
                head: of(arms, std::slice::from_ref(&comparison.id.head)),
                base: of(arms, &comparison.id.base),
            })
            .filter(|stratum| !(stratum.head.is_empty() && stratum.base.is_empty()))
            .collect();
        let shared = |stratum: &StratumArms<'_>| !stratum.head.is_empty() && !stratum.base.is_empty();
        let kept = all.iter().filter(|stratum| shared(stratum)).count();
        let dropped = all.len() - kept;
        let strata: Vec<_> = if kept == 0 { all } else { all.into_iter().filter(shared).collect() };
        let blocks = if kept == 0 { BTreeSet::new() } else { strata.iter().map(|stratum| stratum.block).collect() };
        Self { functions: cell.functions().len(), strata, kept, dropped, blocks: blocks.len() }
    }

    /// What the tests see of one kind of count. `untested` is left out of every test.
    pub fn contrast(&self, kind: CountKind, untested: Option<usize>) -> Contrast<'a> {
        let arm = |rows: &[Row<'a>]| Arm {
            rows: rows
                .iter()
                .map(|row| BucketRow {
                    bucket: u16::from(row.bucket.0),
                    exposure: row.samples(),
                    counts: row.states.iter().flat_map(|&state| state.planes(kind)).map(|plane| -> &dyn BucketCounts { plane }).collect(),
                })
                .collect(),
        };
        let strata = self.strata.iter().map(|stratum| Stratum { head: arm(&stratum.head), base: arm(&stratum.base) });
        let mut contrast = Contrast::new(self.functions, strata.collect(), self.pods_by_bucket(Side::Head), self.pods_by_bucket(Side::Base));
        contrast.untested = untested;
        contrast
    }

    /// Figures of an arm but for the function's own.
    pub fn figures(&self, side: Side) -> ArmFigures {
        let total: u64 = self.rows(side).map(Row::samples).sum();
        let requests: u64 = self.states(side).map(|state| state.requests).sum();
        let buckets: BTreeSet<_> = self.rows(side).map(|row| row.bucket).collect();
        ArmFigures {
            count: 0,
            total: whole(total),
            share: None,
            pods: whole(self.pods(side).len()),
            buckets: whole(buckets.len()),
            requests: (requests > 0).then(|| whole(requests)),
        }
    }

    /// Distinct pods of an arm.
    pub fn pods(&self, side: Side) -> BTreeSet<&'a PodId> {
        self.states(side).flat_map(|state| state.pods.keys()).collect()
    }

    /// Samples of each function in an arm.
    pub fn counts(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let mut sums = vec![0.0; self.functions];
        self.states(side).flat_map(|state| state.planes(kind)).for_each(|plane| plane.add_to(0, &mut sums));
        sums
    }

    fn rows(&self, side: Side) -> impl Iterator<Item = &Row<'a>> {
        self.strata.iter().flat_map(move |stratum| match side {
            Side::Head => &stratum.head,
            Side::Base => &stratum.base,
        })
    }

    fn states(&self, side: Side) -> impl Iterator<Item = &'a BucketState> {
        self.rows(side).flat_map(|row| row.states.iter().copied())
    }

    fn pods_by_bucket(&self, side: Side) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<&PodId>> = BTreeMap::new();
        for row in self.rows(side) {
            let here = pods.entry(u16::from(row.bucket.0)).or_default();
            here.extend(row.states.iter().flat_map(|state| state.pods.keys()));
        }
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(u32::MAX))).collect()
    }

    /// Every stratum's block and rows, for a snapshot: head rows, then base rows, as (bucket, states).
    pub fn for_each_row(&self, mut visit: impl FnMut(usize, Side, Bucket, &[&'a BucketState])) {
        for (index, stratum) in self.strata.iter().enumerate() {
            stratum.head.iter().for_each(|row| visit(index, Side::Head, row.bucket, &row.states));
            stratum.base.iter().for_each(|row| visit(index, Side::Base, row.bucket, &row.states));
        }
    }
}

fn rows<'a>(arms: &'a Arms, builds: &[Build]) -> Vec<Row<'a>> {
    let mut rows: BTreeMap<Bucket, Vec<&'a BucketState>> = BTreeMap::new();
    for build in builds {
        let buckets = (build.clone(), Bucket(0))..=(build.clone(), Bucket(u8::MAX));
        for ((_, bucket), state) in arms.range(buckets).filter(|(_, state)| state.samples > 0) {
            rows.entry(*bucket).or_default().push(state);
        }
    }
    rows.into_iter().map(|(bucket, states)| Row { bucket, states }).collect()
}

/// A count as tables hold it.
pub fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
