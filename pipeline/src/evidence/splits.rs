//! Properties by which the base's pods are divided, to see whether they change profiles: age and size.
//!
//! If older and younger pods of one build differ, an arm that is older differs for that alone, and likewise for size. Whether
//! they do is tested like head and base, by [the A/A check](crate::rules::aa_check); here is what is needed for it, and only of a
//! property in which the arms differ. Pods that share a node are in one bucket, so the split by hash is one by node.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use super::arm_facts::{ArmFacts, PodFacts};

/// The arms differ in a property if their medians differ by more than 3/2.
const FACTOR: [i128; 2] = [3, 2];

/// What pods differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Property {
    /// For how long their processes have run.
    Age,
    /// How many samples they have.
    Size,
}

/// The base's buckets, in two halves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// By what.
    pub property: Property,
    /// The half that began first, or has fewer samples.
    pub half: BTreeSet<u8>,
}

impl Property {
    /// In the order of its splits: by start and by samples.
    fn of(self, pod: &PodFacts<'_>) -> i128 {
        match self {
            Self::Age => i128::from(pod.started.0),
            Self::Size => i128::from(pod.samples),
        }
    }

    fn median(self, arm: &ArmFacts<'_>, now: Nanos) -> Option<i128> {
        arm.median(|pod| match self {
            Self::Age => i128::from(pod.age(now)),
            Self::Size => i128::from(pod.samples),
        })
    }
}

/// The splits of the base by properties in which the pods of the arms differ within the window; none of fewer than four buckets.
pub fn splits([head, base]: &[ArmFacts<'_>; 2], now: Nanos) -> Vec<Split> {
    let properties = [Property::Age, Property::Size].into_iter();
    let differing = properties.filter(|property| differ([head, base].map(|arm| property.median(arm, now))));
    differing.filter_map(|property| Some(Split { property, half: half(base, property)? })).collect()
}

fn differ([head, base]: [Option<i128>; 2]) -> bool {
    let exceeds = |one: i128, other: i128| one * FACTOR[1] > other * FACTOR[0];
    head.zip(base).is_some_and(|(head, base)| exceeds(head, base) || exceeds(base, head))
}

/// The first half of the buckets, by the mean of their pods.
fn half(arm: &ArmFacts<'_>, property: Property) -> Option<BTreeSet<u8>> {
    let mut buckets: BTreeMap<u8, (i128, i128)> = BTreeMap::new();
    for pod in arm.pods.values() {
        let (sum, number) = buckets.entry(pod.bucket).or_default();
        *sum += property.of(pod);
        *number += 1;
    }
    let mut order: Vec<(u8, (i128, i128))> = buckets.into_iter().collect();
    // NB: of equal means the bucket with the lower number comes first.
    order.sort_by(|(_, (a, a_pods)), (_, (b, b_pods))| (a * b_pods).cmp(&(b * a_pods)));
    let half = order.len() / 2;
    (half >= 2).then(|| order.into_iter().take(half).map(|(bucket, _)| bucket).collect())
}
