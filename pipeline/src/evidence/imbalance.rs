//! Arms that are hard to compare: their pods differ in load, age or machines.
//!
//! Strata compare the same machines at the same times, and warm-up is left out, so an imbalance does not make a row
//! wrong by itself. It shows a reader where to look first if a difference is real but not caused by the build. A
//! warning makes no row significant.

use std::collections::BTreeSet;
use std::fmt;

use fleetdiff_schemas::identity::Hardware;
use fleetdiff_schemas::time::{HopClock, Nanos};
use serde::{Deserialize, Serialize};

use super::arm_facts::{ArmFacts, Load};
use super::load::different_loads;
use super::splits::Property;

/// There is a warning if figures of the arms differ by more than this factor.
const FACTOR: u64 = 2;
/// A kind of machine is considered if at least one in this many pods of an arm runs on it.
const ONE_IN: u64 = 10;

/// One imbalance of the arms of a cell within the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Imbalance {
    /// Requests per second and pod, of the head and of the base.
    Load([f64; 2]),
    /// Median age of the pods, of the head and of the base.
    Age([Nanos; 2]),
    /// Pods on a kind of machine and pods in all, of the head and of the base.
    Machines(Hardware, [(u64, u64); 2]),
    /// Base pods come in groups that no label names.
    Groups,
    /// The arms differ in something that also divides the base's pods, and that no label names.
    Factor,
    /// The arms differ in a property that changes profiles: pods of the base differ by it.
    Telling(Property),
}

impl Imbalance {
    /// The imbalance in a few words.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        match self {
            Self::Load(_) => "requests a pod",
            Self::Age(_) => "age of pods",
            Self::Machines(..) => "hardware",
            Self::Groups => "groups of pods without a label",
            Self::Factor => "arms differ without a label",
            Self::Telling(Property::Age) => "age changes profiles",
            Self::Telling(Property::Size) => "size changes profiles",
        }
    }

    /// Whether what is significant may be false for it, so that nobody is paged.
    pub(crate) fn is_doubtful(&self) -> bool {
        matches!(self, Self::Groups | Self::Factor | Self::Telling(_))
    }
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject();
        match self {
            Self::Groups => write!(
                f,
                "{subject}: pods of the base come in groups, as if some shared nodes; they are fewer replicates than they \
                 seem, and what is significant may be false"
            ),
            Self::Factor => write!(
                f,
                "{subject}: head and base differ in something that also divides the pods of the base (hardware, pool or \
                 tenant); what is significant may be that"
            ),
            Self::Telling(Property::Age) => write!(
                f,
                "{subject}: older and younger pods of the base differ, and so do the arms in age; what is significant may be \
                 that"
            ),
            Self::Telling(Property::Size) => write!(
                f,
                "{subject}: pods of the base with many and with few samples differ, and so do the arms in samples a pod; what \
                 is significant may be that"
            ),
            Self::Load([head, base]) => write!(
                f,
                "{subject}: {head:.3}/s in the head, {base:.3}/s in the base; a change that is not shown to be larger may be \
                 the effect of load (load_differs)"
            ),
            Self::Age([head, base]) => write!(
                f,
                "{subject}: half of the head's are younger than {}, of the base's than {}",
                in_words(*head),
                in_words(*base)
            ),
            Self::Machines(hardware, [head, base]) => {
                write!(
                    f,
                    "{subject}: {} of {} pods of the head run on {hardware}, {} of {} of the base",
                    head.0, head.1, base.0, base.1
                )
            }
        }
    }
}

/// A length of time in the largest unit that it fills.
fn in_words(length: Nanos) -> String {
    let seconds = length.as_seconds();
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// In what the pods of the two arms differ by more than a factor of 2 (load: 4/3) within the window; nothing if an arm has no pods.
pub fn imbalance(arms: &[ArmFacts<'_>; 2], clock: HopClock, now: Nanos) -> Vec<Imbalance> {
    let [head, base] = arms;
    if head.pods.is_empty() || base.pods.is_empty() {
        return Vec::new();
    }
    let mut imbalance = Vec::new();
    let a_second = |load: Load| load.mean / clock.length_of(1).as_seconds();
    imbalance.extend(different_loads(arms).map(|loads| Imbalance::Load(loads.map(a_second))));
    let ages = [head, base].map(|arm| Nanos(arm.median(|pod| pod.age(now)).unwrap_or(0)));
    let times = |age: Nanos| age.0.saturating_mul(i64::try_from(FACTOR).unwrap_or(i64::MAX));
    if ages[0].0 > times(ages[1]) || ages[1].0 > times(ages[0]) {
        imbalance.push(Imbalance::Age(ages));
    }
    let kinds: BTreeSet<&Hardware> = head.pods.values().chain(base.pods.values()).map(|pod| pod.hardware).collect();
    let mixed = kinds.into_iter().map(|kind| (kind, [head.on(kind), base.on(kind)])).filter(|(_, on)| differs(*on));
    imbalance.extend(mixed.map(|(kind, on)| Imbalance::Machines(kind.clone(), on)));
    imbalance
}

/// Whether two fractions differ by more than the factor, and at least one is large enough to matter.
fn differs([(head, heads), (base, bases)]: [(u64, u64); 2]) -> bool {
    let matters = ONE_IN * head >= heads || ONE_IN * base >= bases;
    matters && (head * bases > FACTOR * base * heads || base * heads > FACTOR * head * bases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_both_arms() {
        let words = [
            Imbalance::Load([12.0, 31.25]),
            Imbalance::Age([Nanos::from_seconds(720), Nanos::from_seconds(3 * 86_400)]),
            Imbalance::Machines("arm".into(), [(2, 20), (90, 180)]),
        ];
        assert_eq!(
            words.map(|imbalance| imbalance.to_string()),
            [
                "requests a pod: 12.000/s in the head, 31.250/s in the base; a change that is not shown to be larger may \
                 be the effect of load (load_differs)",
                "age of pods: half of the head's are younger than 12 min, of the base's than 3.0 days",
                "hardware: 2 of 20 pods of the head run on arm, 90 of 180 of the base",
            ]
        );
    }

    #[test]
    fn twice_is_not_more_than_twice_and_a_rare_kind_of_machine_is_no_mixture() {
        assert!(!differs([(2, 20), (36, 180)]));
        assert!(differs([(2, 20), (37, 180)]));
        assert!(differs([(0, 20), (18, 180)]), "a tenth of the base, and none of the head");
        assert!(!differs([(0, 20), (17, 180)]));
    }
}
