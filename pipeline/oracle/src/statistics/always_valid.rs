//! E-values, and what holds at whatever time one looks.

use super::tails::{bisect, ln_chi1_tail, z_two_sided};

/// Standard deviations of the log ratio that the e-value mixes over.
const SPREADS: [f64; 4] = [0.05, 0.2, 0.8, 3.2];

/// ln of the mixture e-value of a log ratio with `variance` (`ln_e`): p no smaller than 1e-300, as in the reference.
pub fn ln_e(ln_p: f64, variance: f64) -> f64 {
    ln_mixture(z_two_sided(ln_p.max(1e-300_f64.ln())), variance)
}

/// ln of the mixture over all standard deviations, for an estimate with variance `v` that is `z` standard errors from
/// 0.
fn ln_mixture(z: f64, v: f64) -> f64 {
    let one = |t: f64| 0.5 * (v / (v + t * t)).ln() + 0.5 * z * z * t * t / (v + t * t);
    let terms = SPREADS.map(one);
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln() - 4.0_f64.ln()
}

/// The z at which the mixture e-value is 1 / `alpha`.
pub fn critical_z(variance: f64, alpha: f64) -> f64 {
    bisect(0.0, 1e6, |z| ln_mixture(z, variance) < -alpha.ln())
}

/// ln of the two-sided p of a ratio at the ends of its always-valid interval: there its e-value is 1 / `alpha`.
pub fn ln_p_always_valid(variance: f64, alpha: f64) -> f64 {
    ln_chi1_tail(critical_z(variance, alpha).powi(2))
}

/// In how many reports in a row a change must have faded.
const LOOKS: usize = 3;

/// Whether a change of `raised` has faded (`faded`): the intervals of its three latest reports all cover 0 and leave out
/// half of it.
pub fn faded(raised: f64, intervals: &[(f64, f64)]) -> bool {
    intervals.len() >= LOOKS && intervals.iter().rev().take(LOOKS).all(|interval| is_gone(raised, *interval))
}

/// Whether an interval covers 0 and leaves out half of a change of `raised`.
pub fn is_gone(raised: f64, (low, high): (f64, f64)) -> bool {
    let half = raised / 2.0;
    low <= 0.0 && high >= 0.0 && if raised > 0.0 { high < half } else { low > half }
}
