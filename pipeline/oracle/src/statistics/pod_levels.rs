//! Levels of pods in two arms: section 19, item 5, of `docs/semantics.md`.

use fleetdiff_schemas::number::length_float;

use super::tails::{ln_f1_tail, t_quantile};

/// The level of a bucket, and its variance by counting.
pub type Bucket = (f64, f64);

/// Two arms in units of the strata's means: level, variance, degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Levels in natural units, head and base.
    pub levels: [f64; 2],
    arms: [[f64; 3]; 2],
    is_ratio: bool,
    df: f64,
}

impl Change {
    /// The change over strata of head and base; `None` unless both arms have two buckets.
    pub fn of(strata: &[[Vec<Bucket>; 2]], is_ratio: bool) -> Option<Self> {
        let mean = |arm: &[Bucket]| arm.iter().map(|(x, _)| x).sum::<f64>() / length_float(arm.len());
        let middle = |s: &[Vec<Bucket>; 2]| (mean(&s[0]) + mean(&s[1])) / 2.0;
        let kept: Vec<&[Vec<Bucket>; 2]> = strata
            .iter()
            .filter(|s| s.iter().all(|arm| !arm.is_empty()))
            .filter(|s| !is_ratio || middle(s) > 0.0)
            .collect();
        let weights: Vec<f64> = kept
            .iter()
            .map(|s| {
                let (n1, n0) = (length_float(s[0].len()), length_float(s[1].len()));
                n1 * n0 / (n1 + n0)
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        let mut spreads = [[0.0; 5]; 2];
        let mut levels = [0.0; 2];
        for arm in 0..2 {
            let (mut c, mut z, mut counting) = (Vec::new(), Vec::new(), Vec::new());
            for (s, w) in kept.iter().zip(&weights) {
                levels[arm] += w / sum * mean(&s[arm]);
                for (x, variance) in &s[arm] {
                    c.push(w / sum / length_float(s[arm].len()));
                    let m = middle(s);
                    z.push(if is_ratio { x / m } else { x - m });
                    counting.push(if is_ratio { variance / m.powi(2) } else { *variance });
                }
            }
            spreads[arm] = spread(&c, &z, &counting)?;
        }
        let arms = together(spreads, is_ratio);
        let [[_, v1, d1], [_, v0, d0]] = arms;
        let df = (v1 + v0).powi(2) / (v1.powi(2) / d1 + v0.powi(2) / d0);
        Some(Self { levels, arms, is_ratio, df })
    }

    /// Ratio or difference.
    pub fn value(&self) -> f64 {
        let [[z1, ..], [z0, ..]] = self.arms;
        if self.is_ratio { z1 / z0 } else { z1 - z0 }
    }

    /// Variance of ln of a ratio.
    pub fn variance_of_ln(&self) -> f64 {
        let relative = |[z, v, _]: &[f64; 3]| if *z > 0.0 { v / z.powi(2) } else { 0.0 };
        self.arms.iter().map(relative).sum()
    }

    /// Variance of a difference.
    pub fn variance(&self) -> f64 {
        self.arms.iter().map(|[_, v, _]| v).sum()
    }

    /// By how many standard errors a change is larger than another for sure: one-sided p = 1e-4.
    pub fn errors(&self) -> f64 {
        t_quantile(0.9998, self.df)
    }

    /// ln p of none.
    pub fn ln_p(&self) -> f64 {
        let [[z1, v1, _], [z0, v0, _]] = self.arms;
        ln_f1_tail((z1 - z0).powi(2) / (v1 + v0), self.df)
    }

    /// The interval of a level.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let [[z1, v1, _], [z0, v0, _]] = self.arms;
        let f = t_quantile(level, self.df).powi(2);
        if !self.is_ratio {
            let reach = (f * (v1 + v0)).sqrt();
            return (z1 - z0 - reach, z1 - z0 + reach);
        }
        let (a, b, c) = (z0 * z0 - f * v0, z0 * z1, z1 * z1 - f * v1);
        let root = (b * b - a * c).max(0.0).sqrt();
        (if c > 0.0 { c / (b + root) } else { 0.0 }, if a > 0.0 { (b + root) / a } else { f64::INFINITY })
    }
}

/// Level, variance and degrees of freedom of each arm: an arm that varies less than both is taken to vary as both do.
fn together(spreads: [[f64; 5]; 2], is_ratio: bool) -> [[f64; 3]; 2] {
    let scales = spreads.map(|[z, ..]| if is_ratio { z * z } else { 1.0 });
    let relative = [spreads[0][1] / scales[0], spreads[1][1] / scales[1]];
    let all = spreads[0][4] + spreads[1][4];
    let pooled = (spreads[0][4] * relative[0] + spreads[1][4] * relative[1]) / all;
    [0, 1].map(|arm| {
        let [z, own, squares, counted, d] = spreads[arm];
        let (variance, d) =
            if relative[arm] < pooled { (pooled * scales[arm], d + (all - d).min(1.0)) } else { (own, d) };
        [z, (variance * squares).max(counted).max(1e-18), d]
    })
}

/// Level, variance of a bucket, sum of squared shares, counting variance of the level, degrees of freedom.
fn spread(c: &[f64], z: &[f64], counting: &[f64]) -> Option<[f64; 5]> {
    let n = c.len();
    if n < 2 {
        return None;
    }
    let mean: f64 = (0..n).map(|i| c[i] * z[i]).sum();
    let all: f64 = c.iter().map(|c| c * c).sum();
    let k = |i: usize, j: usize| all - c[i] - c[j] + if i == j { 1.0 } else { 0.0 };
    let a: Vec<f64> = (0..n).map(|i| c[i] * c[i] / k(i, i)).collect();
    let between: f64 = (0..n).map(|i| a[i] * (z[i] - mean).powi(2)).sum();
    let counted: f64 = (0..n).map(|i| c[i] * c[i] * counting[i]).sum();
    let mut spread = 0.0;
    for i in 0..n {
        for j in 0..n {
            spread += a[i] * a[j] * k(i, j).powi(2);
        }
    }
    Some([mean, between / all, all, counted, all * all / spread])
}
