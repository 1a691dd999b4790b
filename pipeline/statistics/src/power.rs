//! How small a change can be seen, and how long until a given one can be known.
//!
//! The variance of a log ratio has a part that samples shrink, (1-f)/(f s), and a part that only more pods shrink, tau^2. Where
//! the second alone is too large, no time is enough, and that is said, with the number of pods that would be.

use crate::special::normal_quantile;

/// More pods than this are no advice.
const MOST_PODS: u32 = 1_000_000;

/// What a study of one function consists of.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// How many standard errors a change must measure, see [`detection_z`].
    pub z: f64,
    /// Pods of the head arm.
    pub head_pods: f64,
    /// Pods of the base arm.
    pub base_pods: f64,
    /// The function's share of its cell's samples, in (0, 1).
    pub share: f64,
    /// Variance between pods of the log share (tau squared).
    pub tau2: f64,
}

/// z of the level plus z of the power: 3.89 + .84 for 1e-4 and .8. `alpha`, in (0, 1), is the two-sided level of the single test
/// (1e-4 stands for the multiplicity of some thousand rows), `power`, in (0, 1), the probability with which the change is to be
/// found.
#[must_use]
pub fn detection_z(alpha: f64, power: f64) -> f64 {
    -normal_quantile(0.5 * alpha) + normal_quantile(power)
}

impl Design {
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
        self.z * libm::sqrt(variance)
    }

    /// Seconds until a change by the factor `ratio` is found, at `rate` samples a pod and second; infinite where the spread
    /// between pods alone hides it, and only more pods can help.
    ///
    /// (1-f) / (f rate (ln^2 r / (z^2 (1/K1 + 1/K0)) - tau^2)). Checked against SciPy (`power.json`) to 1e-9.
    #[must_use]
    pub fn seconds_to_detect(&self, rate: f64, ratio: f64) -> f64 {
        let (z, ln_ratio) = (self.z, libm::log(ratio));
        let room = ln_ratio * ln_ratio / (z * z * self.harmonic()) - self.tau2;
        if room > 0.0 { (1.0 - self.share) / (self.share * rate * room) } else { f64::INFINITY }
    }

    /// The fewest more head pods with which a change by the factor `ratio` is found within `seconds` (infinite: at all), at `rate`
    /// samples a pod and second; 0 if it is found as it is, none if a million more do not help, since the base is too small.
    ///
    /// [`Design::seconds_to_detect`] solved for K1: 1/K1 <= ln^2 r / (z^2 (tau^2 + (1-f)/(f rate seconds))) - 1/K0, then put right
    /// by trying.
    #[must_use]
    pub fn pods_needed(&self, rate: f64, ratio: f64, seconds: f64) -> Option<u32> {
        let found = |more: u32| {
            let with = Self { head_pods: self.head_pods + f64::from(more), ..*self }.seconds_to_detect(rate, ratio);
            with.is_finite() && with <= seconds
        };
        if found(0) {
            return Some(0);
        }
        let (z, ln_ratio) = (self.z, libm::log(ratio));
        let variance = self.tau2 + (1.0 - self.share) / (self.share * rate * seconds);
        let room = ln_ratio * ln_ratio / (z * z * variance) - 1.0 / self.base_pods;
        let mut more = whole_pods(1.0 / room - self.head_pods)?;
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
