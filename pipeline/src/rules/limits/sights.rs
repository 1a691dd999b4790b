//! What a worker sees of a service for the first time in a generation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use fleetdiff_schemas::config::Limits;
use fleetdiff_schemas::identity::{Build, PodId, Service, stable_hash};
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::time::Hop;
use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::{LimitRules, OfEach};
use crate::counts::encoding::decode;
use crate::counts::functions::FunctionTable;
use crate::counts::paths::decode_paths;
use crate::rules::pods::{CellAddition, CellId, Presence};

/// What one worker says about a service at a hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sights {
    /// Which service.
    pub service: Service,
    /// Stable hashes of what is new to it.
    pub places: OfEach<Vec<u64>>,
    /// What it adds to the window, in bytes.
    pub bytes: u64,
    /// In so many additions.
    pub profiles: u64,
}

/// What a worker has seen in this generation.
#[derive(Debug, Default)]
pub struct SeenSoFar {
    generation: u64,
    /// The round in which the numbers of functions and paths mean what they meant when they were seen.
    round: u32,
    /// The limits of the hop that was closed last.
    limits: Option<Limits>,
    services: HashMap<Service, SeenOfService>,
}

#[derive(Debug, Default)]
struct SeenOfService {
    functions: Numbers,
    paths: Numbers,
    cells: HashSet<CellId, FixedState>,
    builds: HashSet<Build, FixedState>,
    pods: HashSet<PodId, FixedState>,
}

impl SeenSoFar {
    /// What is new among what pods contribute to a hop, and how much there is; one entry a service.
    pub fn close<'a>(
        &mut self,
        hop: Hop,
        additions: impl Iterator<Item = &'a CellAddition>,
        presences: impl Iterator<Item = &'a Presence>,
        (rules, table): (&LimitRules, &FunctionTable),
    ) -> Vec<Sights> {
        let now = (rules.generation_of(hop), table.round(), Some(rules.at(hop)));
        if (self.generation, self.round, self.limits) != now {
            // NB: saying twice that something was seen changes nothing, so rounds do not affect rows. With other limits, what found no
            // place may find one.
            (self.generation, self.round, self.limits) = now;
            self.services.clear();
        }
        let mut new: BTreeMap<&Service, New> = BTreeMap::new();
        for CellAddition { cell, addition, .. } in additions {
            let seen = self.services.entry(cell.service.clone()).or_default();
            let new = new.entry(&cell.service).or_default();
            if is_new(cell, &mut seen.cells) {
                new.cells.push(hash_of_cell(cell));
            }
            new.see(&addition.build, &addition.pod, seen);
            let counts = decode(&addition.functions);
            let (mut functions, mut paths) = (0, 0);
            for entry in counts {
                functions += 1;
                new.functions.extend(seen.functions.put(entry.function).then_some(entry.function));
            }
            for entry in decode(&addition.values) {
                new.functions.extend(seen.functions.put(entry.function).then_some(entry.function));
            }
            for (path, _) in decode_paths(&addition.paths) {
                paths += 1;
                new.paths.extend(seen.paths.put(path).then_some(path));
            }
            new.bytes = new.bytes.saturating_add(Limits::bytes_of(functions, paths));
            new.profiles += 1;
        }
        for presence in presences {
            let seen = self.services.entry(presence.service.clone()).or_default();
            let new = new.entry(&presence.service).or_default();
            new.see(&presence.build, &presence.pod, seen);
        }
        new.into_iter().map(|(service, new)| new.said_of(service, table)).collect()
    }
}

/// Whether one was not seen before; it is now.
fn is_new<T: Clone + Eq + Hash>(one: &T, seen: &mut HashSet<T, FixedState>) -> bool {
    !seen.contains(one) && seen.insert(one.clone())
}

/// What is new of one service.
#[derive(Default)]
struct New {
    functions: Vec<u32>,
    paths: Vec<u32>,
    /// Stable hashes, as those of the following two.
    cells: Vec<u64>,
    builds: Vec<u64>,
    pods: Vec<u64>,
    bytes: u64,
    profiles: u64,
}

impl New {
    fn see(&mut self, build: &Build, pod: &PodId, seen: &mut SeenOfService) {
        if is_new(build, &mut seen.builds) {
            self.builds.push(hash_of_build(build));
        }
        if is_new(pod, &mut seen.pods) {
            self.pods.push(hash_of_pod(pod));
        }
    }

    fn said_of(self, service: &Service, table: &FunctionTable) -> Sights {
        let Self { functions, paths, cells, builds, pods, bytes, profiles } = self;
        let (functions, paths) = (table.hashes(&functions), table.hashes_of_paths(&paths));
        Sights { service: service.clone(), places: [functions, paths, cells, builds, pods], bytes, profiles }
    }
}

/// The stable hash of a cell of a service.
pub(super) fn hash_of_cell(id: &CellId) -> u64 {
    hash_of(&["cell", id.profile_type.name(), id.cell.region.as_str(), id.cell.cohort.as_str()])
}

/// The stable hash of a build.
pub(super) fn hash_of_build(build: &Build) -> u64 {
    hash_of(&["build", build.as_str()])
}

/// The stable hash of a pod.
pub(super) fn hash_of_pod(pod: &PodId) -> u64 {
    hash_of(&["pod", pod.as_str()])
}

fn hash_of(parts: &[&str]) -> u64 {
    stable_hash(parts.join("\0").as_bytes())
}

/// A set of the process's numbers, which lie close together: a bit each.
#[derive(Debug, Default)]
struct Numbers {
    words: Vec<u64>,
}

impl Numbers {
    /// Adds a number; returns whether it is new.
    #[inline]
    fn put(&mut self, number: u32) -> bool {
        let (place, bit) = (index_of(number) / 64, 1 << (number % 64));
        if self.words.get(place).is_some_and(|word| word & bit != 0) {
            return false;
        }
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        self.words[place] |= bit;
        true
    }
}
