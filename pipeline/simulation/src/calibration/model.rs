//! The noise model: the expected counts of one arm of pods, and draws of them.
//!
//! A pod's expected samples of a function are its size x the function's share x the pod's own multiplier for the
//! function, log-normal and kept for as long as the pod lives. Given those, counts are independent Poisson numbers; so
//! the counts of a bucket of pods are Poisson numbers whose means are the sums of the pods' means. Those are drawn:
//! exactly the same distribution, with fewer numbers.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_statistics::{Arm, Arms, BucketCounts, BucketRow, Contrast, Stratum};
use rand::Rng;

use super::chance::{Multipliers, poisson};
use crate::fleet::random::Generator;

/// Buckets of pods.
pub(super) const BUCKETS: u16 = 64;
/// Functions of a simulated program.
pub(super) const FUNCTIONS: usize = 300;
/// Functions of a program that is simulated with many pods.
pub(super) const MANY_FUNCTIONS: usize = 500;
/// Samples that an average pod gives in a window: 30 minutes at 100 a second.
pub(super) const SAMPLES: f64 = 180_000.0;
/// The standard deviation of the logarithm of the sizes of pods.
pub(super) const SIZE_SD: f64 = 0.3;
/// A function of 1 %, the tenth behind [`HEAVY`].
pub(super) const ONE_PERCENT: usize = 13;

/// The heaviest functions.
const HEAVY: [f64; 4] = [0.18, 0.07, 0.05, 0.04];
/// The exponent with which the shares of the others fall.
const STEEPNESS: f64 = 1.1;

/// Shares of so many functions: four of 18, 7, 5 and 4 %, the i-th of the others proportional to i^-1.1.
pub(super) fn shares(functions: usize) -> Vec<f64> {
    let left = 1.0 - HEAVY.iter().sum::<f64>();
    let others = (1..=functions - HEAVY.len()).map(|rank| libm::pow(length_float(rank), -STEEPNESS));
    HEAVY.into_iter().chain(to_one(others.collect()).into_iter().map(|share| left * share)).collect()
}

/// Weights as parts of their sum.
pub(super) fn to_one(mut weights: Vec<f64>) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= all);
    weights
}

/// What the pods of one arm are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// The coefficient of variation by which pods differ in each function.
    pub(super) cv: f64,
    /// The standard deviation of the logarithm of their sizes.
    pub(super) size_sd: f64,
    /// The size of the median pod.
    pub(super) size: f64,
    /// The standard deviation of the logarithm of their samples for the same requests.
    pub(super) cost_sd: f64,
}

impl Noise {
    /// Pods that differ by this CV in each function, and otherwise only in their size.
    pub(super) const fn of(cv: f64) -> Self {
        Self { cv, size_sd: SIZE_SD, size: 1.0, cost_sd: 0.0 }
    }
}

/// One pod: its bucket, its size, and its costs.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) bucket: u16,
    /// Its requests, and its samples but for `cost`; 1 for the median pod.
    pub(super) size: f64,
    /// By function, its share of the samples of a median pod times the pod's own multiplier.
    pub(super) weights: Vec<f64>,
    /// Samples for the same requests; 1 for the median pod.
    pub(super) cost: f64,
    /// Whether it runs on the newer of two kinds of hardware.
    pub(super) newer: bool,
}

/// Pods of one build in one place.
pub(super) fn pods(count: usize, shares: &[f64], noise: &Noise, rng: &mut Generator) -> Vec<Pod> {
    let (size, cost, own) = (
        Multipliers::with_sd(noise.size_sd),
        Multipliers::with_sd(noise.cost_sd),
        Multipliers::with_sd(libm::sqrt(libm::log1p(noise.cv * noise.cv))),
    );
    let mut pod = || {
        let bucket = bucket(rng);
        let (size, cost) = (noise.size * size.next(rng), cost.next(rng));
        Pod { bucket, size, weights: shares.iter().map(|share| share * own.next(rng)).collect(), cost, newer: false }
    };
    (0..count).map(|_| pod()).collect()
}

/// The bucket of a pod whose name is not known: a hash is as good as a random number.
fn bucket(rng: &mut Generator) -> u16 {
    u16::try_from(rng.next_u64() % u64::from(BUCKETS)).unwrap_or(0)
}

