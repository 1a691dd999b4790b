//! The evidence in the counts of one cell, or of several together: section 5 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Hardware;
use fleetdiff_schemas::number::{float, table_count};
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Support;

use super::counts::{Archive, BASE, Cell, HEAD, Stratum};
use super::statistics::decide::{CellTest, rows_of_cell};
use super::statistics::strata::{Arm, Model, strata_test};

/// Below this, `df` is 2 or more up to rounding.
const ROUNDING: f64 = 1e-9;

/// What is known about one cell, or about several with their strata side by side.
pub(super) struct Evidence {
    /// Head and base; `count` and `share` are empty.
    pub arms: [ArmFigures; 2],
    /// Pods of head and base.
    pub pods: [BTreeSet<usize>; 2],
    /// Samples of head and base in all strata of the scope, kept or not.
    pub samples: [u64; 2],
    pub support: Support,
    /// Strata that both arms share.
    pub strata: usize,
    pub dropped: usize,
    /// Time blocks of kept strata.
    pub blocks: BTreeSet<Hop>,
    /// By count kind, both of them.
    pub kinds: BTreeMap<CountKind, KindEvidence>,
}

/// What is known about all functions in one count kind.
pub(super) struct KindEvidence {
    /// Head and base counts of functions that have any, ascending by number.
    pub counts: BTreeMap<usize, [u64; 2]>,
    /// Functions that went into the test, in its order.
    pub functions: Vec<usize>,
    /// `None` if the support is not enough for a test.
    pub test: Option<CellTest>,
}

impl KindEvidence {
    /// How many functions were tested.
    pub fn tested(&self) -> usize {
        self.test.as_ref().map_or(0, |test| test.share.tested.iter().filter(|tested| **tested).count())
    }

    /// The place of a function in the test, if it was tested.
    pub fn place(&self, function: usize) -> Option<(usize, &CellTest)> {
        let test = self.test.as_ref()?;
        let place = self.functions.iter().position(|one| *one == function)?;
        test.share.tested[place].then_some((place, test))
    }
}

/// Evaluates the strata of these cells together, in the order given.
pub(super) fn judge(config: &Config, archive: &Archive, cells: &[&Cell]) -> Evidence {
    let all: Vec<(&(Hop, Hardware), &Stratum)> = cells.iter().flat_map(|cell| cell.iter()).collect();
    let kept: Vec<_> = all.iter().copied().filter(|(_, stratum)| in_both(stratum)).collect();
    let used: Vec<&Stratum> = if kept.is_empty() { &all } else { &kept }.iter().map(|(_, stratum)| *stratum).collect();
    let pods = [HEAD, BASE].map(|arm| pods(&used, arm));
    let arms = [HEAD, BASE].map(|arm| figures(&used, arm));
    let support = match kept.is_empty() {
        true => Support::Untestable,
        false => support(&arms, degrees_of_freedom(&used)),
    };
    let mut kinds = BTreeMap::new();
    let mut normalization = None;
    for kind in CountKind::ALL {
        let found = judge_kind(config, archive, &used, kind, (support != Support::Untestable).then_some(normalization));
        normalization = normalization.or_else(|| found.test.as_ref().map(|test| test.normalization));
        kinds.insert(kind, found);
    }
    Evidence {
        arms,
        pods,
        samples: [HEAD, BASE].map(|arm| all.iter().map(|(_, stratum)| stratum[arm].samples).sum()),
        support,
        strata: kept.len(),
        dropped: all.len() - kept.len(),
        blocks: kept.iter().map(|((block, _), _)| *block).collect(),
        kinds,
    }
}

fn in_both(stratum: &Stratum) -> bool {
    stratum.iter().all(|arm| arm.samples > 0)
}

/// The strata that both arms share; all of them if there is none.
pub(super) fn kept_or_all(cell: &Cell) -> Vec<&Stratum> {
    let any = cell.values().any(in_both);
    cell.values().filter(|stratum| !any || in_both(stratum)).collect()
}

