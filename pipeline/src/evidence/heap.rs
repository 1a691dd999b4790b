//! What became of memory in one cell: bytes allocated per request, bytes in use of a pod, and how fast these grow, in head and base.
//!
//! Only what both arms did at the same time is compared, on the same hardware and at the same age. A profile of allocations gives the
//! first figure, snapshots of the memory in use the other two; [`crate::rules::heap`] joins them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, Interval, LevelFace};
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, Support};
use fleetdiff_statistics::Untested;
use fleetdiff_statistics::arms::{Arms, Side};
use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel, StratumLevels};
use serde::{Deserialize, Serialize};

use super::gap::{Gap, Suspect};
use super::tally::{self, Concurrent, Figure, PodTally, Pods};
use crate::counts::cell::CellCounts;

/// A ratio further from 1 than this, in either direction, is a change.
const MARGIN: f64 = 1.05;
/// A difference of growth larger than this an hour is a change.
const SLOPE_MARGIN: f64 = 0.1;
/// Level of intervals, and of those that show that nothing changed.
const LEVEL: f64 = 0.95;
const LEVEL_OF_EQUIVALENCE: f64 = 0.90;
/// Buckets in each arm from which on support is firm.
const FIRM: usize = 5;

/// What one profile type says of one function, or of all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeapEvidence {
    /// Self or total.
    pub count_kind: CountKind,
    /// Function name, or [`ALL_FUNCTIONS`].
    pub function: Arc<str>,
    /// Bytes allocated per request, from allocations.
    pub alloc: Option<LevelFace>,
    /// Bytes in use, from snapshots.
    pub live: Option<LevelFace>,
    /// How they grow, from snapshots.
    pub slope: Option<LevelFace>,
    /// How many pods it rests on.
    pub support: Support,
}

impl HeapEvidence {
    /// What the changes of all three figures say of all functions of a cell together.
    pub fn of_changes(alloc: LevelChange, live: LevelChange, slope: LevelChange) -> Self {
        Self {
            count_kind: CountKind::SelfCount,
            function: ALL_FUNCTIONS.into(),
            alloc: Some(face(Ok(alloc), false)),
            live: Some(face(Ok(live), false)),
            slope: Some(face(Ok(slope), true)),
            support: Support::Firm,
        }
    }
}

/// Which way a change beyond the margin goes, if there is one.
pub(crate) fn beyond_margin(face: &LevelFace, is_slope: bool) -> Option<LevelDirection> {
    let value = face.change?.value;
    let (low, high) = margins(is_slope);
    if value > high {
        Some(LevelDirection::Up)
    } else if value < low {
        Some(LevelDirection::Down)
    } else {
        None
    }
}

fn margins(is_slope: bool) -> (f64, f64) {
    if is_slope { (-SLOPE_MARGIN, SLOPE_MARGIN) } else { (1.0 / MARGIN, MARGIN) }
}

/// The evidence of a cell for a comparison, in no family yet: `(all)` first, then the functions with enough samples. Nothing for profiles
/// of other types, and where neither arm has any. A change that load or age may have made, by `gap`, is none.
pub fn heap_evidence(
    counts: &CellCounts,
    profile_type: ProfileType,
    id: &ComparisonId,
    config: &Config,
    untested: Untested,
    gap: Gap,
) -> Vec<HeapEvidence> {
    let is_level = match profile_type {
        ProfileType::Heap => false,
        ProfileType::LiveHeap => true,
        _ => return Vec::new(),
    };
    let Some(concurrent) = Concurrent::of(counts, id) else { return Vec::new() };
    let pods = concurrent.pods(counts, config.clock(), is_level);
    let cell = HeapCell { pods, is_level, min_count: config.min_count.max(1), gap };
    let first = config.count_kinds.first().copied().unwrap_or(CountKind::SelfCount);
    let mut evidence = vec![cell.of_all(first)];
    for &kind in &config.count_kinds {
        for number in cell.functions(kind).into_iter().filter(|&number| !untested.contains(&Some(number))) {
            let (_, name) = &counts.functions().entries()[number];
            evidence.extend(cell.of_function(kind, number, name));
        }
    }
    evidence
}

