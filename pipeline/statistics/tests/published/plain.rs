//! The spread, level and variance of one function by plain loops, in the order of the formulas: what the pass over blocks is held
//! against. It shares no code with it.

use fleetdiff_statistics::Arms;

use crate::vectors::ArmData;

/// One arm: by stratum and bucket.
pub struct PlainArm {
    pub counts: Vec<Vec<Vec<f64>>>,
    pub exposures: Vec<Vec<f64>>,
    pub pods: Vec<f64>,
}

/// What one arm shows of a function.
#[derive(Debug)]
pub struct Shown {
    pub share: f64,
    pub counting: f64,
    pub between: f64,
    pub variance: f64,
    pub df: f64,
}

impl PlainArm {
    /// The arm in these strata.
    pub fn of(arm: &ArmData, strata: &[usize]) -> Self {
        Self {
            counts: strata.iter().map(|&s| arm.counts[s].clone()).collect(),
            exposures: strata.iter().map(|&s| arm.samples[s].clone()).collect(),
            pods: arm.pods.clone(),
        }
    }

    fn total(&self, s: usize) -> f64 {
        self.exposures[s].iter().sum()
    }

    /// Samples of a bucket over all strata.
    fn of_bucket(&self, b: usize) -> f64 {
        self.exposures.iter().map(|stratum| stratum[b]).sum()
    }

    fn occupied(&self) -> Vec<usize> {
        (0..self.pods.len()).filter(|&b| self.of_bucket(b) > 0.0).collect()
    }

    /// The moment estimate of tau^2 of one function, weights 1.
    pub fn spread(&self, other: &Self, f: usize) -> f64 {
        let strata = 0..self.counts.len();
        let h = |s: usize| other.total(s) / (self.total(s) + other.total(s));
        let share = |s: usize| self.counts[s].iter().map(|row| row[f]).sum::<f64>() / self.total(s);
        let (mut squares, mut slope, mut df) = (0.0, 0.0, 0.0);
        for b in self.occupied() {
            let n = |s: usize| self.exposures[s][b];
            let all: f64 = strata.clone().map(|s| h(s).powi(2) * n(s)).sum();
            let left = 1.0 - strata.clone().map(|s| (h(s) * n(s)).powi(2) / self.total(s)).sum::<f64>() / all;
            let residual: f64 = strata.clone().map(|s| h(s) * (self.counts[s][b][f] - n(s) * share(s))).sum();
            let variance: f64 = strata.clone().map(|s| h(s).powi(2) * n(s) * share(s) * (1.0 - share(s))).sum();
            let expected: f64 = strata.clone().map(|s| h(s) * n(s) * share(s)).sum();
            if left > 1e-9 {
                df += left;
                if variance > 0.0 {
                    squares += residual.powi(2) / variance;
                    slope += expected.powi(2) / variance * left / self.pods[b];
                }
            }
        }
        let c = (1.0 - 2.0 / (9.0 * df.max(1.0))).powi(3);
        if slope > 0.0 { (squares / df / c - 1.0) / (slope / df) } else { 0.0 }
    }
}

/// Level and variances of function `f` with weights 1/(1 + slope n_b/k_b); `tau2` by arm.
pub fn shown(arms: &Arms<PlainArm>, f: usize, slope: f64, tau2: Arms<f64>) -> Arms<Shown> {
    let strata: Vec<usize> = (0..arms.head.counts.len()).collect();
    let weight = |arm: &PlainArm, b: usize| 1.0 / (1.0 + slope * arm.of_bucket(b) / arm.pods[b]);
    let exposure = |arm: &PlainArm, s: usize| -> f64 {
        arm.occupied().iter().map(|&b| weight(arm, b) * arm.exposures[s][b]).sum()
    };
    let count = |arm: &PlainArm, s: usize| -> f64 {
        arm.occupied().iter().map(|&b| weight(arm, b) * arm.counts[s][b][f]).sum()
    };
    let both = |s: usize| exposure(&arms.head, s) + exposure(&arms.base, s);
    let mh = |s: usize| exposure(&arms.head, s) * exposure(&arms.base, s) / both(s);
    let information: f64 = strata.iter().map(|&s| mh(s)).sum();
    let pooled = |s: usize| (count(&arms.head, s) + count(&arms.base, s)) / both(s);
    let mean = strata.iter().map(|&s| mh(s) * pooled(s)).sum::<f64>() / information;
    Arms::of(|side| {
        let arm = &arms[side];
        let h = |s: usize| exposure(&arms[side.other()], s) / both(s);
        let share = strata.iter().map(|&s| h(s) * count(arm, s)).sum::<f64>() / information;
        let counting: f64 = strata
            .iter()
            .map(|&s| {
                let squares: f64 = arm.occupied().iter().map(|&b| weight(arm, b).powi(2) * arm.exposures[s][b]).sum();
                h(s).powi(2) * squares * pooled(s)
            })
            .sum();
        let pulls =
            |b: usize| strata.iter().map(|&s| h(s) * weight(arm, b) * arm.exposures[s][b] * pooled(s)).sum::<f64>();
        let between: f64 = arm.occupied().iter().map(|&b| pulls(b).powi(2) / arm.pods[b]).sum();
        let (variance, df) = seen(arm, f, &strata, &|b| weight(arm, b), &h);
        Shown {
            share,
            counting: counting / mean / information.powi(2),
            between: tau2[side] * between / (mean * information).powi(2),
            variance: variance / information.powi(2),
            df,
        }
    })
}

/// The cluster variance (CR2) and its Satterthwaite degrees of freedom; (0, 0) where every bucket is alone in its strata.
fn seen(arm: &PlainArm, f: usize, strata: &[usize], w: &dyn Fn(usize) -> f64, h: &dyn Fn(usize) -> f64) -> (f64, f64) {
    let buckets = arm.occupied();
    let m = |b: usize, s: usize| w(b) * arm.exposures[s][b];
    let total = |s: usize| buckets.iter().map(|&b| m(b, s)).sum::<f64>();
    let level = |s: usize| buckets.iter().map(|&b| w(b) * arm.counts[s][b][f]).sum::<f64>() / total(s);
    let overlap = |b: usize, c: usize| strata.iter().map(|&s| h(s).powi(2) * m(b, s) * m(c, s) / total(s)).sum::<f64>();
    let working = |b: usize| strata.iter().map(|&s| h(s).powi(2) * m(b, s)).sum::<f64>();
    let left = |b: usize| 1.0 - overlap(b, b) / working(b);
    let live: Vec<usize> = buckets.iter().copied().filter(|&b| left(b) > 1e-9).collect();
    let (all, used): (f64, f64) = (buckets.iter().map(|&b| working(b)).sum(), live.iter().map(|&b| working(b)).sum());
    let residual = |b: usize| {
        strata.iter().map(|&s| h(s) * w(b) * (arm.counts[s][b][f] - arm.exposures[s][b] * level(s))).sum::<f64>()
    };
    let variance: f64 = live.iter().map(|&b| residual(b).powi(2) / left(b)).sum::<f64>() * all / used;
    let mut sum = 0.0;
    for &b in &live {
        for &c in &live {
            let rho = if b == c { 1.0 } else { overlap(b, c).powi(2) / (working(b) * working(c) * left(b) * left(c)) };
            sum += working(b) / used * (working(c) / used) * rho;
        }
    }
    if live.is_empty() { (0.0, 0.0) } else { (variance, 1.0 / sum) }
}
