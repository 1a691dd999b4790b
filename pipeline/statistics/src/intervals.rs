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
