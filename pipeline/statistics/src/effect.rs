//! How large a change may be, and proof of sameness.

/// The half width within which a function counts as unchanged: ln 1.05.
pub const EQUIVALENCE_LN: f64 = 0.048_790_164_169_432_05;
/// The level of the interval that must lie inside [`EQUIVALENCE_LN`]: two one-sided tests at 5 %.
pub const EQUIVALENCE_LEVEL: f64 = 0.90;

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
