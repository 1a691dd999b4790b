//! Which samples are whose: section 4 of `docs/semantics.md`.
//!
//! All counted samples of a service are in one list; what a comparison sees at a hop is summed from the whole list each
//! time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::{Build, Cohort, Hardware, Identity, MERGED, PodId, Region, stable_hash};
use fleetdiff_schemas::number::{float, wide_float};
use fleetdiff_schemas::profile::{OVERFLOW, ProfileType};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Scope;

use super::admission::{Counted, FoldedCohort, Served, folded};
use super::loads::Differences;
use super::timeline::{History, Open, Timeline};

mod ages;
mod loads;
mod memory;
mod minutes;
mod trees;

pub(super) use memory::{Held, Holder};
pub(super) use minutes::{InMinute, Minutes, Place as MinutePlace, hops_of_minute};
pub(super) use trees::Tree;

/// The head's place in a pair of arms.
pub(super) const HEAD: usize = 0;
/// The base's place in a pair of arms.
pub(super) const BASE: usize = 1;
const HOUR: i64 = 3_600_000_000_000;
/// A larger count of a function in a profile counts as this many when it is squared.
const MOST_SQUARED: u64 = 1 << 28;

/// Whose counts, of when.
#[derive(Clone, Debug)]
struct Origin {
    applied: Hop,
    own: Hop,
    /// First hop of the time block that holds the own hop.
    block: Hop,
    profile_type: ProfileType,
    cell: CellKey,
    hardware: Hardware,
    /// 0 if the process was old, 1 from half the time after which it is, 2 from a quarter, 3 below.
    age: u8,
    build: Build,
}

/// The samples that one counted profile adds to one cell.
#[derive(Clone, Debug)]
struct Sampled {
    origin: Origin,
    /// Number of the pod's name; in several builds of an arm it is the same pod.
    pod: usize,
    started: Nanos,
    bucket: u8,
    samples: u64,
    /// Self and total by function number.
    functions: BTreeMap<usize, [u64; 2]>,
}

/// All counted samples of a service.
#[derive(Clone, Debug, Default)]
pub(super) struct Archive {
    /// Function names, ascending by their stable hash; a function's number is its place here.
    pub names: Vec<Arc<str>>,
    /// Names of pods by their number.
    pub pods: Vec<PodId>,
    samples: Vec<Sampled>,
    requests: Vec<Requests>,
    /// Whole stacks, as function numbers, root first; a path's number is its place here.
    pub paths: Vec<Vec<usize>>,
    stacks: Vec<(Origin, Vec<(usize, u64)>)>,
    memory: Vec<memory::OfMemory>,
    timeline: Timeline,
}

/// Requests that became known of one pod.
#[derive(Clone, Debug)]
struct Requests {
    origin: Origin,
    pod: PodId,
    bucket: u8,
    count: u64,
}

/// Counts of one comparison in one cell whose base is history. Strata are by hour of the day; its number replaces that
/// of the block.
#[derive(Clone, Debug, Default)]
pub(super) struct HistoryCell {
    /// The head within the window, and what is archived of the base, at all hours.
    pub cell: Cell,
    /// Days on which the base has samples in a stratum.
    pub days: BTreeMap<(Hop, Hardware), BTreeSet<i64>>,
}

/// Counts of one comparison in one cell and scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// By block, hardware and age of pods; where no stratum has both arms by age, ages are merged as old.
    pub strata: BTreeMap<Place, Stratum>,
    /// If pods of different ages are compared: when the first young ones are no longer young.
    pub provisional_until_at: Option<Nanos>,
    /// In that case: the head's young pods of the window, and the base's archived ones, where both have samples. The age in
    /// minutes replaces the block.
    pub young: BTreeMap<Place, Stratum>,
    /// What the arms differ in within the window, if it was asked for.
    pub differ: Differences,
}

/// Block, hardware, and age of pods: 0 if they were old.
pub(super) type Place = (Hop, Hardware, u8);

/// Counts of one stratum: head and base.
pub(super) type Stratum = [ArmCounts; 2];

/// What a pod did within a window.
pub(super) enum Active<'a> {
    /// It served.
    Requests { pod: &'a PodId, count: u64 },
    /// It had samples.
    Pod { pod: usize, bucket: u8, own: Hop, started: Nanos, hardware: &'a Hardware, samples: u64 },
}

/// Counts of one arm in one stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmCounts {
    pub samples: u64,
    /// Those of buckets with samples.
    pub requests: u64,
    /// Buckets with samples.
    pub buckets: BTreeMap<u8, BucketCounts>,
    /// The same samples by the number of the pod; kept only within the window.
    pub pods: BTreeMap<usize, PodCounts>,
}

