//! Does a level differ between the pods of two arms? For what is measured of a pod and is no count: bytes a request, bytes in use,
//! how fast they grow.
//!
//! The pod is the replicate; each arm has a variance of its own (Welch 1947), relative to its level in a ratio, and pods are compared within strata. Each value is
//! first divided by its stratum's level (for a ratio), or less it (for a difference), so that a stratum with one pod an arm still
//! says how much pods vary. An arm whose pods happen to agree is not taken for quieter than both arms together, and takes one degree
//! of freedom from the other with that, so that two pods can say something; one that varies more is taken as it is. With all degrees of
//! freedom of both arms, two pods that vary more than the base's would be significant at .001 in 3 of 100 runs. A ratio is tested as
//! head - r base, so that zeros need no rule; its interval is Fieller's (1954), the test read backwards. The variance of an arm is never below what the counting of its samples alone gives: two pods that
//! happened to sample one allocation each do not agree by more than that.

use crate::arms::Arms;
use crate::number::length;
use crate::tails::{F1Tail, t_quantile};

/// Degrees of freedom that an arm takes from the other at most.
const TAKEN: f64 = 1.0;
/// No variance is below this: values of every pod may be equal.
const LEAST_VARIANCE: f64 = 1e-18;

/// The level of one pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodLevel {
    /// The level.
    pub value: f64,
    /// Its variance by counting alone; 0 if nothing was counted.
    pub counting: f64,
}

/// The pods of one stratum.
pub type StratumLevels = Arms<Vec<PodLevel>>;

/// How the levels of two arms differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// Mean level of each arm, weighted over strata as the change is.
    pub levels: Arms<f64>,
    scaled: Arms<Level>,
    is_ratio: bool,
    df: f64,
}

/// The mean of an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    mean: f64,
    variance: f64,
    df: f64,
}

/// The mean of an arm, and how much its pods vary.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    /// Variance of one pod.
    of_a_pod: f64,
    /// Sum of the squares of shares: what the mean has of that variance.
    squares: f64,
    /// Variance of the mean by counting alone.
    counting: f64,
    df: f64,
}

impl LevelChange {
    /// Head over base, for levels of at least 0. `None` unless both arms have two pods, in strata where both have one, and some
    /// level is above 0. A stratum without any level above 0 is left out.
    ///
    /// ```
    /// use fleetdiff_statistics::arms::Arms;
    /// use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel};
    /// let pods = |values: &[f64]| values.iter().map(|&value| PodLevel { value, counting: 0.0 }).collect();
    /// let change = LevelChange::ratio(&[Arms { head: pods(&[3.9, 4.1]), base: pods(&[1.9, 2.0, 2.1]) }]).unwrap();
    /// assert!((change.value() - 2.0).abs() < 1e-12 && change.ln_p() < -5.0);
    /// ```
    #[must_use]
    pub fn ratio(strata: &[StratumLevels]) -> Option<Self> {
        Self::of(strata, true)
    }

    /// Head less base. `None` unless both arms have two pods, in strata where both have one.
    #[must_use]
    pub fn difference(strata: &[StratumLevels]) -> Option<Self> {
        Self::of(strata, false)
    }

    fn of(strata: &[StratumLevels], is_ratio: bool) -> Option<Self> {
        let centre = |stratum: &StratumLevels| 0.5 * (mean(&stratum.head) + mean(&stratum.base));
        let shared: Vec<&StratumLevels> = strata
            .iter()
            .filter(|stratum| !stratum.head.is_empty() && !stratum.base.is_empty())
            .filter(|stratum| !is_ratio || centre(stratum) > 0.0)
            .collect();
        let weight = |stratum: &StratumLevels| {
            let (head, base) = (length(stratum.head.len()), length(stratum.base.len()));
            head * base / (head + base)
        };
        let all: f64 = shared.iter().map(|stratum| weight(stratum)).sum();
        let arm = |of: fn(&StratumLevels) -> &[PodLevel]| {
            let pods = shared.iter().flat_map(|stratum| {
                let (centre, share) = (centre(stratum), weight(stratum) / all / length(of(stratum).len()));
                of(stratum).iter().map(move |pod| {
                    let scaled = if is_ratio {
                        PodLevel { value: pod.value / centre, counting: pod.counting / square(centre) }
                    } else {
                        PodLevel { value: pod.value - centre, ..*pod }
                    };
                    (share, scaled)
                })
            });
            let plain = shared.iter().map(|stratum| weight(stratum) / all * mean(of(stratum))).sum::<f64>();
            spread(&pods.collect::<Vec<_>>()).map(|spread| (plain, spread))
        };
        let (head, base) = (arm(|stratum| &stratum.head)?, arm(|stratum| &stratum.base)?);
        let scaled = together(head.1, base.1, is_ratio);
        let (one, two) = (scaled.head.variance, scaled.base.variance);
        let df = square(one + two) / (square(one) / scaled.head.df + square(two) / scaled.base.df);
        Some(Self { levels: Arms { head: head.0, base: base.0 }, scaled, is_ratio, df })
    }

