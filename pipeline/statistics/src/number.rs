//! Counts as floats and back. (Who embeds the statistics needs nothing else of fleetdiff: hence not those of the program.)

#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each function says what becomes of numbers that do not fit"
)]

/// A count as a float: exact up to 2^53.
#[inline]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// How many items there are as a float: exact up to 2^53.
#[inline]
pub fn length(items: usize) -> f64 {
    items as f64
}

/// A float that is a whole count, as a count: below 0 is 0, too large is the largest.
#[inline]
pub fn whole(count: f64) -> u64 {
    count as u64
}

/// The number of a function as an index: always exact.
#[inline]
pub fn index_of(function: u32) -> usize {
    function as usize
}
