//! The noise model: the expected counts of one arm of pods, and draws of them.
//!
//! A pod's expected samples of a function are its size x the function's share x the pod's own multiplier for the
//! function, log-normal and kept for as long as the pod lives. Given those, counts are independent Poisson numbers; so
//! the counts of a bucket of pods are Poisson numbers whose means are the sums of the pods' means. Those are drawn:
//! exactly the same distribution, with eight times fewer numbers.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::{Arm, BucketRow, Contrast, Stratum};
use rand::Rng;

use super::chance::{Multipliers, poisson};
use crate::fleet::random::Generator;

/// Buckets of pods.
pub(super) const BUCKETS: u16 = 64;
/// Functions of a simulated program.
pub(super) const FUNCTIONS: usize = 500;
/// Samples that an average pod gives in a window: 30 minutes at 100 a second.
pub(super) const SAMPLES: f64 = 180_000.0;
/// How the sizes of pods differ.
const SIZE_CV: f64 = 0.3;

/// The exponent with which shares fall. Of 1, 1.1, 1.3 and 1.5 it is the one with which the plain test has as many
/// significant rows as the definition of the statistics states for its own noise model (22 of 500 at CV 10 %, 2,300 and
/// 7,900 of 21,000, 200 of 500).
const STEEPNESS: f64 = 1.5;

/// Shares of [`FUNCTIONS`] functions, the i-th proportional to i^-1.5: from 39.6 % down to .004 %.
pub(super) fn zipf() -> Vec<f64> {
    of_ranks(STEEPNESS)
}

/// The same falling as 1/i, from 14.7 % down to .03 %: twice as many functions have enough samples.
pub(super) fn flat_zipf() -> Vec<f64> {
    of_ranks(1.0)
}

fn of_ranks(steepness: f64) -> Vec<f64> {
    to_one((1..=FUNCTIONS).map(|rank| libm::pow(length_float(rank), -steepness)).collect())
}

/// What pods of one kind are like.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    /// How pods differ in each function.
    pub(super) cv: f64,
    /// How they differ in samples for the same requests.
    pub(super) cost_cv: f64,
}

impl Noise {
    /// Pods that differ by this CV in each function, and otherwise only in their size.
    pub(super) fn of(cv: f64) -> Self {
        Self { cv, cost_cv: 0.0 }
    }
}

/// One pod: its bucket, its size, and its costs.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) bucket: u16,
    /// Its samples and requests, 1 on average.
    pub(super) size: f64,
    /// By function, the share of its samples; they sum to 1.
    pub(super) shares: Vec<f64>,
    /// Samples for the same requests, 1 on average.
    pub(super) cost: f64,
}

/// Pods of one build in one place.
pub(super) fn pods(count: usize, shares: &[f64], noise: &Noise, rng: &mut Generator) -> Vec<Pod> {
    let (size, cost, own) =
        (Multipliers::with_cv(SIZE_CV), Multipliers::with_cv(noise.cost_cv), Multipliers::with_cv(noise.cv));
    let mut pod = || {
        let bucket = bucket(rng);
        let (size, cost) = (size.next(rng), cost.next(rng));
        let weights: Vec<f64> = shares.iter().map(|share| share * own.next(rng)).collect();
        Pod { bucket, size, shares: to_one(weights), cost }
    };
    (0..count).map(|_| pod()).collect()
}

/// The bucket of a pod whose name is not known: a hash is as good as a random number.
pub(super) fn bucket(rng: &mut Generator) -> u16 {
    u16::try_from(rng.next_u64() % u64::from(BUCKETS)).unwrap_or(0)
}

/// Weights as shares of their sum.
pub(super) fn to_one(mut weights: Vec<f64>) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= all);
    weights
}

/// Expected counts of the occupied buckets of an arm, by function.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    pub(super) buckets: BTreeMap<u16, BucketMean>,
}

/// One bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketMean {
    pub(super) pods: u32,
    pub(super) means: Vec<f64>,
}

