//! How small a change can be seen, and how long until a given one can be known.
//!
//! The variance of a log ratio has a part that samples shrink, (1-f)/(f s), and a part that only more pods shrink, tau^2. Where
//! the second alone is too large, no time is enough, and that is said.

use crate::statistics::special::normal_quantile;

/// What a study of one function consists of.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Two-sided level of the single test, in (0, 1); 1e-4 stands for the multiplicity of some thousand rows.
    pub alpha: f64,
    /// The probability with which the change is to be found, in (0, 1).
    pub power: f64,
    /// Pods of the head arm.
    pub head_pods: f64,
    /// Pods of the base arm.
    pub base_pods: f64,
    /// The function's share of its cell's samples, in (0, 1).
    pub share: f64,
    /// Variance between pods of the log share (tau squared).
    pub tau2: f64,
}

impl Design {
    /// z of the level plus z of the power: 3.89 + .84 for 1e-4 and .8.
    fn z(&self) -> f64 {
        -normal_quantile(0.5 * self.alpha) + normal_quantile(self.power)
    }

    fn harmonic(&self) -> f64 {
        1.0 / self.head_pods + 1.0 / self.base_pods
    }

    /// The smallest |ln ratio| that is found, after `samples_per_pod` samples a pod.
    ///
    /// (z_(1-alpha/2) + z_power) sqrt((tau^2 + (1-f)/(f s)) (1/K1 + 1/K0)). Assumes pods of similar size. Checked against SciPy
    /// (`power.json`) to 1e-9.
    #[must_use]
    pub fn mde(&self, samples_per_pod: f64) -> f64 {
        let variance = (self.tau2 + (1.0 - self.share) / (self.share * samples_per_pod)) * self.harmonic();
        self.z() * libm::sqrt(variance)
    }

    /// Seconds until a change by the factor `ratio` is found, at `rate` samples a pod and second; infinite where the spread
    /// between pods alone hides it, and only more pods can help.
    ///
    /// (1-f) / (f rate (ln^2 r / (z^2 (1/K1 + 1/K0)) - tau^2)). Checked against SciPy (`power.json`) to 1e-9.
    #[must_use]
    pub fn seconds_to_detect(&self, rate: f64, ratio: f64) -> f64 {
        let (z, ln_ratio) = (self.z(), libm::log(ratio));
        let room = ln_ratio * ln_ratio / (z * z * self.harmonic()) - self.tau2;
        if room > 0.0 { (1.0 - self.share) / (self.share * rate * room) } else { f64::INFINITY }
    }
}
