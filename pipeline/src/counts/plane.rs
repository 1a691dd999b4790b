//! One column of counts: a byte a function, and what does not fit a byte in pages beside it.
//!
//! Most functions have few samples in one bucket, so a byte holds their count and a whole column stays in cache. A count of
//! 256 or more carries into a page of 64 words that exists only where some count needs it; at most one sample in 256 carries.

use crate::statistics::BucketCounts;

const PAGE: usize = 64;

/// Counts of one bucket by the cell's function numbers. Functions beyond its end have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plane {
    low: Vec<u8>,
    high: Vec<Option<Box<[u64; PAGE]>>>,
}

impl Plane {
    /// Adds `count` samples of a function.
    #[inline]
    pub fn add(&mut self, function: usize, count: u64) {
        if function >= self.low.len() {
            self.grow(function);
        }
        let sum = u64::from(self.low[function]) + count;
        self.low[function] = low_byte(sum);
        if sum >= 256 {
            *self.carried(function) += sum >> 8;
        }
    }

    /// Takes back `count` samples that were added before.
    #[inline]
    pub fn subtract(&mut self, function: usize, count: u64) {
        let low = u64::from(self.low[function]);
        if count <= low {
            self.low[function] = low_byte(low - count);
            return;
        }
        let lacking = (count - low).div_ceil(256);
        let page = self.carried(function);
        *page = page.saturating_sub(lacking);
        self.low[function] = low_byte(low + lacking * 256 - count);
    }

    /// The samples of a function.
    pub fn get(&self, function: usize) -> u64 {
        let low = self.low.get(function).copied().unwrap_or(0);
        let page = self.high.get(function / PAGE).and_then(Option::as_deref);
        u64::from(low) + (page.map_or(0, |page| page[function % PAGE]) << 8)
    }

    /// Bytes that this column takes.
    pub fn size(&self) -> usize {
        let pages = self.high.iter().flatten().count();
        self.low.capacity() + self.high.capacity() * size_of::<usize>() + pages * PAGE * size_of::<u64>()
    }

    #[cold]
    fn grow(&mut self, function: usize) {
        self.low.resize(function + 1, 0);
    }

    #[inline(never)]
    fn carried(&mut self, function: usize) -> &mut u64 {
        let page = function / PAGE;
        if page >= self.high.len() {
            self.high.resize(page + 1, None);
        }
        &mut self.high[page].get_or_insert_with(|| Box::new([0; PAGE]))[function % PAGE]
    }
}

impl BucketCounts for Plane {
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn add_to(&self, start: usize, out: &mut [f64]) {
        let end = (start + out.len()).min(self.low.len());
        let Some(low) = self.low.get(start..end) else { return };
        for (sum, &count) in out.iter_mut().zip(low) {
            *sum += f64::from(count);
        }
        for page in start / PAGE..end.div_ceil(PAGE).min(self.high.len()) {
            let Some(words) = &self.high[page] else { continue };
            for (slot, &word) in words.iter().enumerate() {
                let function = page * PAGE + slot;
                if word > 0 && (start..end).contains(&function) {
                    out[function - start] += (word << 8) as f64;
                }
            }
        }
    }
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the low byte is what is wanted")]
#[inline]
fn low_byte(value: u64) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Law: a plane holds the sums of what was added less what was taken back, and reads them in any blocks.
        #[test]
        fn holds_sums(adds in proptest::collection::vec((0usize..300, 1u64..5000), 1..200), keep in 0usize..200, start in 0usize..300) {
            let mut plane = Plane::default();
            let mut truth = vec![0u64; 300];
            for &(function, count) in &adds {
                plane.add(function, count);
                truth[function] += count;
            }
            for &(function, count) in adds.iter().skip(keep) {
                plane.subtract(function, count);
                truth[function] -= count;
            }
            prop_assert!((0..300).all(|function| plane.get(function) == truth[function]));
            let mut out = vec![0.0; 300 - start];
            plane.add_to(start, &mut out);
            prop_assert!(out.iter().zip(&truth[start..]).all(|(a, &b)| *a as u64 == b));
        }
    }
}
