//! One cell of the plain evaluation: its counts since the epoch began, and its tests at a look.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::families::{MOST_IMPORTANCE, importance};
use fleetdiff_statistics::fano::fano_of_arm;
use fleetdiff_statistics::one_pod::LeaveOneOut;
use fleetdiff_statistics::{
    Arm, Arms, BucketRow, CellRows, Contrast, Hops, Measure, Model, Pooled, Scales, Side, Tests, rows_of_cell,
};

use super::{FEWEST_DF, MIN_COUNT, MIN_EFFECT, Q};
use crate::workload::Workload;

/// Counts of one bucket in one stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub samples: u64,
    /// Sum over profiles of the square of their samples.
    hop_squares: u64,
    pods: BTreeSet<usize>,
    pub counts: Vec<u32>,
}

/// One arm in one stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmCounts {
    pub columns: BTreeMap<u8, Column>,
    /// By function: sum over profiles of x (x - 1).
    pub pairs: Vec<u64>,
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// By time block and kind of machine.
    strata: BTreeMap<(usize, String), Arms<ArmCounts>>,
    held: Option<Held>,
    /// Functions that were tested at some look.
    joined: BTreeSet<usize>,
}

/// What a look took from all functions together, and of what cell.
#[derive(Clone, Debug)]
struct Held {
    measured_of: State,
    pooled: Pooled,
    scales: Scales,
}

/// What decides whether that still holds.
#[derive(Clone, Debug)]
struct State {
    block: usize,
    pods: BTreeSet<usize>,
    samples: Arms<u64>,
}

/// What is measured at a look of one cell.
#[derive(Clone, Debug, Default)]
pub(super) struct CellLook {
    /// The rows tested now.
    pub rows: Vec<Row>,
    /// Functions tested at this look or an earlier one.
    pub members: usize,
    /// The sum of their importances.
    pub importance: f64,
}

/// A tested row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub function: usize,
    pub ln_e: f64,
    /// What it weighs in the family, before all are divided by their mean.
    pub importance: f64,
    /// Whether it may be a flag if its e-value is selected.
    pub may_be_raised: bool,
}

impl Column {
    /// 1 without samples.
    pub fn hop_concentration(&self) -> f64 {
        if self.samples > 0 { float(self.hop_squares) / (float(self.samples) * float(self.samples)) } else { 1.0 }
    }
}

impl Cell {
    /// Counts every profile of the cell in a hop.
    pub fn add(&mut self, workload: &Workload, number: usize, hop: u64) {
        let functions = usize::try_from(workload.size.functions).unwrap_or(0);
        for (id, pod) in workload.pods.iter().enumerate().filter(|(_, pod)| pod.cell == number) {
            let key = (workload.block(hop), pod.identity.hardware.to_string());
            let arm = &mut self.strata.entry(key).or_default()[if pod.head { Side::Head } else { Side::Base }];
            let column = arm.columns.entry(pod.identity.bucket().0).or_default();
            arm.pairs.resize(functions, 0);
            column.counts.resize(functions, 0);
            column.pods.insert(id);
            let mut whole = 0;
            for (function, count) in workload.samples(pod, hop) {
                whole += u64::from(count);
                if let Ok(function) = usize::try_from(function) {
                    column.counts[function] += count;
                    arm.pairs[function] += u64::from(count) * (u64::from(count) - 1);
                }
            }
            column.samples += whole;
            column.hop_squares += whole * whole;
        }
    }

    /// The strata that both arms share.
    pub fn shared(&self) -> Vec<&Arms<ArmCounts>> {
        self.strata.values().filter(|arms| arms.both().iter().all(|arm| !arm.columns.is_empty())).collect()
    }

