//! Do pods differ by something that has no label?
//!
//! Pods that share a node without saying so are fewer replicates than they seem, and arms on two kinds of hardware differ without a
//! change of the build. No test of one function sees that; all functions together do, since what divides pods moves many functions
//! at once. The base's log shares, each over its own noise, are a matrix that should look like noise; an eigenvalue beyond the edge
//! of noise (Marchenko & Pastur) is a direction in which base pods differ. Several say that pods come in groups; a strong one along
//! which the arms differ too says that the arms differ in what divides the base.
//!
//! What makes it blind: a factor that the base has only one value of, such as hardware that only the head runs on.

mod jacobi;

use crate::hidden_factor::jacobi::eigen;
use crate::median::median;
use crate::number::length;
use crate::tails::F1Tail;
use crate::thresholds::{FEW_FUNCTIONS, MIN_COUNT};

/// Base buckets from which on it is looked for.
const ENOUGH_BUCKETS: usize = 8;
/// Eigenvalues above this many times the edge are counted.
const BEYOND_NOISE: f64 = 1.05;
/// An eigenvalue above this many times the edge may be a factor.
const STRONG: f64 = 1.2;
/// ln of the p below which the arms differ along it.
const LN_P_DIFFER: f64 = -6.907_755_278_982_137;
/// So many eigenvalues make groups.
const GROUPS: usize = 4;

/// One bucket of one arm in the one stratum that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct BucketCountsOf<'a> {
    /// Its samples.
    pub samples: f64,
    /// Its counts by function.
    pub counts: &'a [f64],
}

/// The strongest direction in which base buckets differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HiddenFactor {
    /// Its eigenvalue over the edge of noise.
    pub ratio: f64,
    /// ln p of head against base along it (Welch).
    pub ln_p: f64,
    /// Eigenvalues that stand out of noise.
    pub above: usize,
}

impl HiddenFactor {
    /// Looks for it; `None` with fewer than eight base buckets, no two head buckets, or fewer than 20 functions with enough counts
    /// (30 a bucket, and no fewer than the median function).
    ///
    /// Checked against the reference program (`families.json`) to 1e-7.
    #[must_use]
    pub fn of(head: &[BucketCountsOf<'_>], base: &[BucketCountsOf<'_>]) -> Option<Self> {
        let functions = counted(head, base);
        if base.len() < ENOUGH_BUCKETS || head.len() < 2 || functions.len() < FEW_FUNCTIONS {
            return None;
        }
        let noise = Noise::of(base, &functions);
        let (z_head, z_base) = (noise.standardised(head, &functions), noise.standardised(base, &functions));
        let (free, found) = (length(base.len() - 1), eigen(gram(&z_base)));
        let edge = 1.0 + libm::sqrt(length(functions.len()) / free);
        let edge = edge * edge * free;
        let (first, direction) = found.first()?;
        let along: Vec<f64> =
            (0..functions.len()).map(|f| (0..base.len()).map(|b| z_base[b][f] * direction[b]).sum()).collect();
        let scale = libm::sqrt(*first);
        let project = |rows: &[Vec<f64>]| rows.iter().map(|row| dot(row, &along) / scale).collect::<Vec<f64>>();
        Some(Self {
            ratio: first / edge,
            ln_p: welch(&project(&z_head), &project(&z_base)),
            above: found.iter().filter(|(value, _)| *value > BEYOND_NOISE * edge).count(),
        })
    }

    /// Pods come in groups: nodes, most likely.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.above >= GROUPS
    }

    /// The arms differ in something that also divides the base.
    #[must_use]
    pub fn divides_arms(&self) -> bool {
        self.ratio > STRONG && self.ln_p < LN_P_DIFFER
    }
}

