//! How large a change is: the Mantel-Haenszel ratio of shares, its error, its interval, and proof of sameness.
//!
//! The ratio is an effect; U/V of the score test is not (it says 2.6 for a doubling). The error is that of independent samples
//! times the root of the dispersion between pods, so an interval and its test agree.

use crate::special::ln_ratio;
use crate::tails::t_quantile;

/// The half width within which a function counts as unchanged: ln 1.05.
pub(crate) const EQUIVALENCE_LN: f64 = 0.048_790_164_169_432_05;
/// The level of the interval that must lie inside [`EQUIVALENCE_LN`]: two one-sided tests at 5 %.
pub const EQUIVALENCE_LEVEL: f64 = 0.90;

/// What one stratum adds to the Mantel-Haenszel sums of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RatioSums {
    /// sum of x1 N0/N.
    pub head: f64,
    /// sum of x0 N1/N.
    pub base: f64,
    /// sum of (N1 N0 X - x1 x0 N)/N^2; in the rate model without the second term.
    pub variance: f64,
}

impl RatioSums {
    /// ln of the Mantel-Haenszel ratio of shares (head to base); an arm without the function counts half a sample of its
    /// `n_head` or `n_base`, and `weight` is the sum over strata of N1 N0/N.
    ///
    /// ln((sum x1 N0/N) / (sum x0 N1/N)), equal to ln((a/N1)/(b/N0)) for one stratum. Greenland & Robins (1985). Checked against
    /// the reference program (`decide.json`, `ql.json`).
    #[inline(always)]
    #[must_use]
    pub fn log_ratio(&self, weight: f64, n_head: f64, n_base: f64) -> f64 {
        let head = if self.head > 0.0 { self.head / weight } else { 0.5 / n_head };
        let base = if self.base > 0.0 { self.base / weight } else { 0.5 / n_base };
        ln_ratio(head, base)
    }

    /// The Greenland-Robins variance of [`RatioSums::log_ratio`] under independent samples; NaN where an arm lacks the function.
    ///
    /// P/(R Q); equal to (1-p1)/a + (1-p0)/b for one stratum.
    #[inline(always)]
    #[must_use]
    pub(crate) fn log_variance(&self) -> f64 {
        if self.head > 0.0 && self.base > 0.0 { self.variance / (self.head * self.base) } else { f64::NAN }
    }
}

/// Bounds of a ratio; both NaN where it is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound, at least 0.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The interval of a ratio whose log is `theta` with standard error `se`, at `level` (.95) with `df` degrees of freedom.
///
/// exp(theta -+ t se). Assumes log-normal errors; the quantile is checked against mpmath. A cell has one `df`: keep
/// [`t_quantile`] and use [`interval_from_t`] for many rows.
#[inline]
#[must_use]
pub fn ratio_interval(theta: f64, se: f64, df: f64, level: f64) -> Interval {
    interval_from_t(theta, se, t_quantile(level, df))
}

/// [`ratio_interval`] with the quantile `t` at hand.
#[inline]
#[must_use]
pub fn interval_from_t(theta: f64, se: f64, t: f64) -> Interval {
    Interval { low: libm::exp(theta - t * se), high: libm::exp(theta + t * se) }
}

/// Whether a function is shown to be unchanged: the 90 % interval of `theta` lies within +-ln 1.05; `t` is the quantile for
/// [`EQUIVALENCE_LEVEL`] and the cell's degrees of freedom. False where theta or se is NaN.
#[inline]
#[must_use]
pub fn is_equivalent(theta: f64, se: f64, t: f64) -> bool {
    theta.abs() + t * se <= EQUIVALENCE_LN
}
