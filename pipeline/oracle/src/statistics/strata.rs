//! The test of all functions of one cell with one normalization factor.

pub use super::likelihood::Model;
use super::likelihood::{mantel_haenszel, statistic};
use super::moderation::{Prior, moderate};
use super::tails::{ln_f1_tail, z_two_sided};

/// An arm with fewer pods than this is also tested on the log scale.
const FEW_PODS: f64 = 10.0;

/// One arm of a cell.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// Count by stratum, bucket, function.
    pub counts: Vec<Vec<Vec<f64>>>,
    /// Samples, or requests, by stratum, bucket. A bucket without any has no counts there.
    pub samples: Vec<Vec<f64>>,
    /// Distinct pods by bucket.
    pub pods: Vec<f64>,
    /// Whether its pods were sampled for another length of time than those of the other arm.
    pub imbalance: bool,
}

/// The result of [`strata_test`]; vectors are by function.
#[derive(Clone, Debug, Default)]
pub struct Tested {
    /// Strata that both arms share.
    pub strata: usize,
    /// Whether the function is in the family.
    pub tested: Vec<bool>,
    /// Head counts over kept strata.
    pub a: Vec<f64>,
    /// Base counts over kept strata.
    pub b: Vec<f64>,
    /// Degrees of freedom between buckets.
    pub df: f64,
    /// Whether an arm has so few pods that the test on the log scale is used too.
    pub few: bool,
    /// Raw dispersion.
    pub phi: Vec<f64>,
    /// Mean count per pod.
    pub mu: Vec<f64>,
    /// Moderated dispersion.
    pub phi_tilde: Vec<f64>,
    /// `df` and the prior's.
    pub df_total: f64,
    /// G or the score statistic, before the dispersion.
    pub stat: Vec<f64>,
    /// ln p of the F test.
    pub ln_p_f: Vec<f64>,
    /// ln p of the t test on the log scale.
    pub ln_p_log: Vec<f64>,
    /// ln p, NaN where not tested.
    pub ln_p: Vec<f64>,
    /// ln ratio of shares less ln of the normalization factor.
    pub theta: Vec<f64>,
    /// Its standard error.
    pub se: Vec<f64>,
    /// The result of the moderation.
    pub prior: Prior,
}

/// Totals of an arm that do not depend on the function.
struct ArmTotals<'a> {
    arm: &'a Arm,
    model: Model,
    /// Strata that are kept.
    kept: &'a [usize],
    /// Samples by kept stratum.
    of: Vec<f64>,
    /// Buckets with samples in kept strata.
    live: Vec<usize>,
    /// Pods in those.
    pods: f64,
}

impl<'a> ArmTotals<'a> {
    fn new(arm: &'a Arm, model: Model, kept: &'a [usize]) -> Self {
        let of = kept.iter().map(|&s| arm.samples[s].iter().sum()).collect();
        let live: Vec<usize> = (0..arm.pods.len()).filter(|&b| kept.iter().any(|&s| arm.samples[s][b] > 0.0)).collect();
        let pods = live.iter().map(|&b| arm.pods[b]).sum();
        Self { arm, model, kept, of, live, pods }
    }

    /// Counts of a function by kept stratum.
    fn counts(&self, f: usize) -> Vec<f64> {
        self.kept.iter().map(|&s| self.arm.counts[s].iter().map(|bucket| bucket[f]).sum()).collect()
    }

    /// Degrees of freedom of this arm: a bucket that is alone in all its strata has none.
    fn df(&self, weight: &[f64]) -> f64 {
        let of_bucket = |&b: &usize| {
            let (mut square, mut plain) = (0.0, 0.0);
            for (i, &s) in self.kept.iter().enumerate() {
                let n = self.arm.samples[s][b];
                square += weight[i] * weight[i] * n * n / self.of[i];
                plain += weight[i] * weight[i] * n;
            }
            1.0 - square / plain
        };
        self.live.iter().map(of_bucket).sum()
    }

