//! One arm turned from strata of buckets to buckets of strata, with all that does not depend on the function.

use std::collections::BTreeMap;

use crate::contrast::Contrast;
use crate::moments::closed::{ClosedArm, ClosedBucket, weight};
use crate::number::float;
use crate::strata::{BucketCounts, BucketRow, Stratum};

/// One arm by bucket.
pub struct ArmLayout<'c> {
    /// Exposure by stratum.
    pub totals: Vec<f64>,
    /// w = N_other/N by stratum: the weight of a deviation in the score.
    pub weights: Vec<f64>,
    /// Counts over all buckets of the strata that are closed: the first ones.
    pub closed: Vec<&'c [&'c dyn BucketCounts]>,
    /// Occupied buckets, ascending.
    pub buckets: Vec<Bucket<'c>>,
    /// Distinct pods.
    pub pods: f64,
    /// Degrees of freedom between buckets.
    pub df: f64,
}

/// One bucket in all its strata.
pub struct Bucket<'c> {
    /// Distinct pods in it.
    pub pods: f64,
    /// Its rows, ascending by stratum.
    pub parts: Vec<Part<'c>>,
    /// Its first rows in one, if there are any in closed strata.
    pub closed: Option<ClosedBucket<'c>>,
}

/// One bucket in one stratum.
pub struct Part<'c> {
    pub stratum: usize,
    pub exposure: f64,
    counts: &'c [&'c dyn BucketCounts],
}

/// Which functions a block holds.
#[derive(Clone, Copy)]
pub enum Span<'s> {
    /// From this one on, without gaps.
    From(usize),
    /// These.
    Only(&'s [u32]),
}

impl Part<'_> {
    /// Adds the counts of all builds of the arm.
    pub fn add_to(&self, span: Span<'_>, out: &mut [f64]) {
        span.add(self.counts, out);
    }
}

impl<'s> Span<'s> {
    /// These functions.
    pub fn of(functions: &'s [u32]) -> Self {
        let start = functions.first().and_then(|&first| usize::try_from(first).ok());
        let neighbours = functions.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        start.filter(|_| neighbours).map_or(Self::Only(functions), Self::From)
    }

    /// Adds these counts of the block's functions.
    pub fn add(self, counts: &[&dyn BucketCounts], out: &mut [f64]) {
        for counts in counts {
            match self {
                Span::From(start) => counts.add_to(start, out),
                Span::Only(functions) => counts.add_only(functions, out),
            }
        }
    }

    /// Copies what `all` holds of the block's functions; those beyond its end are 0.
    pub fn copy(self, all: &[f64], out: &mut [f64]) {
        match self {
            Span::From(start) => {
                let held = all.get(start..).unwrap_or_default();
                let (known, beyond) = out.split_at_mut(held.len().min(out.len()));
                known.copy_from_slice(&held[..known.len()]);
                beyond.fill(0.0);
            }
            Span::Only(functions) => {
                let value = |&function: &u32| {
                    usize::try_from(function).ok().and_then(|function| all.get(function)).copied().unwrap_or(0.0)
                };
                out.iter_mut().zip(functions).for_each(|(out, function)| *out = value(function));
            }
        }
    }
}

impl<'c> ArmLayout<'c> {
    /// The arm that `rows` picks from each stratum, on top of its closed ones; `totals` are its exposures, `others` those of the
    /// other arm.
    pub fn new(
        contrast: &'c Contrast<'c>,
        closed: Option<ClosedArm<'c>>,
        rows: impl Fn(&'c Stratum<'c>) -> &'c Vec<BucketRow<'c>>,
        totals: &[f64],
        others: &[f64],
        pods: &BTreeMap<u16, u32>,
    ) -> Self {
        let mut by_bucket: BTreeMap<u16, Bucket<'c>> = BTreeMap::new();
        let empty = |number: u16| Bucket {
            pods: f64::from(pods.get(&number).copied().unwrap_or(1)),
            parts: Vec::new(),
            closed: None,
        };
        let ClosedArm { strata: closed, buckets: held } = closed.unwrap_or_default();
        for (number, held) in held {
            let bucket = by_bucket.entry(number).or_insert_with(|| empty(number));
            let part = |&(stratum, exposure): &(usize, u64)| Part { stratum, exposure: float(exposure), counts: &[] };
            bucket.parts.extend(held.parts.iter().map(part));
            bucket.closed = Some(held);
        }
        for (stratum, arms) in (closed.len()..).zip(&contrast.strata) {
            for row in rows(arms) {
                let part = Part { stratum, exposure: float(row.exposure), counts: &row.counts };
                by_bucket.entry(row.bucket).or_insert_with(|| empty(row.bucket)).parts.push(part);
            }
        }
        let buckets: Vec<Bucket<'c>> = by_bucket.into_values().collect();
        let weights: Vec<f64> = totals.iter().zip(others).map(|(total, other)| weight(*total, *other)).collect();
        let pods = buckets.iter().map(|bucket| bucket.pods).sum();
        let df = buckets.iter().map(|bucket| bucket.freedom(totals, &weights)).sum();
        Self { totals: totals.to_vec(), weights, closed, buckets, pods, df }
    }
}

impl<'c> Bucket<'c> {
    /// Its rows in closed strata and in open ones.
    pub fn parts(&self) -> (&[Part<'c>], &[Part<'c>]) {
        self.parts.split_at(self.closed.as_ref().map_or(0, |closed| closed.parts.len()))
    }

    /// What the bucket adds to the degrees of freedom: nothing if it is alone in its strata, nearly one if it is small.
    fn freedom(&self, totals: &[f64], weights: &[f64]) -> f64 {
        let (mut fitted, mut all) = (0.0, 0.0);
        for part in &self.parts {
            let weight = weights[part.stratum] * weights[part.stratum] * part.exposure;
            fitted += weight * part.exposure / totals[part.stratum];
            all += weight;
        }
        1.0 - fitted / all
    }
}
