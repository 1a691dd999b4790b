//! The evidence in the counts of one cell, or of several together: section 5 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, is_of_several};
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Support;

use super::arms::{
    LEAST_DF, arm_of, by_bucket, column, figures, in_both, occupied, pairs, pods, pods_of_bucket, support,
};
use super::counts::{Archive, BASE, BucketCounts, Cell, HEAD, Place, Stratum};
use super::held::Measured;
use super::loads::Differences;
use super::rates::{Rate, are_known, rate_of_all};
use super::statistics::levels::{Held, Model, StrataTest, fano, strata_test};
use super::statistics::normalization::{self, Scales};
use super::statistics::rows::{Rows, rows_of_cell};

/// What is known about one cell, or about several with their strata side by side.
pub(super) struct Evidence {
    /// Head and base; `count` and `share` are empty.
    pub arms: [ArmFigures; 2],
    /// Pods of head and base.
    pub pods: [BTreeSet<usize>; 2],
    /// Samples of head and base in all strata of the scope, kept or not.
    pub samples: [u64; 2],
    /// By the number of pods alone.
    pub support: Support,
    /// Strata that both arms share.
    pub strata: usize,
    pub dropped: usize,
    /// What the arms differ in, the most different of the cells.
    pub differ: Differences,
    /// If pods of different ages are compared: when the first young ones are no longer young.
    pub provisional_until_at: Option<Nanos>,
    /// Time blocks of kept strata.
    pub blocks: BTreeSet<Hop>,
    /// By count kind, both of them.
    pub kinds: BTreeMap<CountKind, KindEvidence>,
    /// The test of all samples per request, where requests are known and asked for.
    pub all: Option<Rate>,
    /// Of young pods alone, at the same ages: the head's against those that the base once had.
    pub young: Option<Box<Evidence>>,
}

impl Evidence {
    /// Whether some row depends on its cost per request: shares were not normalized, or the plain share contradicts it.
    pub fn asks_requests(&self) -> bool {
        let asks = |test: &CellTest| !test.scales.measured || test.rows.contradicts.contains(&true);
        self.kinds.values().filter_map(|kind| kind.test.as_ref()).any(asks)
    }
}

/// What is known about all functions in one count kind.
pub(super) struct KindEvidence {
    /// Head and base counts of functions that have any, ascending by number.
    pub counts: BTreeMap<usize, [u64; 2]>,
    /// Functions that went into the test, in its order.
    pub functions: Vec<usize>,
    /// `None` if there are not enough pods for a test.
    pub test: Option<CellTest>,
}

/// The tests of all functions of one cell in one count kind.
pub(super) struct CellTest {
    pub test: StrataTest,
    pub scales: Scales,
    pub rows: Rows,
    /// Pods of each bucket by arm, in the order of the test.
    pub pods: [Vec<BTreeSet<usize>>; 2],
}

/// Where factors are found from few functions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Few {
    #[default]
    Nowhere,
    /// Where requests are not known.
    WithoutRequests,
    Everywhere,
}

/// What the tests of a cell use besides its counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Using<'a> {
    /// Requests, where they are known.
    pub requests: bool,
    /// What is held from an earlier look.
    pub held: Option<&'a Measured>,
    /// Whether this is a look of the live rule.
    pub at_look: bool,
    /// Where few functions have factors.
    pub few: Few,
}

impl KindEvidence {
    /// How many functions were tested.
    pub fn tested(&self) -> usize {
        self.test.as_ref().map_or(0, |test| test.test.tests)
    }

    /// The place of a function in the test, if it was tested.
    pub fn place(&self, function: usize) -> Option<(usize, &CellTest)> {
        let test = self.test.as_ref()?;
        let place = self.functions.iter().position(|one| *one == function)?;
        test.test.tested[place].then_some((place, test))
    }
}

