//! The live rule over the cells of one comparison: weighted e-BH at every look over everything tested so far.

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::evalue::{e_bh, weighted};
use fleetdiff_statistics::families::weights;
use fleetdiff_statistics::live::{LiveRow, live_rows};
use fleetdiff_statistics::one_pod::LeaveOneOut;
use fleetdiff_statistics::pooled::is_due;
use fleetdiff_statistics::{Arms, Contrast, MIN_EFFECT, Measure, Model, Pooled, Scales, Side, Tests};

use super::row::Q;

/// How often that which functions share is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cadence {
    /// At each look.
    Afresh,
    /// When a block of time begins or an arm has a quarter more samples, and at every sixth look.
    Held,
}

/// Which rows have been tested since the epoch began, and what is held.
pub(super) struct LiveRule {
    cadence: Cadence,
    cells: Vec<LiveCell>,
}

#[derive(Clone)]
struct LiveCell {
    /// By function.
    joined: Vec<bool>,
    held: Option<Held>,
}

/// What was measured of all functions together.
#[derive(Clone)]
struct Held {
    pooled: Pooled,
    scales: Scales,
    /// Samples of each arm at that look.
    samples: Arms<f64>,
}

impl LiveRule {
    /// Before the first look.
    pub(super) fn new(cadence: Cadence, cells: usize, functions: usize) -> Self {
        Self { cadence, cells: vec![LiveCell { joined: vec![false; functions], held: None }; cells] }
    }

    /// The rows (cell, function) that are raised at this look.
    pub(super) fn look(&mut self, look: u64, is_new_block: bool, contrasts: &[Contrast<'_>]) -> Vec<(usize, usize)> {
        let mut measured = Vec::new();
        for ((cell, contrast), number) in self.cells.iter_mut().zip(contrasts).zip(0..) {
            let afresh = self.cadence == Cadence::Afresh || is_new_block || is_due(look, number);
            measured.push(cell.measure(contrast, afresh));
        }
        let weights = self.weights(&measured);
        let heaviest = weights.iter().flatten().copied().fold(0.0, f64::max);
        if heaviest <= 0.0 {
            return Vec::new();
        }
        let floor = 1.0 / (Q * heaviest);
        let rows = |(cell, (tests, scales)): (usize, &(Tests, Scales))| {
            live_rows(tests, scales, floor).into_iter().map(move |row| (cell, row)).collect::<Vec<_>>()
        };
        let candidates: Vec<(usize, LiveRow)> = measured.iter().enumerate().flat_map(rows).collect();
        let ln_e: Vec<f64> = candidates.iter().map(|(_, row)| row.ln_e).collect();
        let its_weights: Vec<f64> = candidates.iter().map(|(cell, row)| weights[*cell][row.place]).collect();
        let members = self.cells.iter().flat_map(|cell| &cell.joined).filter(|&&joined| joined).count();
        let selected = e_bh(&weighted(&ln_e, &its_weights), Q, members);
        let is_raised = |((cell, row), selected): &(&(usize, LiveRow), bool)| {
            let (tests, scales) = &measured[*cell];
            *selected && row.theta.abs() >= MIN_EFFECT && !row.contradicts && {
                let left_out = LeaveOneOut::new(&contrasts[*cell], Model::Share);
                left_out.one_pod(tests, row.place, scales.deciding.ln_scale).is_none()
            }
        };
        candidates.iter().zip(selected).filter(is_raised).map(|((cell, row), _)| (*cell, row.place)).collect()
    }

    /// The weights of all rows tested so far, by cell, then function: mean 1 over them, NaN elsewhere.
    fn weights(&self, measured: &[(Tests, Scales)]) -> Vec<Vec<f64>> {
        let functions = self.cells.first().map_or(0, |cell| cell.joined.len());
        let exposure: f64 = measured.iter().map(|(tests, _)| tests.exposure()).sum();
        let cost = |function| measured.iter().map(|(tests, _)| tests.count(function)).sum::<f64>() / exposure;
        let costs: Vec<f64> = (0..functions).map(cost).collect();
        let of_cell = |cell: &LiveCell| -> Vec<f64> {
            cell.joined.iter().zip(&costs).map(|(joined, cost)| if *joined { *cost } else { f64::NAN }).collect()
        };
        let all = weights(&self.cells.iter().flat_map(of_cell).collect::<Vec<f64>>());
        all.chunks(functions.max(1)).map(<[f64]>::to_vec).collect()
    }
}

impl LiveCell {
    fn measure(&mut self, contrast: &Contrast<'_>, afresh: bool) -> (Tests, Scales) {
        let samples =
            Arms::of(|side| contrast.strata.iter().map(|pair| float(pair[side].exposure(Model::Share))).sum());
        let held = self.held.take().filter(|held| !afresh && !held.has_grown(samples));
        let pooled = held.as_ref().map(|held| &held.pooled);
        let tests = Tests::measure(contrast, &Measure { held: pooled, ..Measure::afresh(Model::Share) });
        self.joined.iter_mut().zip(&tests.tested).for_each(|(joined, &tested)| *joined |= tested);
        let held = held.unwrap_or_else(|| {
            let scales = Scales::of_look(&tests, None);
            Held { pooled: tests.pooled.clone(), scales, samples }
        });
        let scales = held.scales.clone();
        // What was measured of nothing says nothing.
        self.held = (tests.tests > 0).then_some(held);
        (tests, scales)
    }
}

impl Held {
    /// Whether an arm has more than a quarter more samples.
    fn has_grown(&self, samples: Arms<f64>) -> bool {
        Side::BOTH.into_iter().any(|side| samples[side] > 1.25 * self.samples[side])
    }
}