    /// Squared residuals of a function's buckets over their binomial (rates: Poisson) variance, summed.
    fn pearson(&self, f: usize, counts: &[f64], weight: &[f64]) -> f64 {
        let of_bucket = |&b: &usize| {
            let (mut u, mut v) = (0.0, 0.0);
            for (i, &s) in self.kept.iter().enumerate() {
                let (x, n, p, w) =
                    (self.arm.counts[s][b][f], self.arm.samples[s][b], counts[i] / self.of[i], weight[i]);
                u += (x - p * n) * w;
                v += w * w * n * if self.model == Model::Share { p * (1.0 - p) } else { p };
            }
            if v > 0.0 { u * u / v } else { 0.0 }
        };
        self.live.iter().map(of_bucket).sum()
    }

    /// Pod-weighted mean of the buckets' ln ratio of count to expectation, and the weighted squares around it.
    fn on_log_scale(&self, f: usize, pooled: &[f64]) -> (f64, f64) {
        let value = |b: usize| {
            let (mut x, mut expected) = (0.5, 0.5);
            for (i, &s) in self.kept.iter().enumerate() {
                x += self.arm.counts[s][b][f];
                expected += pooled[i] * self.arm.samples[s][b];
            }
            f64::ln(x / expected)
        };
        let values: Vec<(f64, f64)> = self.live.iter().map(|&b| (self.arm.pods[b], value(b))).collect();
        let mean = values.iter().map(|(k, y)| k * y).sum::<f64>() / self.pods;
        (mean, values.iter().map(|(k, y)| k * (y - mean) * (y - mean)).sum())
    }
}

/// The strata that both arms share, their totals and weights.
struct Shared<'a> {
    head: ArmTotals<'a>,
    base: ArmTotals<'a>,
    /// Samples of both arms by kept stratum.
    all: Vec<f64>,
    weight_head: Vec<f64>,
    weight_base: Vec<f64>,
    df: f64,
}

impl<'a> Shared<'a> {
    fn new(head: &'a Arm, base: &'a Arm, model: Model, kept: &'a [usize]) -> Self {
        let (head, base) = (ArmTotals::new(head, model, kept), ArmTotals::new(base, model, kept));
        let all: Vec<f64> = head.of.iter().zip(&base.of).map(|(n1, n0)| n1 + n0).collect();
        let weight_head: Vec<f64> = base.of.iter().zip(&all).map(|(n0, n)| n0 / n).collect();
        let weight_base: Vec<f64> = head.of.iter().zip(&all).map(|(n1, n)| n1 / n).collect();
        let df = head.df(&weight_head) + base.df(&weight_base);
        Self { head, base, all, weight_head, weight_base, df: if df > 1e-9 { df } else { 0.0 } }
    }

    /// The divisor of sums of squares, also if there are no degrees of freedom.
    fn divisor(&self) -> f64 {
        if self.df > 0.0 { self.df } else { 1.0 }
    }

    /// Difference of the arms' means on the log scale, and the dispersion around them in units of counts.
    fn on_log_scale(&self, f: usize, x1: &[f64], x0: &[f64], mean_count: f64) -> (f64, f64) {
        let pooled: Vec<f64> = (0..self.all.len()).map(|s| (x1[s] + x0[s]) / self.all[s]).collect();
        let (head, squares_head) = self.head.on_log_scale(f, &pooled);
        let (base, squares_base) = self.base.on_log_scale(f, &pooled);
        (head - base, (squares_head + squares_base) / self.divisor() * mean_count)
    }
}

