//! How small a change can be seen, and how long until a given one can be known.
//!
//! The variance of a log ratio has a part that samples shrink, (1-f)/(f s), and a part that only more pods shrink, tau^2. Where
//! the second alone is too large, no time is enough, and that is said, with the number of pods that would be.

use crate::arms::Arms;
use crate::special::normal_quantile;

/// More pods than this are no advice.
const MOST_PODS: u32 = 1_000_000;

/// What a study of one function consists of.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// How many standard errors a change must measure, see [`detection_z`].
    pub z: f64,
    /// Pods of each arm.
    pub pods: Arms<f64>,
    /// The function's share of its cell's samples, in (0, 1).
    pub share: f64,
    /// Variance between the pods of each arm of the log share (tau squared).
    pub tau2: Arms<f64>,
}

/// z of the level plus z of the power: 3.89 + .84 for 1e-4 and .8. `alpha`, in (0, 1), is the two-sided level of the single test
/// (1e-4 stands for the multiplicity of some thousand rows), `power`, in (0, 1), the probability with which the change is to be
/// found.
#[must_use]
pub fn detection_z(alpha: f64, power: f64) -> f64 {
    -normal_quantile(0.5 * alpha) + normal_quantile(power)
}

impl Design {
    /// 1/K1 + 1/K0.
    fn harmonic(&self) -> f64 {
        1.0 / self.pods.head + 1.0 / self.pods.base
    }

    /// The variance that no time takes away: tau1^2/K1 + tau0^2/K0.
    fn between(&self) -> f64 {
        self.tau2.head / self.pods.head + self.tau2.base / self.pods.base
    }

    /// The variance of counting of a pod, after `samples_per_pod`.
    fn counting(&self, samples_per_pod: f64) -> f64 {
        (1.0 - self.share) / (self.share * samples_per_pod)
    }

    /// The variance with which a change by the factor `ratio` is found.
    fn allowed(&self, ratio: f64) -> f64 {
        let ln_ratio = libm::log(ratio);
        ln_ratio * ln_ratio / (self.z * self.z)
    }

    /// The smallest |ln ratio| that is found, after `samples_per_pod` samples a pod.
    ///
    /// (z_(1-alpha/2) + z_power) sqrt((tau1^2 + (1-f)/(f s))/K1 + (tau0^2 + (1-f)/(f s))/K0). Assumes pods of similar size.
    /// Checked against SciPy (`power.json`) to 1e-9.
    #[must_use]
    pub fn mde(&self, samples_per_pod: f64) -> f64 {
        self.z * libm::sqrt(self.between() + self.counting(samples_per_pod) * self.harmonic())
    }

    /// Seconds until a change by the factor `ratio` is found, at `rate` samples a pod and second; infinite where the spread
    /// between pods alone hides it, and only more pods can help.
    ///
    /// (1-f) (1/K1 + 1/K0) / (f rate (ln^2 r/z^2 - tau1^2/K1 - tau0^2/K0)). Checked against SciPy (`power.json`) to 1e-9.
    #[must_use]
    pub fn seconds_to_detect(&self, rate: f64, ratio: f64) -> f64 {
        let room = self.allowed(ratio) - self.between();
        if room > 0.0 { self.counting(rate) * self.harmonic() / room } else { f64::INFINITY }
    }

    /// The fewest more head pods with which a change by the factor `ratio` is found within `seconds` (infinite: at all), at `rate`
    /// samples a pod and second; 0 if it is found as it is, none if a million more do not help, since the base is too small.
    ///
    /// [`Design::seconds_to_detect`] solved for K1: K1 >= (tau1^2 + c)/(ln^2 r/z^2 - (tau0^2 + c)/K0), c = (1-f)/(f rate seconds),
    /// then put right by trying.
    #[must_use]
    pub fn pods_needed(&self, rate: f64, ratio: f64, seconds: f64) -> Option<u32> {
        let found = |more: u32| {
            let pods = Arms { head: self.pods.head + f64::from(more), ..self.pods };
            let with = Self { pods, ..*self }.seconds_to_detect(rate, ratio);
            with.is_finite() && with <= seconds
        };
        if found(0) {
            return Some(0);
        }
        let counting = self.counting(rate * seconds);
        let room = self.allowed(ratio) - (self.tau2.base + counting) / self.pods.base;
        let mut more = whole_pods((self.tau2.head + counting) / room - self.pods.head)?;
        while more > 1 && found(more - 1) {
            more -= 1;
        }
        (more..=MOST_PODS).take(3).find(|&more| found(more))
    }
}

/// The next whole number from 1 on; none if it is not positive, not a number or more than a million.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and a million"
)]
fn whole_pods(pods: f64) -> Option<u32> {
    let pods = libm::ceil(pods);
    (pods > 0.0 && pods <= f64::from(MOST_PODS)).then_some(pods as u32)
}

/// The article's rule: samples of an arm from which a relative change `change` (.05) of a function with this `share` stands out
/// of the noise of independent samples by one standard deviation, 1/(f r^2).
///
/// A share of 1 % and a change of 5 % need 40,000. No level, no power, no pods: [`Design::seconds_to_detect`] is the honest
/// answer, this one is shown beside it. Infinite for no change or no share.
#[must_use]
pub fn samples_by_rule(share: f64, change: f64) -> f64 {
    1.0 / (share * change * change)
}
