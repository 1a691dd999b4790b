//! Whether a change of memory in use may be nothing but the effect of age: the processes of one arm have run longer.
//!
//! A process fills its memory as it runs, for longer than it is young: caches and pools fill up to a limit, what is never freed grows in
//! proportion to time. At age a, memory that grows at most in proportion to time and ever more slowly lies between a/b times that at a
//! later age b, and that; so a function's share may differ by up to b/a while the code is the same. What it grows by differs by at most
//! 1/a - 1/b if it follows a power of age or nears a limit exponentially. A build that was just deployed runs beside one that has run for days: what is
//! larger than that can be said of it, and nothing else.

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};

use super::arm_facts::ArmFacts;
use super::gap::differ;

/// How much longer the processes of the head have run than those of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeGap {
    /// ln of the ratio of ages; 0 where they do not differ.
    ln_ratio: f64,
    /// 1 over the head's age less 1 over the base's, an hour.
    growth: f64,
}

impl AgeGap {
    /// Of head and base, in the middle of the time in which both have samples; `hop` is closing.
    pub fn of(arms: &[ArmFacts<'_>; 2], clock: HopClock, hop: Hop) -> Self {
        let Some(begin) = arms.iter().map(ArmFacts::first_active).max().flatten() else { return Self::default() };
        let (begin, end) = (clock.start_of(begin), clock.end_of(hop));
        let middle = Nanos(begin.0 + (end.0 - begin.0) / 2);
        let hours = |arm: &ArmFacts<'_>| {
            let age = arm.median(|pod| pod.age(middle))?.max(clock.length_of(1).0);
            Some(float(u64::try_from(age).ok()?) / 3.6e12)
        };
        let [Some(head), Some(base)] = arms.each_ref().map(hours) else { return Self::default() };
        if !differ(head, base) {
            return Self::default();
        }
        Self { ln_ratio: libm::log(head / base), growth: 1.0 / head - 1.0 / base }
    }

    /// By how much ln of a share may differ, in either direction.
    pub(super) fn of_shares(self) -> f64 {
        self.ln_ratio.abs()
    }

    /// By how much ln of what a pod holds may differ in the direction of `ln_ratio`: what has run longer holds more.
    pub(super) fn of_levels(self, ln_ratio: f64) -> f64 {
        if ln_ratio * self.ln_ratio > 0.0 { self.ln_ratio.abs() } else { 0.0 }
    }

    /// By how much growth an hour may differ in the direction of `difference`: what has run longer grows less.
    pub(super) fn of_growth(self, difference: f64) -> f64 {
        if difference * self.growth > 0.0 { self.growth.abs() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_holds_more_and_grows_less() {
        let hours = |head: f64, base: f64| AgeGap { ln_ratio: libm::log(head / base), growth: 1.0 / head - 1.0 / base };
        let canary = hours(0.5, 8.0);
        assert!((canary.of_shares() - libm::log(16.0)).abs() < 1e-12);
        assert!(canary.of_levels(-1.0) > 2.7 && canary.of_levels(1.0) <= 0.0, "it may hold less, not more");
        assert!((canary.of_growth(0.4) - 1.875).abs() < 1e-12 && canary.of_growth(-0.4) <= 0.0);
        let restarted = hours(8.0, 0.5);
        assert!(restarted.of_levels(1.0) > 2.7 && restarted.of_growth(-0.4) > 1.8);
    }

    /// Memory of one code at ages a < b, for powers of age and for what nears a limit.
    #[test]
    fn law_age_alone_explains_no_more() {
        type Curve = fn(f64, f64) -> f64;
        let curves: [(&str, Curve); 2] =
            [("power", |age, x| libm::pow(age, x.min(1.0))), ("limit", |age, x| -libm::expm1(-age / (8.0 * x)))];
        for (name, memory) in curves {
            for (a, b) in [(0.1, 0.2), (0.25, 4.0), (0.5, 100.0), (3.0, 4.5)] {
                for step in 1..=40 {
                    let x = 0.03 * f64::from(step);
                    let gap = AgeGap { ln_ratio: libm::log(a / b), growth: 1.0 / a - 1.0 / b };
                    let ratio = libm::log(memory(a, x) / memory(b, x));
                    assert!(ratio <= 1e-12 && -ratio <= gap.of_levels(ratio) + 1e-12, "{name} {a} {b} {x}: {ratio}");
                    let growth = |age: f64| libm::log(memory(age * 1.0001, x) / memory(age, x)) / (age * 0.0001);
                    let more = growth(a) - growth(b);
                    assert!(more <= gap.of_growth(more) + 1e-3 / a, "{name} {a} {b} {x}: {more}");
                }
            }
        }
    }
}