/// Of which memory.
#[derive(Clone, Copy)]
enum Subject {
    All,
    /// Of the function of this number.
    Function(usize, CountKind),
}

impl Subject {
    fn figure(self, pod: &PodTally) -> Option<&Figure> {
        match self {
            Self::All => Some(&pod.all),
            Self::Function(number, kind) => pod.functions.get(&number).map(|sums| &sums[tally::column(kind)]),
        }
    }
}

/// The pods of a cell that are compared.
struct HeapCell {
    pods: Pods,
    is_level: bool,
    min_count: u64,
    gap: Gap,
}

impl HeapCell {
    /// Functions with enough samples, ascending by number.
    fn functions(&self, kind: CountKind) -> Vec<usize> {
        let mut samples: BTreeMap<usize, u64> = BTreeMap::new();
        for pod in self.pods.values().flat_map(BTreeMap::values).flatten() {
            for (&number, sums) in &pod.functions {
                *samples.entry(number).or_default() += sums[tally::column(kind)].samples;
            }
        }
        samples.into_iter().filter(|(_, samples)| *samples >= self.min_count).map(|(number, _)| number).collect()
    }

    fn of_all(&self, kind: CountKind) -> HeapEvidence {
        self.evidence(kind, ALL_FUNCTIONS.into(), Subject::All)
    }

    /// What is said of a function; nothing if neither arm has a byte of it.
    fn of_function(&self, kind: CountKind, number: usize, name: &Arc<str>) -> Option<HeapEvidence> {
        let found = self.evidence(kind, Arc::clone(name), Subject::Function(number, kind));
        let measured = found.alloc.or(found.live).is_some_and(|face| face.change.is_some());
        measured.then_some(found)
    }

    fn evidence(&self, kind: CountKind, function: Arc<str>, of: Subject) -> HeapEvidence {
        let pods = || self.pods.values().flat_map(BTreeMap::values).flatten();
        let has_values = self.pods.is_empty() || pods().any(|pod| pod.all.value > 0);
        let (first, slope) = if !has_values {
            (Err(LevelReason::NoValues), self.is_level.then_some(Err(LevelReason::NoValues)))
        } else if self.is_level {
            let live = self.change(|pods| live(pods, of), LevelChange::ratio).ok_or(LevelReason::FewPods);
            let slope = self.change(|pods| slope(pods, of), LevelChange::difference).ok_or(LevelReason::NeedsTime);
            // Too few pods is what more time does not help.
            (live, Some(live.and(slope)))
        } else {
            let served = self.pods.is_empty() || pods().any(|pod| pod.requests > 0);
            let reason = if served { LevelReason::FewPods } else { LevelReason::NoRequests };
            (self.change(|pods| allocated(pods, of), LevelChange::ratio).ok_or(reason), None)
        };
        let buckets = [Side::Head, Side::Base].map(|side| {
            let of_arm = self.pods.iter().filter(|((_, is_head), _)| *is_head == (side == Side::Head));
            of_arm.map(|(_, buckets)| buckets.len()).sum::<usize>()
        });
        let support = support(buckets.into_iter().min().unwrap_or(0), first.is_ok());
        let by = |change: Result<LevelChange, LevelReason>, suspect: fn(Gap, LevelChange) -> Option<Suspect>| {
            change.ok().and_then(|change| suspect(self.gap, change))
        };
        let level = doubted(face(first, false), by(first, Gap::may_have_made_level));
        let (alloc, live) = if self.is_level { (None, Some(level)) } else { (Some(level), None) };
        let slope = slope.map(|slope| doubted(face(slope, true), by(slope, Gap::may_have_made_growth)));
        HeapEvidence { count_kind: kind, function, alloc, live, slope, support }
    }

