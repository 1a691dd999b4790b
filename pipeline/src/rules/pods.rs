//! Which profiles of a pod are counted, decided when their application hop closes, and with which requests.
//!
//! All profiles of a pod that were applied at one hop are taken in one fixed order, so that neither arrival order nor
//! batching can change which of two duplicates is kept, where warm-up begins, what a pod's requests are, or between
//! which snapshots of a process an interval lies.

mod duplicates;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::{Build, Cohort, Identity, MERGED, PodId, Region, Service};
use fleetdiff_schemas::profile::{ProfileType, Requests, Temporality};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos, TimeRange};
use serde::{Deserialize, Serialize};

use self::duplicates::Duplicates;
use super::admission::{Arrival, CohortCounts, OfPod, PodProfile, Sighting};
use super::cumulative::{PathSamples, Process, Snapshot, Taken};
use super::requests::{CountedWindow, Part, Served};
use crate::counts::bucket::{Addition, Age};
use crate::counts::encoding::{encode, sum};
use crate::counts::functions::FunctionTable;
use crate::counts::paths::{decode_paths, sum_of_paths};

/// A pod that is silent for so long is a new one when it comes back, if it does not say when its process began.
const RETENTION: Nanos = Nanos::from_seconds(86_400);

/// Identifies where counts are kept: one type of profile of one service, in one cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellId {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// Region and cohort, the merged dimension written `*`.
    pub cell: CellKey,
}

/// What a counted profile adds to one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellAddition {
    /// Which cell.
    pub cell: CellId,
    /// The counts.
    pub addition: Addition,
    /// Whether the profile came late.
    pub late: bool,
}

/// A pod had a counted profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Presence {
    /// What is deployed.
    pub service: Service,
    /// Its version.
    pub build: Build,
    /// The replicate.
    pub pod: PodId,
    /// When its process began, if the sender says so.
    pub process_start: Option<Nanos>,
    /// How old that process was at the hop of the profile.
    pub age: Age,
}

/// Samples that were not counted, by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Within the warm-up of their process.
    pub warm_up: u64,
    /// Within the last moments of their process.
    pub drain: u64,
    /// Waiting that is idle, of counted profiles.
    pub idle: u64,
    /// Seen before.
    pub duplicate: u64,
    /// Older than the window.
    pub late_dropped: u64,
    /// In snapshots not after the last one used.
    pub superseded: u64,
    /// Carried over: in snapshots, but not of the interval that ends with them.
    pub carried_over: u64,
}

/// The results of one hop of one pod.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// What is added to cells.
    pub additions: Vec<CellAddition>,
    /// Builds of the pod that were counted.
    pub presences: Vec<Presence>,
    /// What was dropped, by profile type.
    pub dropped: BTreeMap<ProfileType, Dropped>,
}

/// What is remembered about one pod of one service.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PodHistory {
    seen: Duplicates,
    first_sight: BTreeMap<Build, Sight>,
    processes: BTreeMap<ProcessKey, Process>,
    alive_until: BTreeMap<(Build, Option<Nanos>), Nanos>,
    requests: BTreeMap<RequestsKey, (u64, Hop)>,
    served: Served,
    last: Hop,
    /// The round in which the call paths of its processes were last marked as held; rounds begin anew with each run.
    #[serde(skip)]
    held_in: u32,
}

/// When a pod was first seen with a build, and the last hop at which that mattered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sight {
    first: Nanos,
    last: Hop,
}

type ProcessKey = (Build, ProfileType, Option<Nanos>);
type RequestsKey = (Build, ProfileType, Cohort, Nanos, Nanos);

/// The settings for decisions about pods.
#[derive(Clone, Copy, Debug)]
pub struct PodRules {
    clock: HopClock,
    window: u64,
    retention: u64,
    warm_up: Nanos,
    young: Nanos,
    drain: Nanos,
    requests_from_metrics: bool,
    cell_by: CellBy,
}