    /// The ratio, infinite if the base has none; or the difference.
    #[must_use]
    pub fn value(&self) -> f64 {
        let Arms { head, base } = &self.scaled;
        if self.is_ratio { head.mean / base.mean } else { head.mean - base.mean }
    }

    /// Variance of ln of the ratio; an arm without a level adds nothing to it.
    #[must_use]
    pub fn variance_of_ln(&self) -> f64 {
        let Arms { head, base } = &self.scaled;
        [head, base].into_iter().filter(|arm| arm.mean > 0.0).map(|arm| arm.variance / square(arm.mean)).sum()
    }

    /// Variance of the difference of the scaled levels.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.scaled.head.variance + self.scaled.base.variance
    }

    /// By how many standard errors a change is different at this level, for example .95.
    #[must_use]
    pub fn errors(&self, level: f64) -> f64 {
        t_quantile(level, self.df)
    }

    /// ln p of no change.
    #[must_use]
    pub fn ln_p(&self) -> f64 {
        let Arms { head, base } = &self.scaled;
        F1Tail::new(self.df).ln_tail(square(head.mean - base.mean) / self.variance())
    }

    /// The interval of this level, for example .95. That of a ratio begins at 0 or above, and has no end if the base may be 0.
    #[must_use]
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let Arms { head, base } = &self.scaled;
        let critical = F1Tail::new(self.df).critical(libm::log1p(-level));
        if !self.is_ratio {
            let reach = libm::sqrt(critical * self.variance());
            return (self.value() - reach, self.value() + reach);
        }
        // Where (head - r base)^2 = critical (variance of head + r^2 that of base).
        let (a, b) = (square(base.mean) - critical * base.variance, head.mean * base.mean);
        let c = square(head.mean) - critical * head.variance;
        let root = libm::sqrt((b * b - a * c).max(0.0));
        (if c > 0.0 { c / (b + root) } else { 0.0 }, if a > 0.0 { (b + root) / a } else { f64::INFINITY })
    }
}

fn square(x: f64) -> f64 {
    x * x
}

fn mean(pods: &[PodLevel]) -> f64 {
    pods.iter().map(|pod| pod.value).sum::<f64>() / length(pods.len())
}

/// Mean and variance of both arms.
fn together(head: Spread, base: Spread, is_ratio: bool) -> Arms<Level> {
    let scale = |arm: &Spread| if is_ratio { square(arm.mean) } else { 1.0 };
    let relative = |arm: &Spread| arm.of_a_pod / scale(arm);
    let df = head.df + base.df;
    let pooled = (head.df * relative(&head) + base.df * relative(&base)) / df;
    let level = |arm: Spread| {
        // NB: without a level, an arm of a ratio has no relative spread, and none is shared.
        let (of_a_pod, df) = if relative(&arm) < pooled {
            (pooled * scale(&arm), arm.df + (df - arm.df).min(TAKEN))
        } else {
            (arm.of_a_pod, arm.df)
        };
        let variance = (of_a_pod * arm.squares).max(arm.counting).max(LEAST_VARIANCE);
        Level { mean: arm.mean, variance, df }
    };
    Arms { head: level(head), base: level(base) }
}

