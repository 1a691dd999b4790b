//! The limits of a service: section 1 of `docs/semantics.md`.
//!
//! Which functions, paths, cells, builds and pods have a place is found for each generation as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{Config, Limits, LimitsByHop};
use fleetdiff_schemas::identity::{Cohort, Service, stable_hash};
use fleetdiff_schemas::profile::{OVERFLOW, Profile, ProfileType, Samples};
use fleetdiff_schemas::rows::{CellKey, LimitRow};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Limited;

use super::admission::{Counted, Served, at_frames, folded};
use super::counts::cell_of;

/// What of one counted profile, or of its requests, exceeds the limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Over {
    /// All functions and paths.
    is_full: bool,
    /// By their stable hashes, as paths.
    functions: BTreeSet<u64>,
    paths: BTreeSet<u64>,
    cells: BTreeSet<CellKey>,
}

impl Over {
    /// The cell in which what belongs to a cell is counted.
    pub fn cell(&self, cell: &CellKey) -> CellKey {
        let over = || CellKey { region: OVERFLOW.into(), cohort: OVERFLOW.into() };
        if self.cells.contains(cell) { over() } else { cell.clone() }
    }

    /// Whether a stack of the profile is counted as the path of what exceeds the limits.
    pub fn is_path_over(&self, profile: &Profile) -> impl Fn(&[u32]) -> bool {
        let hashes = if self.paths.is_empty() { Vec::new() } else { hashes_of(profile) };
        move |frames| self.is_full || !self.paths.is_empty() && self.paths.contains(&hash_of_path(&hashes, frames))
    }

    /// Counts by function with what exceeds the limits as one, none of which is more than `most`.
    pub fn functions<const N: usize>(
        &self,
        counts: BTreeMap<Arc<str>, [u64; N]>,
        most: [u64; N],
    ) -> BTreeMap<Arc<str>, [u64; N]> {
        if !self.is_full && self.functions.is_empty() {
            return counts;
        }
        let is_over = |name: &Arc<str>| {
            self.is_full || self.functions.contains(&stable_hash(name.as_bytes())) || **name == *OVERFLOW
        };
        let (over, mut kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            counts.into_iter().partition(|(name, _)| is_over(name));
        if !over.is_empty() {
            let sum = |place: usize| over.values().map(|counts| counts[place]).sum::<u64>().min(most[place]);
            kept.insert(OVERFLOW.into(), std::array::from_fn(sum));
        }
        kept
    }
}

/// What one profile, or its requests, adds to one cell; functions and paths by their stable hashes.
struct Part {
    applied: Hop,
    profile_type: ProfileType,
    cell: CellKey,
    samples: u64,
    /// Samples at the leaf by function; of functions that only have values none.
    functions: BTreeMap<u64, u64>,
    /// How many of these have samples.
    counted_functions: usize,
    paths: BTreeMap<u64, u64>,
}

/// Keeps what was counted of a service within its limits, and says what was not.
pub(super) fn keep_within(
    (config, limits): (&Config, &LimitsByHop),
    service: &Service,
    counted: &mut [Counted],
    served: &mut [Served],
) -> Vec<LimitRow> {
    let parts: Vec<Vec<Part>> = counted.iter().map(|one| parts_of(config, one)).collect();
    let requests: Vec<Part> = served.iter().map(|one| part_of_requests(config, one)).collect();
    let mut places = Sighted::default();
    for (one, parts) in counted.iter().zip(&parts) {
        places.see(one.applied, &one.profile, parts);
    }
    for (one, part) in served.iter().zip(&requests) {
        places.see(one.applied, &one.profile, std::slice::from_ref(part));
    }
    let places = places.within(config, limits);
    let full = full_hops((config, limits), parts.iter().flatten().chain(&requests));
    let mut rows = Rows(BTreeMap::new(), (config, limits), service);
    for (one, parts) in counted.iter_mut().zip(&parts) {
        one.over = places.over(one.applied, full.contains(&one.applied), parts);
        let refused = places.rename(one.applied, &mut one.profile);
        parts.iter().for_each(|part| rows.note(part, &one.over, refused));
    }
    for (one, part) in served.iter_mut().zip(&requests) {
        one.over = places.over(one.applied, full.contains(&one.applied), std::slice::from_ref(part));
        let refused = places.rename(one.applied, &mut one.profile);
        rows.note(part, &one.over, refused);
    }
    rows.0.into_values().collect()
}

fn parts_of(config: &Config, one: &Counted) -> Vec<Part> {
    let profile = &one.profile;
    let mut parts: BTreeMap<CellKey, Part> = BTreeMap::new();
    let new = |cell: &CellKey| Part {
        applied: one.applied,
        profile_type: profile.profile_type,
        cell: cell.clone(),
        samples: 0,
        functions: BTreeMap::new(),
        counted_functions: 0,
        paths: BTreeMap::new(),
    };
    for (cohort, (samples, functions)) in folded(profile) {
        let cell = cell_of(config, &profile.identity, &cohort);
        let part = parts.entry(cell.clone()).or_insert_with(|| new(&cell));
        part.samples += samples;
        for (name, [own, _]) in functions {
            *part.functions.entry(stable_hash(name.as_bytes())).or_default() += own;
        }
        part.counted_functions = part.functions.len();
    }
    if let Samples::Stacks(stacks) = &profile.samples {
        let hashes = hashes_of(profile);
        for stack in stacks {
            let cohort: &Cohort = stack.cohort.as_ref().unwrap_or(&profile.identity.cohort);
            let cell = cell_of(config, &profile.identity, cohort);
            let Some(part) = parts.get_mut(&cell) else { continue };
            if stack.value > 0 {
                for hash in at_frames(&hashes, &stack.frames) {
                    part.functions.entry(*hash).or_default();
                }
            }
            if stack.count > 0 {
                *part.paths.entry(hash_of_path(&hashes, &stack.frames)).or_default() += stack.count;
            }
        }
    }
    parts.into_values().collect()
}

/// The stable hashes of a profile's names.
fn hashes_of(profile: &Profile) -> Vec<u64> {
    profile.names.iter().map(|name| stable_hash(name.as_bytes())).collect()
}

fn part_of_requests(config: &Config, one: &Served) -> Part {
    Part {
        applied: one.applied,
        profile_type: one.profile.profile_type,
        cell: cell_of(config, &one.profile.identity, &one.profile.identity.cohort),
        samples: 0,
        functions: BTreeMap::new(),
        counted_functions: 0,
        paths: BTreeMap::new(),
    }
}

/// Stable hashes of functions, paths, cells, builds and pods.
#[derive(Default)]
struct Sighted([BTreeMap<Hop, BTreeSet<u64>>; 5]);

impl Sighted {
    fn see(&mut self, at: Hop, profile: &Profile, parts: &[Part]) {
        let [functions, paths, cells, builds, pods] = &mut self.0;
        for part in parts {
            functions.entry(at).or_default().extend(part.functions.keys());
            paths.entry(at).or_default().extend(part.paths.keys());
            cells.entry(at).or_default().insert(hash_of_cell(part));
        }
        builds.entry(at).or_default().insert(hash_of("build", profile.identity.build.as_str()));
        pods.entry(at).or_default().insert(hash_of("pod", profile.identity.pod.as_str()));
    }

