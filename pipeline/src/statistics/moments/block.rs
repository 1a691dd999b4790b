//! The pass over the bucket rows, one block of functions at a time.

use crate::statistics::effect::RatioSums;
use crate::statistics::moments::Moments;
use crate::statistics::moments::layout::ArmLayout;
use crate::statistics::special::ln_normal;
use crate::statistics::strata::Model;

/// Functions of a block: a bucket's row of floats is 2 KiB.
const BLOCK: usize = 256;

/// The scratch space of the pass; all vectors are reused from block to block.
pub struct BlockPass<'c> {
    head: &'c ArmLayout<'c>,
    base: &'c ArmLayout<'c>,
    model: Model,
    few: bool,
    /// By stratum: counts of an arm.
    head_sums: Vec<[f64; BLOCK]>,
    base_sums: Vec<[f64; BLOCK]>,
    /// By stratum: share p and variance p(1-p) a sample of one arm; later the share over both arms.
    shares: Vec<[f64; BLOCK]>,
    variances: Vec<[f64; BLOCK]>,
    /// By stratum: squared deviations over exposure of the buckets that lie in one stratum only.
    squares: Vec<[f64; BLOCK]>,
    row: [f64; BLOCK],
    deviation: [f64; BLOCK],
    expectation: [f64; BLOCK],
    /// By bucket of an arm: log ratio to expectation.
    logs: Vec<[f64; BLOCK]>,
}

impl<'c> BlockPass<'c> {
    pub fn new(head: &'c ArmLayout<'c>, base: &'c ArmLayout<'c>, model: Model, few: bool) -> Self {
        let zero = || vec![[0.0; BLOCK]; head.totals.len()];
        let logs = if few { head.buckets.len().max(base.buckets.len()) } else { 0 };
        Self {
            head,
            base,
            model,
            few,
            head_sums: zero(),
            base_sums: zero(),
            shares: zero(),
            variances: zero(),
            squares: zero(),
            row: [0.0; BLOCK],
            deviation: [0.0; BLOCK],
            expectation: [0.0; BLOCK],
            logs: vec![[0.0; BLOCK]; logs],
        }
    }

    /// Fills counts, raw dispersion, ratio, unmoderated variance and log-scale sums of `moments`.
    pub fn run(mut self, moments: &mut Moments) {
        let functions = moments.a.len();
        for start in (0..functions).step_by(BLOCK) {
            let len = BLOCK.min(functions - start);
            total_counts(self.head, start, len, &mut self.head_sums);
            total_counts(self.base, start, len, &mut self.base_sums);
            self.keep_counts(start, len, moments);
            self.keep_ratio(start, len, moments);
            let phi = &mut moments.phi[start..start + len];
            phi.fill(0.0);
            self.add_pearson(true, start, phi);
            self.add_pearson(false, start, phi);
            let inverse_df = moments.df_divisor();
            moments.phi[start..start + len].iter_mut().for_each(|phi| *phi /= inverse_df);
            if self.few {
                self.keep_logs(start, len, moments);
            }
        }
    }

    fn keep_counts(&self, start: usize, len: usize, moments: &mut Moments) {
        let (a, b) = (&mut moments.a[start..start + len], &mut moments.b[start..start + len]);
        for (head, base) in self.head_sums.iter().zip(&self.base_sums) {
            add(a, head);
            add(b, base);
        }
        let pods = moments.k_head + moments.k_base;
        for ((mu, &a), &b) in moments.mu[start..start + len].iter_mut().zip(&*a).zip(&*b) {
            *mu = (a + b) / pods;
        }
        for ((kept_head, kept_both), (head, base)) in
            moments.by_stratum.iter_mut().zip(self.head_sums.iter().zip(&self.base_sums))
        {
            kept_head[start..start + len].copy_from_slice(&head[..len]);
            kept_both[start..start + len].copy_from_slice(&head[..len]);
            add(&mut kept_both[start..start + len], base);
        }
    }

    /// Mantel-Haenszel ratio and Greenland-Robins variance.
    fn keep_ratio(&self, start: usize, len: usize, moments: &mut Moments) {
        let mut sums = [RatioSums::default(); BLOCK];
        let mut weight = 0.0;
        let shared = if self.model == Model::Share { 1.0 } else { 0.0 };
        for ((head, base), &(n1, n0)) in self.head_sums.iter().zip(&self.base_sums).zip(&moments.exposures) {
            let n = n1 + n0;
            let (to_head, to_base, both, own, square) = (n0 / n, n1 / n, n1 * n0, n * shared, 1.0 / (n * n));
            weight += both / n;
            for ((sums, &x1), &x0) in sums[..len].iter_mut().zip(head).zip(base) {
                sums.head += x1 * to_head;
                sums.base += x0 * to_base;
                sums.variance += (both * (x1 + x0) - x1 * x0 * own) * square;
            }
        }
        let out = moments.theta_raw[start..start + len].iter_mut().zip(&mut moments.se[start..start + len]);
        for (sums, (theta, variance)) in sums.iter().zip(out) {
            *theta = sums.log_ratio(weight, moments.n_head, moments.n_base);
            *variance = sums.log_variance();
        }
    }

