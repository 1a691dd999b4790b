//! False discovery over families, in ln p; NaN marks rows that are not in the family.

use fleetdiff_schemas::number::length_float;

/// Shares of cost below and above these have the same weight as these.
const SHARES: (f64, f64) = (0.0005, 0.02);
/// The part of a live family's weight that rows of all functions hold together.
const ALL_WEIGHT: f64 = 0.1;

/// How much more than the smallest function one with this share of cost matters: 1 to 6.3.
pub fn importance(share: f64) -> f64 {
    (share.clamp(SHARES.0, SHARES.1) / SHARES.0).sqrt()
}

/// Weights of functions, with mean 1 over the family (`weights`); not a number where `in_family` is false.
pub fn weights(shares: &[f64], in_family: &[bool]) -> Vec<f64> {
    let members = || (0..shares.len()).filter(|&f| in_family[f]);
    let mean = members().map(|f| importance(shares[f])).sum::<f64>() / length_float(members().count());
    (0..shares.len()).map(|f| if in_family[f] { importance(shares[f]) / mean } else { f64::NAN }).collect()
}

/// Benjamini and Hochberg's adjusted p-values, as logarithms (`bh`).
pub fn bh(ln_p: &[f64]) -> Vec<f64> {
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

/// The same with weights of mean 1: each p is divided by its weight.
pub fn weighted_bh(ln_p: &[f64], weights: &[f64]) -> Vec<f64> {
    let divided: Vec<f64> =
        ln_p.iter().zip(weights).map(|(ln_p, w)| if ln_p.is_nan() { *ln_p } else { ln_p - w.ln() }).collect();
    bh(&divided)
}

/// The two levels of a family of cells x functions.
#[derive(Clone, Debug, Default)]
pub struct TwoLevel {
    /// ln p by function, over all cells.
    pub ln_p_f: Vec<f64>,
    /// Weight by function.
    pub weights: Vec<f64>,
    /// ln of the smallest q at which the function is selected.
    pub ln_q_f: Vec<f64>,
    /// ln of the smallest q at which the row is selected, by cell and function.
    pub ln_q_value: Vec<Vec<f64>>,
}

/// First level over functions, weighted by their shares of cost, second over the cells of those selected (`two_level`).
/// `ln_p` is by cell and function.
pub fn two_level(ln_p: &[Vec<f64>], ln_p_roll_up: &[f64], shares: &[f64]) -> TwoLevel {
    let ln_p_f: Vec<f64> = (0..ln_p_roll_up.len())
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
    let in_family: Vec<bool> = ln_p_f.iter().map(|ln_p| !ln_p.is_nan()).collect();
    let weights = weights(shares, &in_family);
    let ln_q_f = weighted_bh(&ln_p_f, &weights);
    let ln_q_value = within_selected(&ln_q_f, ln_p);
    TwoLevel { ln_p_f, weights, ln_q_f, ln_q_value }
}

/// The second level: Benjamini-Hochberg over the rows of each function, at the level that remains after the first.
///
/// `ln_q_f` is the outcome of the first level, `ln_p` the rows by cell and function. A row whose function is not in the
/// first level's family has none.
pub fn within_selected(ln_q_f: &[f64], ln_p: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut sorted: Vec<f64> = ln_q_f.iter().copied().filter(|q| !q.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut values = vec![vec![f64::NAN; ln_q_f.len()]; ln_p.len()];
    for f in (0..ln_q_f.len()).filter(|&f| !ln_q_f[f].is_nan()) {
        let within = bh(&ln_p.iter().map(|cell| cell[f]).collect::<Vec<f64>>());
        for (cell, within) in within.into_iter().enumerate().filter(|(_, within)| !within.is_nan()) {
            let at = |j: usize| sorted[j].max(within + ln(sorted.len()) - ln(j + 1));
            let smallest = (0..sorted.len()).map(at).fold(f64::INFINITY, f64::min);
            values[cell][f] = ln_q_f[f].max(smallest).min(0.0);
        }
    }
    values
}

/// Weights in a live family of rows of functions, by their shares, and of `all` rows of all functions: those of the
/// former, and that of each of the latter.
pub fn live_weights(shares: &[f64], all: usize) -> (Vec<f64>, f64) {
    let plain = weights(shares, &vec![true; shares.len()]);
    if all == 0 {
        return (plain, f64::NAN);
    }
    let family = length_float(shares.len() + all);
    (plain.into_iter().map(|w| (1.0 - ALL_WEIGHT) * w).collect(), ALL_WEIGHT * family / length_float(all))
}

/// e-BH at level `q` in a family of `family`: which rows are selected. `ln_we` is ln of the weighted e-values; a row
/// whose is not a number is not.
pub fn e_bh(ln_we: &[f64], q: f64, family: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..ln_we.len()).filter(|&i| !ln_we[i].is_nan()).collect();
    order.sort_by(|&i, &j| ln_we[j].total_cmp(&ln_we[i]));
    let reaches = |k: &usize| ln_we[order[k - 1]] >= (length_float(family) / (q * length_float(*k))).ln();
    let count = (1..=order.len()).rev().find(reaches).unwrap_or(0);
    let mut selected = vec![false; ln_we.len()];
    order.iter().take(count).for_each(|&i| selected[i] = true);
    selected
}

fn ln(count: usize) -> f64 {
    length_float(count).ln()
}
