//! What requests wait for in one cell: time off a processor, by the wall's clock or behind locks, and its sum with time on a processor.
//!
//! Pods are the replicates: the time of a bucket of pods, over what it served, is compared between head and base as memory is, on the
//! same hardware, at the same age and while both arms ran. [`crate::rules::waiting`] finds what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::profile::{CountKind, ProfileType, function_and_thread, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, LevelFace};
use fleetdiff_schemas::verdict::{LevelReason, Support, TimeMeasure, TimePer};
use fleetdiff_statistics::arms::{Arms, Side};
use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel};
use serde::{Deserialize, Serialize};

use super::gap::Gap;
use super::heap::{doubted, face, support};
use super::tally::{Concurrent, PodTally, Pods, column};
use crate::counts::cell::CellCounts;

/// Time of one function, of a thread, or of all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitingEvidence {
    /// Which time.
    pub measure: TimeMeasure,
    /// Self or total.
    pub count_kind: CountKind,
    /// Function name, or [`ALL_FUNCTIONS`].
    pub function: Arc<str>,
    /// The threads that it ran in.
    pub thread: Option<Arc<str>>,
    /// What the time is divided by.
    pub per: TimePer,
    /// The time.
    pub time: LevelFace,
    /// Its parts on a processor and off it, if it is the sum of these.
    pub parts: Option<[Arms<f64>; 2]>,
    /// Samples behind it.
    pub samples: Arms<u64>,
    /// How many pods it rests on.
    pub support: Support,
}

impl WaitingEvidence {
    /// What a change of the time off a processor says of a function in threads of this name.
    pub fn of_change(function: &str, thread: &str, change: LevelChange, samples: Arms<u64>) -> Self {
        Self {
            measure: TimeMeasure::OffCpu,
            count_kind: CountKind::SelfCount,
            function: function.into(),
            thread: Some(thread.into()),
            per: TimePer::Request,
            time: face(Ok(change), false),
            parts: None,
            samples,
            support: Support::Firm,
        }
    }
}

/// Which time profiles of a type measure, if it is waiting.
pub fn measure(kind: ProfileType) -> Option<TimeMeasure> {
    match kind {
        ProfileType::OffCpu => Some(TimeMeasure::OffCpu),
        ProfileType::Wall => Some(TimeMeasure::Wall),
        ProfileType::Mutex => Some(TimeMeasure::Mutex),
        ProfileType::Block => Some(TimeMeasure::Block),
        ProfileType::Cpu | ProfileType::Heap | ProfileType::LiveHeap => None,
    }
}

/// The evidence of a cell for a comparison, in no family yet. `cpu` are the counts of the same cell on processors. Nothing for profiles
/// of other types, and where the arms never ran at the same time. A change that load may have made, by `gap`, is none.
pub fn waiting_evidence(
    counts: &CellCounts,
    profile_type: ProfileType,
    cpu: Option<&CellCounts>,
    (id, gap): (&ComparisonId, Gap),
    config: &Config,
) -> Vec<WaitingEvidence> {
    let Some(measure) = measure(profile_type) else { return Vec::new() };
    let Some(waiting) = Leg::of(counts, id, config) else { return Vec::new() };
    let mut found = Compared::new(measure, vec![&waiting], gap, config).evidence();
    let cpu = cpu.filter(|_| measure == TimeMeasure::OffCpu).and_then(|cpu| Leg::of(cpu, id, config));
    if let Some(cpu) = &cpu {
        let both = Compared::new(TimeMeasure::CpuAndOffCpu, vec![cpu, &waiting], gap, config);
        found.extend(both.evidence());
    }
    found
}

/// What pods spent in profiles of one type.
struct Leg<'a> {
    counts: &'a CellCounts,
    pods: Pods,
}

impl<'a> Leg<'a> {
    fn of(counts: &'a CellCounts, id: &ComparisonId, config: &Config) -> Option<Self> {
        let pods = Concurrent::of(counts, id)?.pods(counts, config.clock(), false);
        Some(Self { counts, pods })
    }

    fn all_pods(&self) -> impl Iterator<Item = &PodTally> {
        self.pods.values().flat_map(BTreeMap::values).flatten()
    }

    /// The functions of these pods: number and name.
    fn functions(&self) -> BTreeMap<usize, Arc<str>> {
        let numbers: BTreeSet<usize> = self.all_pods().flat_map(|pod| pod.functions.keys().copied()).collect();
        let entries = self.counts.functions().entries();
        let name = |number: usize| entries.get(number).map(|(_, name)| (number, Arc::clone(name)));
        numbers.into_iter().filter_map(name).filter(|(_, name)| !is_of_several(name)).collect()
    }
}

