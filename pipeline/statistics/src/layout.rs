//! One arm turned from strata of buckets to buckets of strata, as the sums over buckets read it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::arms::Arms;
use crate::contrast::Contrast;
use crate::number::{float, index_of};
use crate::strata::{BucketCounts, Model};

/// Both arms of the strata that they share.
pub(crate) struct Layout<'c> {
    /// Number of strata.
    pub strata: usize,
    /// Each arm by bucket.
    pub arms: Arms<ArmLayout<'c>>,
}

/// One arm by bucket.
#[derive(Default)]
pub(crate) struct ArmLayout<'c> {
    /// Exposure by stratum, N_s.
    pub totals: Vec<f64>,
    /// Occupied buckets, ascending.
    pub buckets: Vec<Bucket<'c>>,
    /// Distinct pods, K.
    pub pods: f64,
}

/// One bucket in all its strata.
pub(crate) struct Bucket<'c> {
    /// Its number.
    pub number: u16,
    /// Distinct pods in it, k_b.
    pub pods: f64,
    /// Its exposure over all strata, n_b.
    pub exposure: f64,
    /// Its rows, ascending by stratum.
    pub parts: Vec<Part<'c>>,
}

/// One bucket in one stratum.
pub(crate) struct Part<'c> {
    /// Place of the stratum among those that the arms share.
    pub stratum: usize,
    /// Exposure n_sb, more than 0.
    pub exposure: f64,
    counts: &'c [&'c dyn BucketCounts],
}

impl Part<'_> {
    /// Adds the counts of these functions, of all builds of the arm.
    pub fn add_to(&self, functions: Span<'_>, out: &mut [f64]) {
        functions.add(self.counts, out);
    }
}

/// Which functions a block holds.
#[derive(Clone, Copy)]
pub(crate) enum Span<'s> {
    /// From this one on, without gaps.
    From(usize),
    /// These, ascending.
    Only(&'s [u32]),
}

impl Span<'_> {
    /// Adds these counts of the block's functions.
    pub fn add(self, counts: &[&dyn BucketCounts], out: &mut [f64]) {
        for counts in counts {
            match self {
                Span::From(start) => counts.add_to(start, out),
                Span::Only(functions) => counts.add_only(functions, out),
            }
        }
    }
}

impl<'c> Layout<'c> {
    /// The strata of `contrast` that have both arms, with the exposure of `model`.
    pub fn new(contrast: &'c Contrast<'c>, model: Model) -> Self {
        let strata = contrast.shared(model).count();
        let arms = Arms::of(|side| {
            let mut by_bucket: BTreeMap<u16, Bucket<'c>> = BTreeMap::new();
            let mut totals = vec![0.0; strata];
            for (stratum, arms) in contrast.shared(model).enumerate() {
                for row in arms[side].rows.iter().filter(|row| row.exposure(model) > 0) {
                    let exposure = float(row.exposure(model));
                    let pods = contrast.pods[side].get(&row.bucket).copied().unwrap_or(1).max(1);
                    let empty =
                        || Bucket { number: row.bucket, pods: f64::from(pods), exposure: 0.0, parts: Vec::new() };
                    let bucket = by_bucket.entry(row.bucket).or_insert_with(empty);
                    bucket.parts.push(Part { stratum, exposure, counts: &row.counts });
                    bucket.exposure += exposure;
                    totals[stratum] += exposure;
                }
            }
            let buckets: Vec<_> = by_bucket.into_values().collect();
            let pods = buckets.iter().map(|bucket| bucket.pods).sum();
            ArmLayout { totals, buckets, pods }
        });
        Self { strata, arms }
    }

    /// Pods of both arms.
    pub fn pods(&self) -> f64 {
        self.arms.head.pods + self.arms.base.pods
    }

    /// Exposure of both arms over all strata.
    pub fn exposure(&self) -> f64 {
        self.arms.head.exposure() + self.arms.base.exposure()
    }
}

impl ArmLayout<'_> {
    /// Exposure over all strata.
    pub fn exposure(&self) -> f64 {
        self.totals.iter().sum()
    }

    /// Counts of these functions, over all strata and buckets.
    pub fn sums(&self, functions: Functions<'_>) -> Vec<f64> {
        let mut sums = Vec::with_capacity(functions.len());
        let mut row = [0.0; SUMS_BLOCK];
        functions.lanes(SUMS_BLOCK, |block| {
            let row = &mut row[..block.len];
            row.fill(0.0);
            for part in self.buckets.iter().flat_map(|bucket| &bucket.parts) {
                part.add_to(block.span, row);
            }
            sums.extend(block.of(row));
        });
        sums
    }
}

