//! The test read backwards: the ratios that it does not reject.
//!
//! An interval that comes from the test itself cannot contradict it: p(c) < .05 exactly if the 95 % interval leaves out c, with
//! two pods as with two hundred, and where an arm has no sample of the function (then it is open on that side).

use crate::deviance::Levels;
use crate::effect::LnInterval;

/// Bounds are looked for within this distance in logarithm: exp(40) is 2e17.
const FAR: f64 = 40.0;
/// Bounds are found to this in logarithm.
const CLOSE: f64 = 1e-11;

impl Levels {
    /// The logarithms of all ratios with p > exp(`ln_p`); open where an arm has none, and where no ratio within exp(+-40) is
    /// rejected.
    ///
    /// Checked against the reference program (`test.json`, `cell.json`) to 1e-8.
    #[must_use]
    pub fn interval(&self, ln_p: f64) -> LnInterval {
        let critical = self.tail().critical(ln_p);
        LnInterval { low: self.bound(critical, -1.0), high: self.bound(critical, 1.0) }
    }

    /// The bound on the side of `sign`, at which the statistic is `critical`.
    fn bound(&self, critical: f64, sign: f64) -> f64 {
        let (no_head, no_base) = (self.arms.head.share <= 0.0, self.arms.base.share <= 0.0);
        if if sign < 0.0 { no_head } else { no_base } {
            return sign * f64::INFINITY;
        }
        let beyond = |at: f64| libm::sqrt(self.deviance(libm::exp(at))) - libm::sqrt(critical);
        let (near, far) = if no_head || no_base {
            (-sign * FAR, sign * FAR)
        } else {
            let theta = self.theta();
            (theta, theta + sign * FAR)
        };
        let at_far = beyond(far);
        if at_far.is_nan() || at_far < 0.0 {
            return sign * f64::INFINITY;
        }
        let first = near + sign * libm::sqrt(critical * self.variance());
        root(beyond, [near, far], first)
    }
}

/// The root of `f`, which is below 0 at the first end and above at the second: secants from `first` on, halved where they leave
/// the bracket or are slow.
fn root(f: impl Fn(f64) -> f64, [mut low, mut high]: [f64; 2], first: f64) -> f64 {
    let inside = |at: f64, low: f64, high: f64| at > low.min(high) && at < low.max(high);
    let mut at = if inside(first, low, high) { first } else { 0.5 * (low + high) };
    let mut before: Option<(f64, f64)> = None;
    for step in 0..200 {
        let value = f(at);
        if value > 0.0 {
            high = at;
        } else {
            low = at;
        }
        let secant = before.map_or(f64::NAN, |(x, y)| at - value * (at - x) / (value - y));
        let next = if inside(secant, low, high) && step % 8 != 7 { secant } else { 0.5 * (low + high) };
        if (next - at).abs() <= CLOSE || (high - low).abs() <= CLOSE {
            return next;
        }
        before = Some((at, value));
        at = next;
    }
    at
}
