//! One column of counts: one byte per function, and separate pages for what does not fit in a byte.
//!
//! Most functions have few samples in one bucket, so a byte holds their count and a whole column stays in cache. A count of
//! 256 or more carries into a page of 64 words that exists only where some count needs it; at most one sample in 256 carries.
//!
//! The bytes end where they would be nearly all zeros: counts of a few functions far beyond are kept one by one. So names that were
//! seen for an hour and never again, which have their places in the cell for as long as its history has them, take no room in the
//! columns of the hours after it.

use std::collections::BTreeMap;
use std::ops::Range;

use fleetdiff_schemas::number::{float, index_of};
use fleetdiff_statistics::BucketCounts;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const PAGE: usize = 64;
/// By how many functions a column grows: not at every new function, and not by much more than it needs.
const STEP: usize = 2048;
/// A function so far beyond the bytes, and beyond as many again, is kept by itself.
const FAR: usize = 4 * STEP;
/// Bytes that one function kept by itself takes, about: when there are so many that bytes would take no more, there are bytes.
const FAR_BYTES: usize = 32;

/// The counts of 64 neighbouring functions above what their bytes hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    /// Bit i: word i has ever been used.
    used: u64,
    /// Multiples of 256.
    words: [u64; PAGE],
}

impl Serialize for Page {
    /// The words that were used.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let words: Vec<u64> = self.words().map(|(_, word)| word).collect();
        (self.used, words).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (used, words) = <(u64, Vec<u64>)>::deserialize(from)?;
        let mut page = Self { used, ..Self::EMPTY };
        let slots = Self { used, ..Self::EMPTY };
        slots.words().zip(words).for_each(|((slot, _), word)| page.words[slot] = word);
        Ok(page)
    }
}

impl Page {
    const EMPTY: Self = Self { used: 0, words: [0; PAGE] };

    /// Places and words that were used, ascending.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut left = self.used;
        std::iter::from_fn(move || {
            let slot = usize::try_from(left.trailing_zeros()).ok().filter(|&slot| slot < PAGE)?;
            left &= left - 1;
            Some((slot, self.words[slot]))
        })
    }
}

/// Counts of one bucket by the functions' places in the cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plane {
    #[serde(with = "serde_bytes")]
    low: Vec<u8>,
    high: Vec<Option<Box<Page>>>,
    /// Of functions beyond the end of the bytes.
    far: BTreeMap<usize, u64>,
}

impl Plane {
    /// Adds `count` samples of a function.
    #[inline]
    pub fn add(&mut self, function: usize, count: u64) {
        if function >= self.low.len() && !self.make_room(function) {
            *self.far.entry(function).or_default() += count;
            return;
        }
        let sum = u64::from(self.low[function]) + count;
        self.low[function] = low_byte(sum);
        if sum >= 256 {
            *self.carried(function) += sum >> 8;
        }
    }

    /// Subtracts `count` samples that were added before.
    #[inline]
    pub fn subtract(&mut self, function: usize, count: u64) {
        let Some(&low) = self.low.get(function) else { return self.subtract_far(function, count) };
        let low = u64::from(low);
        if count <= low {
            self.low[function] = low_byte(low - count);
            return;
        }
        let lacking = (count - low).div_ceil(256);
        let page = self.carried(function);
        *page = page.saturating_sub(lacking);
        self.low[function] = low_byte(low + lacking * 256 - count);
    }

