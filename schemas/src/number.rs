//! Numbers of one kind as numbers of another: the one place that says what a conversion keeps.
//!
//! Counts are whole numbers, statistics are floats, and tables hold signed 64 bits.

#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "each function says what becomes of numbers that do not fit"
)]

/// A count as a float: exact up to 2^53, beyond that the nearest float.
#[inline]
#[must_use]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// A signed count as a float: exact up to 2^53 on either side of 0, beyond that the nearest float.
#[inline]
#[must_use]
pub fn signed_float(count: i64) -> f64 {
    count as f64
}

/// How many items there are as a float: exact up to 2^53, beyond that the nearest float.
#[inline]
#[must_use]
pub fn length_float(length: usize) -> f64 {
    length as f64
}

/// A float that is a whole count, as a count: what is after the point is cut off, below 0 and NaN are 0, too large is the largest.
#[inline]
#[must_use]
pub fn whole(count: f64) -> u64 {
    count as u64
}

/// A count as tables hold it: too large is the largest.
#[inline]
#[must_use]
pub fn table_count(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// A number of 32 bits as an index: always exact, since `usize` has at least 32 bits on every platform that this builds for.
#[inline]
#[must_use]
pub fn index_of(number: u32) -> usize {
    number as usize
}
