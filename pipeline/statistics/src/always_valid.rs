//! P-value and interval that hold at every look at once.
//!
//! They are the e-value read backwards: the interval holds every log ratio that the mixture has not yet bet down by 1/alpha.
//! Whoever looks every ten seconds and stops at will is wrong with probability alpha at most, over all looks
//! together; the price is width: some 1.7 to 2 times the ordinary interval.
//!
//! What makes it wrong: what makes the e-value wrong, an error that is estimated and not known.

use crate::deviance::LevelTests;
use crate::effect::LnInterval;
use crate::evalue::{TAUS, ln_e_one};
use crate::special::ln_erfc;
use crate::tails::DECIDED;

/// ln of the number of spreads in the mixture.
const LN_TAUS: f64 = 1.386_294_361_119_890_6;

/// ln of the always-valid p-value, min(1, 1/e) at the largest e seen so far; NaN of NaN.
#[must_use]
pub fn ln_p_always_valid(largest_ln_e: f64) -> f64 {
    if largest_ln_e.is_nan() { f64::NAN } else { 0.0 - largest_ln_e.max(0.0) }
}

/// The z from which the mixture pays out 1/`alpha` on an estimate with variance `v`: the root of ln e(z^2, v) = -ln alpha.
///
/// ln e is convex in z^2 and grows, so Newton comes down from the point at which one spread alone pays the whole mixture's
/// share, without overshooting. `v` > 0, `alpha` in (0, 1], else NaN. Relative error 1e-12; the root is checked against mpmath.
#[must_use]
pub fn critical_z(v: f64, alpha: f64) -> f64 {
    if !(v > 0.0 && v.is_finite() && alpha > 0.0 && alpha <= 1.0) {
        return f64::NAN;
    }
    let target = -libm::log(alpha);
    let alone = |tau: f64| (target + LN_TAUS - ln_e_one(0.0, v, tau)) * 2.0 * (v + tau * tau) / (tau * tau);
    let mut z2 = TAUS.map(alone).into_iter().fold(f64::INFINITY, f64::min);
    for _ in 0..100 {
        let (ln_e, slope) = mixture_and_slope(z2, v);
        let step = (ln_e - target) / slope;
        z2 -= step;
        if step.abs() <= DECIDED * z2 {
            break;
        }
    }
    libm::sqrt(z2.max(0.0))
}

/// ln e of the mixture at `z2`, and its derivative there: the mean of tau^2/(2(v + tau^2)), weighted by what each spread pays.
fn mixture_and_slope(z2: f64, v: f64) -> (f64, f64) {
    let terms = TAUS.map(|tau| (ln_e_one(z2, v, tau), 0.5 * tau * tau / (v + tau * tau)));
    let high = terms.iter().fold(f64::NEG_INFINITY, |high, &(term, _)| high.max(term));
    let (sum, weighted) = terms.iter().fold((0.0, 0.0), |(sum, weighted), &(term, slope)| {
        let pays = libm::exp(term - high);
        (sum + pays, weighted + pays * slope)
    });
    (high + libm::log(sum) - LN_TAUS, weighted / sum)
}

impl LevelTests {
    /// The always-valid interval of the log ratio at level 1 - `alpha`; against a scale after [`LnInterval::against`].
    ///
    /// All ratios whose p is larger than that of the z at which the mixture pays 1/`alpha`: where one scale decides, it leaves out
    /// the scale exactly if the row's e-value is at least 1/`alpha`.
    #[must_use]
    pub fn always_valid_interval(&self, alpha: f64) -> LnInterval {
        let z = critical_z(self.variance(), alpha);
        if z.is_nan() {
            return LnInterval::UNKNOWN;
        }
        self.interval(ln_erfc(z * std::f64::consts::FRAC_1_SQRT_2))
    }
}
