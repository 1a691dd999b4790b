//! E-values for looks without a plan, and the e-BH procedure over many of them.
//!
//! An e-value is a bet against "nothing changed" whose expected pay-out is at most one, whenever one looks. A threshold on it
//! holds at every look at once, which no p-value does: BH looked at every 10 s for 30 minutes flags something in most runs.

#![expect(clippy::as_conversions, reason = "ranks and family sizes become floats")]

use crate::special::{ln_erfc, z_two_sided};

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

/// ln of the e-value of a row whose test gave `ln_p` and whose log ratio has variance `v`; NaN if either is NaN.
///
/// z = Phi^-1(1 - p/2) with p at least 1e-300, then [`ln_e_mixture`]. Checked against SciPy (`cell.json`).
#[must_use]
pub fn ln_e(ln_p: f64, v: f64) -> f64 {
    if ln_p.is_nan() || v.is_nan() {
        return f64::NAN;
    }
    let z = z_two_sided(ln_p.clamp(LN_P_FLOOR, 0.0));
    ln_e_mixture(z * z, v)
}

/// The same of a normal estimate of a log ratio with this standard error, against no change.
#[must_use]
pub fn ln_e_of(theta: f64, se: f64) -> f64 {
    ln_e(ln_erfc((theta / se).abs() / std::f64::consts::SQRT_2), se * se)
}

/// The part of a live family's weight that its rows of all samples hold together.
pub const ALL_WEIGHT: f64 = 0.1;

/// ln of weighted e-values, w e: what [`e_bh`] takes. `weights` have mean 1 over the family.
#[must_use]
pub fn weighted(ln_e: &[f64], weights: &[f64]) -> Vec<f64> {
    ln_e.iter().zip(weights).map(|(ln_e, weight)| ln_e + libm::log(*weight)).collect()
}

/// e-BH at level `q` over a family of `family` tests of which `ln_e` are some, weighted or not: true where the row is flagged.
///
/// Flags the k rows with the largest e, k the largest number with ln e_(k) >= ln(m/(q k)). Rows that are not given count as
/// e = 0, so they only enter through m = max(`family`, rows that are not NaN). NaN is never flagged. Holds under any
/// dependence. Wang & Ramdas (2022). Checked against a direct implementation (`ebh.json`, `families.json`), exactly, one case on
/// the threshold.
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