    /// Distinct pods of an arm by bucket.
    pub fn pods(&self, side: Side) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        for (bucket, column) in self.shared().into_iter().flat_map(|arms| &arms[side].columns) {
            pods.entry(u16::from(*bucket)).or_default().extend(&column.pods);
        }
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(0))).collect()
    }

    /// What is compared; none unless both arms have two pods in shared strata.
    fn contrast(&self) -> Option<Contrast<'_>> {
        let pods = Arms::of(|side| self.pods(side));
        if pods.both().iter().any(|pods| pods.values().sum::<u32>() < 2) {
            return None;
        }
        let shared = self.shared();
        let functions = shared.iter().map(|arms| arms.head.pairs.len()).max().unwrap_or(0);
        Some(Contrast::new(functions, shared.into_iter().map(|arms| arms.as_ref().map(arm)).collect(), pods))
    }

    /// Every row, with nothing held from an earlier look.
    pub fn afresh(&self) -> Option<CellRows> {
        self.contrast().map(|contrast| rows(&contrast, None))
    }

    /// Tests every function at a look in time block `block`; `is_turn` says that it is the cell's turn to be measured afresh.
    pub fn look(&mut self, block: usize, is_turn: bool) -> CellLook {
        let held = self.held.take();
        let Some(contrast) = self.contrast() else { return CellLook::default() };
        let now = self.state(block);
        let held = held.filter(|held| !is_turn && !now.differs_from(&held.measured_of));
        let rows = rows(&contrast, held.as_ref());
        let left_out = LeaveOneOut::new(&contrast, Model::Share);
        let tested: Vec<usize> = (0..rows.theta.len()).filter(|&function| rows.tests.tested[function]).collect();
        let row = |&function: &usize| {
            let ln_e = rows.ln_e[function];
            // Most rows cannot be selected: their buckets are not left out one by one.
            let may_be_raised = ln_e + MOST_IMPORTANCE.ln() >= -Q.ln()
                && rows.theta[function].abs() >= MIN_EFFECT
                && !rows.contradicts[function]
                && left_out.one_pod(&rows.tests, function, rows.scales.deciding.ln_scale).is_none();
            Row { function, ln_e, importance: importance(rows.tests.share_of_cost(function)), may_be_raised }
        };
        let tested_now = tested.iter().map(row).collect();
        let measured = || {
            let (pooled, scales) = (rows.tests.pooled.clone(), rows.scales.clone());
            (rows.tests.tests > 0).then_some(Held { measured_of: now, pooled, scales })
        };
        let held = held.or_else(measured);
        let shares: Vec<f64> = (0..rows.theta.len()).map(|function| rows.tests.share_of_cost(function)).collect();
        self.held = held;
        self.joined.extend(tested);
        CellLook {
            rows: tested_now,
            members: self.joined.len(),
            importance: self.joined.iter().map(|&function| importance(shares[function])).sum(),
        }
    }

    fn state(&self, block: usize) -> State {
        let shared = self.shared();
        let columns = |side: Side| shared.iter().flat_map(move |arms| arms[side].columns.values());
        State {
            block,
            pods: Side::BOTH.into_iter().flat_map(columns).flat_map(|column| &column.pods).copied().collect(),
            samples: Arms::of(|side| columns(side).map(|column| column.samples).sum()),
        }
    }
}

impl State {
    /// Another block, more than a tenth of the pods, or more than a quarter more samples in an arm.
    fn differs_from(&self, before: &Self) -> bool {
        let other_pods =
            self.pods.symmetric_difference(&before.pods).count() * 10 > self.pods.union(&before.pods).count();
        let has_grown = |side: &Side| self.samples[*side] * 4 > before.samples[*side] * 5;
        self.block != before.block || other_pods || Side::BOTH.iter().any(has_grown)
    }
}

/// Every test of every function, without a screen for clumps in time.
fn rows(contrast: &Contrast<'_>, held: Option<&Held>) -> CellRows {
    let factors = Arms::of(|side| {
        let arms: Vec<&Arm<'_>> = contrast.shared(Model::Share).map(|stratum| &stratum[side]).collect();
        fano_of_arm(arms.iter().copied(), contrast.functions)
    });
    let measure = Measure {
        model: Model::Share,
        min_count: MIN_COUNT,
        counts: None,
        hops: Hops::Factors(&factors),
        held: held.map(|held| &held.pooled),
    };
    let mut tests = Tests::measure(contrast, &measure);
    for (tested, levels) in tests.tested.iter_mut().zip(&tests.levels) {
        *tested &= levels.df >= FEWEST_DF;
    }
    tests.tests = tests.tested.iter().filter(|&&tested| tested).count();
    let scales = held.map_or_else(|| scales_of(&tests), |held| held.scales.clone());
    rows_of_cell(tests, scales, MIN_EFFECT)
}

/// The scales of a look in a cell without requests.
fn scales_of(tests: &Tests) -> Scales {
    let scales = Scales::of_look(tests, None);
    if scales.measured { scales } else { Scales::of_few(tests) }
}

fn arm(counts: &ArmCounts) -> Arm<'_> {
    let row = |(bucket, column): (&u8, &'_ Column)| BucketRow {
        bucket: u16::from(*bucket),
        samples: column.samples,
        requests: 0,
        hop_concentration: column.hop_concentration(),
        counts: Vec::new(),
    };
    let mut rows: Vec<BucketRow<'_>> = counts.columns.iter().map(row).collect();
    for (row, column) in rows.iter_mut().zip(counts.columns.values()) {
        row.counts.push(&column.counts);
    }
    Arm { rows, hop_pairs: vec![&counts.pairs] }
}
