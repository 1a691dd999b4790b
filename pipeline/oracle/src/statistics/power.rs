//! The change that can be seen, and what it takes to see more.

use std::sync::LazyLock;

use super::tails::z_two_sided;

/// The change that should be seen.
const RATIO: f64 = 1.05;

/// One function in two arms.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Pods by arm.
    pub pods: [f64; 2],
    /// Variance between the pods of each arm.
    pub tau2: [f64; 2],
    /// Part of the samples.
    pub share: f64,
}

impl Design {
    /// Variance of the log ratio that more samples cannot take away.
    fn between_pods(&self) -> f64 {
        self.tau2[0] / self.pods[0] + self.tau2[1] / self.pods[1]
    }

    /// Variance of counting, times samples per pod.
    fn of_counting(&self) -> f64 {
        (1.0 - self.share) / self.share * (1.0 / self.pods[0] + 1.0 / self.pods[1])
    }

    /// Smallest detectable |ln ratio| at alpha 1e-4 and power .8.
    pub fn smallest_detectable(&self, samples_per_pod: f64) -> f64 {
        power_quantiles() * (self.between_pods() + self.of_counting() / samples_per_pod).sqrt()
    }

    /// Seconds until a ratio of 1.05 is detected at alpha 1e-4 and power .8, with `rate` samples per pod and second;
    /// infinite if only more pods can help.
    pub fn seconds_to_detect(&self, rate: f64) -> f64 {
        let room = (RATIO.ln() / power_quantiles()).powi(2) - self.between_pods();
        if room <= 0.0 { f64::INFINITY } else { self.of_counting() / (rate * room) }
    }

    /// The fewest additional head pods with which a ratio of 1.05 is detected within `seconds`, if up to a million are
    /// enough.
    pub fn pods_needed(&self, rate: f64, seconds: f64) -> Option<i64> {
        let seen = |more: u32| {
            let with = Self { pods: [self.pods[0] + f64::from(more), self.pods[1]], ..*self };
            with.seconds_to_detect(rate) <= seconds
        };
        let (mut few, mut enough) = (0, 1_000_000);
        if seen(few) || !seen(enough) {
            return seen(few).then_some(0);
        }
        while enough - few > 1 {
            let middle = u32::midpoint(few, enough);
            *if seen(middle) { &mut enough } else { &mut few } = middle;
        }
        Some(i64::from(enough))
    }
}

/// Samples by the plain rule for a change of 5 %: 1 / (share x .05^2).
pub fn samples_needed(share: f64) -> f64 {
    1.0 / (share * 0.05 * 0.05)
}

fn power_quantiles() -> f64 {
    static SUM: LazyLock<f64> = LazyLock::new(|| z_two_sided(1e-4_f64.ln()) + z_two_sided(0.4_f64.ln()));
    *SUM
}
