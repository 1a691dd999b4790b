//! The pass over the bucket rows, one block of functions at a time.
//!
//! Arrays of a block are always worked through as a whole: what lies beyond the last function is computed and thrown away.

use crate::effect::RatioSums;
use crate::moments::closed::weighted;
use crate::moments::layout::{ArmLayout, Bucket, Span};
use crate::moments::state::Moments;
use crate::special::ln_ratio;
use crate::strata::Model;

/// Functions of a block.
const BLOCK: usize = 256;

/// One number for each function of a block: 2 KiB.
type Row = [f64; BLOCK];

const ZERO: Row = [0.0; BLOCK];

/// One arm's rows of the block at hand; reused from block to block.
struct ArmRows<'c> {
    layout: &'c ArmLayout<'c>,
    /// By bucket, then part in an open stratum: counts.
    counts: Vec<Row>,
    /// By bucket that has parts in closed strata: deviations over these.
    residuals: Vec<Row>,
    /// The same for counts. Empty unless pods are few.
    closed: Vec<Row>,
    /// By stratum: counts of the arm.
    sums: Vec<Row>,
    /// By bucket: log ratio to expectation. Empty unless pods are few.
    logs: Vec<Row>,
}

impl<'c> ArmRows<'c> {
    fn new(layout: &'c ArmLayout<'c>, few: bool) -> Self {
        let parts = layout.buckets.iter().map(|bucket| bucket.parts().1.len()).sum();
        let closed = layout.buckets.iter().filter(|bucket| bucket.closed.is_some()).count();
        let logs = |buckets| if few { vec![ZERO; buckets] } else { Vec::new() };
        let sums = vec![ZERO; layout.totals.len()];
        Self {
            layout,
            counts: vec![ZERO; parts],
            residuals: vec![ZERO; closed],
            closed: logs(closed),
            sums,
            logs: logs(layout.buckets.len()),
        }
    }

    /// Reads the block.
    fn read(&mut self, span: Span<'_>, len: usize) {
        let parts = self.layout.buckets.iter().flat_map(|bucket| bucket.parts().1);
        for (part, row) in parts.zip(&mut self.counts) {
            row.fill(0.0);
            part.add_to(span, &mut row[..len]);
        }
        for (counts, row) in self.layout.closed.iter().zip(&mut self.sums) {
            row.fill(0.0);
            span.add(counts, &mut row[..len]);
        }
        let closed = || self.layout.buckets.iter().filter_map(|bucket| bucket.closed.as_ref());
        for (bucket, row) in closed().zip(&mut self.residuals) {
            span.copy(bucket.residuals, &mut row[..len]);
        }
        for (bucket, row) in closed().zip(&mut self.closed) {
            row.fill(0.0);
            span.add(bucket.counts, &mut row[..len]);
        }
    }

    /// Sums the rows by stratum, but for closed ones, which were read as sums.
    #[inline(always)]
    fn total(&mut self) {
        self.sums[self.layout.closed.len()..].fill(ZERO);
        let parts = self.layout.buckets.iter().flat_map(|bucket| bucket.parts().1);
        for (part, row) in parts.zip(&self.counts) {
            add(&mut self.sums[part.stratum], row);
        }
    }

    /// Adds the sum over buckets of u^2/v.
    #[inline(always)]
    fn add_pearson(&mut self, model: Model, work: &mut Work, phi: &mut Row) {
        for (stratum, total) in self.layout.totals.iter().enumerate() {
            let (share, variance) = (&mut work.shares[stratum], &mut work.variances[stratum]);
            for i in 0..BLOCK {
                share[i] = self.sums[stratum][i] / total;
                variance[i] = if model == Model::Share { share[i] * (1.0 - share[i]) } else { share[i] };
            }
        }
        work.squares.fill(ZERO);
        let (mut counts, mut residuals) = (self.counts.iter(), self.residuals.iter_mut());
        let (mut fresh, mut v) = (ZERO, ZERO);
        for bucket in &self.layout.buckets {
            let residual = if bucket.closed.is_some() { residuals.next() } else { None };
            if let [part] = bucket.parts.as_slice() {
                let (exposure, inverse) = (part.exposure, 1.0 / part.exposure);
                let squares = &mut work.squares[part.stratum];
                if let Some(deviation) = residual {
                    for i in 0..BLOCK {
                        squares[i] += deviation[i] * deviation[i] * inverse;
                    }
                    continue;
                }
                let (Some(row), share) = (counts.next(), &work.shares[part.stratum]) else { return };
                for i in 0..BLOCK {
                    let deviation = row[i] - share[i] * exposure;
                    squares[i] += deviation * deviation * inverse;
                }
                continue;
            }
            v.fill(0.0);
            let u = match residual {
                Some(deviations) => {
                    closed_sums(bucket, &self.layout.weights, work, deviations, &mut v);
                    deviations
                }
                None => {
                    fresh.fill(0.0);
                    &mut fresh
                }
            };
            for (part, row) in bucket.parts().1.iter().zip(&mut counts) {
                let (exposure, weight) = (part.exposure, self.layout.weights[part.stratum]);
                let square = weight * weight * exposure;
                let (share, variance) = (&work.shares[part.stratum], &work.variances[part.stratum]);
                for i in 0..BLOCK {
                    u[i] += (row[i] - share[i] * exposure) * weight;
                    v[i] += square * variance[i];
                }
            }
            for i in 0..BLOCK {
                phi[i] += if v[i] > 0.0 { u[i] * u[i] / v[i] } else { 0.0 };
            }
        }
        for (squares, variances) in work.squares.iter().zip(&work.variances) {
            for i in 0..BLOCK {
                phi[i] += if variances[i] > 0.0 { squares[i] / variances[i] } else { 0.0 };
            }
        }
    }

