//! The article's job: at every hop, which functions of which cells cost another share of samples in the head than in the base?
//!
//! One sliding window. A hop's records come and those of the hop that leaves the window go; then
//!
//! - *rows* are the functions of every cell in which both arms have samples, if they have at least [`MIN_COUNT`] samples in the window,
//!   both arms pooled;
//! - G of the table of the function against the rest of the cell's samples, head against base;
//! - p of chi-square with 1 degree of freedom;
//! - one family of all rows of all cells by Benjamini-Hochberg: rows with q <= [`Q`] are the flags of the hop.
//!
//! Samples are taken as independent, which they are not (`docs/semantics.md`, section 12): this is what is commonly done, and thus what
//! others are measured with. [`Recorded`] is the fleet that all of them read, [`mod@reference`] says what they must flag, [`programs`] are
//! the others.

pub mod programs;
mod recorded;
pub mod reference;

pub use recorded::{Arrival, Recorded};

use crate::workload::Draws;

/// False-discovery rate.
pub const Q: f64 = 0.05;
/// Samples that a row has at least, both arms pooled.
pub const MIN_COUNT: u64 = 30;

/// One pass over the measured hops, by whoever made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// How long it took.
    pub milliseconds: f64,
    /// What it found.
    pub found: Found,
}

/// What a pass found; equal for all who are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Flags of all measured hops.
    pub flags: u64,
    /// Tests of all measured hops.
    pub tests: u64,
    /// Sum of [`hash`] over flags, so that their order within a hop does not matter.
    pub hash: u64,
}

impl Pass {
    /// Reads a pass as programs write it: nanoseconds, flags, tests, and the hash in hexadecimal digits.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let nanoseconds: f64 = words.next()?.parse().ok()?;
        let (flags, tests) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Self { milliseconds: nanoseconds / 1e6, found: Found { flags, tests, hash } })
    }
}

/// The hash of one flag: SplitMix64 of hop (16 bits), cell (16 bits) and function (32 bits).
#[must_use]
pub fn hash(hop: u64, cell: u64, function: u64) -> u64 {
    Draws::seeded(hop << 48 | cell << 32 | function).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_read_as_it_is_written() {
        let found = Found { flags: 60, tests: 12_000, hash: 0xabc };
        assert_eq!(Pass::read("2500000 60 12000 0000000000000abc\n"), Some(Pass { milliseconds: 2.5, found }));
        assert_eq!(Pass::read("2500000 60\n"), None);
    }
}