/// One count kind; tested only if `normalization` is given, which holds the normalization factor of self counts once
/// that is known.
fn judge_kind(
    config: &Config,
    archive: &Archive,
    used: &[&Stratum],
    kind: CountKind,
    normalization: Option<Option<f64>>,
) -> KindEvidence {
    let mut counts: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
    for stratum in used {
        for arm in [HEAD, BASE] {
            for bucket in stratum[arm].buckets.values() {
                for (function, of_function) in bucket.functions.iter().enumerate() {
                    let count = of_function[column(kind)];
                    if count > 0 {
                        counts.entry(function).or_default()[arm] += count;
                    }
                }
            }
        }
    }
    let frequent = |(function, count): (&usize, &[u64; 2])| {
        (count[HEAD] + count[BASE] >= config.min_count && &*archive.names[*function] != UNSYMBOLISED)
            .then_some(*function)
    };
    let functions: Vec<usize> = counts.iter().filter_map(frequent).collect();
    let test = normalization.map(|normalization| {
        let (head, base) = (arm(used, HEAD, kind, &functions), arm(used, BASE, kind, &functions));
        rows_of_cell(&head, &base, normalization, config.min_effect, float(config.min_count))
    });
    KindEvidence { counts, functions, test }
}

/// The counts of one arm as the test takes them.
fn arm(used: &[&Stratum], arm: usize, kind: CountKind, functions: &[usize]) -> Arm {
    let occupied: BTreeSet<u8> = used.iter().flat_map(|stratum| stratum[arm].buckets.keys().copied()).collect();
    let of_bucket = |stratum: &Stratum, bucket: u8| match stratum[arm].buckets.get(&bucket) {
        Some(found) => functions.iter().map(|function| float(found.functions[*function][column(kind)])).collect(),
        None => vec![0.0; functions.len()],
    };
    let samples =
        |stratum: &Stratum, bucket: u8| stratum[arm].buckets.get(&bucket).map_or(0.0, |found| float(found.samples));
    Arm {
        counts: used
            .iter()
            .map(|stratum| occupied.iter().map(|bucket| of_bucket(stratum, *bucket)).collect())
            .collect(),
        samples: used.iter().map(|stratum| occupied.iter().map(|bucket| samples(stratum, *bucket)).collect()).collect(),
        pods: occupied.iter().map(|bucket| pods_of_bucket(used, arm, *bucket)).collect(),
        imbalance: used.iter().any(|stratum| stratum[arm].of_history),
    }
}

/// How many pods of an arm lie in a bucket.
pub(super) fn pods_of_bucket(used: &[&Stratum], arm: usize, bucket: u8) -> f64 {
    let of_stratum = used.iter().filter_map(|stratum| stratum[arm].buckets.get(&bucket));
    let pods: BTreeSet<_> = of_stratum.flat_map(|found| found.pods.iter()).collect();
    float(u64::try_from(pods.len()).unwrap_or(0))
}

fn degrees_of_freedom(used: &[&Stratum]) -> f64 {
    let arm = |which| arm(used, which, CountKind::SelfCount, &[]);
    strata_test(&arm(HEAD), &arm(BASE), Model::Share, 1.0, 0.0).df
}

fn support(arms: &[ArmFigures; 2], df: f64) -> Support {
    let fewest = arms[HEAD].pods.min(arms[BASE].pods);
    match fewest {
        ..2 => Support::Untestable,
        _ if df < 1.5 - ROUNDING => Support::Untestable,
        5.. => Support::Firm,
        _ => Support::Tentative,
    }
}

fn pods(used: &[&Stratum], arm: usize) -> BTreeSet<usize> {
    used.iter()
        .flat_map(|stratum| stratum[arm].buckets.values())
        .flat_map(|bucket| bucket.pods.iter().copied())
        .collect()
}

fn figures(used: &[&Stratum], arm: usize) -> ArmFigures {
    let requests: u64 = used.iter().map(|stratum| stratum[arm].requests).sum();
    // A pod counts once per bucket, so that a pod that changed its node counts where it is tested.
    let occupied: BTreeSet<(u8, usize)> = used
        .iter()
        .flat_map(|stratum| &stratum[arm].buckets)
        .flat_map(|(number, bucket)| bucket.pods.iter().map(|pod| (*number, *pod)))
        .collect();
    let buckets: BTreeSet<u8> = occupied.iter().map(|(bucket, _)| *bucket).collect();
    ArmFigures {
        count: 0,
        total: table_count(used.iter().map(|stratum| stratum[arm].samples).sum::<u64>()),
        share: None,
        pods: table_count(occupied.len()),
        buckets: table_count(buckets.len()),
        requests: (requests > 0).then(|| table_count(requests)),
    }
}

/// The column of a count kind in pairs of self and total.
pub(super) fn column(kind: CountKind) -> usize {
    match kind {
        CountKind::SelfCount => 0,
        CountKind::Total => 1,
    }
}
