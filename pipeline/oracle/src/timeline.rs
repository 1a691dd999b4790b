//! What happens to one service hop by hop: section 3 of `docs/semantics.md`.
//!
//! Presence, build order, comparisons, epochs, blocks, looks and reports depend only on which pods were counted when,
//! so they are computed here by walking all hops, before any function is considered.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::{Comparing, Config, Method};
use fleetdiff_schemas::identity::{Build, PodId};
use fleetdiff_schemas::profile::OVERFLOW;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::admission::Counted;

/// How far back a pod counts as present, in hops.
const PRESENT: u64 = 12;
/// A change of shares begins no new block within this time after the last one.
const BLOCK: Nanos = Nanos::from_seconds(300);
const HOUR: i64 = 3_600_000_000_000;

/// A comparison while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub base: Vec<Build>,
    pub head: Build,
    /// The hop at which it opened.
    pub opened: Hop,
    /// The hop at which its epoch began.
    pub epoch: Hop,
}

impl Open {
    /// The builds of the base as tables name them.
    pub fn base_name(&self) -> Build {
        Build::new(self.base.iter().map(Build::as_str).collect::<Vec<_>>().join(","))
    }
}

/// A closed comparison whose head still runs: its base is history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct History {
    pub base: Vec<Build>,
    pub head: Build,
    /// The hop at which it closed.
    pub closed: Hop,
}

/// The result of the close of one hop.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub hop: Hop,
    /// Comparisons that closed, by the hop at which they had opened.
    pub closed: Vec<Open>,
    /// Comparisons open at the end of the hop.
    pub open: Vec<Open>,
    /// Comparisons whose base is history at the end of the hop.
    pub history: Vec<History>,
    /// Builds in the window, in the order of rings; none where one comparison is named.
    pub rings: Vec<Build>,
    pub look: bool,
    /// Whether tables about comparisons are due.
    pub report: bool,
    /// Whether tables about single builds are.
    pub due: bool,
}

/// The history of one service.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// First hops of time blocks, ascending.
    pub blocks: Vec<Hop>,
    /// One entry per hop, from the first counted profile to the last hop of the run.
    pub moments: Vec<Moment>,
    /// Hops at which what was kept of a build was dropped, ascending.
    pub forgotten: BTreeMap<Build, Vec<Hop>>,
    /// For how many hops each build was not needed.
    absent: BTreeMap<Build, u64>,
}

impl Timeline {
    /// The first hop of which anything may be kept of a build at the close of `hop`; `None` if there is no archive.
    pub fn archived_of(&self, config: &Config, build: &Build, hop: Hop) -> Option<Hop> {
        let since = archived(config, hop)?;
        let forgotten = self.forgotten.get(build).and_then(|hops| hops.iter().rev().find(|at| **at <= hop));
        Some(forgotten.map_or(since, |at| since.max(*at)))
    }

    /// Drops what is kept of builds that were neither in the window nor in a comparison at this and at as many hops before as the
    /// retention has, of the hops at which any build was in the window.
    fn forget(&mut self, config: &Config, presence: &Presence, hop: Hop, (open, history): (&[Open], &[History])) {
        if presence.pods.keys().all(|build| presence.in_window(build, hop) == 0) {
            return;
        }
        let compared: BTreeSet<&Build> = open
            .iter()
            .flat_map(|one| one.base.iter().chain([&one.head]))
            .chain(history.iter().flat_map(|one| one.base.iter().chain([&one.head])))
            .collect();
        for build in presence.pods.keys() {
            let was_there = presence.pods[build].values().flatten().any(|at| *at <= hop);
            let absent = self.absent.entry(build.clone()).or_default();
            if !was_there || presence.in_window(build, hop) > 0 || compared.contains(build) {
                *absent = 0;
            } else {
                *absent += 1;
            }
            if *absent == config.retention_hops() {
                self.forgotten.entry(build.clone()).or_default().push(hop);
            }
        }
    }

    /// The block that holds a hop, by its first hop.
    pub fn block_of(&self, own: Hop) -> Hop {
        let holding = self.blocks.iter().rev().find(|start| **start <= own);
        holding.or_else(|| self.blocks.first()).copied().unwrap_or_default()
    }
}