    fn within(self, config: &Config, limits: &LimitsByHop) -> Places {
        let generation = config.retention_hops();
        let mut kinds = 0..5;
        let places = self.0.map(|seen| {
            let kind = kinds.next().unwrap_or_default();
            let most = |hop: Hop| {
                let Limits { functions, paths, cells, builds, pods, .. } = *limits.at(hop);
                [functions, paths, cells, builds, pods][kind]
            };
            places_of(&seen, generation, most)
        });
        Places { generation, places }
    }
}

/// What has a place in a generation, each with the hop since when.
type PlacesOfKind = BTreeMap<u64, BTreeMap<u64, Hop>>;

/// What has a place, by generation.
fn places_of(seen: &BTreeMap<Hop, BTreeSet<u64>>, generation: u64, most: impl Fn(Hop) -> u64) -> PlacesOfKind {
    let mut places = PlacesOfKind::new();
    let numbers: BTreeSet<u64> = seen.keys().map(|hop| hop.0 / generation).collect();
    for number in numbers {
        let hops = |number: u64| seen.range(Hop(number * generation)..Hop((number + 1) * generation));
        let before = number.checked_sub(1).and_then(|before| Some((before, places.get(&before)?)));
        let begin = Hop(number * generation);
        let mut here: BTreeMap<u64, Hop> = before.map_or_else(BTreeMap::new, |(before, places)| {
            let seen = hops(before).flat_map(|(_, hashes)| hashes);
            seen.filter(|hash| places.contains_key(hash)).map(|hash| (*hash, begin)).collect()
        });
        for (hop, hashes) in hops(number) {
            for hash in hashes {
                if u64::try_from(here.len()).unwrap_or(u64::MAX) < most(*hop) {
                    here.entry(*hash).or_insert(*hop);
                }
            }
        }
        places.insert(number, here);
    }
    places
}

/// Hops at which more is applied than the window may hold.
fn full_hops<'a>((config, limits): (&Config, &LimitsByHop), parts: impl Iterator<Item = &'a Part>) -> BTreeSet<Hop> {
    let mut hops: BTreeMap<Hop, (u64, u64)> = BTreeMap::new();
    for part in parts {
        let hop = hops.entry(part.applied).or_default();
        let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
        hop.0 += Limits::bytes_of(count(part.counted_functions), count(part.paths.len()));
        hop.1 += Limits::bytes_of(1, 1);
    }
    let mut full = BTreeSet::new();
    let mut held: BTreeMap<Hop, u64> = BTreeMap::new();
    for (hop, (bytes, least)) in hops {
        let first = hop.plus(1).minus(config.window_hops());
        let before: u64 = held.range(first..).map(|(_, bytes)| bytes).sum();
        let is_full = before + bytes > limits.at(hop).bytes;
        held.insert(hop, if is_full { least } else { bytes });
        if is_full {
            full.insert(hop);
        }
    }
    full
}

