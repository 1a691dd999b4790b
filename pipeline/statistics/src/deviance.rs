//! The test of one function: two levels, each with a variance that grows with the level, and how far a ratio is from both.
//!
//! Samples of a function vary as A p + B p^2 around their level p: A is counting, B is what pods do. The statistic is twice what
//! the likelihood of that law loses when one ratio is asked of both arms: the integral of (y - t)/(A t + B t^2) between the level
//! that is seen and the one that is asked for. It is a likelihood ratio for small counts (Poisson where B = 0) and Welch's t on
//! logarithms for large pods, and a level of zero needs no rule. The level that is common to both arms is the root of a
//! quadratic, so nothing is iterated (Lund 2012; Wedderburn 1974).
//!
//! | symbol | what |
//! |---|---|
//! | D_i(y, m) = (2/A)[y ln(y/m) - (y + A/B) ln1p((y - m)/(m + A/B))] | what one arm loses |
//! | D(c) = min over m of D_head(p_1, c m) + D_base(p_0, m) | the statistic for the ratio c |
//! | p(c) = P(F(1, df) > D(c)) | two-sided |
//! | D_i(y, m) <= 2 (y - m)^2/((m + g)(A + B min(y, m))), g = y below m, sqrt(y m) above | the screen |
//! | D_i(y, m) >= 2 (y - m)^2/((m + g)(A + B max(y, m))), g = sqrt(y m) below m, y above | |
//!
//! Both bounds put one end's value for the A + B t of the integral and bound the logarithm that is left: ln r lies between
//! 2 (r - 1)/(r + 1) and (r - 1)/sqrt(r) for r >= 1.

use crate::arms::Arms;
use crate::effect::LnInterval;
use crate::minimum_effect::outside_band;
use crate::special::ln_ratio;
use crate::tails::F1Tail;

/// Below this part of A, B p is taken for 0: the form of Poisson counts.
const POISSON: f64 = 1e-9;
/// Levels and variances are not taken for less.
const LEAST: f64 = 1e-300;

/// One arm's level of a function, and how its variance grows with the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// p: the share of samples, or samples per request.
    pub share: f64,
    /// A: variance of the level per unit of it, from counting.
    pub counting: f64,
    /// B: variance of the level per unit of its square, from differences between pods.
    pub between: f64,
}

impl Level {
    /// A/p + B: the relative variance at the level `share`.
    #[must_use]
    pub(crate) fn relative_variance(&self, share: f64) -> f64 {
        self.counting / share + self.between
    }

    /// 2 times the integral from `asked` to the level of (y - t)/(A t + B t^2) dt.
    fn lost(&self, asked: f64) -> f64 {
        let (y, a, b) = (self.share, self.counting, self.between);
        let first = if y > 0.0 { y * ln_ratio(y, asked) } else { 0.0 };
        let second = if b * y.max(asked) < POISSON * a {
            y - asked
        } else {
            let k = a / b;
            (y + k) * libm::log1p((y - asked) / (asked + k))
        };
        (2.0 / a * (first - second)).max(0.0)
    }

    /// At least [`Level::lost`], without a logarithm.
    #[inline(always)]
    fn lost_at_most(&self, asked: f64) -> f64 {
        let (y, middle) = (self.share, (self.share * asked).sqrt());
        self.lost_over(asked, if y < asked { y } else { middle }, y.min(asked))
    }

    /// At most [`Level::lost`], without a logarithm.
    fn lost_at_least(&self, asked: f64) -> f64 {
        let (y, middle) = (self.share, (self.share * asked).sqrt());
        self.lost_over(asked, if y < asked { middle } else { y }, y.max(asked))
    }

    /// 2 (y - m)^2/((m + `beside`)(A + B `level`)).
    #[inline(always)]
    fn lost_over(&self, asked: f64, beside: f64, level: f64) -> f64 {
        let deviation = self.share - asked;
        let variance = 0.5 * (asked + beside) * (self.counting + self.between * level);
        let lost = deviation * deviation / variance.max(LEAST);
        if deviation.abs() > 0.0 { lost } else { 0.0 }
    }
}