    /// The change of what is measured of the pods of a bucket.
    fn change(
        &self,
        measure: impl Fn(&[PodTally]) -> Option<PodLevel>,
        test: fn(&[StratumLevels]) -> Option<LevelChange>,
    ) -> Option<LevelChange> {
        let mut strata: BTreeMap<_, StratumLevels> = BTreeMap::new();
        for ((hardware, is_head), buckets) in &self.pods {
            let stratum = strata.entry(hardware).or_insert_with(|| Arms { head: Vec::new(), base: Vec::new() });
            let arm = if *is_head { &mut stratum.head } else { &mut stratum.base };
            arm.extend(buckets.values().filter_map(|pods| measure(pods)));
        }
        test(&strata.into_values().collect::<Vec<_>>())
    }
}

/// Bytes per request of the pods of a bucket; `None` without requests.
fn allocated(pods: &[PodTally], of: Subject) -> Option<PodLevel> {
    let requests = pods.iter().map(|pod| pod.requests).sum::<u64>();
    let figures: Vec<&Figure> = pods.iter().filter_map(|pod| of.figure(pod)).collect();
    let value = figures.iter().map(|figure| figure.value).sum::<u64>();
    let samples = figures.iter().map(|figure| figure.samples).sum::<u64>();
    let value = (requests > 0).then(|| float(value) / float(requests))?;
    Some(PodLevel { value, counting: if samples > 0 { value * value / float(samples) } else { 0.0 } })
}

/// Mean bytes in use of the pods of a bucket; the samples of one snapshot are counted once.
fn live(pods: &[PodTally], of: Subject) -> Option<PodLevel> {
    let each = pods.iter().filter(|pod| pod.snapshots > 0).map(|pod| {
        let Some(figure) = of.figure(pod) else { return (0.0, 0.0) };
        let value = float(figure.value) / float(pod.snapshots);
        let samples = float(figure.samples) / float(pod.snapshots);
        (value, if figure.samples > 0 { value * value / samples } else { 0.0 })
    });
    let each: Vec<(f64, f64)> = each.collect();
    let number = length_float(each.len());
    (!each.is_empty()).then(|| PodLevel {
        value: each.iter().map(|(value, _)| value).sum::<f64>() / number,
        counting: each.iter().map(|(_, counting)| counting).sum::<f64>() / (number * number),
    })
}

/// Mean growth of the pods of a bucket; `None` if no pod has enough snapshots that hold it.
fn slope(pods: &[PodTally], of: Subject) -> Option<PodLevel> {
    let each: Vec<f64> = pods.iter().filter_map(|pod| pod.slope(of.figure(pod)?)).collect();
    let value = each.iter().sum::<f64>() / length_float(each.len());
    (!each.is_empty()).then_some(PodLevel { value, counting: 0.0 })
}

/// What so many buckets in the smaller arm support.
pub(super) fn support(buckets: usize, is_tested: bool) -> Support {
    match buckets {
        FIRM.. => Support::Firm,
        2.. if is_tested => Support::Tentative,
        _ => Support::Untestable,
    }
}

/// A figure that something else may have made than the build, which then has no direction; what is flat is flat.
pub(super) fn doubted(face: LevelFace, suspect: Option<Suspect>) -> LevelFace {
    let doubt = suspect.filter(|_| face.reason == Some(LevelReason::Imprecise)).map(Suspect::of_level);
    LevelFace { reason: doubt.or(face.reason), ..face }
}

/// A change as a row has it; what is significant is decided among all of its family.
pub(super) fn face(change: Result<LevelChange, LevelReason>, is_slope: bool) -> LevelFace {
    let change = match change {
        Ok(change) => change,
        Err(reason) => return LevelFace::unknown(reason),
    };
    let ((low, high), (least, most)) = (change.interval(LEVEL), change.interval(LEVEL_OF_EQUIVALENCE));
    let margins = margins(is_slope);
    let is_flat = least >= margins.0 && most <= margins.1;
    LevelFace {
        head: Some(change.levels.head),
        base: Some(change.levels.base),
        change: Some(Interval { value: change.value(), low, high }),
        ln_p: Some(change.ln_p()),
        q_value: None,
        tests: None,
        direction: if is_flat { LevelDirection::Flat } else { LevelDirection::Unknown },
        reason: (!is_flat).then_some(LevelReason::Imprecise),
    }
}
