//! Counts and times that JSON holds as floats.

use fleetdiff_schemas::rejected::{Reason, Rejection};

/// A weight that is a count.
///
/// # Errors
/// `negative_value`; `too_large` where floats no longer tell each whole number; `unit_mismatch` if it is none.
pub(crate) fn whole(weight: f64) -> Result<u64, Rejection> {
    /// 2^53, to which each whole number has its own float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if weight < 0.0 {
        return Err(negative(weight));
    }
    if weight > EXACT {
        return Err(Rejection::new(Reason::TooLarge, format!("a weight of {weight} samples")));
    }
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=2^53")]
    let count = weight as u64;
    if weight.fract() > 0.0 {
        Err(Rejection::new(Reason::UnitMismatch, format!("a weight of {weight} is no whole number of samples")))
    } else {
        Ok(count)
    }
}

/// The fault of a weight below zero.
pub(crate) fn negative(weight: f64) -> Rejection {
    Rejection::new(Reason::NegativeValue, format!("a weight of {weight}"))
}

/// A time in nanoseconds, of which `scale` are one of its unit.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "to the nearest nanosecond, held at the ends"
)]
pub(crate) fn nanoseconds(value: f64, scale: i64) -> i64 {
    libm::round(value * scale as f64) as i64
}