    #[cold]
    fn subtract_far(&mut self, function: usize, count: u64) {
        if let Some(held) = self.far.get_mut(&function) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                self.far.remove(&function);
            }
        }
    }

    /// Subtracts all of another column, which was added before.
    pub fn take_back(&mut self, other: &Self) {
        for (function, &count) in other.low.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.subtract(function, u64::from(count));
        }
        other.for_each_above(0..usize::MAX, |function, above| self.subtract(function, above));
    }

    /// The samples of a function.
    pub fn get(&self, function: usize) -> u64 {
        let Some(&low) = self.low.get(function) else { return self.far.get(&function).copied().unwrap_or(0) };
        let page = self.high.get(function / PAGE).and_then(Option::as_deref);
        u64::from(low) + (page.map_or(0, |page| page.words[function % PAGE]) << 8)
    }

    /// Marks the places that have samples.
    pub fn mark_used(&self, used: &mut [bool]) {
        for function in self.used() {
            used[function] = true;
        }
    }

    /// The places that have samples, each once.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        let low = self.low.iter().enumerate().filter(|(_, low)| **low > 0).map(|(function, _)| function);
        let carried =
            self.carries(0..self.low.len()).filter(|(function, above)| *above > 0 && self.low[*function] == 0);
        low.chain(carried.map(|(function, _)| function)).chain(self.far.keys().copied())
    }

    /// Bytes that this column takes.
    pub fn size(&self) -> usize {
        let pages = self.high.iter().flatten().count();
        let near = self.low.capacity() + self.high.capacity() * size_of::<usize>() + pages * size_of::<Page>();
        near + self.far.len() * FAR_BYTES
    }

    /// Makes the bytes reach as far as a function beyond their end; `false` if that is too far for what there is.
    #[cold]
    fn make_room(&mut self, function: usize) -> bool {
        let is_near = function < 2 * self.low.len() + FAR;
        if !is_near && function > self.far.len() * FAR_BYTES {
            return false;
        }
        let len = (function + 1).next_multiple_of(STEP);
        self.low.reserve_exact(len - self.low.len());
        self.low.resize(len, 0);
        let beyond = self.far.split_off(&len);
        let near = std::mem::replace(&mut self.far, beyond);
        near.into_iter().for_each(|(function, count)| self.add(function, count));
        true
    }

    #[inline(never)]
    fn carried(&mut self, function: usize) -> &mut u64 {
        let page = function / PAGE;
        if page >= self.high.len() {
            self.high.resize(page + 1, None);
        }
        let page = self.high[page].get_or_insert_with(|| Box::new(Page::EMPTY));
        page.used |= 1 << (function % PAGE);
        &mut page.words[function % PAGE]
    }

    /// What is counted of functions of a range besides their bytes, which may be nothing any more.
    #[inline]
    fn for_each_above(&self, range: Range<usize>, mut act: impl FnMut(usize, u64)) {
        if !self.far.is_empty() {
            self.far.range(range.clone()).for_each(|(&function, &count)| act(function, count));
        }
        self.carries(range).for_each(|(function, above)| act(function, above));
    }

    /// Functions of a range that have or had 256 samples or more, with their counts above the byte.
    fn carries(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let first = range.start / PAGE;
        let pages = self.high.get(first..range.end.div_ceil(PAGE).min(self.high.len())).unwrap_or_default();
        let carried = (first..).zip(pages).flat_map(|(number, page)| {
            let words = page.iter().flat_map(|page| page.words());
            words.map(move |(slot, word)| (number * PAGE + slot, word << 8))
        });
        carried.filter(move |(function, _)| range.contains(function))
    }
}

/// Functions that [`sums`] adds up at a time, at most.
pub(crate) const SUMMED: usize = 1024;
/// So many bytes fit into 16 bits together.
const ADDED: usize = 257;

/// Sets `out` to the sums of several columns for the functions `start..start + out.len()`, at most [`SUMMED`].
pub(crate) fn sums(planes: &[&Plane], start: usize, out: &mut [u64]) {
    out.fill(0);
    for planes in planes.chunks(ADDED) {
        let mut sums = [0; SUMMED];
        pulp::Arch::new().dispatch(SumBytes { planes, start, sums: &mut sums[..out.len()] });
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += u64::from(sum));
    }
    let range = start..start + out.len();
    for plane in planes {
        plane.for_each_above(range.clone(), |function, above| out[function - start] += above);
    }
}

/// Sums bytes of columns, compiled for each width of vectors.
struct SumBytes<'a> {
    /// At most [`ADDED`].
    planes: &'a [&'a Plane],
    start: usize,
    sums: &'a mut [u16],
}

impl pulp::NullaryFnOnce for SumBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { planes, start, sums } = self;
        for plane in planes {
            let held = plane.low.get(start..).unwrap_or_default();
            for (sum, &count) in sums.iter_mut().zip(held) {
                *sum += u16::from(count);
            }
        }
    }
}

impl BucketCounts for Plane {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        let range = start..start + out.len();
        if let Some(low) = self.low.get(start..range.end.min(self.low.len())) {
            pulp::Arch::new().dispatch(AddBytes { low, out });
        }
        self.for_each_above(range, |function, above| out[function - start] += float(above));
    }

    fn add_only(&self, functions: &[u32], out: &mut [f64]) {
        if !functions.is_sorted() {
            let count = |&function: &u32| usize::try_from(function).map_or(0, |function| self.get(function));
            out.iter_mut().zip(functions).for_each(|(sum, function)| *sum += float(count(function)));
            return;
        }
        let (Some(&first), Some(&last)) = (functions.first(), functions.last()) else { return };
        let range = usize::try_from(first).unwrap_or(usize::MAX)..usize::try_from(last).map_or(0, |last| last + 1);
        let held = self.low.get(range.start..range.end.min(self.low.len())).unwrap_or_default();
        if held.is_empty() && self.far.is_empty() {
            return;
        }
        if let Some(span) = Span::of(held, last - first) {
            out.iter_mut().zip(functions).for_each(|(sum, &function)| *sum += f64::from(span.get(function - first)));
        } else {
            let byte = |function| usize::try_from(function).ok().and_then(|function| self.low.get(function));
            out.iter_mut()
                .zip(functions)
                .for_each(|(sum, &function)| *sum += f64::from(byte(function).copied().unwrap_or(0)));
        }
        self.for_each_above(range, |function, above| {
            let place = u32::try_from(function).ok().and_then(|function| functions.binary_search(&function).ok());
            if let Some(sum) = place.and_then(|place| out.get_mut(place)) {
                *sum += float(above);
            }
        });
    }
}

