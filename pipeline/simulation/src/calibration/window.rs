//! The decision of one look at one window: which rows are significant.

use fleetdiff_statistics::families::{self, bh, selected, weighted, weights};
use fleetdiff_statistics::one_pod::LeaveOneOut;
use fleetdiff_statistics::{CellRows, Contrast, Measure, Model, Scales, Tests, rows_of_cell};

use super::row::Q;

/// ln .05: of a p-value, and of what an interval of 95 % leaves out.
const LN_P_95: f64 = -2.995_732_273_553_991;

/// One cell.
pub(super) struct Window<'c> {
    contrast: Contrast<'c>,
    /// Every function.
    pub(super) rows: CellRows,
}

impl<'c> Window<'c> {
    /// Tests every function of the cell.
    pub(super) fn of(contrast: Contrast<'c>, min_effect: f64) -> Self {
        let tests = Tests::measure(&contrast, &Measure::afresh(Model::Share));
        let scales = Scales::of(&tests, None);
        Self { contrast, rows: rows_of_cell(tests, scales, min_effect) }
    }

    /// Which functions are significant if the cell is a family of its own.
    pub(super) fn significant(&self) -> Vec<bool> {
        let ln_p = &self.rows.ln_p_row;
        let shares = ln_p
            .iter()
            .enumerate()
            .map(|(place, ln_p)| if ln_p.is_nan() { f64::NAN } else { self.rows.tests.share_of_cost(place) });
        let q_values = bh(&weighted(ln_p, &weights(&shares.collect::<Vec<_>>())));
        self.upheld(|place| selected(q_values[place], Q))
    }

    /// Those of the selected rows that neither contradict the share nor are made by one pod.
    pub(super) fn upheld(&self, selected: impl Fn(usize) -> bool) -> Vec<bool> {
        let left_out = LeaveOneOut::new(&self.contrast, Model::Share);
        let ln_scale = self.rows.scales.deciding.ln_scale;
        let is_upheld = |place| {
            selected(place)
                && !self.rows.contradicts[place]
                && left_out.one_pod(&self.rows.tests, place, ln_scale).is_none()
        };
        (0..self.rows.ln_p_row.len()).map(is_upheld).collect()
    }

    /// The part of the tested rows whose interval of 95 % holds "unchanged"; NaN of none.
    pub(super) fn coverage(&self) -> f64 {
        let (mut held, mut all) = (0.0, 0.0);
        for place in self.tested() {
            all += 1.0;
            held += if self.holds_unchanged(place) { 1.0 } else { 0.0 };
        }
        held / all
    }

    /// How many rows have an interval that says something else than their p against the same scale.
    pub(super) fn disagreements(&self) -> usize {
        let ratio = libm::exp(self.rows.scales.deciding.ln_scale);
        let differ = |&place: &usize| {
            let is_low = self.rows.tests.levels[place].ln_p(ratio) < LN_P_95;
            is_low == self.holds_unchanged(place)
        };
        self.tested().filter(differ).count()
    }

    fn holds_unchanged(&self, place: usize) -> bool {
        let interval = self.rows.interval(place, 0.95);
        interval.low <= 0.0 && interval.high >= 0.0
    }

    fn tested(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.tests.tested.len()).filter(|&place| self.rows.tests.tested[place])
    }
}

/// By cell, then function: which rows are significant on two levels, `together` being the test over all cells.
pub(super) fn two_level(cells: &[Window<'_>], together: &Window<'_>) -> Vec<Vec<bool>> {
    let ln_p: Vec<&[f64]> = cells.iter().map(|cell| cell.rows.ln_p_row.as_slice()).collect();
    let exposure: f64 = cells.iter().map(|cell| cell.rows.tests.exposure()).sum();
    let cost = |function: usize| cells.iter().map(|cell| cell.rows.tests.count(function)).sum::<f64>() / exposure;
    let shares: Vec<f64> = (0..together.rows.ln_p_row.len()).map(cost).collect();
    let levels = families::two_level(&ln_p, &together.rows.ln_p_row, Some(&shares));
    let upheld = |(cell, q_values): (&Window<'_>, &Vec<f64>)| cell.upheld(|place| selected(q_values[place], Q));
    cells.iter().zip(&levels.q_value).map(upheld).collect()
}
