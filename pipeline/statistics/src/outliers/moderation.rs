//! Dispersion between base pods, moderated over functions.
//!
//! One function's dispersion rests on few pods and is noisy; all functions together say how dispersions are distributed. Each is
//! drawn towards that common value by as much as the data support (empirical Bayes; Smyth 2004, limma `squeezeVar`). Pods that
//! differ by a factor per function add a term that grows with the count: T = 1 + tau^2 mu takes it out before functions are
//! compared and puts it back after.

#![expect(clippy::as_conversions, reason = "the number of functions becomes a float")]

use crate::median::median;
use crate::special::{digamma, ln_normal, trigamma, trigamma_inverse};
use crate::thresholds::FEW_FUNCTIONS;

/// The most degrees of freedom that the prior may have.
const D0_CAP: f64 = 20.0;
/// Dispersions below this part of the median count as this part of it.
const SMALLEST_OF_MEDIAN: f64 = 1e-5;

/// What [`moderate`] found.
#[derive(Clone, Debug)]
pub(super) struct Moderation {
    /// Moderated dispersion by function, at least 1 (Poisson); dimensionless.
    pub phi: Vec<f64>,
    /// Degrees of freedom of the moderated dispersion: those of the pods and the prior's.
    pub df_total: f64,
}

/// Moderates raw dispersions `phi` with `df` degrees of freedom each; `mu` is the mean count a pod.
///
/// tau^2 = max(0, median over f with mu >= median mu of (phi/c - 1)/mu), c = (1 - 2/(9 df))^3; T = 1 + tau^2 mu; s = phi/T; z = ln
/// s - psi(df/2) + ln(df/2). If var(z) > psi1(df/2), then d0 = 2 psi1^-1 of the difference and ln s02 = mean z + psi(d0/2) -
/// ln(d0/2), else d0 is infinite and ln s02 = mean z. Result max(1, T (d0 s02 + df s)/(d0 + df)), d0 at most 20; with fewer than 20
/// functions or df = 0 it is max(1, phi) with df. Checked against the reference program (`outliers.json`) to 1e-7.
#[must_use]
pub(super) fn moderate(phi: &[f64], mu: &[f64], df: f64) -> Moderation {
    if phi.len() < FEW_FUNCTIONS || df <= 0.0 {
        return Moderation { phi: phi.iter().map(|&phi| phi.max(1.0)).collect(), df_total: df };
    }
    let mut sample = Sample { phi: phi.to_vec(), mu: mu.to_vec() };
    let tau2 = spread_between_pods(&sample, df);
    for (phi, mu) in sample.phi.iter_mut().zip(&sample.mu) {
        *phi /= 1.0 + tau2 * *mu;
    }
    let (d0, s02) = prior(sample.phi, df);
    let used = d0.min(D0_CAP);
    let phi = pulp::Arch::new().dispatch(Drawn { phi, mu, tau2, used, s02, df });
    Moderation { phi, df_total: df + used }
}

/// Raw dispersions and mean counts of the functions that count.
struct Sample {
    phi: Vec<f64>,
    mu: Vec<f64>,
}

/// Every dispersion drawn towards the prior's; compiled for each width of vectors.
struct Drawn<'a> {
    phi: &'a [f64],
    mu: &'a [f64],
    tau2: f64,
    used: f64,
    s02: f64,
    df: f64,
}

impl pulp::NullaryFnOnce for Drawn<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn call(self) -> Vec<f64> {
        let inverse = 1.0 / (self.used + self.df);
        let mut drawn = self.phi.to_vec();
        for (phi, &mu) in drawn.iter_mut().zip(self.mu) {
            let t = 1.0 + self.tau2 * mu;
            *phi = (t * (self.used * self.s02 + self.df * (*phi / t)) * inverse).max(1.0);
        }
        drawn
    }
}

/// tau^2 from the better counted half of the functions, whose Poisson part is small.
fn spread_between_pods(sample: &Sample, df: f64) -> f64 {
    let middle = median(&sample.mu);
    let median_of_chi2 = 1.0 - 2.0 / (9.0 * df);
    let c = median_of_chi2 * median_of_chi2 * median_of_chi2;
    // Every value is written and half are written over: no branch can be foretold here.
    let mut excess = vec![0.0; sample.mu.len()];
    let mut kept = 0;
    for (phi, &mu) in sample.phi.iter().zip(&sample.mu) {
        excess[kept] = (phi / c - 1.0) / mu;
        kept += usize::from(mu >= middle);
    }
    median(&excess[..kept]).max(0.0)
}

/// (d0, s02) of the scaled inverse chi-square law of the dispersions `s`, by the moments of their logarithm.
fn prior(mut s: Vec<f64>, df: f64) -> (f64, f64) {
    let middle = median(&s);
    let smallest = SMALLEST_OF_MEDIAN * if middle > 0.0 { middle } else { 1.0 };
    pulp::Arch::new().dispatch(Logarithms { values: &mut s, smallest });
    let n = s.len() as f64;
    let mean_ln = lane_sum(&s, |v| v) / n;
    let variance = lane_sum(&s, |v| (v - mean_ln) * (v - mean_ln)) / (n - 1.0);
    let mean = mean_ln - digamma(0.5 * df) + libm::log(0.5 * df);
    let beyond_sampling = variance - trigamma(0.5 * df);
    if beyond_sampling > 0.0 {
        let d0 = 2.0 * trigamma_inverse(beyond_sampling);
        (d0, libm::exp(mean + digamma(0.5 * d0) - libm::log(0.5 * d0)))
    } else {
        (f64::INFINITY, libm::exp(mean))
    }
}

/// The logarithm in place of each value, which counts as at least `smallest`; compiled for each width of vectors.
struct Logarithms<'a> {
    values: &'a mut [f64],
    smallest: f64,
}

impl pulp::NullaryFnOnce for Logarithms<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for value in self.values {
            *value = ln_normal(value.max(self.smallest));
        }
    }
}

/// The sum of `f` over `values` in eight interleaved lanes: a fixed order that also vectorises.
fn lane_sum(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let mut chunks = values.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f(value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane += f(value);
    }
    ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: moderated dispersion keeps order among functions of equal count, and lies above the floor.
        #[test]
        fn moderation_shrinks(phi in vec(0.01..50.0_f64, 25), df in 1.0..100.0_f64) {
            let result = moderate(&phi, &[10.0; 25], df);
            for i in 0..25 {
                prop_assert!(result.phi[i] >= 1.0);
                prop_assert!((0..25).all(|j| phi[j] > phi[i] || result.phi[j] <= result.phi[i]));
            }
        }
    }
}