/// The functions with enough counts a bucket.
fn counted(head: &[BucketCountsOf<'_>], base: &[BucketCountsOf<'_>]) -> Vec<usize> {
    let buckets = length(head.len() + base.len());
    let functions = base.first().map_or(0, |bucket| bucket.counts.len());
    let mean = |f: usize| head.iter().chain(base).map(|bucket| bucket.counts[f]).sum::<f64>() / buckets;
    let means: Vec<f64> = (0..functions).map(mean).collect();
    let least = median(&means).max(MIN_COUNT);
    (0..functions).filter(|&f| means[f] >= least).collect()
}

/// What an entry of the matrix varies by if pods differ by nothing in common; by function.
struct Noise {
    /// ln of the base's share.
    level: Vec<f64>,
    /// Mean over base buckets of the log share, less the bucket's own shift.
    centre: Vec<f64>,
    /// Variance between base buckets beyond counting.
    spread: Vec<f64>,
}

impl Noise {
    fn of(base: &[BucketCountsOf<'_>], functions: &[usize]) -> Self {
        let samples: f64 = base.iter().map(|bucket| bucket.samples).sum();
        let level = |&f: &usize| libm::log((base.iter().map(|bucket| bucket.counts[f]).sum::<f64>() + 0.5) / samples);
        let level: Vec<f64> = functions.iter().map(level).collect();
        let logs: Vec<Vec<f64>> = base.iter().map(|bucket| shifted_logs(bucket, functions, &level)).collect();
        let buckets = length(base.len());
        let centre: Vec<f64> =
            (0..functions.len()).map(|f| logs.iter().map(|row| row[f]).sum::<f64>() / buckets).collect();
        let beyond = |f: usize| {
            let excess = logs.iter().zip(base).map(|(row, bucket)| {
                let off = row[f] - centre[f];
                off * off * buckets / (buckets - 1.0) - counting(level[f], bucket)
            });
            (excess.sum::<f64>() / buckets).max(0.0)
        };
        let spread = (0..functions.len()).map(beyond).collect();
        Self { level, centre, spread }
    }

    /// By bucket, then function: how many standard deviations off.
    fn standardised(&self, arm: &[BucketCountsOf<'_>], functions: &[usize]) -> Vec<Vec<f64>> {
        let row = |bucket: &BucketCountsOf<'_>| {
            let logs = shifted_logs(bucket, functions, &self.level).into_iter().enumerate();
            let off = |(f, log): (usize, f64)| {
                (log - self.centre[f]) / libm::sqrt(self.spread[f] + counting(self.level[f], bucket))
            };
            logs.map(off).collect()
        };
        arm.iter().map(row).collect()
    }
}

/// The variance of a log share from counting.
fn counting(level: f64, bucket: &BucketCountsOf<'_>) -> f64 {
    1.0 / (libm::exp(level) * bucket.samples)
}

/// Log shares, less the bucket's median shift.
fn shifted_logs(bucket: &BucketCountsOf<'_>, functions: &[usize], level: &[f64]) -> Vec<f64> {
    let log = |&f: &usize| libm::log((bucket.counts[f] + 0.5) / (bucket.samples + 0.5));
    let logs: Vec<f64> = functions.iter().map(log).collect();
    let off: Vec<f64> = logs.iter().zip(level).map(|(log, level)| log - level).collect();
    let shift = median(&off);
    logs.into_iter().map(|log| log - shift).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn gram(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    rows.iter().map(|one| rows.iter().map(|other| dot(one, other)).collect()).collect()
}

/// ln p of two means, each with its own variance. Welch (1947).
fn welch(head: &[f64], base: &[f64]) -> f64 {
    let moments = |values: &[f64]| {
        let n = length(values.len());
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0) / n)
    };
    let ((m1, v1), (m0, v0)) = (moments(head), moments(base));
    let (free1, free0) = (length(head.len() - 1), length(base.len() - 1));
    let df = (v1 + v0) * (v1 + v0) / (v1 * v1 / free1 + v0 * v0 / free0);
    F1Tail::new(df).ln_tail((m1 - m0) * (m1 - m0) / (v1 + v0))
}