/// The mean of pods by their shares, which add up to 1, the variance of a pod and the degrees of freedom of that (Satterthwaite, exact
/// for pods that vary equally: one less than there are pods if their shares are equal). `None` for one pod.
fn spread(pods: &[(f64, PodLevel)]) -> Option<Spread> {
    if pods.len() < 2 {
        return None;
    }
    let mean: f64 = pods.iter().map(|(share, pod)| share * pod.value).sum();
    let squares: f64 = pods.iter().map(|(share, _)| square(*share)).sum();
    // A residual has this part of its pod's variance; the rest is in the mean.
    let left = |share: f64| 1.0 - 2.0 * share + squares;
    let weight = |share: f64| square(share) / left(share);
    let between: f64 = pods.iter().map(|(share, pod)| weight(*share) * square(pod.value - mean)).sum();
    let counting: f64 = pods.iter().map(|(share, pod)| square(*share) * pod.counting).sum();
    let mut spread = 0.0;
    for (i, (one, _)) in pods.iter().enumerate() {
        for (j, (two, _)) in pods.iter().enumerate() {
            let shared = if i == j { left(*one) } else { squares - one - two };
            spread += weight(*one) * weight(*two) * square(shared);
        }
    }
    Some(Spread { mean, of_a_pod: between / squares, squares, counting, df: square(squares) / spread })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(values: &[f64]) -> Vec<PodLevel> {
        values.iter().map(|&value| PodLevel { value, counting: 0.0 }).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    #[test]
    fn the_quieter_arm_borrows_the_spread_of_both() {
        let strata = [Arms { head: pods(&[3.0, 4.0, 6.0]), base: pods(&[1.0, 2.0, 2.5, 3.5]) }];
        let change = LevelChange::difference(&strata).unwrap();
        // By hand: variances of a pod 7/3 (2 df) and 13/12 (3 df), for which 19/12 of both together is taken, with one df more.
        assert!(close(change.df, 4.0316194374845615), "{}", change.df);
        assert!(close(change.value(), 13.0 / 3.0 - 2.25));
        let (low, high) = change.interval(0.95);
        assert!(low < 0.0 && high > 4.0 && change.ln_p() > libm::log(0.05));
    }

    #[test]
    fn the_interval_leaves_out_one_if_and_only_if_p_is_below_its_level() {
        for step in 0..200 {
            let shift = 1.0 + 0.01 * f64::from(step);
            let strata = [
                Arms { head: pods(&[2.0 * shift, 2.3 * shift]), base: pods(&[2.1, 1.8, 2.2]) },
                Arms { head: pods(&[9.0 * shift]), base: pods(&[8.5]) },
            ];
            let change = LevelChange::ratio(&strata).unwrap();
            let (low, high) = change.interval(0.95);
            assert_eq!(change.ln_p() < libm::log(0.05), low > 1.0 || high < 1.0, "{shift}: {low} to {high}");
            assert!(low <= change.value() && change.value() <= high);
        }
    }

    #[test]
    fn zeros_need_no_rule() {
        let counted = |value: f64| PodLevel { value, counting: value * value };
        let strata = [Arms { head: vec![counted(1.0); 2], base: vec![counted(0.0); 2] }];
        let change = LevelChange::ratio(&strata).unwrap();
        assert!(change.ln_p() > libm::log(0.1), "one sample in each of two pods is no finding");
        assert_eq!((change.value(), change.interval(0.95).1), (f64::INFINITY, f64::INFINITY));
        assert!(LevelChange::ratio(&[Arms { head: pods(&[0.0, 0.0]), base: pods(&[0.0, 0.0]) }]).is_none());
        assert!(LevelChange::ratio(&[Arms { head: pods(&[1.0]), base: pods(&[1.0, 2.0]) }]).is_none());
    }

    #[test]
    fn strata_with_one_pod_an_arm_say_how_much_pods_vary() {
        let strata = |factor: f64| {
            [(1.0, 1.02), (5.0, 4.9), (20.0, 20.3)]
                .map(|(head, base)| Arms { head: pods(&[head * factor]), base: pods(&[base]) })
        };
        assert!(LevelChange::ratio(&strata(1.0)).unwrap().ln_p() > libm::log(0.2));
        let change = LevelChange::ratio(&strata(2.0)).unwrap();
        assert!(change.ln_p() < libm::log(0.001) && (change.value() - 2.0).abs() < 0.05, "{change:?}");
    }
}
