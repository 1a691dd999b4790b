//! How much base pods differ in one function, beyond what their counts do.

use crate::number::length;
use crate::outliers::moderation::{Moderation, moderate};
use crate::outliers::pods::{Arm, Pods};

/// The spread between base pods, by function of the family.
pub struct Spread {
    /// Variance of the log ratio between pods, moderated.
    pub tau2: Vec<f64>,
    /// The offset that takes the skewness out; empty for plain logs.
    pub offset: Vec<f64>,
    /// Degrees of freedom with the prior's.
    pub df_total: f64,
}

/// Where the base pods of a function lie, by group.
pub struct Centre {
    /// The mean of their log ratios, weighted by 1/(tau^2 + 1/E).
    pub mean: Vec<f64>,
    /// The sum of those weights.
    pub weight: Vec<f64>,
}

impl Spread {
    /// From plain log ratios.
    pub fn of_logs(pods: &Pods<'_>, family: &[u32]) -> Self {
        let phi =
            pods.columns(family).map(|column| Dispersion::of(pods, &column.base.log_ratios(), &column.base)).collect();
        Self::moderated(pods, phi, Vec::new())
    }

    /// From log ratios with the offset that belongs to the spread of the plain ones.
    pub fn measure(pods: &Pods<'_>, family: &[u32]) -> Self {
        let plain = Self::of_logs(pods, family);
        let (mut phi, mut offset) = (Vec::with_capacity(family.len()), Vec::with_capacity(family.len()));
        for (column, tau2) in pods.columns(family).zip(plain.tau2) {
            let o = offset_of(tau2, mean(&column.base.expected));
            phi.push(Dispersion::of(pods, &column.base.log_ratios_with(o), &column.base));
            offset.push(o);
        }
        Self::moderated(pods, phi, offset)
    }

    fn moderated(pods: &Pods<'_>, dispersion: Vec<Dispersion>, offset: Vec<f64>) -> Self {
        let (phi, mu): (Vec<f64>, Vec<f64>) = dispersion.iter().map(|d| (d.phi, d.mu)).unzip();
        let Moderation { phi, df_total } = moderate(&phi, &mu, pods.free());
        Self { tau2: phi.iter().zip(&mu).map(|(phi, mu)| (phi - 1.0) / mu).collect(), offset, df_total }
    }

    /// The centre of the base pods in the `i`-th function, whose log ratios are `y`.
    pub fn centre(&self, i: usize, pods: &Pods<'_>, y: &[f64], base: &Arm) -> Centre {
        centre(pods, y, base, self.tau2[i])
    }
}

/// The offset under which ln(x + o) of a count with mean `mu` has no skewness, if pods differ by a log-normal factor of variance
/// `tau2`: E + o = 3 sigma^4/kappa3. Twice the mean for Poisson counts, 1/tau^2 for large ones.
fn offset_of(tau2: f64, mu: f64) -> f64 {
    let a = tau2 * mu;
    mu * (2.0 + 3.0 * a) / (1.0 + 3.0 * a + 3.0 * a * a)
}

/// The raw dispersion of one function.
struct Dispersion {
    /// 1 + tau^2 mu; below 1 the squares over their expectation under independent samples.
    phi: f64,
    /// Mean expected count of a base pod.
    mu: f64,
}

impl Dispersion {
    /// tau^2 >= 0 with sum (y - m)^2/(tau^2 + 1/E) = df: Newton from 0, where the sum, which is convex and falls, is largest.
    fn of(pods: &Pods<'_>, y: &[f64], base: &Arm) -> Self {
        let (df, mu) = (pods.free(), mean(&base.expected));
        let (at_zero, mut slope) = squares(pods, y, base, 0.0);
        if at_zero <= df {
            return Self { phi: at_zero / df, mu };
        }
        let (mut tau2, mut sum) = (0.0, at_zero);
        for _ in 0..200 {
            let step = (sum - df) / slope;
            tau2 += step;
            if step <= 1e-14 * tau2 {
                break;
            }
            (sum, slope) = squares(pods, y, base, tau2);
        }
        Self { phi: 1.0 + tau2 * mu, mu }
    }
}

/// sum w (y - m)^2, and the negative of its derivative, sum w^2 (y - m)^2.
fn squares(pods: &Pods<'_>, y: &[f64], base: &Arm, tau2: f64) -> (f64, f64) {
    let centre = centre(pods, y, base, tau2);
    let (mut sum, mut slope) = (0.0, 0.0);
    for ((y, expected), pod) in y.iter().zip(&base.expected).zip(&pods.base) {
        let weight = 1.0 / (tau2 + 1.0 / expected);
        let off = y - centre.mean[pod.group];
        sum += weight * off * off;
        slope += weight * weight * off * off;
    }
    (sum, slope)
}

fn centre(pods: &Pods<'_>, y: &[f64], base: &Arm, tau2: f64) -> Centre {
    let (mut mean, mut weight) = (vec![0.0; pods.groups], vec![0.0; pods.groups]);
    for ((y, expected), pod) in y.iter().zip(&base.expected).zip(&pods.base) {
        let w = 1.0 / (tau2 + 1.0 / expected);
        mean[pod.group] += w * y;
        weight[pod.group] += w;
    }
    mean.iter_mut().zip(&weight).for_each(|(mean, weight)| *mean /= weight);
    Centre { mean, weight }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / length(values.len())
}
