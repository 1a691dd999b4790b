//! How large a change may be, and proof of sameness.

use crate::deviance::Levels;

/// The half width within which a function counts as unchanged: ln 1.05.
pub const EQUIVALENCE_LN: f64 = 0.048_790_164_169_432_05;
/// The level of the interval that must lie inside [`EQUIVALENCE_LN`]: two one-sided tests at 5 %.
pub const EQUIVALENCE_LEVEL: f64 = 0.90;

/// ln(1 - [`EQUIVALENCE_LEVEL`]).
const LN_P_EQUIVALENT: f64 = -std::f64::consts::LN_10;
/// Chi-square with one degree of freedom that is passed with p = .1: F with any other has its own beyond.
const CHI_SQUARE_EQUIVALENT: f64 = 2.705_543_454_095_404;

impl Levels {
    /// Whether a function is shown to be unchanged against a scale: its interval of [`EQUIVALENCE_LEVEL`] lies within +-ln 1.05.
    ///
    /// Without the interval: both ends of the band are rejected. False where not tested.
    #[must_use]
    pub fn is_equivalent(&self, ln_scale: f64) -> bool {
        let ends = [-EQUIVALENCE_LN, EQUIVALENCE_LN].map(|end| libm::exp(ln_scale + end));
        let ratio = self.arms.head.share / self.arms.base.share;
        if !(ends[0] < ratio && ratio < ends[1]) {
            return false;
        }
        let may = ends.iter().all(|&end| self.deviance_at_most(end) >= CHI_SQUARE_EQUIVALENT);
        may && ends.iter().all(|&end| self.ln_p(end) <= LN_P_EQUIVALENT)
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

/// Bounds of the logarithm of a ratio; both NaN where it is unknown, infinite where it is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LnInterval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl LnInterval {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { low: f64::NAN, high: f64::NAN };

    /// The bounds as a ratio.
    #[must_use]
    pub fn ratio(self) -> Interval {
        Interval { low: libm::exp(self.low), high: libm::exp(self.high) }
    }

    /// The bounds against a scale whose logarithm this is.
    #[must_use]
    pub fn against(self, ln_scale: f64) -> Self {
        Self { low: self.low - ln_scale, high: self.high - ln_scale }
    }

    /// Whether a function is shown to be unchanged, if this is its interval of [`EQUIVALENCE_LEVEL`] against the scale: it lies
    /// within +-ln 1.05. False where it is unknown.
    #[must_use]
    pub fn is_equivalent(self) -> bool {
        self.low >= -EQUIVALENCE_LN && self.high <= EQUIVALENCE_LN
    }
}