impl PodRules {
    /// Takes the relevant settings from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            clock: config.clock(),
            window: config.window_hops(),
            retention: config.clock().hops_in(RETENTION),
            warm_up: config.warm_up,
            young: config.young,
            drain: config.drain,
            requests_from_metrics: config.requests_from_metrics,
            cell_by: config.cell_by,
        }
    }

    /// Hops in the window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Hops after which nothing that is known of a silent pod matters any more.
    fn forgets_after(&self) -> u64 {
        self.retention.max(self.window.saturating_mul(2))
    }

    /// The requests of a counted window, for the cell of the cohort for which they were served.
    fn served(&self, part: Part) -> CellAddition {
        let CountedWindow { identity, profile_type, own, started, .. } = part.of;
        let addition = Addition { requests: part.count, ..self.bare(&identity, own, started) };
        CellAddition { cell: self.cell_of(&identity, profile_type, &part.cohort), addition, late: false }
    }

    /// What nothing was counted of yet.
    fn bare(&self, identity: &Identity, own: Hop, started: Nanos) -> Addition {
        Addition {
            own,
            hardware: identity.hardware.clone(),
            build: identity.build.clone(),
            pod: identity.pod.clone(),
            bucket: identity.bucket(),
            started,
            age: self.age(identity, own),
            samples: 0,
            requests: 0,
            functions: Vec::new(),
            paths: Vec::new(),
            values: Vec::new(),
            value: 0,
        }
    }

    /// How old a process was at a hop; old if its sender does not say when it began.
    fn age(&self, identity: &Identity, own: Hop) -> Age {
        let known = identity.process_start.filter(|_| self.young.0 > 0);
        known.map_or(Age::Old, |start| Age::of(self.clock.start_of(own).since(start), self.young))
    }

    fn cell_of(&self, identity: &Identity, profile_type: ProfileType, cohort: &Cohort) -> CellId {
        CellId { service: identity.service.clone(), profile_type, cell: self.cell(&identity.region, cohort) }
    }

    /// The cell of a region and cohort.
    fn cell(&self, region: &Region, cohort: &Cohort) -> CellKey {
        let (by_region, by_cohort) = match self.cell_by {
            CellBy::RegionCohort => (true, true),
            CellBy::Cohort => (false, true),
            CellBy::Region => (true, false),
            CellBy::All => (false, false),
        };
        CellKey {
            region: if by_region { region.clone() } else { MERGED.into() },
            cohort: if by_cohort { cohort.clone() } else { MERGED.into() },
        }
    }
}

impl PodHistory {
    /// Gives back memory at a hop at which nothing of the pod is applied. Returns whether anything that is known of it still matters.
    pub fn tidy(&mut self, hop: Hop, rules: &PodRules) -> bool {
        self.forget(hop, rules);
        self.seen.shrink_to_fit();
        let is_blank = self.seen.is_empty()
            && self.first_sight.is_empty()
            && self.processes.is_empty()
            && self.alive_until.is_empty()
            && self.requests.is_empty()
            && self.served.is_empty();
        !is_blank && self.last.plus(rules.forgets_after()) > hop
    }

