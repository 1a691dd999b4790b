//! Counts what has no place within the limits of its service together: as one function, call path, cell, build or pod.
//!
//! A build or pod without a place is counted in the one build and pod of that name, which is compared with nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::identity::{Bucket, Build, PodId, Service};
use fleetdiff_schemas::profile::{OVERFLOW, Stack};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::verdict::Limited;
use serde::{Deserialize, Serialize};

use super::sights::{hash_of_build, hash_of_cell, hash_of_pod};
use super::{Hashes, OfEach, Ruled, Ruling};
use crate::counts::encoding::{Entry, decode, encode};
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::paths::{decode_paths, encode_paths};
use crate::rules::pods::{CellAddition, Presence};

/// What was counted together for a limit: profiles, and their samples that are concerned.
pub type Together = BTreeMap<(Service, Limited), (u64, u64)>;

/// The services that exceed a limit, as a worker was told.
#[derive(Debug, Default)]
pub struct Overflow {
    services: HashMap<Service, OfService>,
    /// What it has counted together since it was asked.
    together: Together,
}

/// The places of a service that exceeds a limit.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct OfService {
    /// What has a place, where not everything has.
    places: OfEach<Option<Hashes>>,
    is_full: bool,
}

impl OfService {
    fn take(&mut self, ruled: Ruled) {
        self.is_full = ruled.is_full;
        for (places, ruling) in self.places.iter_mut().zip(ruled.places) {
            match ruling {
                None => {}
                Some(Ruling::All) => *places = None,
                Some(Ruling::Only(hashes)) => *places = Some(hashes.into_iter().collect()),
                Some(Ruling::Also(hashes)) => places.get_or_insert_default().extend(hashes),
            }
        }
    }

    fn exceeds_none(&self) -> bool {
        !self.is_full && self.places.iter().all(Option::is_none)
    }

    /// What exceeds its limit in a build and a pod, if one of them does.
    fn refuses(&self, build: &Build, pod: &PodId) -> Option<Limited> {
        let [_, _, _, builds, pods] = &self.places;
        let is_refused = |places: &Option<Hashes>, hash| places.as_ref().is_some_and(|places| !places.contains(&hash));
        if is_refused(builds, hash_of_build(build)) {
            Some(Limited::Builds)
        } else {
            is_refused(pods, hash_of_pod(pod)).then_some(Limited::Pods)
        }
    }
}

impl Overflow {
    /// What workers were told.
    pub(crate) fn of(services: impl Iterator<Item = (Service, OfService)>) -> Self {
        Self { services: services.collect(), together: Together::new() }
    }

    /// What this worker was told, as every other; in the order of services.
    pub(crate) fn services(&self) -> BTreeMap<&Service, &OfService> {
        self.services.iter().collect()
    }

    /// Takes what was decided at a hop, before anything of that hop is given.
    pub fn rule(&mut self, ruled: Vec<Ruled>) {
        #[expect(clippy::iter_over_hash_type, reason = "each is set to the same")]
        for of_service in self.services.values_mut() {
            of_service.is_full = false;
        }
        for ruled in ruled {
            self.services.entry(ruled.service.clone()).or_default().take(ruled);
        }
        self.services.retain(|_, of_service| !of_service.exceeds_none());
    }

    /// What was counted together since the last call.
    pub fn take_together(&mut self) -> Together {
        std::mem::take(&mut self.together)
    }

    /// What of a pod is counted, within the limits.
    pub fn presence(&self, mut presence: Presence) -> Presence {
        let refused = self.services.get(&presence.service);
        if refused.and_then(|limited| limited.refuses(&presence.build, &presence.pod)).is_some() {
            (presence.build, presence.pod) = (OVERFLOW.into(), OVERFLOW.into());
        }
        presence
    }

