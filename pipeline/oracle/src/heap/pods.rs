//! The pods of a cell that are compared, and their figures: items 1 to 5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Hardware};
use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::rows::{Interval, LevelFace};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, Support};

use crate::counts::{BASE, HEAD, Held, Holder};
use crate::loads::{Differences, Made};
use crate::statistics::pod_levels::{Bucket, Change};
use crate::timeline::Open;

/// A function by the column of a kind of count, or all.
pub(super) type Figure<'a> = Option<(&'a str, usize)>;

/// What a pod did where both arms ran.
pub(crate) type Pod = Vec<Held>;

/// By hardware and arm: the pods of each bucket.
pub(crate) struct Pods<'a> {
    pub(crate) config: &'a Config,
    /// What the arms differ in that may make a change.
    pub(crate) differ: Differences,
    pub(crate) strata: BTreeMap<Hardware, [BTreeMap<u8, Vec<Pod>>; 2]>,
}

/// Between which values nothing changed.
pub(crate) fn limits(is_slope: bool) -> (f64, f64) {
    if is_slope { (-0.1, 0.1) } else { (1.0 / 1.05, 1.05) }
}

/// What a pod served from its first hop with samples to its last.
pub(crate) fn requests_of(pod: &Pod) -> u64 {
    let counted: Vec<Hop> = pod.iter().filter(|one| one.samples > 0).map(|one| one.own).collect();
    let (first, last) = (counted.iter().min(), counted.iter().max());
    let during = pod.iter().filter(|one| first <= Some(&one.own) && Some(&one.own) <= last);
    during.map(|one| one.requests).sum()
}

/// Samples and bytes.
fn sums(held: &Held, what: Figure<'_>) -> (u64, u64) {
    let Some((name, column)) = what else { return (held.samples, held.bytes) };
    held.functions.get(name).map_or((0, 0), |sums| (sums[column], sums[2 + column]))
}

