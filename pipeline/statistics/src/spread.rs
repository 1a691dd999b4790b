//! How much the pods of an arm differ, tau^2: the variance between pods of the logarithm of a share.
//!
//! Each arm has its own: a canary on odd nodes may spread more than the base, and must not be judged by the base's spread. The
//! better counted half of the functions says it, since their counts hide it least, and the median of them, since a few functions
//! are restless by nature. For each function the moment estimate is (phi/c - 1)/slope, phi the mean over buckets of squared
//! residual over multinomial variance, c the median of chi-square over its mean, (1 - 2/(9 df))^3, and slope what one unit of
//! tau^2 adds to phi (DerSimonian & Laird 1986; buckets of unequal size and of several pods).
//!
//! What makes it wrong: an arm whose functions are restless for the most part has no quiet ones to tell its spread from.

use crate::layout::{ArmLayout, BLOCK, Bucket, Functions, Row, Span, ZERO};
use crate::median::median;

/// A bucket whose own level takes away all but this part of its residual says nothing.
const ALONE: f64 = 1e-9;

/// tau^2 of one arm from these functions, at least 0; `other` is the other arm's exposure by stratum. NaN if no bucket has
/// company in its strata, or there is no function.
///
/// Exposures are weighted by N_other/N in each stratum. Checked against the reference program (`test.json`) to 1e-7.
pub(crate) fn spread_of(arm: &ArmLayout<'_>, other: &[f64], functions: &[u32]) -> f64 {
    let pass = SpreadPass::new(arm, other);
    if functions.is_empty() || pass.df <= 0.0 {
        return f64::NAN;
    }
    let middle = 1.0 - 2.0 / (9.0 * pass.df.max(1.0));
    let c = middle * middle * middle;
    let estimates = pass.run(functions, c);
    median(&estimates).max(0.0)
}

/// The sums over buckets of one arm.
struct SpreadPass<'c> {
    arm: &'c ArmLayout<'c>,
    /// h by stratum.
    strata: Vec<f64>,
    /// 1 - leverage by bucket; 0 for one that says nothing.
    left: Vec<f64>,
    /// Sum over buckets in this stratum alone of n (1 - leverage)/k.
    lone: Vec<f64>,
    /// Sum of `left`.
    df: f64,
}

impl<'c> SpreadPass<'c> {
    fn new(arm: &'c ArmLayout<'c>, other: &[f64]) -> Self {
        let strata: Vec<f64> = arm.totals.iter().zip(other).map(|(own, other)| other / (own + other)).collect();
        let left: Vec<f64> = arm.buckets.iter().map(|bucket| left_of(bucket, &arm.totals, &strata)).collect();
        let mut lone = vec![0.0; strata.len()];
        for (bucket, left) in arm.buckets.iter().zip(&left) {
            if let [part] = bucket.parts.as_slice() {
                lone[part.stratum] += part.exposure * left / bucket.pods;
            }
        }
        let df = left.iter().sum();
        Self { arm, strata, left, lone, df }
    }

    /// The estimate of each function; `c` is what phi is divided by.
    fn run(&self, functions: &[u32], c: f64) -> Vec<f64> {
        let mut estimates = vec![0.0; functions.len()];
        let parts = self.arm.buckets.iter().map(|bucket| bucket.parts.len()).sum();
        let mut work = Work { counts: vec![ZERO; parts], shares: vec![ZERO; self.strata.len()] };
        let arch = pulp::Arch::new();
        Functions::Listed(functions).lanes(BLOCK, |block| {
            work.read(self.arm, block.span, block.len);
            let (phi, slope) = arch.dispatch(SpreadBlock { pass: self, work: &mut work });
            for (i, estimate) in block.each().zip(&mut estimates[block.range.clone()]) {
                let slope = if slope[i] > 0.0 { slope[i] / self.df } else { f64::INFINITY };
                *estimate = (phi[i] / self.df / c - 1.0) / slope;
            }
        });
        estimates
    }
}

/// 1 - leverage with weights 1.
fn left_of(bucket: &Bucket<'_>, totals: &[f64], strata: &[f64]) -> f64 {
    let (mut taken, mut all) = (0.0, 0.0);
    for part in &bucket.parts {
        let variance = strata[part.stratum] * strata[part.stratum] * part.exposure;
        taken += variance * part.exposure / totals[part.stratum];
        all += variance;
    }
    let left = if all > 0.0 { 1.0 - taken / all } else { 0.0 };
    if left > ALONE { left } else { 0.0 }
}