/// Walks the hops of a service from its first counted profile to `last`.
pub(super) fn walk(config: &Config, counted: &[&Counted], last: Hop) -> Timeline {
    let presence = Presence::new(config, counted);
    let mut registry = Registry::default();
    let mut timeline = Timeline::default();
    let mut open: Vec<Open> = Vec::new();
    let mut history: Vec<History> = Vec::new();
    let mut last_look: Option<Hop> = None;
    for hop in (presence.first.0..=last.0).map(Hop) {
        registry.meet(&presence, hop);
        let (stay, closed) = open.into_iter().partition::<Vec<_>, _>(|one| {
            one.base.iter().any(|build| presence.in_window(build, hop) > 0) && presence.in_window(&one.head, hop) > 0
        });
        open = stay;
        let over = closed.iter().filter(|one| open.iter().all(|other| other.head != one.head));
        registry.closed.extend(over.map(|one| one.head.clone()));
        let before = open.len();
        match &config.comparing {
            Comparing::Deploys => registry.open_deploys(config, &presence, hop, &mut open),
            Comparing::Rings(rings) => open_rings(&presence, hop, rings, &mut open),
            Comparing::Named { base, head } => open_named(&presence, hop, base, head, &mut open),
        }
        let opened = open.len() > before;
        let rolled = roll_epochs(config, hop, &mut open);
        let changed = opened || rolled || !closed.is_empty();
        if changed || begins_block(config, &presence, hop, timeline.blocks.last().copied()) {
            timeline.blocks.push(hop);
        }
        let looks = falls(config, config.evaluate_every, hop, last) && presence.counted_after(last_look, hop);
        if looks {
            last_look = Some(hop);
        }
        history.extend(closed.iter().map(|one| History {
            base: one.base.clone(),
            head: one.head.clone(),
            closed: hop,
        }));
        history.retain(|one| {
            let compared = open.iter().any(|other| other.head == one.head || other.base.contains(&one.head));
            presence.in_window(&one.head, hop) > 0
                && !compared
                && archived(config, hop).is_some_and(|since| one.closed.minus(config.window_hops()) >= since)
        });
        timeline.forget(config, &presence, hop, (&open[..], &history[..]));
        let due = falls(config, config.report_every, hop, last);
        let report = due && !(open.is_empty() && history.is_empty());
        timeline.moments.push(Moment {
            hop,
            closed,
            open: open.clone(),
            history: history.clone(),
            rings: registry.rings(config, &presence, hop),
            look: looks,
            report,
            due,
        });
    }
    timeline
}

/// The first hop of which the archive may hold anything at the close of `hop`; `None` if there is no archive.
pub(super) fn archived(config: &Config, hop: Hop) -> Option<Hop> {
    let generation = config.clock().hops_in(config.history);
    let last = hop.minus(config.window_hops());
    (generation > 0 && config.method == Method::Honest)
        .then(|| Hop((last.0 / generation).saturating_sub(1) * generation))
}

/// Whether a hop's end is a multiple of `every`, or the hop is the last of the run.
fn falls(config: &Config, every: Nanos, hop: Hop, last: Hop) -> bool {
    (hop.0 + 1).is_multiple_of(config.clock().hops_in(every).max(1)) || hop == last
}

fn open_named(presence: &Presence, hop: Hop, base: &[Build], head: &Build, open: &mut Vec<Open>) {
    let there = base.iter().any(|build| presence.in_window(build, hop) > 0) && presence.in_window(head, hop) > 0;
    if open.is_empty() && there {
        open.push(Open { base: base.to_vec(), head: head.clone(), opened: hop, epoch: hop });
    }
}

/// Rings that run: each with the last and the first of those before it.
fn open_rings(presence: &Presence, hop: Hop, rings: &[Build], open: &mut Vec<Open>) {
    let there: Vec<&Build> = rings.iter().filter(|build| presence.in_window(build, hop) > 0).collect();
    for ring in 1..there.len() {
        for base in BTreeSet::from([0, ring - 1]) {
            open_pair(hop, there[base], there[ring], open);
        }
    }
}

/// Opens a comparison of two builds unless it is open.
fn open_pair(hop: Hop, base: &Build, head: &Build, open: &mut Vec<Open>) {
    if !open.iter().any(|one| one.head == *head && one.base == [base.clone()]) {
        open.push(Open { base: vec![base.clone()], head: head.clone(), opened: hop, epoch: hop });
    }
}

/// Begins a new epoch where the old one is over; returns whether any began.
fn roll_epochs(config: &Config, hop: Hop, open: &mut [Open]) -> bool {
    let length = config.clock().hops_in(config.epoch).max(1);
    let mut rolled = false;
    for one in open.iter_mut().filter(|one| hop.0 - one.epoch.0 >= length) {
        one.epoch = hop;
        rolled = true;
    }
    rolled
}