    /// Adds `sign` times the mean log ratio to `difference`, and its squares around that mean to `squares`. `shares` are those
    /// over both arms.
    #[inline(always)]
    fn add_logs(&mut self, shares: &[Row], sign: f64, difference: &mut Row, squares: &mut Row) {
        let mut mean = ZERO;
        let (mut counts, mut closed_counts) = (self.counts.iter(), self.closed.iter_mut());
        let (mut fresh, mut expected) = (ZERO, ZERO);
        for (bucket, logs) in self.layout.buckets.iter().zip(&mut self.logs) {
            let (closed, open) = bucket.parts();
            let held = if bucket.closed.is_some() { closed_counts.next() } else { None };
            let x = match held {
                Some(counts) => counts,
                None => {
                    fresh.fill(0.0);
                    &mut fresh
                }
            };
            expected.fill(0.0);
            for part in closed {
                let share = &shares[part.stratum];
                for i in 0..BLOCK {
                    expected[i] += share[i] * part.exposure;
                }
            }
            for (part, row) in open.iter().zip(&mut counts) {
                for i in 0..BLOCK {
                    x[i] += row[i];
                    expected[i] += shares[part.stratum][i] * part.exposure;
                }
            }
            for i in 0..BLOCK {
                logs[i] = ln_ratio(x[i] + 0.5, expected[i] + 0.5);
                mean[i] += bucket.pods * logs[i];
            }
        }
        for i in 0..BLOCK {
            mean[i] /= self.layout.pods;
            difference[i] += sign * mean[i];
        }
        for (bucket, logs) in self.layout.buckets.iter().zip(&self.logs) {
            for i in 0..BLOCK {
                squares[i] += bucket.pods * ((logs[i] - mean[i]) * (logs[i] - mean[i]));
            }
        }
    }
}

/// Makes u of the deviations of a bucket over its closed strata, and adds up v: both are where a sum over all strata would be.
#[inline(always)]
fn closed_sums(bucket: &Bucket<'_>, weights: &[f64], work: &Work, u: &mut Row, v: &mut Row) {
    let (closed, _) = bucket.parts();
    if let [part] = closed {
        let weight = weights[part.stratum];
        u.iter_mut().for_each(|deviation| *deviation = weighted(*deviation, weight));
    }
    for part in closed {
        let weight = weights[part.stratum];
        let (square, variance) = (weight * weight * part.exposure, &work.variances[part.stratum]);
        for i in 0..BLOCK {
            v[i] += square * variance[i];
        }
    }
}

/// Scratch space by stratum.
struct Work {
    /// Share p of one arm; later that over both arms.
    shares: Vec<Row>,
    /// Variance p(1-p) a sample of one arm.
    variances: Vec<Row>,
    /// Squared deviations over exposure of the buckets that lie in one stratum only.
    squares: Vec<Row>,
}

/// The pass and its scratch space.
pub struct BlockPass<'c> {
    head: ArmRows<'c>,
    base: ArmRows<'c>,
    work: Work,
    model: Model,
    few: bool,
}

/// One block, to be compiled once for each width of vectors.
struct Block<'b, 'c> {
    pass: &'b mut BlockPass<'c>,
    start: usize,
    len: usize,
    moments: &'b mut Moments,
}

impl pulp::NullaryFnOnce for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.pass.work(self.start, self.len, self.moments);
    }
}

impl<'c> BlockPass<'c> {
    pub fn new(head: &'c ArmLayout<'c>, base: &'c ArmLayout<'c>, model: Model, few: bool) -> Self {
        let zero = || vec![ZERO; head.totals.len()];
        let work = Work { shares: zero(), variances: zero(), squares: zero() };
        Self { head: ArmRows::new(head, few), base: ArmRows::new(base, few), work, model, few }
    }