/// Both arms' levels of one function, and the degrees of freedom of their difference: all that its tests need.
///
/// ```
/// use fleetdiff_statistics::deviance::Level;
/// use fleetdiff_statistics::{Arms, Levels};
///
/// // 130 of 10,000 samples against 100 of 10,000, from pods that do not differ
/// let level = |count: f64| Level { share: count / 1e4, counting: 1e-4, between: 0.0 };
/// let many = Arms { head: 1e6, base: 1e6 };
/// let levels = Levels::new(Arms { head: level(130.0), base: level(100.0) }, many);
/// assert!((levels.theta().exp() - 1.3).abs() < 1e-12);
/// assert!((levels.deviance(1.0) - 3.924).abs() < 1e-3);
/// // p = .048, so the interval of 95 % leaves out "unchanged"
/// assert!(levels.ln_p(1.0).exp() < 0.05 && levels.interval(0.05_f64.ln()).low > 0.0);
/// // with pods that differ by 10 %, ten in each arm, it is nothing
/// let level = |count: f64| Level { between: 0.01 / 10.0, ..level(count) };
/// let levels = Levels::new(Arms { head: level(130.0), base: level(100.0) }, Arms { head: 9.0, base: 9.0 });
/// assert!(levels.ln_p(1.0).exp() > 0.05);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Each arm's level.
    pub arms: Arms<Level>,
    /// Welch's degrees of freedom.
    pub df: f64,
}

impl Levels {
    /// Two levels; `df` are the degrees of freedom of each arm's variance.
    ///
    /// df = (r_1 + r_0)^2/(r_1^2/df_1 + r_0^2/df_0), r = A/p + B at the mean of both levels. Welch (1947).
    #[must_use]
    pub fn new(arms: Arms<Level>, df: Arms<f64>) -> Self {
        let both = Self { arms, df: f64::NAN };
        let at = both.mean_share();
        Self { df: welch(arms.map(|level| level.relative_variance(at)), df), ..both }
    }

    fn mean_share(&self) -> f64 {
        mean_share(self.arms.head.share, self.arms.base.share)
    }

    /// ln of the ratio of head to base, infinite where an arm has none.
    #[must_use]
    pub fn theta(&self) -> f64 {
        let (head, base) = (self.arms.head.share, self.arms.base.share);
        if head >= f64::MIN_POSITIVE && base >= f64::MIN_POSITIVE {
            ln_ratio(head, base)
        } else {
            libm::log(head) - libm::log(base)
        }
    }

    /// The variance of theta: A/p + B of both arms at the mean of their levels.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let at = self.mean_share();
        self.arms.head.relative_variance(at) + self.arms.base.relative_variance(at)
    }

    /// D: the statistic of "head is `ratio` times base", F(1, df) if it is.
    ///
    /// Checked against the reference program (`test.json`) through p to 1e-8.
    #[must_use]
    pub fn deviance(&self, ratio: f64) -> f64 {
        let base = common(&self.arms, ratio);
        self.arms.head.lost(ratio * base) + self.arms.base.lost(base)
    }

    /// At least [`Levels::deviance`], without a logarithm: a row whose bound is small is done.
    #[must_use]
    pub fn deviance_at_most(&self, ratio: f64) -> f64 {
        bound(&self.arms, ratio)
    }

    /// At most [`Levels::deviance`] but for rounding, without a logarithm.
    #[must_use]
    pub fn deviance_at_least(&self, ratio: f64) -> f64 {
        let base = common(&self.arms, ratio);
        self.arms.head.lost_at_least(ratio * base) + self.arms.base.lost_at_least(base)
    }

    /// The tests of these levels, with the tail of their statistic at hand: for several ratios.
    #[must_use]
    pub fn tests(&self) -> LevelTests {
        LevelTests { levels: *self, tail: F1Tail::new(self.df.max(1e-9)), scale_variance: 0.0 }
    }

    /// ln p of "head is `ratio` times base", two-sided.
    #[must_use]
    pub fn ln_p(&self, ratio: f64) -> f64 {
        self.tests().ln_p(ratio)
    }

    /// The logarithms of all ratios with p > exp(`ln_p`), see [`LevelTests::interval`].
    #[must_use]
    pub fn interval(&self, ln_p: f64) -> LnInterval {
        self.tests().interval(ln_p)
    }
}