struct Places {
    generation: u64,
    places: [PlacesOfKind; 5],
}

impl Places {
    fn has(&self, kind: usize, at: Hop, hash: u64) -> bool {
        let since = self.places[kind].get(&(at.0 / self.generation)).and_then(|places| places.get(&hash));
        since.is_some_and(|since| *since <= at)
    }

    fn over(&self, at: Hop, is_full: bool, parts: &[Part]) -> Over {
        let mut over = Over { is_full, ..Over::default() };
        for part in parts {
            // Once all functions are one, none of them is looked for.
            if !is_full {
                over.functions.extend(part.functions.keys().filter(|&&function| !self.has(0, at, function)));
                over.paths.extend(part.paths.keys().filter(|&&path| !self.has(1, at, path)));
            }
            over.cells.extend((!self.has(2, at, hash_of_cell(part))).then(|| part.cell.clone()));
        }
        over
    }

    /// Gives a profile of a build or pod without a place the names for these; returns which of them has none.
    fn rename(&self, at: Hop, profile: &mut Arc<Profile>) -> Option<Limited> {
        let refused = if !self.has(3, at, hash_of("build", profile.identity.build.as_str())) {
            Limited::Builds
        } else if !self.has(4, at, hash_of("pod", profile.identity.pod.as_str())) {
            Limited::Pods
        } else {
            return None;
        };
        let profile = Arc::make_mut(profile);
        let identity = Arc::make_mut(&mut profile.identity);
        (identity.build, identity.pod, identity.node) = (OVERFLOW.into(), OVERFLOW.into(), None);
        Some(refused)
    }
}

fn hash_of(kind: &str, name: &str) -> u64 {
    stable_hash(format!("{kind}\0{name}").as_bytes())
}

fn hash_of_cell(part: &Part) -> u64 {
    let Part { profile_type, cell: CellKey { region, cohort }, .. } = part;
    hash_of("cell", &format!("{}\0{region}\0{cohort}", profile_type.name()))
}

/// That of a call path is over those of its names, root first.
fn hash_of_path(hashes: &[u64], frames: &[u32]) -> u64 {
    stable_hash(&at_frames(hashes, frames).flat_map(|hash| hash.to_le_bytes()).collect::<Vec<u8>>())
}

struct Rows<'a>(BTreeMap<(Hop, Limited), LimitRow>, (&'a Config, &'a LimitsByHop), &'a Service);

impl Rows<'_> {
    fn note(&mut self, part: &Part, over: &Over, refused: Option<Limited>) {
        let functions: Vec<u64> = part
            .functions
            .iter()
            .filter(|(function, _)| over.functions.contains(*function))
            .map(|(_, own)| *own)
            .collect();
        let paths: Vec<u64> =
            part.paths.iter().filter(|(path, _)| over.paths.contains(*path)).map(|(_, count)| *count).collect();
        let cells = over.cells.contains(&part.cell);
        for (what, samples) in [
            (Limited::Bytes, over.is_full.then_some(part.samples)),
            (Limited::Functions, (!functions.is_empty()).then(|| functions.iter().sum())),
            (Limited::Paths, (!paths.is_empty()).then(|| paths.iter().sum())),
            (Limited::Cells, cells.then_some(part.samples)),
            (Limited::Builds, (refused == Some(Limited::Builds)).then_some(part.samples)),
            (Limited::Pods, (refused == Some(Limited::Pods)).then_some(part.samples)),
        ] {
            let Some(samples) = samples else { continue };
            let (config, limits) = self.1;
            let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            let row = self.0.entry((part.applied, what)).or_insert_with(|| LimitRow {
                hop_at: config.clock().start_of(part.applied),
                service: self.2.clone(),
                what,
                limit: count(limits.at(part.applied).of(what)),
                profiles: 0,
                samples: 0,
            });
            row.profiles += 1;
            row.samples += count(samples);
        }
    }
}