/// Counts of one pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodCounts {
    pub samples: u64,
    /// Self and total by function number.
    pub functions: Vec<[u64; 2]>,
}

/// Counts of one bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketCounts {
    pub samples: u64,
    pub requests: u64,
    pub pods: BTreeSet<usize>,
    /// Self and total by function number.
    pub functions: Vec<[u64; 2]>,
    /// Sum of the squares of what each profile added to `samples`.
    pub hop_squares: u128,
    /// Sum of x (x - 1) over profiles, x what each added to `functions`.
    pub pairs: Vec<[u128; 2]>,
}

impl Archive {
    pub fn new(config: &Config, timeline: &Timeline, counted: &[&Counted], served: &[&Served]) -> Self {
        let folded: Vec<_> = counted.iter().map(|one| folded(&one.profile)).collect();
        let overflow: Arc<str> = OVERFLOW.into();
        let of_profiles =
            folded.iter().flat_map(|cohorts| cohorts.values().flat_map(|(_, functions)| functions.keys()));
        let names: HashSet<&Arc<str>> = of_profiles.chain(std::iter::once(&overflow)).collect();
        let names: BTreeSet<(u64, Arc<str>)> =
            names.into_iter().map(|name| (stable_hash(name.as_bytes()), Arc::clone(name))).collect();
        let names: Vec<Arc<str>> = names.into_iter().map(|(_, name)| name).collect();
        let numbers: HashMap<&Arc<str>, usize> =
            names.iter().enumerate().map(|(number, name)| (name, number)).collect();
        let mut pods: BTreeMap<PodId, usize> = BTreeMap::new();
        let mut samples = Vec::new();
        for (one, cohorts) in counted.iter().zip(&folded) {
            let id = &one.profile.identity;
            let next = pods.len();
            let pod = *pods.entry(id.pod.clone()).or_insert(next);
            let mut cells: BTreeMap<CellKey, (Origin, FoldedCohort)> = BTreeMap::new();
            for (cohort, (total, functions)) in cohorts.iter().filter(|(_, (total, _))| *total > 0) {
                let origin = Origin::new(config, timeline, one, cohort);
                let cell = cell_of(config, id, cohort);
                let (_, (samples, sums)) = cells.entry(cell).or_insert_with(|| (origin, FoldedCohort::default()));
                *samples += total;
                for (name, counts) in functions {
                    let sums = sums.entry(Arc::clone(name)).or_default();
                    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
            }
            samples.extend(cells.into_values().map(|(origin, (samples, functions))| {
                let functions = one.over.functions(functions, [samples; 2]).into_iter();
                let functions = functions.filter_map(|(name, counts)| Some((*numbers.get(&name)?, counts))).collect();
                Sampled { origin, pod, started: one.started, bucket: id.bucket().0, samples, functions }
            }));
        }
        let requests = served.iter().map(|one| {
            let (id, as_counted) = (
                &one.profile.identity,
                Counted {
                    profile: Arc::clone(&one.profile),
                    applied: one.applied,
                    own: one.own,
                    started: Nanos(0),
                    over: one.over.clone(),
                },
            );
            Requests {
                origin: Origin::new(config, timeline, &as_counted, &id.cohort),
                pod: id.pod.clone(),
                bucket: id.bucket().0,
                count: one.count,
            }
        });
        let requests = requests.collect();
        let (paths, stacks) = trees::stacks(config, timeline, counted, &numbers);
        let mut numbered: Vec<(PodId, usize)> = pods.into_iter().collect();
        numbered.sort_by_key(|(_, number)| *number);
        let memory = memory::of_memory(config, timeline, counted);
        let pods = numbered.into_iter().map(|(pod, _)| pod).collect();
        Self { names, pods, samples, requests, paths, stacks, memory, timeline: timeline.clone() }
    }

    /// What the pods of a comparison did within the window that ends with `hop`, by type and cell, and arm.
    pub fn active<'a>(
        &'a self,
        config: &Config,
        open: &Open,
        hop: Hop,
    ) -> impl Iterator<Item = ((ProfileType, CellKey), usize, Active<'a>)> {
        let pods = self.samples.iter().map(|one| {
            let Origin { own, hardware, .. } = &one.origin;
            let Sampled { pod, bucket, started, samples, .. } = *one;
            (&one.origin, Active::Pod { pod, bucket, own: *own, started, hardware, samples })
        });
        let requests =
            self.requests.iter().map(|one| (&one.origin, Active::Requests { pod: &one.pod, count: one.count }));
        let first = hop.plus(1).minus(config.window_hops());
        pods.chain(requests).filter_map(move |(origin, active)| {
            let arm = if origin.build == open.head { HEAD } else { BASE };
            let seen = origin.applied <= hop && first <= origin.own && origin.own <= hop;
            let taking_part = arm == HEAD || open.base.contains(&origin.build);
            (seen && taking_part).then(|| ((origin.profile_type, origin.cell.clone()), arm, active))
        })
    }

