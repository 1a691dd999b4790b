//! Ranges of numbers that flags and keys of the configuration share. Every option that is a number is parsed by one of these: a test of the
//! command line goes through all of them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use fleetdiff_schemas::time::Nanos;

use crate::configuration::Setting;

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

/// A number within a range.
pub(crate) fn within(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let otherwise = format!("expected a number from {} to {}", range.start(), range.end());
    checked(text.parse().ok(), |number| range.contains(&number), &otherwise)
}

/// A whole number within a range.
pub(crate) fn whole<N: FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<N>) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
}

/// A factor by which something grows.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    within(text, 0.001..=1000.0)
}

/// Requests per second of one pod; 0: they are not counted.
pub(crate) fn requests(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1e6)
}

/// A part of a whole, all and nothing included.
pub(crate) fn part(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1.0)
}

/// A length of time.
pub(crate) fn length(text: &str) -> Result<Nanos, String> {
    Nanos::from_text(text).ok_or_else(|| format!("expected {}", Nanos::EXPECTED))
}

/// A seed: any number.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}