/// Evaluates the strata of these cells together, in the order given.
pub(super) fn judge(config: &Config, archive: &Archive, cells: &[&Cell], using: Using<'_>) -> Evidence {
    let all: Vec<(&Place, &Stratum)> = cells.iter().flat_map(|cell| &cell.strata).collect();
    let kept: Vec<_> = all.iter().copied().filter(|(_, stratum)| in_both(stratum)).collect();
    let used: Vec<&Stratum> = if kept.is_empty() { &all } else { &kept }.iter().map(|(_, stratum)| *stratum).collect();
    let arms = [HEAD, BASE].map(|arm| figures(&used, arm));
    let support = match kept.is_empty() {
        true => Support::Untestable,
        false => support(arms.map(|arm| arm.pods), f64::INFINITY),
    };
    let is_tested = support != Support::Untestable;
    let of_all = if is_tested && using.requests { rate_of_all(&used) } else { None };
    let anchor = of_all.as_ref().and_then(Rate::anchor);
    let few = match using.few {
        Few::Nowhere => false,
        Few::WithoutRequests => !are_known(&used),
        Few::Everywhere => true,
    };
    let mut kinds = BTreeMap::new();
    let mut scales = using.held.and_then(|held| held.scales.clone());
    for kind in CountKind::ALL {
        let mut found = counted(config, archive, &used, kind);
        if is_tested {
            let held = using.held.and_then(|held| held.of_kind(kind, &found.functions, &arms));
            let known = scales.clone();
            let factors =
                |test: &StrataTest| known.unwrap_or_else(|| normalization::scales(test, anchor, using.at_look, few));
            let test = cell_test(config, &used, kind, &found, held.as_ref(), factors);
            scales = scales.or_else(|| Some(test.scales.clone()));
            found.test = Some(test);
        }
        kinds.insert(kind, found);
    }
    let of_young = |cell: &&Cell| Cell { strata: cell.young.clone(), ..Cell::default() };
    let of_young: Vec<Cell> = cells.iter().filter(|cell| !cell.young.is_empty()).map(of_young).collect();
    let young = || Box::new(judge(config, archive, &of_young.iter().collect::<Vec<_>>(), Using::default()));
    Evidence {
        young: (!of_young.is_empty()).then(young),
        arms,
        pods: [HEAD, BASE].map(|arm| pods(&used, arm)),
        samples: [HEAD, BASE].map(|arm| all.iter().map(|(_, stratum)| stratum[arm].samples).sum()),
        support,
        strata: kept.len(),
        dropped: all.len() - kept.len(),
        differ: using.held.map_or_else(|| most_different(cells), |held| held.differ),
        provisional_until_at: cells.iter().filter_map(|cell| cell.provisional_until_at).max(),
        blocks: kept.iter().map(|((block, ..), _)| *block).collect(),
        kinds,
        all: of_all,
    }
}

fn most_different(cells: &[&Cell]) -> Differences {
    Differences::largest(&cells.iter().map(|cell| cell.differ).collect::<Vec<_>>())
}

/// The counts of one kind, not yet tested.
fn counted(config: &Config, archive: &Archive, used: &[&Stratum], kind: CountKind) -> KindEvidence {
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
        (count[HEAD] + count[BASE] >= config.min_count && !is_of_several(&archive.names[*function]))
            .then_some(*function)
    };
    let functions: Vec<usize> = counts.iter().filter_map(frequent).collect();
    KindEvidence { counts, functions, test: None }
}

/// The tests of shares of one kind, on the scales that are known from self counts or are those of this test.
fn cell_test(
    config: &Config,
    used: &[&Stratum],
    kind: CountKind,
    found: &KindEvidence,
    held: Option<&Held>,
    scales: impl FnOnce(&StrataTest) -> Scales,
) -> CellTest {
    let functions = &found.functions;
    let arms = [HEAD, BASE].map(|arm| arm_of(used, arm, kind, functions));
    let clumps = [HEAD, BASE].map(|arm| {
        let concentration: Vec<Vec<f64>> = by_bucket(used, arm, 1.0, BucketCounts::hop_concentration);
        fano(&pairs(used, arm, kind, functions), &arms[arm], &concentration)
    });
    let floor = float(config.min_count);
    let mut test = strata_test(&arms[HEAD], &arms[BASE], Model::Share, floor, None, Some(&clumps), held);
    test.leave_out_below_df(LEAST_DF);
    let scales = scales(&test);
    let rows = rows_of_cell(&test, &scales, config.min_effect);
    let pods = [HEAD, BASE]
        .map(|arm| occupied(used, arm).into_iter().map(|bucket| pods_of_bucket(used, arm, bucket)).collect());
    CellTest { test, scales, rows, pods }
}