/// Of which time, in one leg.
#[derive(Clone, Debug)]
enum Subject {
    All,
    /// Of functions, by their numbers.
    Functions(Vec<usize>, CountKind),
}

impl Subject {
    /// Nanoseconds and samples of a pod.
    fn figure(&self, pod: &PodTally) -> (u64, u64) {
        match self {
            Self::All => (pod.all.value, pod.all.samples),
            Self::Functions(numbers, kind) => {
                let sums = numbers.iter().filter_map(|number| pod.functions.get(number));
                let figures = sums.map(|sums| &sums[column(*kind)]);
                figures.fold((0, 0), |sum, one| (sum.0 + one.value, sum.1 + one.samples))
            }
        }
    }
}

/// Legs whose sum is compared.
struct Compared<'a> {
    measure: TimeMeasure,
    legs: Vec<&'a Leg<'a>>,
    per: TimePer,
    /// Whether the samples of each leg stand for time.
    is_timed: bool,
    gap: Gap,
    config: &'a Config,
}

/// A name, its thread, and where it is in each leg.
type Named = BTreeMap<(Option<Arc<str>>, Arc<str>), Vec<Vec<usize>>>;

impl<'a> Compared<'a> {
    fn new(measure: TimeMeasure, legs: Vec<&'a Leg<'a>>, gap: Gap, config: &'a Config) -> Self {
        let served = |leg: &&Leg<'_>| leg.all_pods().any(|pod| pod.requests > 0);
        let timed = |leg: &&Leg<'_>| leg.pods.is_empty() || leg.all_pods().any(|pod| pod.all.value > 0);
        let per = if legs.iter().all(served) { TimePer::Request } else { TimePer::Profile };
        Self { measure, per, is_timed: legs.iter().all(timed), legs, gap, config }
    }

    fn evidence(&self) -> Vec<WaitingEvidence> {
        let first = self.config.count_kinds.first().copied().unwrap_or(CountKind::SelfCount);
        let all: Vec<Subject> = self.legs.iter().map(|_| Subject::All).collect();
        let mut found = vec![self.of(first, (None, ALL_FUNCTIONS.into()), &all)];
        let named = self.named();
        let mut threads: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for ((thread, _), places) in &named {
            if let (Some(thread), [only]) = (thread, &places[..]) {
                threads.entry(Arc::clone(thread)).or_default().extend(only);
            }
        }
        for (thread, numbers) in threads {
            let own = [Subject::Functions(numbers, CountKind::SelfCount)];
            found.extend(self.tested(first, (Some(thread), ALL_FUNCTIONS.into()), &own));
        }
        for &kind in &self.config.count_kinds {
            for (name, places) in &named {
                let subjects: Vec<Subject> =
                    places.iter().map(|numbers| Subject::Functions(numbers.clone(), kind)).collect();
                found.extend(self.tested(kind, name.clone(), &subjects));
            }
        }
        found
    }

    /// Functions by thread and name; in a sum of legs those of all threads together.
    fn named(&self) -> Named {
        let mut named = Named::new();
        for (leg, pods) in self.legs.iter().enumerate() {
            for (number, name) in pods.functions() {
                let (function, thread) = function_and_thread(&name);
                let thread = thread.filter(|_| self.legs.len() == 1).map(Arc::from);
                let places =
                    named.entry((thread, function.into())).or_insert_with(|| vec![Vec::new(); self.legs.len()]);
                places[leg].push(number);
            }
        }
        named
    }

    /// The evidence of what has enough samples, and a level.
    fn tested(
        &self,
        kind: CountKind,
        name: (Option<Arc<str>>, Arc<str>),
        subjects: &[Subject],
    ) -> Option<WaitingEvidence> {
        let samples = self.samples(subjects);
        let enough = samples.head + samples.base >= self.config.min_count.max(1);
        enough.then(|| self.of(kind, name, subjects)).filter(|found| found.time.change.is_some())
    }

