//! The test read backwards: the ratios that it does not reject.
//!
//! An interval that comes from the test itself cannot contradict it: p(c) < .05 exactly if the 95 % interval leaves out c, with
//! two pods as with two hundred, and where an arm has no sample of the function (then it is open on that side).

use std::sync::LazyLock;

use crate::deviance::{LevelTests, Levels};
use crate::effect::{EQUIVALENCE_LN, LnInterval};
use crate::screen::{Critical, each_reaching};
use crate::tails::F1Tail;

/// ln(1 - [`EQUIVALENCE_LEVEL`](crate::effect::EQUIVALENCE_LEVEL)).
const LN_P_EQUIVALENT: f64 = -std::f64::consts::LN_10;
/// Chi-square with one degree of freedom that is passed with p = .1: F with any other has its own beyond.
const CHI_SQUARE_EQUIVALENT: f64 = 2.705_543_454_095_404;

/// Bounds are looked for within this distance in logarithm: exp(40) is 2e17.
const FAR: f64 = 40.0;
/// A step this small in logarithm was the last: the error of a secant is far below its step.
const CLOSE: f64 = 1e-9;

/// A point of the root of the statistic, less its critical value.
#[derive(Clone, Copy)]
struct Point {
    /// ln of the ratio.
    at: f64,
    /// Below 0 inside the interval.
    beyond: f64,
}

impl LevelTests {
    /// The logarithms of all ratios with p > exp(`ln_p`); open where an arm has none, and where no ratio within exp(+-40) is
    /// rejected.
    ///
    /// Checked against the reference program (`test.json`, `cell.json`) to 1e-8.
    #[must_use]
    pub fn interval(&self, ln_p: f64) -> LnInterval {
        self.within(self.critical(ln_p))
    }

    /// The root of the statistic that is passed with p = exp(`ln_p`): a quantile of Student's t.
    #[must_use]
    pub fn critical(&self, ln_p: f64) -> f64 {
        libm::sqrt(self.tail.critical(ln_p))
    }

    /// [`LevelTests::interval`] by its [`LevelTests::critical`], which is the same for tests with the same degrees of freedom.
    #[must_use]
    pub fn within(&self, critical: f64) -> LnInterval {
        LnInterval { low: self.bound(critical, -1.0), high: self.bound(critical, 1.0) }
    }

    /// The bound on the side of `sign`, at which the root of the statistic is `critical`: the root is nearly a line.
    fn bound(&self, critical: f64, sign: f64) -> f64 {
        let (no_head, no_base) = (self.levels.arms.head.share <= 0.0, self.levels.arms.base.share <= 0.0);
        if if sign < 0.0 { no_head } else { no_base } {
            return sign * f64::INFINITY;
        }
        let point = |at: f64| Point { at, beyond: libm::sqrt(self.statistic(libm::exp(at))) - critical };
        let (inside, far) = if no_head || no_base {
            (point(-sign * FAR), point(sign * FAR))
        } else {
            let theta = self.levels.theta();
            (Point { at: theta, beyond: -critical }, point(theta + sign * FAR))
        };
        if far.beyond.is_nan() || far.beyond < 0.0 {
            return sign * f64::INFINITY;
        }
        let step = critical * libm::sqrt(self.variance());
        root(point, inside, far, self.levels.theta() + sign * step)
    }
}

impl Levels {
    /// Whether a function is shown to be unchanged against a scale: its interval of [`EQUIVALENCE_LEVEL`](crate::effect::EQUIVALENCE_LEVEL) lies within +-ln 1.05.
    ///
    /// Without the interval: both ends of the band are rejected. False where not tested.
    #[must_use]
    pub fn is_equivalent(&self, ln_scale: f64) -> bool {
        Band::around(ln_scale).holds(self)
    }
}

/// The places of the functions that [`Levels::is_equivalent`] holds for, ascending.
#[must_use]
pub fn equivalent(levels: &[Levels], ln_scale: f64) -> Vec<usize> {
    let band = Band::around(ln_scale);
    let mut places = Vec::new();
    each_reaching(levels, &band.ends, band.critical, |place| places.push(place));
    places.retain(|&place| band.holds(&levels[place]));
    places
}

/// More than what rounding does to a statistic near its critical value.
const ROUNDING: f64 = 1e-4;

/// The band around a scale in which a function is unchanged.
struct Band {
    /// The ratios at its ends.
    ends: [f64; 2],
    /// What is passed with p = .1, less what rounding may do.
    critical: &'static Critical,
}

impl Band {
    fn around(ln_scale: f64) -> Self {
        static CRITICAL: LazyLock<Critical> = LazyLock::new(|| {
            Critical::new(|df| match df.is_finite() {
                true => F1Tail::new(df).critical(LN_P_EQUIVALENT) * (1.0 - ROUNDING),
                false => CHI_SQUARE_EQUIVALENT * (1.0 - ROUNDING),
            })
        });
        Self { ends: [-EQUIVALENCE_LN, EQUIVALENCE_LN].map(|end| libm::exp(ln_scale + end)), critical: &CRITICAL }
    }

    /// Whether a function is shown to lie within.
    fn holds(&self, levels: &Levels) -> bool {
        let ratio = levels.arms.head.share / levels.arms.base.share;
        let [low, high] = self.ends;
        low < ratio && ratio < high && self.ends.iter().all(|&end| self.rejects(levels, end))
    }

    /// Whether p <= .1 against a ratio. Fewer degrees of freedom have a larger critical value, so most functions are decided by
    /// bounds of the statistic and the values of the whole numbers around theirs.
    fn rejects(&self, levels: &Levels, ratio: f64) -> bool {
        if levels.deviance_at_most(ratio) < self.critical.at_most(levels.df) {
            return false;
        }
        let surely = self.critical.at_least(levels.df) * (1.0 + 4.0 * ROUNDING);
        levels.deviance_at_least(ratio) > surely || levels.ln_p(ratio) <= LN_P_EQUIVALENT
    }
}

/// The root between a point inside and one outside: secants from `first` on, halved where they leave the bracket or are slow.
fn root(point: impl Fn(f64) -> Point, mut inside: Point, mut outside: Point, first: f64) -> f64 {
    let between = |at: f64, one: Point, other: Point| at > one.at.min(other.at) && at < one.at.max(other.at);
    let halfway = |one: Point, other: Point| 0.5 * (one.at + other.at);
    let mut before = inside;
    let mut at = if between(first, inside, outside) { first } else { halfway(inside, outside) };
    for step in 0..200 {
        let here = point(at);
        if here.beyond > 0.0 {
            outside = here;
        } else {
            inside = here;
        }
        let secant = here.at - here.beyond * (here.at - before.at) / (here.beyond - before.beyond);
        if (secant - at).abs() <= CLOSE {
            return secant;
        }
        let next = if between(secant, inside, outside) && step % 8 != 7 { secant } else { halfway(inside, outside) };
        if (outside.at - inside.at).abs() <= CLOSE {
            return next;
        }
        (before, at) = (here, next);
    }
    at
}