impl<'a> Pods<'a> {
    /// Item 1.
    pub(crate) fn of(config: &'a Config, open: &Open, held: &[(&Holder, &Vec<Held>)]) -> Self {
        let arm_of = |build: &Build| if *build == open.head { HEAD } else { BASE };
        let counted = |place: &(Hardware, bool), arm: usize| -> Vec<(u8, Hop)> {
            let mut counted = Vec::new();
            for ((_, _, build, here, bucket, _), profiles) in held {
                if here == place && arm_of(build) == arm {
                    counted.extend(profiles.iter().filter(|one| one.samples > 0).map(|one| (*bucket, one.own)));
                }
            }
            counted
        };
        let places: BTreeSet<&(Hardware, bool)> = held.iter().map(|((_, _, _, place, ..), _)| place).collect();
        let mut best: BTreeMap<&Hardware, (usize, bool, Hop, Hop)> = BTreeMap::new();
        for place in places {
            let arms = [HEAD, BASE].map(|arm| counted(place, arm));
            let first = arms.each_ref().map(|arm| arm.iter().map(|(_, own)| *own).min());
            let last = arms.each_ref().map(|arm| arm.iter().map(|(_, own)| *own).max());
            let ([Some(a), Some(b)], [Some(c), Some(d)]) = (first, last) else { continue };
            let (first, last) = (a.max(b), c.min(d));
            if first > last {
                continue;
            }
            let buckets = arms.map(|arm| {
                let within = arm.into_iter().filter(|(_, own)| first <= *own && *own <= last);
                within.map(|(bucket, _)| bucket).collect::<BTreeSet<u8>>().len()
            });
            let fewer = buckets[0].min(buckets[1]);
            // Old places come first.
            if best.get(&place.0).is_none_or(|(known, ..)| fewer > *known) {
                best.insert(&place.0, (fewer, place.1, first, last));
            }
        }
        let mut strata: BTreeMap<Hardware, [BTreeMap<u8, Vec<Pod>>; 2]> = BTreeMap::new();
        for ((_, _, build, (hardware, young), bucket, _), profiles) in held {
            let Some((_, _, first, last)) = best.get(hardware).filter(|(_, age, ..)| age == young) else { continue };
            let within = profiles.iter().filter(|one| *first <= one.own && one.own <= *last);
            let mut pod: Pod = within.cloned().collect();
            pod.sort_by_key(|one| one.own);
            if pod.iter().any(|one| one.samples > 0) {
                let arms = strata.entry(hardware.clone()).or_default();
                arms[arm_of(build)].entry(*bucket).or_default().push(pod);
            }
        }
        Self { config, differ: Differences::default(), strata }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Held> {
        self.strata.values().flatten().flat_map(BTreeMap::values).flatten().flatten()
    }

    /// Names of functions.
    pub(crate) fn names(&self) -> BTreeSet<Arc<str>> {
        self.all().flat_map(|held| held.functions.keys().cloned()).collect()
    }

    /// Item 6.
    pub(super) fn is_tested(&self, what: Figure<'_>) -> bool {
        let samples: u64 = self.all().map(|held| sums(held, what).0).sum();
        what.is_none() || samples >= self.config.min_count.max(1)
    }

    /// How many buckets the figure rests on.
    pub(super) fn support(&self, face: &LevelFace) -> Support {
        let of_arm = |arm: usize| self.strata.values().map(|arms| arms[arm].len()).sum::<usize>();
        match of_arm(HEAD).min(of_arm(BASE)) {
            5.. => Support::Firm,
            2.. if face.change.is_some() => Support::Tentative,
            _ => Support::Untestable,
        }
    }

    /// Item 2.
    pub(super) fn allocation(&self, what: Figure<'_>) -> LevelFace {
        let pods = || self.strata.values().flatten().flat_map(BTreeMap::values).flatten();
        let missing = if self.strata.is_empty() || pods().any(|pod| requests_of(pod) > 0) {
            LevelReason::FewPods
        } else {
            LevelReason::NoRequests
        };
        let measure = |bucket: &[Pod]| {
            let requests: u64 = bucket.iter().map(requests_of).sum();
            let both = bucket.iter().flatten().map(|held| sums(held, what));
            let (samples, bytes) = both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let level = float(bytes) / float(requests);
            (requests > 0).then(|| (level, if samples > 0 { level * level / float(samples) } else { 0.0 }))
        };
        self.face(&measure, missing, false)
    }

    /// Item 3.
    pub(super) fn in_use(&self, what: Figure<'_>) -> LevelFace {
        let measure = |bucket: &[Pod]| {
            let of_pod = |pod: &Pod| {
                let snapshots = length_float(pod.iter().filter(|one| one.samples > 0).count());
                let both = pod.iter().map(|held| sums(held, what));
                let (samples, bytes) = both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                let level = float(bytes) / snapshots;
                (level, if samples > 0 { level * level / (float(samples) / snapshots) } else { 0.0 })
            };
            let pods: Vec<(f64, f64)> = bucket.iter().map(of_pod).collect();
            let number = length_float(pods.len());
            let level = pods.iter().map(|(level, _)| level).sum::<f64>() / number;
            Some((level, pods.iter().map(|(_, counting)| counting).sum::<f64>() / number.powi(2)))
        };
        self.face(&measure, LevelReason::FewPods, false)
    }

    /// Item 4.
    pub(super) fn growth(&self, what: Figure<'_>) -> LevelFace {
        let clock = self.config.clock();
        let of_pod = |pod: &Pod| {
            let snapshots: Vec<&Held> = pod.iter().filter(|one| one.samples > 0).collect();
            let (first, last) = (snapshots.first()?.own, snapshots.last()?.own);
            let points: Option<Vec<(f64, f64)>> = snapshots
                .iter()
                .map(|one| {
                    let bytes = sums(one, what).1;
                    let hours = clock.length_of(one.own.0 - first.0).as_seconds() / 3600.0;
                    (bytes > 0).then(|| (hours, float(bytes).ln()))
                })
                .collect();
            let points = points.filter(|points| points.len() >= 3)?;
            if clock.length_of(last.0 - first.0) < Nanos::from_seconds(300) {
                return None;
            }
            let mean = points.iter().map(|(t, _)| t).sum::<f64>() / length_float(points.len());
            let spread: f64 = points.iter().map(|(t, _)| (t - mean).powi(2)).sum();
            Some(points.iter().map(|(t, y)| (t - mean) * y).sum::<f64>() / spread)
        };
        let measure = |bucket: &[Pod]| {
            let slopes: Vec<f64> = bucket.iter().filter_map(of_pod).collect();
            (!slopes.is_empty()).then(|| (slopes.iter().sum::<f64>() / length_float(slopes.len()), 0.0))
        };
        self.face(&measure, LevelReason::NeedsTime, true)
    }

    /// Item 5, and what shows that nothing changed.
    fn face(&self, measure: &dyn Fn(&[Pod]) -> Option<Bucket>, missing: LevelReason, is_slope: bool) -> LevelFace {
        if !self.strata.is_empty() && self.all().all(|held| held.bytes == 0) {
            return LevelFace::unknown(LevelReason::NoValues);
        }
        let of_arm = |arm: &BTreeMap<u8, Vec<Pod>>| arm.values().filter_map(|pods| measure(pods)).collect::<Vec<_>>();
        let strata: Vec<[Vec<Bucket>; 2]> = self.strata.values().map(|arms| arms.each_ref().map(of_arm)).collect();
        let Some(change) = Change::of(&strata, !is_slope) else { return LevelFace::unknown(missing) };
        let mut face = face_of(&change, is_slope);
        let made = match is_slope {
            true => self.differ.of_growth(&change),
            false => self.differ.of_level(&change),
        };
        if face.direction == LevelDirection::Unknown {
            face.reason = made.map(Made::of_level).or(face.reason);
        }
        face
    }
}

/// A change as a row has it, in no family yet.
pub(crate) fn face_of(change: &Change, is_slope: bool) -> LevelFace {
    let ((low, high), (least, most)) = (change.interval(0.95), change.interval(0.90));
    let (from, to) = limits(is_slope);
    let flat = least >= from && most <= to;
    LevelFace {
        head: Some(change.levels[HEAD]),
        base: Some(change.levels[BASE]),
        change: Some(Interval { value: change.value(), low, high }),
        ln_p: Some(change.ln_p()),
        q_value: None,
        tests: None,
        direction: if flat { LevelDirection::Flat } else { LevelDirection::Unknown },
        reason: (!flat).then_some(LevelReason::Imprecise),
    }
}