    fn of(
        &self,
        count_kind: CountKind,
        (thread, function): (Option<Arc<str>>, Arc<str>),
        subjects: &[Subject],
    ) -> WaitingEvidence {
        let per = self.per;
        let strata = self.strata(subjects, per);
        let change = if self.is_timed {
            let sums: Vec<Arms<Vec<PodLevel>>> =
                strata.iter().map(|arms| arms.as_ref().map(|arm| arm.iter().map(|legs| sum(legs)).collect())).collect();
            LevelChange::ratio(&sums).ok_or(LevelReason::FewPods)
        } else {
            Err(LevelReason::NoValues)
        };
        let parts = (self.legs.len() == 2 && change.is_ok()).then(|| [0, 1].map(|leg| levels(&strata, leg)));
        let buckets = |side: Side| strata.iter().map(|arms| arms[side].len()).sum::<usize>();
        let support = support(buckets(Side::Head).min(buckets(Side::Base)), change.is_ok());
        let samples = self.samples(subjects);
        let suspect = change.ok().and_then(|change| self.gap.may_have_made_level(change));
        let time = doubted(face(change, false), suspect);
        WaitingEvidence { measure: self.measure, count_kind, function, thread, per, time, parts, samples, support }
    }

    fn samples(&self, subjects: &[Subject]) -> Arms<u64> {
        let of_arm = |head: bool| {
            let legs = self.legs.iter().zip(subjects);
            let of_leg = |(leg, subject): (&&Leg<'_>, &Subject)| {
                let pods = leg.pods.iter().filter(|((_, is_head), _)| *is_head == head);
                let pods = pods.flat_map(|(_, buckets)| buckets.values()).flatten();
                pods.map(|pod| subject.figure(pod).1).sum::<u64>()
            };
            legs.map(of_leg).sum::<u64>()
        };
        Arms { head: of_arm(true), base: of_arm(false) }
    }

    /// By hardware and arm: the levels of each leg in each bucket that has all legs.
    fn strata(&self, subjects: &[Subject], per: TimePer) -> Vec<Arms<Vec<Vec<PodLevel>>>> {
        let Some(first) = self.legs.first() else { return Vec::new() };
        let mut strata: BTreeMap<_, Arms<Vec<Vec<PodLevel>>>> = BTreeMap::new();
        for (key, buckets) in &first.pods {
            let stratum = strata.entry(&key.0).or_insert_with(|| Arms { head: Vec::new(), base: Vec::new() });
            let arm = if key.1 { &mut stratum.head } else { &mut stratum.base };
            for bucket in buckets.keys() {
                let legs = self.legs.iter().zip(subjects);
                let levels = legs.map(|(leg, subject)| level(leg.pods.get(key)?.get(bucket)?, subject, per));
                arm.extend(levels.collect::<Option<Vec<PodLevel>>>());
            }
        }
        strata.into_values().collect()
    }
}

/// Nanoseconds of the pods of a bucket over what they served, or over their profiles; `None` without any.
fn level(pods: &[PodTally], subject: &Subject, per: TimePer) -> Option<PodLevel> {
    let units: u64 = match per {
        TimePer::Request => pods.iter().map(|pod| pod.requests).sum(),
        TimePer::Profile => pods.iter().map(|pod| pod.snapshots).sum(),
    };
    let figures = pods.iter().map(|pod| subject.figure(pod));
    let (value, samples) = figures.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let value = (units > 0).then(|| float(value) / float(units))?;
    Some(PodLevel { value, counting: if samples > 0 { value * value / float(samples) } else { 0.0 } })
}

fn sum(legs: &[PodLevel]) -> PodLevel {
    let none = PodLevel { value: 0.0, counting: 0.0 };
    legs.iter().fold(none, |sum, leg| PodLevel { value: sum.value + leg.value, counting: sum.counting + leg.counting })
}

/// What a leg has in each arm: means over buckets, weighted over strata as those of the sum are.
fn levels(strata: &[Arms<Vec<Vec<PodLevel>>>], leg: usize) -> Arms<f64> {
    let mean = |arm: &[Vec<PodLevel>], of: fn(&[PodLevel], usize) -> f64| {
        arm.iter().map(|legs| of(legs, leg)).sum::<f64>() / length_float(arm.len())
    };
    let whole = |legs: &[PodLevel], _: usize| sum(legs).value;
    let one = |legs: &[PodLevel], leg: usize| legs.get(leg).map_or(0.0, |level| level.value);
    let (mut weights, mut sums) = (0.0, Arms { head: 0.0, base: 0.0 });
    for arms in strata.iter().filter(|arms| !arms.head.is_empty() && !arms.base.is_empty()) {
        if mean(&arms.head, whole) + mean(&arms.base, whole) <= 0.0 {
            continue;
        }
        let (n1, n0) = (length_float(arms.head.len()), length_float(arms.base.len()));
        let weight = n1 * n0 / (n1 + n0);
        weights += weight;
        sums.head += weight * mean(&arms.head, one);
        sums.base += weight * mean(&arms.base, one);
    }
    Arms { head: sums.head / weights, base: sums.base / weights }
}