/// See [`Levels::deviance_at_most`].
#[inline(always)]
pub(crate) fn bound(arms: &Arms<Level>, ratio: f64) -> f64 {
    let base = common(arms, ratio);
    arms.head.lost_at_most(ratio * base) + arms.base.lost_at_most(base)
}

/// The base level m with which head = `ratio` m and base = m lose least: the positive root of a quadratic.
///
/// NB: selections instead of branches, so that it is compiled to vectors.
#[inline(always)]
fn common(Arms { head, base }: &Arms<Level>, ratio: f64) -> f64 {
    let a = ratio * (base.between + head.between);
    let b = ratio * base.counting + head.counting - head.share * base.between - ratio * base.share * head.between;
    let d = head.share * base.counting + base.share * head.counting;
    let root = (b * b + 4.0 * a * d).sqrt();
    let numerator = if b > 0.0 { 2.0 * d } else { root - b };
    let of_square = if a > 0.0 { 2.0 * a } else { 1.0 };
    let denominator = if b > 0.0 { b + root } else { of_square };
    (numerator / denominator).max(LEAST)
}

/// The mean of two levels, more than 0.
#[inline(always)]
pub(crate) fn mean_share(head: f64, base: f64) -> f64 {
    (0.5 * (head + base)).max(LEAST)
}

/// (r_1 + r_0)^2/(r_1^2/df_1 + r_0^2/df_0): degrees of freedom of the difference of two arms with relative variances r. Welch (1947).
#[inline(always)]
pub(crate) fn welch(r: Arms<f64>, df: Arms<f64>) -> f64 {
    let (head, base) = (r.head * r.head / df.head.max(1e-9), r.base * r.base / df.base.max(1e-9));
    let sum = r.head + r.base;
    sum * sum / (head + base)
}

/// [`Levels`] with the constants of the tail of their statistic.
#[derive(Clone, Copy, Debug)]
pub struct LevelTests {
    pub(crate) levels: Levels,
    pub(crate) tail: F1Tail,
    /// Variance of the logarithm of the ratios that are asked for.
    scale_variance: f64,
}

impl LevelTests {
    /// The same where the ratios that are asked for are scales, whose logarithms are known with this variance only.
    #[must_use]
    pub fn with_scale_variance(self, scale_variance: f64) -> Self {
        Self { scale_variance, ..self }
    }

    /// The variance of theta against a scale.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.levels.variance() + self.scale_variance
    }

    /// The statistic of "head is `ratio` times base": D v/(v + the scale's variance).
    #[must_use]
    pub fn statistic(&self, ratio: f64) -> f64 {
        let deviance = self.levels.deviance(ratio);
        if self.scale_variance > 0.0 { deviance * (self.levels.variance() / self.variance()) } else { deviance }
    }

    /// ln p of "head is `ratio` times base", two-sided.
    #[must_use]
    pub fn ln_p(&self, ratio: f64) -> f64 {
        self.tail.ln_tail(self.statistic(ratio))
    }

    /// ln p of H0: |ln(head/base) - ln `ratio`| <= `min_effect`: the test repeated at the band's ends, see [`outside_band`].
    #[must_use]
    pub fn ln_p_min_effect(&self, ratio: f64, min_effect: f64) -> f64 {
        let (up, down) = (self.ln_p(ratio * libm::exp(min_effect)), self.ln_p(ratio * libm::exp(-min_effect)));
        outside_band(self.levels.theta() - libm::log(ratio), min_effect, up, down)
    }
}