/// The stratified test of every function with one normalization factor (`strata_test`).
///
/// Strata in which an arm has no samples are left out; with none left nothing is tested and every vector is empty but
/// `tested` and `ln_p`.
pub fn strata_test(head: &Arm, base: &Arm, model: Model, normalization: f64, min_count: f64) -> Tested {
    let functions = head.counts.iter().chain(&base.counts).flatten().map(Vec::len).next().unwrap_or(0);
    let any = |samples: &[f64]| samples.iter().sum::<f64>() > 0.0;
    let kept: Vec<usize> =
        (0..head.samples.len()).filter(|&s| any(&head.samples[s]) && any(&base.samples[s])).collect();
    if kept.is_empty() {
        let ln_p = vec![f64::NAN; functions];
        return Tested { tested: vec![false; functions], ln_p, ..Tested::default() };
    }
    let shared = Shared::new(head, base, model, &kept);
    let mut found = Tested { strata: kept.len(), df: shared.df, ..Tested::default() };
    let (mut score_variance, mut log_shift, mut log_phi, mut effect_variance) = (vec![], vec![], vec![], vec![]);
    for f in 0..functions {
        let (x1, x0) = (shared.head.counts(f), shared.base.counts(f));
        let (a, b) = (x1.iter().sum::<f64>(), x0.iter().sum::<f64>());
        let mean_count = (a + b) / (shared.head.pods + shared.base.pods);
        let squares =
            shared.head.pearson(f, &x1, &shared.weight_head) + shared.base.pearson(f, &x0, &shared.weight_base);
        let (stat, variance) = statistic(model, (&x1, &x0), (&shared.head.of, &shared.base.of), normalization);
        let (shift, phi_log) = shared.on_log_scale(f, &x1, &x0, mean_count);
        let (theta, variance_of_theta) = mantel_haenszel(model, (&x1, &x0), (&shared.head.of, &shared.base.of));
        found
            .tested
            .push(a + b >= min_count && (model == Model::Rate || a + b < shared.all.iter().sum()) && shared.df > 0.0);
        found.a.push(a);
        found.b.push(b);
        found.mu.push(mean_count);
        found.phi.push(squares / shared.divisor());
        found.stat.push(stat);
        found.theta.push(theta - normalization.ln());
        score_variance.push(variance);
        effect_variance.push(variance_of_theta);
        log_shift.push(shift - normalization.ln());
        log_phi.push(phi_log);
    }
    (found.phi_tilde, found.df_total, found.prior) = moderate(&found.phi, &found.mu, &found.tested, shared.df);
    // A function that has no samples or all samples in every stratum has no score; the reference drops it here, between
    // its two moderations.
    if kept.len() > 1 {
        found.tested.iter_mut().zip(&score_variance).for_each(|(tested, variance)| *tested &= *variance > 0.0);
    }
    let (phi_log, df_log, _) = moderate(&log_phi, &found.mu, &found.tested, shared.df);
    let per_pod = 1.0 / shared.head.pods + 1.0 / shared.base.pods;
    let unlike = head.imbalance || base.imbalance;
    found.few = unlike || shared.head.pods < FEW_PODS || shared.base.pods < FEW_PODS;
    for f in 0..functions {
        let square = log_shift[f] * log_shift[f] / (phi_log[f] / found.mu[f].max(1e-300) * per_pod);
        found.ln_p_f.push(ln_f1_tail(found.stat[f] / found.phi_tilde[f], found.df_total.max(1e-9)));
        found.ln_p_log.push(ln_f1_tail(square, df_log.max(1e-9)));
        found.decide(f, effect_variance[f]);
        if unlike && found.a[f] > 0.0 && found.b[f] > 0.0 {
            found.se[f] = found.se[f].max((phi_log[f] / found.mu[f] * per_pod).sqrt());
        }
    }
    found
}

impl Tested {
    /// p by the few-pods rule, and the standard error: from the ratio's variance, or, if an arm lacks the function, the
    /// one that the test implies.
    fn decide(&mut self, f: usize, variance_of_theta: f64) {
        let ln_p = if self.few { self.ln_p_f[f].max(self.ln_p_log[f]) } else { self.ln_p_f[f] };
        self.ln_p.push(if self.tested[f] { ln_p } else { f64::NAN });
        self.se.push(if self.a[f] > 0.0 && self.b[f] > 0.0 {
            (self.phi_tilde[f] * variance_of_theta).sqrt()
        } else {
            let ln_p = if self.tested[f] { ln_p } else { 0.0 };
            self.theta[f].abs() / z_two_sided(ln_p.clamp(1e-300_f64.ln(), (-1e-9_f64).ln_1p()))
        });
    }
}