    /// Fills counts, raw dispersion, ratio, unmoderated variance and log-scale sums of `moments`, of all functions or `only`
    /// these.
    pub fn run(mut self, only: Option<&[u32]>, moments: &mut Moments) {
        let functions = moments.a.len();
        let arch = pulp::Arch::new();
        for start in (0..functions).step_by(BLOCK) {
            let len = BLOCK.min(functions - start);
            let span = only.map_or(Span::From(start), |only| Span::of(&only[start..start + len]));
            self.head.read(span, len);
            self.base.read(span, len);
            arch.dispatch(Block { pass: &mut self, start, len, moments });
        }
    }

    #[inline(always)]
    fn work(&mut self, start: usize, len: usize, moments: &mut Moments) {
        self.head.total();
        self.base.total();
        self.keep_counts(start, len, moments);
        self.keep_ratio(start, len, moments);
        let mut phi = ZERO;
        self.head.add_pearson(self.model, &mut self.work, &mut phi);
        self.base.add_pearson(self.model, &mut self.work, &mut phi);
        let df = moments.df_divisor();
        phi.iter_mut().for_each(|phi| *phi /= df);
        moments.phi[start..start + len].copy_from_slice(&phi[..len]);
        if self.few {
            self.keep_logs(start, len, moments);
        }
    }

    #[inline(always)]
    fn keep_counts(&self, start: usize, len: usize, moments: &mut Moments) {
        let (a, b) = (&mut moments.a[start..start + len], &mut moments.b[start..start + len]);
        for (head, base) in self.head.sums.iter().zip(&self.base.sums) {
            add(a, head);
            add(b, base);
        }
        let pods = moments.k_head + moments.k_base;
        for ((mu, &a), &b) in moments.mu[start..start + len].iter_mut().zip(&*a).zip(&*b) {
            *mu = (a + b) / pods;
        }
        let sums = self.head.sums.iter().zip(&self.base.sums);
        for ((kept_head, kept_both), (head, base)) in moments.by_stratum.iter_mut().zip(sums) {
            kept_head[start..start + len].copy_from_slice(&head[..len]);
            kept_both[start..start + len].copy_from_slice(&head[..len]);
            add(&mut kept_both[start..start + len], base);
        }
    }

    /// Mantel-Haenszel ratio and Greenland-Robins variance.
    #[inline(always)]
    fn keep_ratio(&self, start: usize, len: usize, moments: &mut Moments) {
        let (mut head, mut base, mut variance, mut weight) = (ZERO, ZERO, ZERO, 0.0);
        let shared = if self.model == Model::Share { 1.0 } else { 0.0 };
        for ((x1, x0), &(n1, n0)) in self.head.sums.iter().zip(&self.base.sums).zip(&moments.exposures) {
            let n = n1 + n0;
            let (to_head, to_base, both, own, square) = (n0 / n, n1 / n, n1 * n0, n * shared, 1.0 / (n * n));
            weight += both / n;
            for i in 0..BLOCK {
                head[i] += x1[i] * to_head;
                base[i] += x0[i] * to_base;
                variance[i] += (both * (x1[i] + x0[i]) - x1[i] * x0[i] * own) * square;
            }
        }
        let (mut theta, n_head, n_base) = (ZERO, moments.n_head, moments.n_base);
        for i in 0..BLOCK {
            let sums = RatioSums { head: head[i], base: base[i], variance: variance[i] };
            theta[i] = sums.log_ratio(weight, n_head, n_base);
            variance[i] = sums.log_variance();
        }
        moments.theta_raw[start..start + len].copy_from_slice(&theta[..len]);
        moments.se[start..start + len].copy_from_slice(&variance[..len]);
    }

    /// The pod-weighted means and squares of ln((sum_s x + 1/2)/(sum_s p_s n + 1/2)), p_s the share over both arms.
    #[inline(always)]
    fn keep_logs(&mut self, start: usize, len: usize, moments: &mut Moments) {
        let (df, Some(log_scale)) = (moments.df_divisor(), &mut moments.log_scale) else { return };
        let sums = self.head.sums.iter().zip(&self.base.sums);
        for ((share, &(n1, n0)), (x1, x0)) in self.work.shares.iter_mut().zip(&moments.exposures).zip(sums) {
            for i in 0..BLOCK {
                share[i] = (x1[i] + x0[i]) / (n1 + n0);
            }
        }
        let (mut difference, mut squares) = (ZERO, ZERO);
        self.head.add_logs(&self.work.shares, 1.0, &mut difference, &mut squares);
        self.base.add_logs(&self.work.shares, -1.0, &mut difference, &mut squares);
        log_scale.difference[start..start + len].copy_from_slice(&difference[..len]);
        let kept = log_scale.se[start..start + len].iter_mut().zip(&moments.mu[start..start + len]);
        for ((kept, &mu), &square) in kept.zip(&squares) {
            *kept = square / df * mu;
        }
    }
}

#[inline(always)]
fn add(out: &mut [f64], terms: &[f64]) {
    for (out, term) in out.iter_mut().zip(terms) {
        *out += term;
    }
}