/// Neighbouring bytes of a column, copied to an array in which no access needs a bounds check.
struct Span([u8; SPAN]);

/// The range that a block of functions spans, unless many functions in between are not read.
const SPAN: usize = 1024;

impl Span {
    /// The bytes of the column, and zeros up to `last`; `None` if that is too far.
    fn of(held: &[u8], last: u32) -> Option<Self> {
        let mut bytes = [0; SPAN];
        usize::try_from(last).ok().filter(|&last| last < SPAN)?;
        bytes.get_mut(..held.len())?.copy_from_slice(held);
        Some(Self(bytes))
    }

    #[inline]
    fn get(&self, at: u32) -> u8 {
        self.0[index_of(at) % SPAN]
    }
}

/// Adds bytes to floats, compiled for each width of vectors.
struct AddBytes<'a> {
    low: &'a [u8],
    out: &'a mut [f64],
}

impl pulp::NullaryFnOnce for AddBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (sum, &count) in self.out.iter_mut().zip(self.low) {
            *sum += f64::from(count);
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sum_of_many_full_bytes_fits() {
        let mut plane = Plane::default();
        (0..3000).for_each(|function| plane.add(function, 255));
        let mut out = vec![0; SUMMED];
        sums(&vec![&plane; 2 * ADDED + 1], 2500, &mut out);
        assert!(out[..500].iter().all(|&sum| sum == 255 * 515));
        assert!(out[500..].iter().all(|&sum| sum == 0));
    }

    #[test]
    fn few_functions_far_beyond_take_little_and_many_are_bytes() {
        let mut plane = Plane::default();
        (0..20).for_each(|function| plane.add(function, 300));
        (0..100).for_each(|function| plane.add(1_000_000 + 3 * function, 2));
        assert!(plane.size() < 10_000, "{}", plane.size());
        assert_eq!((plane.low.len(), plane.far.len()), (STEP, 100));
        (0..50_000).for_each(|function| plane.add(1_000_000 + function, 1));
        assert_eq!(plane.far.len(), 0);
        assert_eq!(
            [0, 20, 1_000_000, 1_000_001, 1_049_999, 1_050_000].map(|place| plane.get(place)),
            [300, 0, 3, 1, 1, 0]
        );
    }

    const FUNCTIONS: usize = 13_600;

    /// One of three stretches, of which the last is far from the others.
    fn a_function() -> impl Strategy<Value = usize> {
        prop_oneof![1 => 0usize..200, 1 => 2000usize..2100, 4 => 13_000usize..FUNCTIONS]
    }

    proptest! {
        /// Law: a plane holds the sum of what was added less what was subtracted, and can read it in any blocks.
        #[test]
        fn holds_sums(adds in proptest::collection::vec((a_function(), 1u64..5000), 1..1500), keep in 0usize..1500, start in a_function()) {
            let mut plane = Plane::default();
            let mut truth = vec![0u64; FUNCTIONS];
            for &(function, count) in &adds {
                plane.add(function, count);
                truth[function] += count;
            }
            for &(function, count) in adds.iter().skip(keep) {
                plane.subtract(function, count);
                truth[function] -= count;
            }
            prop_assert!((0..FUNCTIONS).all(|function| plane.get(function) == truth[function]));
            let mut used = vec![false; FUNCTIONS];
            plane.mark_used(&mut used);
            prop_assert!(used.iter().zip(&truth).all(|(&used, &count)| used == (count > 0)));
            let mut places: Vec<usize> = plane.used().collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq((0..FUNCTIONS).filter(|&function| truth[function] > 0)));
            let mut both = plane.clone();
            adds.iter().for_each(|&(function, count)| both.add(function, count));
            both.take_back(&plane);
            let added = |function| adds.iter().filter(|add| add.0 == function).map(|add| add.1).sum::<u64>();
            prop_assert!((0..FUNCTIONS).all(|function| both.get(function) == added(function)));
            let mut out = vec![7; SUMMED.min(FUNCTIONS - start)];
            sums(&[&plane, &both], start, &mut out);
            prop_assert!(out.iter().zip(start..).all(|(&sum, function)| sum == truth[function] + added(function)));
            let mut out = vec![0.0; FUNCTIONS - start];
            plane.add_to(start, &mut out);
            prop_assert!(out.iter().zip(&truth[start..]).all(|(&got, &exact)| u32::try_from(exact).map(f64::from) == Ok(got)));
            let exact = |f: u32| usize::try_from(f).ok().and_then(|f| truth.get(f)).map_or(Ok(0), |&count| u32::try_from(count));
            for some in [(0u32..20_000).filter(|f| f % 3 == 1).collect(), vec![7, 2099, 13_000, 13_599, 13_600], (1500..2500).collect(), (13_500..13_700).collect(), (5000..5100).collect(), (0..13_600).rev().collect()] {
                let mut out = vec![0.0; some.len()];
                plane.add_only(&some, &mut out);
                prop_assert!(some.iter().zip(&out).all(|(&f, &got)| exact(f).map(f64::from) == Ok(got)));
            }
        }
    }
}
