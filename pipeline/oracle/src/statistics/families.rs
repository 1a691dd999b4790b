//! False discovery over families, in ln p; NaN marks rows that are not in the family.

use fleetdiff_schemas::number::length_float;

/// Benjamini and Hochberg's adjusted p-values, as logarithms (`bh`).
pub fn ln_bh(ln_p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ln_p.len()).filter(|&i| !ln_p[i].is_nan()).collect();
    order.sort_by(|&i, &j| ln_p[i].total_cmp(&ln_p[j]));
    let mut adjusted = vec![f64::NAN; ln_p.len()];
    let mut smallest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate().rev() {
        smallest = smallest.min(ln_p[i] + ln(order.len()) - ln(rank + 1));
        adjusted[i] = smallest;
    }
    adjusted
}

/// The two levels of a family of cells x functions.
#[derive(Clone, Debug, Default)]
pub struct TwoLevel {
    /// ln p by function, over all cells.
    pub ln_p_f: Vec<f64>,
    /// ln of the smallest q at which the function is selected.
    pub ln_q_f: Vec<f64>,
    /// ln of the smallest q at which the row is selected, by cell and function.
    pub ln_q_value: Vec<Vec<f64>>,
}

/// First level over functions, second over the cells of those selected (`two_level`). `ln_p` is by cell and function.
pub fn two_level(ln_p: &[Vec<f64>], ln_p_roll_up: &[f64]) -> TwoLevel {
    let first: Vec<f64> = (0..ln_p_roll_up.len())
        .map(|f| {
            let mut cells: Vec<f64> = ln_p.iter().map(|cell| cell[f]).filter(|p| !p.is_nan()).collect();
            cells.sort_by(f64::total_cmp);
            let count = cells.len();
            let simes = cells.iter().enumerate().map(|(i, p)| p + ln(count) - ln(i + 1)).fold(f64::NAN, f64::min);
            match (count, ln_p.len()) {
                (0, _) => ln_p_roll_up[f],
                (_, 1) => cells[0],
                _ => (2.0_f64.ln() + simes.min(ln_p_roll_up[f])).min(0.0),
            }
        })
        .collect();
    let selected = ln_bh(&first);
    let ln_q_value = second_level(&selected, ln_p);
    TwoLevel { ln_p_f: first, ln_q_f: selected, ln_q_value }
}

/// The second level: Benjamini-Hochberg over the rows of each function, at the level that remains after the first.
///
/// `ln_q_f` is the outcome of the first level, `ln_p` the rows by cell and function. A row whose function is not in the
/// first level's family has none.
pub fn second_level(ln_q_f: &[f64], ln_p: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut sorted: Vec<f64> = ln_q_f.iter().copied().filter(|q| !q.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut values = vec![vec![f64::NAN; ln_q_f.len()]; ln_p.len()];
    for f in (0..ln_q_f.len()).filter(|&f| !ln_q_f[f].is_nan()) {
        let within = ln_bh(&ln_p.iter().map(|cell| cell[f]).collect::<Vec<f64>>());
        for (cell, within) in within.into_iter().enumerate().filter(|(_, within)| !within.is_nan()) {
            let at = |j: usize| sorted[j].max(within + ln(sorted.len()) - ln(j + 1));
            let smallest = (0..sorted.len()).map(at).fold(f64::INFINITY, f64::min);
            values[cell][f] = ln_q_f[f].max(smallest).min(0.0);
        }
    }
    values
}

/// e-BH at level `q` in a family of `m`: how many of the candidates, descending by ln e, are selected.
pub fn e_bh(descending: &[f64], q: f64, m: usize) -> usize {
    (1..=descending.len())
        .rev()
        .find(|&k| descending[k - 1] >= (length_float(m) / (q * length_float(k))).ln())
        .unwrap_or(0)
}

fn ln(count: usize) -> f64 {
    length_float(count).ln()
}
