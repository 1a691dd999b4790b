//! A fleet laid out: its pods and their lives, and what is the same for all of them.

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::builder::{Effect, Elasticity, Settings};
use super::call_tree::{CallTree, Calls};
use super::cells::Cells;
use super::error::FleetError;
use super::poisson::Ladder;
use super::random::{LogNormal, Purpose, generator, key_of, next_normal, uniform};
use super::roster::{self, Pod};
use super::sway::Sway;

/// Differences between kinds of machine: log-normal of this CV by function.
const HARDWARE_CV: f64 = 0.1;
/// Share of the functions that cost more in a cold process, and how much more.
const COLD: (f64, f64) = (0.25, 3.0);
/// Share of the functions that settle slowly.
const SETTLING: f64 = 1.0 / 3.0;

/// Everything that is fixed before the first profile.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) settings: Settings,
    pub(super) tree: CallTree,
    pub(super) ladder: Ladder,
    /// All pods, by the moment within a period at which their windows begin.
    pub(super) pods: Vec<Pod>,
    /// The cohorts of samples, ascending; empty where the cohort belongs to the pod.
    pub(super) labels: Vec<Cohort>,
    /// For each label (or once, without labels) what one sample of each path adds to the content hash.
    pub(super) hashes: Vec<Vec<u128>>,
    /// By kind of machine and function, what it costs there.
    pub(super) hardware: Vec<Vec<f64>>,
    /// By function, where the fleet drifts to: log of the cost at the end.
    pub(super) drift: Vec<f64>,
    /// How costs sway around that.
    pub(super) sway: Sway,
    /// By function, the cost in a cold process.
    pub(super) cold: Vec<f64>,
    /// By function, whether its cost settles slowly.
    pub(super) settles: Vec<bool>,
    /// Profiles that a pod gives which is there from start to end.
    pub(super) periods: u64,
}

impl Plan {
    pub(super) fn new(settings: Settings) -> Result<Self, FleetError> {
        check_numbers(&settings)?;
        let tree = CallTree::new(settings.calls, settings.unknown_frames);
        let labels = if settings.cohorts_by_request { sorted(&settings.cohorts) } else { Vec::new() };
        settings.effects.iter().try_for_each(|effect| check_effect(effect, &settings, &tree))?;
        settings.elasticities.iter().try_for_each(|one| check_elasticity(one, &settings, &tree))?;
        let pods = roster::pods_of(&settings)?;
        let hashes = match labels.as_slice() {
            [] => vec![tree.hashes(None)],
            labels => labels.iter().map(|label| tree.hashes(Some(label))).collect(),
        };
        let functions = tree.names.len();
        let periods = u64::try_from(settings.lasts.0 / settings.period.0).unwrap_or(0);
        Ok(Self {
            hardware: (0..)
                .zip(&settings.hardware)
                .map(|(i, kind)| tilt(&settings, i, kind.as_str(), functions))
                .collect(),
            drift: drift(&settings, functions),
            sway: Sway::of(&settings, periods, functions),
            cold: (0..).take(functions).map(|function| cold_cost(settings.seed, function)).collect(),
            settles: (0..).take(functions).map(|function| settles(settings.seed, function)).collect(),
            periods,
            ladder: Ladder::new(),
            settings,
            tree,
            pods,
            labels,
            hashes,
        })
    }

    /// The window of the profile that a pod takes in a period, counted from 0.
    pub(super) fn window(&self, pod: &Pod, period: u64) -> TimeRange {
        let length = self.settings.period;
        let offset = i64::try_from(period).unwrap_or(i64::MAX).saturating_mul(length.0);
        let start = self.settings.starts_at.plus(pod.phase).plus(Nanos(offset));
        TimeRange { start, end: start.plus(length) }
    }

    /// Product of the effects on samples in a cell whose leaf is this function, for head pods.
    pub(super) fn effect(&self, pod: &Pod, cohort: &Cohort, leaf: Option<usize>) -> f64 {
        let name = leaf.map(|function| &*self.tree.names[function]);
        let hit = |effect: &&Effect| {
            let on_leaf = effect.function.as_deref().is_none_or(|function| Some(function) == name);
            on_leaf && effect.cells.hold(&pod.region, cohort) && effect.hits(pod)
        };
        self.settings.effects.iter().filter(hit).map(|effect| effect.factor).product()
    }
}

impl Plan {
    /// ln of a pod's load at a moment, over that of other pods at the start.
    pub(super) fn ln_load(&self, pod: &Pod, moment: Nanos) -> f64 {
        let Some((peak, wave)) = self.settings.load else { return pod.ln_load };
        let passed = moment.since(self.settings.starts_at).as_seconds() / wave.as_seconds();
        let rise = libm::sin(std::f64::consts::PI * passed);
        pod.ln_load + libm::log(peak) * rise * rise
    }

    /// The part of the fleet's time that has passed at a moment.
    pub(super) fn part_passed(&self, moment: Nanos) -> f64 {
        moment.since(self.settings.starts_at).as_seconds() / self.settings.lasts.as_seconds()
    }

    /// To which power of load the cost of a request in this function grows, for a pod and cohort.
    pub(super) fn power(&self, pod: &Pod, cohort: &Cohort, leaf: Option<usize>) -> f64 {
        let name = leaf.map(|function| &*self.tree.names[function]);
        let holds = |one: &&Elasticity| {
            let of_pod = one.head_in.as_ref().is_none_or(|cells| pod.is_changed && cells.hold(&pod.region, cohort));
            Some(&*one.function) == name && of_pod
        };
        self.settings.elasticities.iter().filter(holds).map(|one| one.power).sum()
    }
}