    /// What a pod adds, within the limits.
    pub fn addition(&mut self, mut added: CellAddition, table: &FunctionTable) -> CellAddition {
        let Self { services, together } = self;
        let Some(limited) = services.get(&added.cell.service) else { return added };
        let mut note = |what: Limited, samples: u64| {
            let sum = together.entry((added.cell.service.clone(), what)).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(samples));
        };
        let [functions, paths, cells, _, _] = &limited.places;
        let addition = &mut added.addition;
        let together = Names::of(table);
        if limited.is_full {
            note(Limited::Bytes, addition.samples);
            addition.functions =
                functions_together(&addition.functions, addition.samples, together.function, |_| true).0;
            addition.values = functions_together(&addition.values, addition.value, together.function, |_| true).0;
            addition.paths = paths_together(&addition.paths, together.path, |_| true).0;
        }
        if let Some(places) = functions {
            let ids: Vec<FunctionId> =
                decode(&addition.functions).chain(decode(&addition.values)).map(|entry| entry.function).collect();
            let refused = refused(&ids, table.hashes(&ids), places, together.function);
            if !refused.is_empty() {
                let is_refused = |function| refused.binary_search(&function).is_ok();
                let (counts, own) =
                    functions_together(&addition.functions, addition.samples, together.function, is_refused);
                note(Limited::Functions, own);
                addition.functions = counts;
                addition.values = functions_together(&addition.values, addition.value, together.function, is_refused).0;
            }
        }
        if let Some(places) = paths {
            let ids: Vec<PathId> = decode_paths(&addition.paths).map(|(path, _)| path).collect();
            let refused = refused(&ids, table.hashes_of_paths(&ids), places, together.path);
            if !refused.is_empty() {
                let (counts, samples) =
                    paths_together(&addition.paths, together.path, |path| refused.binary_search(&path).is_ok());
                note(Limited::Paths, samples);
                addition.paths = counts;
            }
        }
        if let Some(what) = limited.refuses(&addition.build, &addition.pod) {
            note(what, addition.samples);
            (addition.build, addition.pod) = (OVERFLOW.into(), OVERFLOW.into());
            addition.bucket = Bucket::of(None, &addition.pod);
        }
        if cells.as_ref().is_some_and(|cells| !cells.contains(&hash_of_cell(&added.cell))) {
            note(Limited::Cells, addition.samples);
            added.cell.cell = CellKey { region: OVERFLOW.into(), cohort: OVERFLOW.into() };
        }
        added
    }
}

/// The function and the call path as which others are counted.
struct Names {
    function: FunctionId,
    path: PathId,
}

impl Names {
    fn of(table: &FunctionTable) -> Self {
        let ids = table.intern(&[Arc::from(OVERFLOW)]);
        let stack = Stack { frames: vec![0], count: 1, cohort: None, value: 0 };
        let paths = table.intern_paths(&[stack], &ids);
        let first = |numbers: &[u32]| numbers.first().copied().unwrap_or_default();
        Self { function: first(&ids), path: first(&paths) }
    }
}

/// The numbers whose hashes have no place, ascending.
fn refused(ids: &[u32], hashes: Vec<u64>, places: &Hashes, together: u32) -> Vec<u32> {
    let each = ids.iter().zip(hashes).filter(|&(&id, hash)| id != together && !places.contains(&hash));
    let mut refused: Vec<u32> = each.map(|(&id, _)| id).collect();
    refused.sort_unstable();
    refused.dedup();
    refused
}

/// Counts by function with those of some functions as one; also how many of all samples these have at the leaf. A sample may hold
/// several of them, so their total is their sum, and at most all samples.
fn functions_together(
    counts: &[u8],
    all: u64,
    function: FunctionId,
    is_refused: impl Fn(FunctionId) -> bool,
) -> (Vec<u8>, u64) {
    let mut together = Entry { function, own: 0, total: 0 };
    let mut entries = Vec::new();
    let mut refused = 0;
    for entry in decode(counts) {
        let goes = is_refused(entry.function);
        if goes || entry.function == function {
            refused += if goes { entry.own } else { 0 };
            together.own = together.own.saturating_add(entry.own).min(all);
            together.total = together.total.saturating_add(entry.total).min(all);
        } else {
            entries.push(entry);
        }
    }
    if together.total > 0 {
        entries.insert(entries.partition_point(|entry| entry.function < function), together);
    }
    (encode(&entries), refused)
}

/// Samples by call path with those of some paths as one; also how many samples these have.
fn paths_together(paths: &[u8], together: PathId, is_refused: impl Fn(PathId) -> bool) -> (Vec<u8>, u64) {
    let mut refused = 0;
    let samples = decode_paths(paths).map(|(path, count)| {
        let goes = is_refused(path);
        refused += if goes { count } else { 0 };
        (if goes { together } else { path }, count)
    });
    let samples = samples.collect();
    (encode_paths(samples), refused)
}