    /// What a comparison sees in a scope at the close of `hop`: the cells in which either arm has samples.
    pub fn cells(
        &self,
        config: &Config,
        open: &Open,
        scope: Scope,
        hop: Hop,
    ) -> BTreeMap<(ProfileType, CellKey), Cell> {
        let mut cells: BTreeMap<(ProfileType, CellKey), Cell> = BTreeMap::new();
        let arm_of = |origin: &Origin| {
            let seen = match scope {
                Scope::Window => origin.own <= hop && origin.own.plus(config.window_hops()) > hop,
                Scope::Epoch => origin.block >= open.epoch,
            };
            match &origin.build {
                _ if !seen || origin.applied > hop => None,
                build if *build == open.head => Some(HEAD),
                build => open.base.contains(build).then_some(BASE),
            }
        };
        let mut arm = |origin: &Origin, change: &mut dyn FnMut(&mut ArmCounts)| {
            if let Some(arm) = arm_of(origin) {
                let cell = cells.entry((origin.profile_type, origin.cell.clone())).or_default();
                let place = (origin.block, origin.hardware.clone(), origin.age);
                change(&mut cell.strata.entry(place).or_default()[arm]);
            }
        };
        for one in &self.samples {
            arm(&one.origin, &mut |arm| arm.add(one, self.names.len(), scope));
        }
        for one in &self.requests {
            arm(&one.origin, &mut |arm| arm.buckets.entry(one.bucket).or_default().requests += one.count);
        }
        cells.values_mut().for_each(settle);
        cells.retain(|_, cell| !cell.strata.is_empty());
        let of_like_ages = |(place, cell): ((ProfileType, CellKey), Cell)| {
            let until_at = self.old_at(config, (&open.head, &open.base), hop, &place);
            let cell = cell.of_like_ages(until_at);
            let young = self.young_pods(config, (&open.head, &open.base), hop, (&place, &cell));
            (place, Cell { young, ..cell })
        };
        cells.into_iter().map(of_like_ages).collect()
    }

    /// What a comparison whose base is history sees at the close of `hop`.
    pub fn history_cells(
        &self,
        config: &Config,
        history: &History,
        hop: Hop,
    ) -> BTreeMap<(ProfileType, CellKey), HistoryCell> {
        let arm_of = |origin: &Origin| match &origin.build {
            _ if origin.applied > hop => None,
            build if *build == history.head => (origin.own.plus(config.window_hops()) > hop).then_some(HEAD),
            build if history.base.contains(build) => {
                let since = self.timeline.archived_of(config, build, hop);
                let left =
                    origin.own.plus(config.window_hops()) <= hop && since.is_some_and(|since| origin.own >= since);
                (left && (origin.age > 0 || is_archived(config, origin.own))).then_some(BASE)
            }
            _ => None,
        };
        let mut cells: BTreeMap<(ProfileType, CellKey), HistoryCell> = BTreeMap::new();
        let stratum = |origin: &Origin| {
            let hours = config.clock().start_of(origin.block).0 / HOUR;
            let hour = Hop(u64::try_from(hours % 24).unwrap_or(0));
            ((hour, origin.hardware.clone(), origin.age), hours / 24)
        };
        for one in &self.samples {
            let Some(arm) = arm_of(&one.origin) else { continue };
            let cell = cells.entry((one.origin.profile_type, one.origin.cell.clone())).or_default();
            let (stratum, day) = stratum(&one.origin);
            if arm == BASE {
                cell.days.entry((stratum.0, stratum.1.clone())).or_default().insert(day);
            }
            cell.cell.strata.entry(stratum).or_default()[arm].add(one, self.names.len(), Scope::Epoch);
        }
        for one in &self.requests {
            let Some(arm) = arm_of(&one.origin) else { continue };
            let cell = cells.entry((one.origin.profile_type, one.origin.cell.clone())).or_default();
            cell.cell.strata.entry(stratum(&one.origin).0).or_default()[arm]
                .buckets
                .entry(one.bucket)
                .or_default()
                .requests += one.count;
        }
        cells.values_mut().for_each(|cell| settle(&mut cell.cell));
        cells
    }
}

/// The cell of a pod's samples of a cohort.
pub(super) fn cell_of(config: &Config, id: &Identity, cohort: &Cohort) -> CellKey {
    let (region, cohort) = match config.cell_by {
        CellBy::RegionCohort => (id.region.clone(), cohort.clone()),
        CellBy::Cohort => (Region::from(MERGED), cohort.clone()),
        CellBy::Region => (id.region.clone(), Cohort::from(MERGED)),
        CellBy::All => (Region::from(MERGED), Cohort::from(MERGED)),
    };
    CellKey { region, cohort }
}