/// Whether a time block begins although no comparison changed. `block` is the first hop of the previous block.
fn begins_block(config: &Config, presence: &Presence, hop: Hop, block: Option<Hop>) -> bool {
    let hour = |hop: Hop| config.clock().start_of(hop).0.div_euclid(HOUR);
    let Some(block) = block else { return true };
    if hour(hop) != hour(hop.minus(1)) {
        return true;
    }
    if hop.0 - block.0 < config.clock().hops_in(BLOCK) {
        return false;
    }
    let (then, now) = (presence.present(block), presence.present(hop));
    let (all_then, all_now) = (then.values().sum::<u64>(), now.values().sum::<u64>());
    let of = |pods: &BTreeMap<&Build, u64>, build: &Build| u128::from(pods.get(build).copied().unwrap_or(0));
    let (all_then, all_now) = (u128::from(all_then), u128::from(all_now));
    // |now/all_now - then/all_then| > 1/10, multiplied out. With no pods on either side both sides are 0.
    let moved =
        |build: &Build| 10 * (of(&now, build) * all_then).abs_diff(of(&then, build) * all_now) > all_now * all_then;
    let (old_then, old_now) = (presence.old(block), presence.old(hop));
    // The same of old pods among those of a build.
    let aged = |build: &Build| {
        let (pods_then, pods_now) = (of(&then, build), of(&now, build));
        10 * (of(&old_then, build) * pods_now).abs_diff(of(&old_now, build) * pods_then) > pods_then * pods_now
    };
    then.keys().chain(now.keys()).any(|build| moved(build) || aged(build))
}

/// Which pods were counted when.
struct Presence {
    /// Hops at which a pod was counted, ascending, by build and pod.
    pods: BTreeMap<Build, BTreeMap<PodId, Vec<Hop>>>,
    /// Hops at which a pod was counted as old.
    old: BTreeMap<Build, BTreeMap<PodId, Vec<Hop>>>,
    /// Smallest process start among a build's profiles counted at a hop.
    starts: BTreeMap<(Build, Hop), Option<Nanos>>,
    /// All hops at which anything was counted.
    hops: BTreeSet<Hop>,
    first: Hop,
    window: u64,
}

impl Presence {
    fn new(config: &Config, counted: &[&Counted]) -> Self {
        let mut pods: BTreeMap<Build, BTreeMap<PodId, Vec<Hop>>> = BTreeMap::new();
        let mut old: BTreeMap<Build, BTreeMap<PodId, Vec<Hop>>> = BTreeMap::new();
        let mut starts: BTreeMap<(Build, Hop), Option<Nanos>> = BTreeMap::new();
        for one in counted {
            let id = &one.profile.identity;
            pods.entry(id.build.clone()).or_default().entry(id.pod.clone()).or_default().push(one.applied);
            let age = |start: Nanos| config.clock().start_of(one.own).0 - start.0;
            if config.young.0 == 0 || id.process_start.is_none_or(|start| age(start) >= config.young.0) {
                old.entry(id.build.clone()).or_default().entry(id.pod.clone()).or_default().push(one.applied);
            }
            let start = starts.entry((id.build.clone(), one.applied)).or_insert(id.process_start);
            *start = [*start, id.process_start].into_iter().flatten().min();
        }
        pods.values_mut().flat_map(BTreeMap::values_mut).for_each(|hops| hops.sort_unstable());
        let hops: BTreeSet<Hop> = counted.iter().map(|one| one.applied).collect();
        let first = hops.first().copied().unwrap_or_default();
        Self { pods, old, starts, hops, first, window: config.window_hops() }
    }