impl Effect {
    /// Whether a pod of its cells is affected. For each function these are different pods.
    fn hits(&self, pod: &Pod) -> bool {
        let chance = || uniform(key_of(pod.key, self.function.as_deref().unwrap_or_default()), Purpose::Minority, 0);
        self.fraction.is_none_or(|fraction| chance() < fraction)
    }
}

fn sorted(cohorts: &[Cohort]) -> Vec<Cohort> {
    let mut cohorts = cohorts.to_vec();
    cohorts.sort();
    cohorts.dedup();
    cohorts
}

fn tilt(settings: &Settings, index: usize, kind: &str, functions: usize) -> Vec<f64> {
    let mut rng = generator(key_of(settings.seed, kind), Purpose::Hardware, 0);
    let spread = LogNormal::with_cv(if index == 0 { 0.0 } else { HARDWARE_CV });
    (0..functions).map(|_| spread.next(&mut rng)).collect()
}

fn drift(settings: &Settings, functions: usize) -> Vec<f64> {
    let mut rng = generator(settings.seed, Purpose::Drift, 0);
    (0..functions).map(|_| settings.drift * next_normal(&mut rng)).collect()
}

fn cold_cost(seed: u64, function: u64) -> f64 {
    if uniform(seed, Purpose::WarmUp, function) < COLD.0 { COLD.1 } else { 1.0 }
}

fn settles(seed: u64, function: u64) -> bool {
    uniform(seed, Purpose::Settling, function) < SETTLING
}

fn check_numbers(settings: &Settings) -> Result<(), FleetError> {
    let not_negative = [
        ("samples_per_second", settings.samples_per_second),
        ("requests_per_second", settings.requests_per_second),
        ("pod_cv", settings.pod_cv),
        ("size_cv", settings.size_cv),
        ("hop_cv", settings.hop_cv),
        ("drift", settings.drift),
        ("sway", settings.sway.map_or(0.0, |(cv, _)| cv)),
    ];
    let factors = settings.effects.iter().map(|effect| ("factor", effect.factor));
    let hit = settings.effects.iter().filter_map(|effect| Some(("fraction", effect.fraction?)));
    let fractions = [
        ("unknown_frames", settings.unknown_frames),
        ("late", settings.late),
        ("duplicates", settings.duplicates),
        ("missing", settings.missing),
        ("hop_correlation", settings.hop_correlation),
    ];
    for (property, value) in not_negative.into_iter().chain(factors) {
        if !(0.0..1e6).contains(&value) {
            return Err(FleetError::OutOfRange { property, value, range: "0 to 1000000" });
        }
    }
    for (property, value) in fractions.into_iter().chain(hit) {
        if !(0.0..1.0).contains(&value) {
            return Err(FleetError::OutOfRange { property, value, range: "0 to 1, without 1" });
        }
    }
    let mut loads = settings.rings.iter().map(|ring| ring.load);
    if let Some(value) = loads.find(|load| !(0.01..=100.0).contains(load)) {
        return Err(FleetError::OutOfRange { property: "load of a ring", value, range: "0.01 to 100" });
    }
    if let Some((peak, _)) = settings.load.filter(|(peak, wave)| !(0.01..=100.0).contains(peak) || wave.0 < 1) {
        return Err(FleetError::OutOfRange { property: "load", value: peak, range: "0.01 to 100" });
    }
    let lists = [
        ("regions", settings.regions.is_empty()),
        ("cohorts", settings.cohorts.is_empty()),
        ("hardware", settings.hardware.is_empty()),
        ("period", settings.period.0 < 1),
        ("lasts", settings.lasts.0 < settings.period.0),
        ("sway", settings.sway.is_some_and(|(_, over)| over.0 < 1)),
        ("calls", settings.calls == Calls::Zipf(0)),
        ("pods_per_node", settings.pods_per_node == Some(0)),
    ];
    let empty = lists.into_iter().find(|(_, empty)| *empty);
    empty.map_or(Ok(()), |(property, _)| Err(FleetError::Empty { property }))
}

fn check_effect(effect: &Effect, settings: &Settings, tree: &CallTree) -> Result<(), FleetError> {
    effect.function.as_ref().map_or(Ok(()), |function| check_function(function, tree))?;
    check_cells(&effect.cells, settings)
}

fn check_elasticity(one: &Elasticity, settings: &Settings, tree: &CallTree) -> Result<(), FleetError> {
    check_function(&one.function, tree)?;
    one.head_in.as_ref().map_or(Ok(()), |cells| check_cells(cells, settings))
}

fn check_function(name: &str, tree: &CallTree) -> Result<(), FleetError> {
    let is_known = tree.function(name).is_some_and(|function| tree.self_share(function) > 0.0);
    if is_known { Ok(()) } else { Err(FleetError::UnknownFunction { function: name.to_owned() }) }
}

fn check_cells(cells: &Cells, settings: &Settings) -> Result<(), FleetError> {
    let held = |cells: &Cells| {
        let mut all =
            settings.regions.iter().flat_map(|region| settings.cohorts.iter().map(move |cohort| (region, cohort)));
        all.any(|(region, cohort)| cells.hold(region, cohort))
    };
    match cells.patterns().find(|pattern| !held(pattern)) {
        Some(pattern) => Err(FleetError::UnknownCell { cell: pattern.to_string() }),
        None => Ok(()),
    }
}