/// How many of these pods each bucket has.
pub(super) fn pods_by_bucket(pods: &[Pod]) -> BTreeMap<u16, u32> {
    let mut all = BTreeMap::new();
    pods.iter().for_each(|pod| *all.entry(pod.bucket).or_default() += 1);
    all
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
    /// For pods of which the median one takes `samples`, where function f costs `costs[f]` times as much as elsewhere.
    /// A higher cost makes profiles grow; nothing else shrinks.
    pub(super) fn of<'p>(pods: impl IntoIterator<Item = &'p Pod>, samples: f64, costs: &[f64]) -> Self {
        let mut buckets: BTreeMap<u16, BucketMean> = BTreeMap::new();
        for pod in pods {
            let bucket = buckets.entry(pod.bucket).or_default();
            bucket.pods += 1;
            bucket.means.resize(pod.weights.len(), 0.0);
            let samples = samples * pod.size * pod.cost;
            for ((mean, weight), cost) in bucket.means.iter_mut().zip(&pod.weights).zip(costs) {
                *mean += samples * weight * cost;
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
        let pods = self.buckets.iter().map(|(&bucket, mean)| (bucket, mean.pods)).collect();
        Table { rows, pods, hop_pairs: Vec::new() }
    }
}

/// Counts of one arm in one stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Ascending by bucket.
    pub(super) rows: Vec<Row>,
    /// Pods by bucket.
    pub(super) pods: BTreeMap<u16, u32>,
    /// By function, the pairs of samples that a bucket took in the same hop; empty where hops are not known.
    pub(super) hop_pairs: Vec<u64>,
}

/// Counts of one bucket.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bucket: u16,
    /// All its samples.
    pub(super) samples: u64,
    /// Sum over its hops of the squares of their samples; of a single hop if hops are not known.
    pub(super) hop_squares: f64,
    pub(super) counts: Vec<u64>,
}

impl Row {
    /// The row of these counts, taken in one hop.
    pub(super) fn new(bucket: u16, counts: Vec<u64>) -> Self {
        let samples: u64 = counts.iter().sum();
        Self { bucket, samples, hop_squares: float(samples) * float(samples), counts }
    }

    fn as_tested(&self) -> BucketRow<'_> {
        let square = float(self.samples) * float(self.samples);
        BucketRow {
            bucket: self.bucket,
            samples: self.samples,
            requests: 0,
            hop_concentration: if self.samples > 0 { self.hop_squares / square } else { 1.0 },
            counts: vec![&self.counts],
        }
    }
}

impl Table {
    /// The input of the tests.
    pub(super) fn arm(&self) -> Arm<'_> {
        let hop_pairs: Vec<&dyn BucketCounts> =
            if self.hop_pairs.is_empty() { Vec::new() } else { vec![&self.hop_pairs] };
        Arm { rows: self.rows.iter().map(Row::as_tested).collect(), hop_pairs }
    }

    /// The same with each bucket's counts in another; `to` by number of the bucket. Hops are not kept.
    pub(super) fn in_buckets(&self, to: &[u16]) -> Self {
        let mut all: BTreeMap<u16, (u32, Vec<u64>)> = BTreeMap::new();
        for row in &self.rows {
            let (pods, counts) = all.entry(to[usize::from(row.bucket)]).or_default();
            *pods += self.pods.get(&row.bucket).copied().unwrap_or(1);
            counts.resize(row.counts.len(), 0);
            counts.iter_mut().zip(&row.counts).for_each(|(sum, count)| *sum += count);
        }
        let pods = all.iter().map(|(&bucket, (pods, _))| (bucket, *pods)).collect();
        let rows = all.into_iter().map(|(bucket, (_, counts))| Row::new(bucket, counts)).collect();
        Self { rows, pods, hop_pairs: Vec::new() }
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

/// Both arms in one stratum.
pub(super) type Pair = Arms<Table>;

/// The contrast of one cell over these strata, with the pods of each arm over all of them.
pub(super) fn contrast<'t>(
    functions: usize,
    strata: impl IntoIterator<Item = &'t Pair>,
    pods: Arms<BTreeMap<u16, u32>>,
) -> Contrast<'t> {
    let strata: Vec<Stratum<'t>> = strata.into_iter().map(|pair| pair.as_ref().map(Table::arm)).collect();
    Contrast::new(functions, strata, pods)
}

/// The contrast of a cell with one stratum.
pub(super) fn contrast_of_one(pair: &Pair) -> Contrast<'_> {
    let functions = pair.head.rows.first().map_or(0, |row| row.counts.len());
    contrast(functions, [pair], pair.as_ref().map(|arm| arm.pods.clone()))
}

/// Pods by bucket of several groups of pods together.
pub(super) fn pods_together<'p>(groups: impl IntoIterator<Item = &'p BTreeMap<u16, u32>>) -> BTreeMap<u16, u32> {
    let mut all = BTreeMap::new();
    for (&bucket, &pods) in groups.into_iter().flatten() {
        *all.entry(bucket).or_default() += pods;
    }
    all
}