/// Functions of a block whose rows hold one number each.
pub(crate) const BLOCK: usize = 128;
/// One number for each function of a block: 1 KiB.
pub(crate) type Row = [f64; BLOCK];
pub(crate) const ZERO: Row = [0.0; BLOCK];

/// A block of functions, each in a lane of its rows.
#[derive(Clone)]
pub(crate) struct Lanes<'s> {
    /// Which of all functions.
    pub range: Range<usize>,
    /// What the lanes hold.
    pub span: Span<'s>,
    /// How many lanes are read.
    pub len: usize,
    /// The block's functions, if their lanes are those of neighbours of which not all are among them.
    among: Option<&'s [u32]>,
}

impl<'s> Lanes<'s> {
    /// The lane of each function.
    pub fn each(&self) -> impl Iterator<Item = usize> + use<'s> {
        let first = self.among.and_then(|among| among.first().copied()).unwrap_or_default();
        let gapless = if self.among.is_some() { 0..0 } else { 0..self.range.len() };
        gapless.chain(self.among.unwrap_or_default().iter().map(move |&function| index_of(function - first)))
    }

    /// What the functions' lanes of a row hold.
    pub fn of<'r>(&self, row: &'r [f64]) -> impl Iterator<Item = f64> + use<'r, 's> {
        self.each().map(|lane| row[lane])
    }
}

/// Neighbours are read with the gaps between them if at least one in so many is listed: reading neighbours is several times as fast
/// as picking functions.
const DENSE: usize = 3;

/// Functions that are summed at a time.
const SUMS_BLOCK: usize = 1024;

/// The functions that have results.
#[derive(Clone, Copy)]
pub(crate) enum Functions<'s> {
    /// All of so many.
    All(usize),
    /// These, ascending.
    Listed(&'s [u32]),
}

impl<'s> Functions<'s> {
    /// Those of a contrast.
    pub fn of(contrast: &'s Contrast<'_>) -> Self {
        contrast.only.as_deref().map_or(Self::All(contrast.functions), Self::Listed)
    }

    /// How many.
    pub fn len(self) -> usize {
        match self {
            Self::All(functions) => functions,
            Self::Listed(functions) => functions.len(),
        }
    }

    /// Calls `visit` with blocks of at most `size` lanes: all functions, ascending.
    pub fn lanes(self, size: usize, mut visit: impl FnMut(&Lanes<'s>)) {
        match self {
            Self::All(functions) => (0..functions).step_by(size).for_each(|start| {
                let len = size.min(functions - start);
                visit(&Lanes { range: start..start + len, span: Span::From(start), len, among: None });
            }),
            Self::Listed(functions) => {
                let mut start = 0;
                while let Some(block) = first_lanes(functions, start, size) {
                    visit(&block);
                    start = block.range.end;
                }
            }
        }
    }
}

/// The block of `functions` that begins at place `start`.
fn first_lanes(functions: &[u32], start: usize, size: usize) -> Option<Lanes<'_>> {
    let rest = functions.get(start..)?;
    let (&first, rest) = (rest.first()?, &rest[..rest.len().min(size)]);
    let near = &rest[..rest.partition_point(|&function| index_of(function - first) < size)];
    let spanned = index_of(near.last()? - first) + 1;
    if near.len() * DENSE < spanned {
        return Some(Lanes { range: start..start + rest.len(), span: Span::Only(rest), len: rest.len(), among: None });
    }
    let span = Span::From(index_of(first));
    Some(Lanes { range: start..start + near.len(), span, len: spanned, among: Some(near) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: blocks hold all listed functions in their order, each in a lane that reads its own count, with gaps or without.
        #[test]
        fn lanes_hold_their_functions(steps in proptest::collection::vec(1u32..12, 0..300), few in 1u32..12, size in 1usize..40) {
            let list = |step: &dyn Fn(u32) -> u32| {
                steps.iter().scan(0, |at, &by| Some(std::mem::replace(at, *at + step(by)))).collect::<Vec<u32>>()
            };
            let ids: Vec<u64> = (0..4000).collect();
            for functions in [list(&|by| by), list(&|by| by.div_ceil(few))] {
                let (mut read, mut next, mut row) = (Vec::new(), 0, [0.0; 40]);
                Functions::Listed(&functions).lanes(size, |block| {
                    assert!(block.range.start == next && block.len <= size && !block.range.is_empty());
                    next = block.range.end;
                    row.fill(0.0);
                    block.span.add(&[&ids], &mut row[..block.len]);
                    read.extend(block.of(&row));
                });
                prop_assert_eq!(read, functions.iter().map(|&function| f64::from(function)).collect::<Vec<_>>());
            }
        }
    }
}