/// Counts of a block by part, and the arm's shares by stratum.
struct Work {
    counts: Vec<Row>,
    shares: Vec<Row>,
}

impl Work {
    fn read(&mut self, arm: &ArmLayout<'_>, span: Span<'_>, len: usize) {
        let parts = arm.buckets.iter().flat_map(|bucket| &bucket.parts);
        for (part, row) in parts.zip(&mut self.counts) {
            row.fill(0.0);
            part.add_to(span, &mut row[..len]);
        }
    }
}

/// One block: (sum of squared residuals over variance, sum of slopes); compiled for each width of vectors.
struct SpreadBlock<'b, 'c> {
    pass: &'b SpreadPass<'c>,
    work: &'b mut Work,
}

impl pulp::NullaryFnOnce for SpreadBlock<'_, '_> {
    type Output = (Row, Row);

    #[inline(always)]
    fn call(self) -> (Row, Row) {
        let Self { pass, work } = self;
        pass.shares(work);
        let mut squares = vec![ZERO; pass.strata.len()];
        let (mut phi, mut slope) = (ZERO, ZERO);
        let mut rows = work.counts.iter();
        for (bucket, &left) in pass.arm.buckets.iter().zip(&pass.left) {
            if let ([part], Some(row)) = (bucket.parts.as_slice(), rows.as_slice().first()) {
                let (share, squares) = (&work.shares[part.stratum], &mut squares[part.stratum]);
                let inverse = if left > 0.0 { 1.0 / part.exposure } else { 0.0 };
                for i in 0..BLOCK {
                    let deviation = row[i] - share[i] * part.exposure;
                    squares[i] += deviation * deviation * inverse;
                }
                rows.next();
                continue;
            }
            pass.add_bucket(bucket, left, &mut rows, &work.shares, (&mut phi, &mut slope));
        }
        for (stratum, share) in work.shares.iter().enumerate() {
            let (squares, lone) = (&squares[stratum], pass.lone[stratum]);
            for i in 0..BLOCK {
                let variance = share[i] * (1.0 - share[i]);
                let inverse = if variance > 0.0 { 1.0 / variance } else { 0.0 };
                phi[i] += squares[i] * inverse;
                slope[i] += lone * share[i] * share[i] * inverse;
            }
        }
        (phi, slope)
    }
}

impl SpreadPass<'_> {
    #[inline(always)]
    fn shares(&self, work: &mut Work) {
        work.shares.fill(ZERO);
        let parts = self.arm.buckets.iter().flat_map(|bucket| &bucket.parts);
        for (part, row) in parts.zip(&work.counts) {
            let share = &mut work.shares[part.stratum];
            for i in 0..BLOCK {
                share[i] += row[i];
            }
        }
        for (share, total) in work.shares.iter_mut().zip(&self.arm.totals) {
            share.iter_mut().for_each(|share| *share /= total);
        }
    }

    /// Adds a bucket that lies in several strata: its residuals are summed before they are squared.
    #[inline(always)]
    fn add_bucket<'r>(
        &self,
        bucket: &Bucket<'_>,
        left: f64,
        rows: &mut impl Iterator<Item = &'r Row>,
        shares: &[Row],
        (phi, slope): (&mut Row, &mut Row),
    ) {
        let (mut residual, mut variance, mut expected) = (ZERO, ZERO, ZERO);
        for (part, row) in bucket.parts.iter().zip(rows) {
            let (h, n, share) = (self.strata[part.stratum], part.exposure, &shares[part.stratum]);
            for i in 0..BLOCK {
                residual[i] += h * (row[i] - n * share[i]);
                variance[i] += h * h * n * (share[i] * (1.0 - share[i]));
                expected[i] += h * n * share[i];
            }
        }
        let (any, per_pod) = (if left > 0.0 { 1.0 } else { 0.0 }, left / bucket.pods);
        for i in 0..BLOCK {
            let inverse = if variance[i] > 0.0 { any / variance[i] } else { 0.0 };
            phi[i] += residual[i] * residual[i] * inverse;
            slope[i] += expected[i] * expected[i] * inverse * per_pod;
        }
    }
}
