//! Conversions between kinds of numbers: the one place that defines what a conversion preserves.
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

/// A sum of squares of counts as a float: exact up to 2^53, beyond that the nearest float.
#[inline]
#[must_use]
pub fn wide_float(sum: u128) -> f64 {
    sum as f64
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

/// A float that is a whole count, as a count: decimals are cut off, negative numbers and NaN become 0, numbers that are
/// too large become the largest count.
#[inline]
#[must_use]
pub fn whole(count: f64) -> u64 {
    count as u64
}

/// A count as tables hold it; a number that is too large becomes the largest one.
#[inline]
#[must_use]
pub fn table_count(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// A number of 32 bits as an index: always exact, since `usize` has at least 32 bits on every supported platform.
#[inline]
#[must_use]
pub fn index_of(number: u32) -> usize {
    number as usize
}