    /// Adds one arm's sum over buckets of u^2/v.
    fn add_pearson(&mut self, of_head: bool, start: usize, phi: &mut [f64]) {
        let len = phi.len();
        let (arm, sums) = if of_head { (self.head, &self.head_sums) } else { (self.base, &self.base_sums) };
        for (stratum, total) in arm.totals.iter().enumerate() {
            let out = self.shares[stratum].iter_mut().zip(&mut self.variances[stratum]);
            for ((share, variance), &x) in out.zip(&sums[stratum]).take(len) {
                *share = x / total;
                *variance = if self.model == Model::Share { *share * (1.0 - *share) } else { *share };
            }
            self.squares[stratum][..len].fill(0.0);
        }
        for bucket in &arm.buckets {
            if let [part] = bucket.parts.as_slice() {
                self.row[..len].fill(0.0);
                part.add_to(start, &mut self.row[..len]);
                let (exposure, inverse) = (part.exposure, 1.0 / part.exposure);
                let squares = &mut self.squares[part.stratum][..len];
                for ((square, &x), &share) in squares.iter_mut().zip(&self.row).zip(&self.shares[part.stratum]) {
                    let deviation = x - share * exposure;
                    *square += deviation * deviation * inverse;
                }
            } else {
                self.deviation[..len].fill(0.0);
                self.expectation[..len].fill(0.0);
                for part in &bucket.parts {
                    self.row[..len].fill(0.0);
                    part.add_to(start, &mut self.row[..len]);
                    let (exposure, weight) = (part.exposure, arm.weights[part.stratum]);
                    let square = weight * weight * exposure;
                    let out = self.deviation[..len].iter_mut().zip(&mut self.expectation[..len]);
                    let with = self.row.iter().zip(&self.shares[part.stratum]).zip(&self.variances[part.stratum]);
                    for ((u, v), ((&x, &share), &variance)) in out.zip(with) {
                        *u += (x - share * exposure) * weight;
                        *v += square * variance;
                    }
                }
                for ((phi, &u), &v) in phi.iter_mut().zip(&self.deviation).zip(&self.expectation) {
                    *phi += if v > 0.0 { u * u / v } else { 0.0 };
                }
            }
        }
        for (squares, variances) in self.squares.iter().zip(&self.variances) {
            for ((phi, &square), &variance) in phi.iter_mut().zip(squares).zip(variances) {
                *phi += if variance > 0.0 { square / variance } else { 0.0 };
            }
        }
    }

    /// The pod-weighted means and squares of ln((sum_s x + 1/2)/(sum_s p_s n + 1/2)), p_s the share over both arms.
    fn keep_logs(&mut self, start: usize, len: usize, moments: &mut Moments) {
        let (df, Some(log_scale)) = (moments.df_divisor(), &mut moments.log_scale) else { return };
        for (stratum, &(n1, n0)) in moments.exposures.iter().enumerate() {
            let sums = self.head_sums[stratum].iter().zip(&self.base_sums[stratum]);
            for (share, (&x1, &x0)) in self.shares[stratum][..len].iter_mut().zip(sums) {
                *share = (x1 + x0) / (n1 + n0);
            }
        }
        let difference = &mut log_scale.difference[start..start + len];
        let squares = &mut log_scale.se[start..start + len];
        difference.fill(0.0);
        squares.fill(0.0);
        self.add_logs(self.head, 1.0, start, difference, squares);
        self.add_logs(self.base, -1.0, start, difference, squares);
        for (square, &mu) in squares.iter_mut().zip(&moments.mu[start..start + len]) {
            *square = *square / df * mu;
        }
    }

    /// Adds `sign` times one arm's mean log ratio to `difference`, and its squares around that mean to `squares`.
    fn add_logs(&mut self, arm: &ArmLayout<'_>, sign: f64, start: usize, difference: &mut [f64], squares: &mut [f64]) {
        let len = difference.len();
        let mean = &mut self.deviation[..len];
        mean.fill(0.0);
        for (bucket, logs) in arm.buckets.iter().zip(&mut self.logs) {
            self.row[..len].fill(0.0);
            self.expectation[..len].fill(0.0);
            for part in &bucket.parts {
                part.add_to(start, &mut self.row[..len]);
                for (expected, &share) in self.expectation[..len].iter_mut().zip(&self.shares[part.stratum]) {
                    *expected += share * part.exposure;
                }
            }
            for ((log, &x), &expected) in logs[..len].iter_mut().zip(&self.row).zip(&self.expectation) {
                *log = ln_normal((x + 0.5) / (expected + 0.5));
            }
            for (mean, &log) in mean.iter_mut().zip(&*logs) {
                *mean += bucket.pods * log;
            }
        }
        for (mean, difference) in mean.iter_mut().zip(difference) {
            *mean /= arm.pods;
            *difference += sign * *mean;
        }
        for (bucket, logs) in arm.buckets.iter().zip(&self.logs) {
            for ((square, &log), &mean) in squares.iter_mut().zip(logs).zip(&*mean) {
                *square += bucket.pods * ((log - mean) * (log - mean));
            }
        }
    }
}

/// Sums an arm's rows by stratum.
fn total_counts(arm: &ArmLayout<'_>, start: usize, len: usize, sums: &mut [[f64; BLOCK]]) {
    for sums in &mut *sums {
        sums[..len].fill(0.0);
    }
    for part in arm.buckets.iter().flat_map(|bucket| &bucket.parts) {
        part.add_to(start, &mut sums[part.stratum][..len]);
    }
}

fn add(out: &mut [f64], terms: &[f64]) {
    for (out, term) in out.iter_mut().zip(terms) {
        *out += term;
    }
}
