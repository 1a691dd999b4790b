//! E-values for looks without a plan, and the e-BH procedure over many of them.
//!
//! An e-value is a bet against "nothing changed" whose expected pay-out is at most one, whenever one looks. A threshold on it
//! holds at every look at once, which no p-value does: BH looked at every 10 s for 30 minutes calls something in most runs.

#![expect(clippy::as_conversions, reason = "ranks and family sizes become floats")]

use crate::special::z_two_sided;

/// The standard deviations of the log ratio over which the mixture bets; one alone is blind to effects of another size.
pub(crate) const TAUS: [f64; 4] = [0.05, 0.2, 0.8, 3.2];
/// ln 1e-300: smaller p count as this, as in the reference.
pub(crate) const LN_P_FLOOR: f64 = -690.775_527_898_213_7;

/// ln of the normal-mixture e-value with one prior spread `tau`, from z squared and the variance `v` of the estimate.
///
/// 1/2 ln(v/(v + tau^2)) + z^2 tau^2 / (2 (v + tau^2)). Robbins (1970); Johari et al., mixture SPRT. Assumes the estimate is
/// normal with known variance. Checked against mpmath (`evalue.csv`) to 1e-12.
#[must_use]
pub fn ln_e_one(z2: f64, v: f64, tau: f64) -> f64 {
    let tau2 = tau * tau;
    -0.5 * libm::log1p(tau2 / v) + 0.5 * z2 * tau2 / (v + tau2)
}

/// ln of the mean of the e-values over [`TAUS`], from z squared and the variance `v`.
///
/// Never above z^2/2, so that a row whose z is small needs no e-value. Checked against mpmath (`evalue_mixture.csv`) to 1e-12.
#[must_use]
pub fn ln_e_mixture(z2: f64, v: f64) -> f64 {
    let terms = TAUS.map(|tau| ln_e_one(z2, v, tau));
    let high = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !high.is_finite() {
        return high;
    }
    let sum: f64 = terms.iter().map(|term| libm::exp(term - high)).sum();
    high + libm::log(sum) - libm::log(TAUS.len() as f64)
}

/// ln of the e-value of a row whose test gave `ln_p` and whose log ratio has standard error `se`; NaN if either is NaN.
///
/// z = Phi^-1(1 - p/2) with p at least 1e-300, v = se^2, then [`ln_e_mixture`]. Checked against SciPy (`decide.json`).
#[must_use]
pub fn ln_e(ln_p: f64, se: f64) -> f64 {
    if ln_p.is_nan() || se.is_nan() {
        return f64::NAN;
    }
    let z = z_two_sided(ln_p.clamp(LN_P_FLOOR, 0.0));
    ln_e_mixture(z * z, se * se)
}

/// ln of the e-value of a row that was tested against the scale of its own cell, of whose samples it is the part `share` (0..1).
///
/// All functions of a cell share one total: by what this one gains the others lose, `share / (1 - share)` of it, and the scale,
/// which is found among them, moves along. A contrast with the scale can so spread 1 / (1 - share) times as much as the share
/// itself, which is what `ln_p` and `se` know; [`ln_e`] is taken at z (1 - share) and se / (1 - share). Why: without it rows of
/// more than 4 % of a cell had p below 1e-5 fifty times too often when pods differ by CV 3 % (measured, 40 fleets of 20 v 180
/// pods), and nothing that is 1 % of a cell notices it. NaN if an argument is.
#[must_use]
pub fn ln_e_normalized(ln_p: f64, se: f64, share: f64) -> f64 {
    if ln_p.is_nan() || se.is_nan() || share.is_nan() {
        return f64::NAN;
    }
    let others = 1.0 - share;
    let (z, se) = (z_two_sided(ln_p.clamp(LN_P_FLOOR, 0.0)) * others, se / others);
    ln_e_mixture(z * z, se * se)
}

/// e-BH at level `q` over a family of `family` tests of which `ln_e` are some: true where the row is called.
///
/// Calls the k rows with the largest e, k the largest number with ln e_(k) >= ln(m/(q k)). Rows that are not given count as
/// e = 0, so they only enter through m = max(`family`, rows that are not NaN). NaN is never called. Holds under any
/// dependence. Wang & Ramdas (2022). Checked against a direct implementation (`ebh.json`), exactly, one case on the threshold.
#[must_use]
pub fn e_bh(ln_e: &[f64], q: f64, family: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..ln_e.len()).filter(|&i| !ln_e[i].is_nan()).collect();
    order.sort_by(|&i, &j| ln_e[j].total_cmp(&ln_e[i]).then(i.cmp(&j)));
    let m = family.max(order.len()) as f64;
    let significant =
        (1..=order.len()).rev().find(|&k| ln_e[order[k - 1]] >= libm::log(m / (q * k as f64))).unwrap_or(0);
    let mut rejected = vec![false; ln_e.len()];
    for &i in &order[..significant] {
        rejected[i] = true;
    }
    rejected
}