    /// Pods of a build that were counted in the `length` hops up to `hop`.
    fn within(&self, build: &Build, hop: Hop, length: u64) -> u64 {
        let there = |hops: &&Vec<Hop>| hops.iter().any(|at| *at <= hop && at.0 + length > hop.0);
        let count = self.pods.get(build).map_or(0, |pods| pods.values().filter(there).count());
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn in_window(&self, build: &Build, hop: Hop) -> u64 {
        self.within(build, hop, self.window)
    }

    /// Pods of each build that are present.
    fn present(&self, hop: Hop) -> BTreeMap<&Build, u64> {
        self.pods.keys().map(|build| (build, self.within(build, hop, PRESENT))).collect()
    }

    /// Of each build's present pods those that were counted as old.
    fn old(&self, hop: Hop) -> BTreeMap<&Build, u64> {
        let there = |hops: &&Vec<Hop>| hops.iter().any(|at| *at <= hop && at.0 + PRESENT > hop.0);
        let count =
            |pods: &BTreeMap<PodId, Vec<Hop>>| u64::try_from(pods.values().filter(there).count()).unwrap_or(u64::MAX);
        self.old.iter().map(|(build, pods)| (build, count(pods))).collect()
    }

    /// The last hop before `hop` at which anything was counted.
    fn last_before(&self, hop: Hop) -> Option<Hop> {
        self.hops.range(..hop).next_back().copied()
    }

    /// The hop at which the service was counted again after it had been silent for a window, as seen from a hop at which it is
    /// counted; the first one if it never was.
    fn start_of_service(&self, hop: Hop) -> Hop {
        let mut start = hop;
        while let Some(last) = self.last_before(start)
            && last.plus(self.window) >= start
        {
            start = last;
        }
        start
    }

    fn counted_after(&self, after: Option<Hop>, hop: Hop) -> bool {
        self.hops.range(..=hop).next_back().is_some_and(|latest| Some(*latest) > after)
    }
}

/// A build's place in build order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    hop: Hop,
    /// The smallest process start; an unknown one sorts last.
    start: (bool, Option<Nanos>),
    name: Build,
}

/// Builds of a service and the comparisons that they have had.
#[derive(Default)]
struct Registry {
    places: BTreeMap<Build, Place>,
    initial: BTreeSet<Build>,
    /// Heads of closed comparisons that have not been deployed again since.
    closed: BTreeSet<Build>,
}

impl Registry {
    /// Gives a place in build order to builds that are new at this hop.
    fn meet(&mut self, presence: &Presence, hop: Hop) {
        let begun = presence.start_of_service(hop);
        for ((build, _), start) in presence.starts.iter().filter(|((_, at), _)| *at == hop) {
            // What exceeds the limits of the service is compared with nothing.
            if build.as_str() == OVERFLOW {
                continue;
            }
            let known = self.places.contains_key(build);
            if known && hop > presence.first && presence.in_window(build, hop.minus(1)) > 0 {
                continue;
            }
            self.initial.remove(build);
            let was_there = presence.last_before(begun).is_some_and(|last| presence.in_window(build, last) > 0);
            if hop == begun || was_there && hop.0 - begun.0 < presence.window {
                self.initial.insert(build.clone());
            }
            self.places.insert(build.clone(), Place { hop, start: (start.is_none(), *start), name: build.clone() });
            self.closed.remove(build);
        }
    }

    /// Builds in the window, in the order of rings.
    fn rings(&self, config: &Config, presence: &Presence, hop: Hop) -> Vec<Build> {
        let mut order: Vec<&Place> = self.places.values().collect();
        order.sort();
        let all: Vec<Build> = match &config.comparing {
            Comparing::Named { .. } => Vec::new(),
            Comparing::Rings(rings) => rings.clone(),
            Comparing::Deploys => order.into_iter().map(|place| place.name.clone()).collect(),
        };
        all.into_iter().filter(|build| presence.in_window(build, hop) > 0).collect()
    }

    /// Opens the comparisons of deploys, in build order.
    fn open_deploys(&self, config: &Config, presence: &Presence, hop: Hop, open: &mut Vec<Open>) {
        let mut order: Vec<&Place> = self.places.values().collect();
        order.sort();
        let pods = |place: &Place| presence.in_window(&place.name, hop);
        for (rank, head) in order.iter().enumerate() {
            let is_known = self.initial.contains(&head.name) || self.closed.contains(&head.name);
            if is_known || pods(head) < config.min_head_pods.max(1) {
                continue;
            }
            if !open.iter().any(|one| one.head == head.name) {
                let others = order.iter().filter(|place| place.name != head.name && pods(place) > 0);
                if let Some(base) = others.max_by_key(|place| (pods(place), **place)) {
                    open_pair(hop, &base.name, &head.name, open);
                }
            }
            let rings: Vec<_> =
                order[..rank].iter().filter(|place| pods(place) >= config.min_head_pods.max(1)).collect();
            for base in rings.last().into_iter().chain(rings.first()) {
                open_pair(hop, &base.name, &head.name, open);
            }
        }
    }
}