    /// Decides about everything of this pod that is applied at `hop`.
    pub fn close(&mut self, hop: Hop, taken: Vec<OfPod>, rules: &PodRules, table: &FunctionTable) -> Decided {
        self.last = hop;
        self.forget(hop, rules);
        self.hold_paths(table);
        let mut decided = Decided::default();
        let (mut profiles, mut points, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        for one in taken {
            match one {
                OfPod::Profile(profile) => profiles.push(profile),
                OfPod::Requests(point) => points.push(point),
                OfPod::Seen(sighting) => self.see(&sighting),
            }
        }
        profiles.sort_by_cached_key(in_order);
        for mut profile in profiles {
            let samples = profile.samples();
            let dropped = decided.dropped.entry(profile.profile_type).or_default();
            if profile.arrival == Arrival::TooLate {
                dropped.late_dropped += samples;
            } else if !self.is_new(hop, &profile) {
                dropped.duplicate += samples;
            } else {
                let started = self.start_of(hop, &profile);
                let Some(interval) = self.interval_of(&mut profile, rules, table, dropped) else { continue };
                if interval.midpoint() < started.plus(rules.warm_up) {
                    dropped.warm_up += profile.samples();
                } else if self.is_drained(&profile, interval, rules) {
                    dropped.drain += profile.samples();
                } else {
                    dropped.idle += profile.idle;
                    if rules.requests_from_metrics && profile.requests.is_none() && !profile.profile_type.is_level() {
                        windows.push(counted_window(&profile, started, interval));
                    }
                    self.count(hop, started, profile, rules, &mut decided);
                }
            }
        }
        let parts = self.served.close(points, windows, rules.clock.length_of(rules.window));
        decided.additions.extend(parts.into_iter().map(|part| rules.served(part)));
        decided.presences.sort_unstable();
        decided.presences.dedup();
        decided
    }

    fn forget(&mut self, hop: Hop, rules: &PodRules) {
        let window = rules.window;
        self.seen.forget(hop, window);
        self.requests.retain(|_, (_, at)| at.plus(window) > hop);
        self.served.forget(hop, rules.clock, window);
        self.alive_until.retain(|_, at| rules.clock.hop_of(*at).plus(window) > hop);
        // Everything that is applied from now on is further from these snapshots than the longest interval.
        let at_hand = |at| rules.clock.hop_of(at).plus(window.saturating_mul(2)) > hop;
        self.processes.retain(|_, process| process.last().is_some_and(at_hand));
        self.first_sight.retain(|_, sight| sight.last.plus(rules.retention) > hop);
    }

    /// Once a round, marks the call paths of its processes as held.
    fn hold_paths(&mut self, table: &FunctionTable) {
        let round = table.round();
        if self.held_in != round {
            self.held_in = round;
            table.hold_paths(self.processes.values().flat_map(Process::paths));
        }
    }

    fn see(&mut self, sighting: &Sighting) {
        let process = (sighting.identity.build.clone(), sighting.identity.process_start);
        let until = self.alive_until.entry(process).or_insert(sighting.at);
        *until = sighting.at.max(*until);
    }

    /// Whether no message of the process is later than the time cropped before its end.
    fn is_drained(&self, profile: &PodProfile, interval: TimeRange, rules: &PodRules) -> bool {
        let process = (profile.identity.build.clone(), profile.identity.process_start);
        let alive = |until: &Nanos| interval.midpoint().plus(rules.drain) <= *until;
        rules.drain.0 > 0 && !self.alive_until.get(&process).is_some_and(alive)
    }

    fn is_new(&mut self, hop: Hop, profile: &PodProfile) -> bool {
        let identity = &profile.identity;
        let key =
            (identity.build.clone(), identity.process_start, profile.profile_type, profile.window, profile.content);
        self.seen.is_new(hop, key)
    }

    /// When the process of a profile began: as the sender says, else when its pod was first seen with this build. A pod that was
    /// silent for as long as the retention is seen for the first time again.
    fn start_of(&mut self, hop: Hop, profile: &PodProfile) -> Nanos {
        let identity = &profile.identity;
        if let Some(start) = identity.process_start {
            return start;
        }
        let now = Sight { first: profile.window.start, last: hop };
        let sight = self.first_sight.entry(identity.build.clone()).or_insert(now);
        sight.last = hop;
        sight.first
    }

    /// The interval of a profile's samples. For a snapshot, only the samples of the interval that ends with it stay in
    /// the profile; `None` if no interval is known.
    fn interval_of(
        &mut self,
        profile: &mut PodProfile,
        rules: &PodRules,
        table: &FunctionTable,
        dropped: &mut Dropped,
    ) -> Option<TimeRange> {
        if profile.temporality != Temporality::Cumulative {
            return Some(profile.window);
        }
        let (held, at, start) = (profile.samples(), profile.window.end, profile.identity.process_start);
        let (mut samples, mut values) = (PathSamples::new(), PathSamples::new());
        for part in std::mem::take(&mut profile.cohorts) {
            if !part.values.is_empty() {
                values.insert(part.cohort.clone(), part.values);
            }
            samples.insert(part.cohort, part.paths);
        }
        let process = self.processes.entry((profile.identity.build.clone(), profile.profile_type, start)).or_default();
        match process.take(Snapshot { at, samples, values }, start, rules.clock.length_of(rules.window)) {
            Taken::Interval { since, samples, values } => {
                profile.cohorts = folded(samples, values, table);
                dropped.carried_over += held - profile.samples();
                Some(TimeRange { start: since, end: at })
            }
            Taken::First => {
                dropped.carried_over += held;
                None
            }
            Taken::Superseded => {
                dropped.superseded += held;
                None
            }
        }
    }

    fn count(&mut self, hop: Hop, started: Nanos, profile: PodProfile, rules: &PodRules, decided: &mut Decided) {
        let identity = &profile.identity;
        decided.presences.push(Presence {
            service: identity.service.clone(),
            build: identity.build.clone(),
            pod: identity.pod.clone(),
            process_start: identity.process_start,
            age: rules.age(identity, profile.own),
        });
        let addition = |own, samples, requests| Addition { samples, requests, ..rules.bare(identity, own, started) };
        let cell = |cohort: &Cohort| rules.cell_of(identity, profile.profile_type, cohort);
        let late = profile.arrival == Arrival::Late;
        if let Some((own, more)) = self.more_requests(hop, &profile, rules) {
            decided.additions.push(CellAddition {
                cell: cell(&identity.cohort),
                addition: addition(own, 0, more),
                late,
            });
        }
        let mut parts: BTreeMap<CellId, Vec<&CohortCounts>> = BTreeMap::new();
        for part in &profile.cohorts {
            parts.entry(cell(&part.cohort)).or_default().push(part);
        }
        for (cell, parts) in parts {
            let addition = Addition {
                functions: sum(parts.iter().map(|part| part.functions.as_slice())),
                paths: sum_of_paths(parts.iter().map(|part| part.paths.as_slice())),
                values: sum(parts.iter().map(|part| part.values.as_slice())),
                value: parts.iter().map(|part| part.value).sum(),
                ..addition(profile.own, parts.iter().map(|part| part.samples).sum(), 0)
            };
            decided.additions.push(CellAddition { cell, addition, late });
        }
    }

    /// Under which hop, and by how much, a profile's requests exceed those already known for the same window.
    fn more_requests(&mut self, hop: Hop, profile: &PodProfile, rules: &PodRules) -> Option<(Hop, u64)> {
        let Requests { count, window } = profile.requests?;
        let own = rules.clock.hop_of(window.midpoint()).min(hop);
        if own.plus(rules.window) <= hop {
            return None;
        }
        let identity = &profile.identity;
        let key = (identity.build.clone(), profile.profile_type, identity.cohort.clone(), window.start, window.end);
        let known = self.requests.entry(key).or_insert((0, hop));
        let more = count.saturating_sub(known.0);
        *known = (known.0.max(count), hop);
        (more > 0).then_some((own, more))
    }
}

/// An addition without counts.
fn counted_window(profile: &PodProfile, started: Nanos, window: TimeRange) -> CountedWindow {
    CountedWindow {
        identity: Arc::clone(&profile.identity),
        profile_type: profile.profile_type,
        own: profile.own,
        started,
        window,
    }
}

fn folded(mut samples: PathSamples, mut values: PathSamples, table: &FunctionTable) -> Vec<CohortCounts> {
    let cohorts: BTreeSet<Cohort> = samples.keys().chain(values.keys()).cloned().collect();
    let sum = |paths: &[u8]| decode_paths(paths).map(|(_, count)| count).sum();
    let fold = |cohort: Cohort| {
        let paths = samples.remove(&cohort).unwrap_or_default();
        let values = values.remove(&cohort).unwrap_or_default();
        CohortCounts {
            cohort,
            samples: sum(&paths),
            functions: encode(&table.paths().fold(&paths)),
            value: sum(&values),
            values: encode(&table.paths().fold(&values)),
            paths,
        }
    };
    cohorts.into_iter().map(fold).collect()
}

type Order = (ProfileType, Nanos, Nanos, u128, i32, i64, u32);

fn in_order(profile: &PodProfile) -> Order {
    let TimeRange { start, end } = profile.window;
    (profile.profile_type, start, end, profile.content, profile.partition, profile.offset, profile.part)
}