impl Means {
    /// For pods that take `samples` each on average, where function f costs `costs[f]` times as much as elsewhere. A
    /// higher cost makes profiles grow; nothing else shrinks.
    pub(super) fn of<'p>(pods: impl IntoIterator<Item = &'p Pod>, samples: f64, costs: &[f64]) -> Self {
        let mut buckets: BTreeMap<u16, BucketMean> = BTreeMap::new();
        for pod in pods {
            let bucket = buckets.entry(pod.bucket).or_default();
            bucket.pods += 1;
            bucket.means.resize(pod.shares.len(), 0.0);
            let samples = samples * pod.size * pod.cost;
            for ((mean, share), cost) in bucket.means.iter_mut().zip(&pod.shares).zip(costs) {
                *mean += samples * share * cost;
            }
        }
        Self { buckets }
    }

    /// One draw.
    pub(super) fn draw(&self, rng: &mut Generator) -> Table {
        let row = |(&bucket, mean): (&u16, &BucketMean)| {
            Row::new(bucket, mean.means.iter().map(|&mean| u64::from(poisson(mean, rng))).collect())
        };
        let rows = self.buckets.iter().map(row).collect();
        Table { rows, pods: self.buckets.iter().map(|(&bucket, mean)| (bucket, mean.pods)).collect() }
    }
}

/// Counts of one arm in one stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Ascending by bucket.
    pub(super) rows: Vec<Row>,
    /// Pods by bucket.
    pub(super) pods: BTreeMap<u16, u32>,
}

/// Counts of one bucket.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bucket: u16,
    /// All its samples.
    pub(super) exposure: u64,
    pub(super) counts: Vec<u64>,
}

impl Row {
    /// The row of these counts.
    pub(super) fn new(bucket: u16, counts: Vec<u64>) -> Self {
        Self { bucket, exposure: counts.iter().sum(), counts }
    }

    fn as_tested(&self) -> BucketRow<'_> {
        BucketRow { bucket: self.bucket, exposure: self.exposure, counts: vec![&self.counts] }
    }
}

impl Table {
    /// The input of the tests.
    pub(super) fn arm(&self) -> Arm<'_> {
        Arm { rows: self.rows.iter().map(Row::as_tested).collect() }
    }

    /// Samples of each function over all buckets.
    pub(super) fn merged(&self) -> Vec<u64> {
        let mut sums = vec![0; self.rows.first().map_or(0, |row| row.counts.len())];
        for row in &self.rows {
            sums.iter_mut().zip(&row.counts).for_each(|(sum, &count)| *sum += count);
        }
        sums
    }
}

/// Head and base.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    pub(super) head: Table,
    pub(super) base: Table,
}

/// The contrast of one cell over these strata. `head_pods` and `base_pods` are counted over all of them.
pub(super) fn contrast<'t>(
    functions: usize,
    strata: impl IntoIterator<Item = &'t Pair>,
    head_pods: BTreeMap<u16, u32>,
    base_pods: BTreeMap<u16, u32>,
) -> Contrast<'t> {
    let strata = strata.into_iter().map(|pair| Stratum { head: pair.head.arm(), base: pair.base.arm() }).collect();
    Contrast::new(functions, strata, head_pods, base_pods)
}

impl Pair {
    /// The contrast of a cell with one stratum.
    pub(super) fn contrast(&self) -> Contrast<'_> {
        let functions = self.head.rows.first().map_or(0, |row| row.counts.len());
        contrast(functions, [self], self.head.pods.clone(), self.base.pods.clone())
    }
}

/// Pods by bucket of several groups of pods together.
pub(super) fn pods_together<'p>(groups: impl IntoIterator<Item = &'p BTreeMap<u16, u32>>) -> BTreeMap<u16, u32> {
    let mut all = BTreeMap::new();
    for (&bucket, &pods) in groups.into_iter().flatten() {
        *all.entry(bucket).or_default() += pods;
    }
    all
}