/// The class of an age, where a process is old after `young`; both in nanoseconds.
fn age(age: i64, young: i64) -> u8 {
    match age {
        _ if young == 0 || age >= young => 0,
        _ if age >= young / 2 => 1,
        _ if age >= young / 4 => 2,
        _ => 3,
    }
}

/// Of pods that are not young, one hop of each stretch of hops is archived: its place in the stretch is the hash of the stretch's number, modulo
/// the stretch's length.
fn is_archived(config: &Config, own: Hop) -> bool {
    let length = config.clock().hops_in(config.history_every).max(1);
    let first = own.0 - own.0 % length;
    own.0 == first + stable_hash(&(own.0 / length).to_le_bytes()) % length
}

/// Sums requests, and drops strata without samples.
fn settle(cell: &mut Cell) {
    cell.strata.values_mut().flatten().for_each(ArmCounts::settle);
    cell.strata.retain(|_, stratum| stratum.iter().any(|arm| arm.samples > 0));
}

impl Origin {
    fn new(config: &Config, timeline: &Timeline, one: &Counted, cohort: &Cohort) -> Self {
        let id = &one.profile.identity;
        Self {
            applied: one.applied,
            own: one.own,
            block: timeline.block_of(one.own),
            profile_type: one.profile.profile_type,
            cell: one.over.cell(&cell_of(config, id, cohort)),
            hardware: id.hardware.clone(),
            age: id.process_start.map_or(0, |start| age(config.clock().start_of(one.own).0 - start.0, config.young.0)),
            build: id.build.clone(),
        }
    }
}

impl ArmCounts {
    fn add(&mut self, one: &Sampled, functions: usize, scope: Scope) {
        self.samples += one.samples;
        let bucket = self.buckets.entry(one.bucket).or_default();
        bucket.samples += one.samples;
        bucket.pods.insert(one.pod);
        add_functions(&mut bucket.functions, one, functions);
        bucket.add_squares(one, functions);
        if scope == Scope::Window {
            let pod = self.pods.entry(one.pod).or_default();
            pod.samples += one.samples;
            add_functions(&mut pod.functions, one, functions);
        }
    }

    /// Adds what pods of another age did.
    fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.requests += other.requests;
        for (number, of_bucket) in other.buckets {
            let bucket = self.buckets.entry(number).or_default();
            bucket.samples += of_bucket.samples;
            bucket.requests += of_bucket.requests;
            bucket.pods.extend(of_bucket.pods);
            bucket.hop_squares += of_bucket.hop_squares;
            add_pairwise(&mut bucket.functions, &of_bucket.functions);
            add_pairwise(&mut bucket.pairs, &of_bucket.pairs);
        }
        for (number, of_pod) in other.pods {
            let pod = self.pods.entry(number).or_default();
            pod.samples += of_pod.samples;
            add_pairwise(&mut pod.functions, &of_pod.functions);
        }
    }

    /// Drops requests of buckets without samples, and sums the others.
    fn settle(&mut self) {
        self.buckets.retain(|_, bucket| bucket.samples > 0);
        self.requests = self.buckets.values().map(|bucket| bucket.requests).sum();
    }
}

impl BucketCounts {
    /// Sum over hops of the square of a hop's samples, as part of the square of all; 1 without samples.
    pub fn hop_concentration(&self) -> f64 {
        if self.samples == 0 { 1.0 } else { wide_float(self.hop_squares) / float(self.samples).powi(2) }
    }

    fn add_squares(&mut self, one: &Sampled, functions: usize) {
        self.hop_squares += u128::from(one.samples).pow(2);
        self.pairs.resize(functions, [0, 0]);
        for (function, counts) in &one.functions {
            for (sum, count) in self.pairs[*function].iter_mut().zip(counts) {
                let x = u128::from((*count).min(MOST_SQUARED));
                *sum += x * x.saturating_sub(1);
            }
        }
    }
}

fn add_pairwise<T: Copy + Default + std::ops::AddAssign>(sums: &mut Vec<[T; 2]>, more: &[[T; 2]]) {
    sums.resize(sums.len().max(more.len()), [T::default(); 2]);
    for (sums, more) in sums.iter_mut().zip(more) {
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += *more);
    }
}

fn add_functions(sums: &mut Vec<[u64; 2]>, one: &Sampled, functions: usize) {
    sums.resize(functions, [0, 0]);
    for (function, [own, total]) in &one.functions {
        sums[*function][0] += own;
        sums[*function][1] += total;
    }
}
