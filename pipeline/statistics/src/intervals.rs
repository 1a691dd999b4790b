//! Intervals of shares as everybody knows them: for independent samples, without pods.
//!
//! They stand beside the plain G and its p for whoever compares with another program. What decides has its own interval
//! ([`crate::effect`]), which is wider by the root of the dispersion between pods; these are too narrow wherever
//! samples of one pod are alike.

#![expect(clippy::as_conversions, reason = "counts below 2^53 become floats")]

use crate::effect::Interval;
use crate::special::z_two_sided;

/// The standard normal quantile of a two-sided `level` in (0, 1): 1.96 for .95.
fn z(level: f64) -> f64 {
    z_two_sided(libm::log1p(-level))
}

/// Wilson's interval of the share `count / total` at a two-sided `level` (.95), within 0..1; both bounds NaN for a total of 0.
///
/// (p + z^2/2n -+ z sqrt(p (1-p)/n + z^2/4n^2)) / (1 + z^2/n). Wilson (1927). Checked against statsmodels (`intervals.csv`) to
/// 1e-12.
#[must_use]
pub fn wilson(count: u64, total: u64, level: f64) -> Interval {
    let (n, z) = (total as f64, z(level));
    if total == 0 {
        return Interval { low: f64::NAN, high: f64::NAN };
    }
    let (p, z2) = (count as f64 / n, z * z);
    let centre = p + 0.5 * z2 / n;
    let half = z * libm::sqrt(p * (1.0 - p) / n + 0.25 * z2 / (n * n));
    let shrink = 1.0 / (1.0 + z2 / n);
    let low = if count == 0 { 0.0 } else { (centre - half) * shrink };
    let high = if count == total { 1.0 } else { (centre + half) * shrink };
    Interval { low: low.max(0.0), high: high.min(1.0) }
}

/// Newcombe's interval of the difference of shares, head `a` of `n_a` less base `b` of `n_b`, at a two-sided `level`.
///
/// d - sqrt((p1-l1)^2 + (u0-p0)^2), d + sqrt((u1-p1)^2 + (p0-l0)^2) with l, u of [`wilson`]. Newcombe (1998), method 10.
/// Checked against statsmodels (`intervals.csv`) to 1e-12. Both bounds NaN for a total of 0.
#[must_use]
pub fn newcombe(a: u64, n_a: u64, b: u64, n_b: u64, level: f64) -> Interval {
    let (head, base) = (wilson(a, n_a, level), wilson(b, n_b, level));
    let (p1, p0) = (a as f64 / n_a as f64, b as f64 / n_b as f64);
    let low = libm::hypot(p1 - head.low, base.high - p0);
    let high = libm::hypot(head.high - p1, p0 - base.low);
    Interval { low: p1 - p0 - low, high: p1 - p0 + high }
}

/// A ratio of shares with the interval of its logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Katz {
    /// ln of the ratio, head to base.
    pub log_ratio: f64,
    /// Its standard error under independent samples.
    pub se: f64,
    /// The interval of the ratio.
    pub ratio: Interval,
}

/// Katz's interval of the ratio of shares `a`/`n_a` to `b`/`n_b` at a two-sided `level`; `None` where an arm lacks the function
/// or has no samples.
///
/// ln ratio -+ z sqrt((1-p1)/a + (1-p0)/b). Katz et al. (1978). Checked against SciPy (`intervals.csv`) to 1e-12.
#[must_use]
pub fn katz(a: u64, n_a: u64, b: u64, n_b: u64, level: f64) -> Option<Katz> {
    if [a, n_a, b, n_b].contains(&0) {
        return None;
    }
    let (x1, x0) = (a as f64, b as f64);
    let (p1, p0) = (x1 / n_a as f64, x0 / n_b as f64);
    let log_ratio = libm::log(p1 / p0);
    let se = libm::sqrt((1.0 - p1) / x1 + (1.0 - p0) / x0);
    let half = z(level) * se;
    let ratio = Interval { low: libm::exp(log_ratio - half), high: libm::exp(log_ratio + half) };
    Some(Katz { log_ratio, se, ratio })
}
