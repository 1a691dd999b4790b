//! Ranges of numbers that flags and keys of the configuration share.

/// Whether a number is a rate or a probability that leaves something open: above 0 and below 1.
pub(crate) fn is_within_one(number: f64) -> bool {
    number > 0.0 && number < 1.0
}

/// Whether a number is the size of a log ratio: 0 or more, and below 10, a factor of 22,000.
pub(crate) fn is_log_ratio(number: f64) -> bool {
    (0.0..10.0).contains(&number)
}

/// The value of a flag, if it is a number within a range.
pub(crate) fn checked(value: Option<f64>, holds: impl Fn(f64) -> bool, otherwise: &str) -> Result<f64, String> {
    value.filter(|&value| holds(value)).ok_or_else(|| otherwise.to_owned())
}
