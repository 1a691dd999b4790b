//! One arm turned from strata of buckets to buckets of strata, with all that does not depend on the function.

use std::collections::BTreeMap;

use crate::statistics::strata::{BucketCounts, BucketRow, Contrast, Stratum};

/// One arm by bucket.
pub struct ArmLayout<'c> {
    /// Exposure by stratum.
    pub totals: Vec<f64>,
    /// w = N_other/N by stratum: the weight of a deviation in the score.
    pub weights: Vec<f64>,
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
        for counts in self.counts {
            match span {
                Span::From(start) => counts.add_to(start, out),
                Span::Only(functions) => counts.add_only(functions, out),
            }
        }
    }
}

impl<'c> ArmLayout<'c> {
    /// The arm that `rows` picks from each stratum; `totals` are its exposures, `others` those of the other arm.
    pub fn new(
        contrast: &'c Contrast<'c>,
        rows: impl Fn(&'c Stratum<'c>) -> &'c Vec<BucketRow<'c>>,
        totals: &[f64],
        others: &[f64],
        pods: &BTreeMap<u16, u32>,
    ) -> Self {
        let mut by_bucket: BTreeMap<u16, Vec<Part<'c>>> = BTreeMap::new();
        for (stratum, arms) in contrast.strata.iter().enumerate() {
            for row in rows(arms) {
                let part = Part { stratum, exposure: super::float(row.exposure), counts: &row.counts };
                by_bucket.entry(row.bucket).or_default().push(part);
            }
        }
        let bucket = |(number, parts)| Bucket { pods: f64::from(pods.get(&number).copied().unwrap_or(1)), parts };
        let buckets: Vec<Bucket<'c>> = by_bucket.into_iter().map(bucket).collect();
        let weights: Vec<f64> = totals.iter().zip(others).map(|(total, other)| other / (total + other)).collect();
        let pods = buckets.iter().map(|bucket| bucket.pods).sum();
        let df = buckets.iter().map(|bucket| bucket.freedom(totals, &weights)).sum();
        Self { totals: totals.to_vec(), weights, buckets, pods, df }
    }
}

impl Bucket<'_> {
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
