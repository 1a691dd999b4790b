//! Which builds are compared, since when, in which time blocks, and when they are evaluated.
//!
//! One state machine per service, stepped once per hop with the counts of the registry of pods. A later build opens a
//! comparison against the build with the most pods. Where several builds are rolled out side by side, each of these rings is also
//! compared with the ring before it and with the first. A new time block begins whenever the mixture of builds has moved,
//! so that a roll-out under a drifting load is compared within blocks in which little moved. If the base is gone and
//! the head still runs, the head is compared with history.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::{ComparisonId, OpenComparison};
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::profile::OVERFLOW;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};

use crate::counts::archive::Keeping;

/// Hops for which a pod counts as present after its last counted profile.
pub const PRESENT_HOPS: u64 = 12;
/// Least length of a time block that ends because the mixture of builds moved.
const SHORTEST_BLOCK: Nanos = Nanos::from_seconds(300);

/// A comparison that has closed because no base build runs any more, and that continues against history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HistoryComparison {
    /// Which.
    pub id: ComparisonId,
    /// The hop at which it closed, when no base build was in the window any more.
    pub closed: Hop,
}

/// The plan of one hop for one service: sent to every worker before the hop's counts are used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plan {
    /// The service.
    pub service: Service,
    /// Whether a time block begins with this hop.
    pub begins_block: bool,
    /// Comparisons that are open once the hop is closed.
    pub open: Vec<OpenComparison>,
    /// Comparisons that ended with this hop.
    pub closed: Vec<ComparisonId>,
    /// Comparisons that continue against history.
    pub history: Vec<HistoryComparison>,
    /// Whether this hop is a look of the live rule.
    pub look: bool,
    /// Whether the tables of reports are written at this hop; without a comparison those about single builds.
    pub report: bool,
    /// The rings of the roll-out, the earliest first: builds that run side by side. Empty where comparisons are named.
    pub rings: Vec<Build>,
    /// Builds of which no history is kept any longer.
    pub forgotten: Vec<Build>,
}

impl Plan {
    /// The first hop of the earliest open epoch.
    pub fn earliest_epoch(&self) -> Option<Hop> {
        self.open.iter().map(|open| open.epoch).min()
    }
}

/// What the registry knows about a service once a hop is closed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HopFacts {
    /// Builds with a counted profile at this hop, with the smallest process start among those.
    pub counted: BTreeMap<Build, Option<Nanos>>,
    /// Distinct pods counted within the window, by build.
    pub in_window: BTreeMap<Build, u64>,
    /// Distinct pods present, by build.
    pub present: BTreeMap<Build, u64>,
    /// Those of them that are old, by build.
    pub old: BTreeMap<Build, u64>,
}

/// Present pods by build: all, and those that are old.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Mixture {
    present: BTreeMap<Build, u64>,
    old: BTreeMap<Build, u64>,
}

impl HopFacts {
    /// Whether no pod is held.
    pub fn is_silent(&self) -> bool {
        self.counted.is_empty() && self.in_window.is_empty() && self.present.is_empty()
    }
}

/// Build order: first counted sample, process start (unknown last), name.
type Place = (Hop, (bool, Option<Nanos>), Build);

/// The builds, blocks and comparisons of one service so far.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServiceHistory {
    service: Service,
    places: BTreeMap<Build, Place>,
    initial: BTreeSet<Build>,
    /// Heads whose comparisons have all ended and which have not been deployed again since.
    done: BTreeSet<Build>,
    before: BTreeSet<Build>,
    /// Builds that were in the window when anything was last counted.
    lately: BTreeSet<Build>,
    /// The hop at which the service came back after a silence of all builds, with those that were in the window before it.
    returned: (Hop, BTreeSet<Build>),
    open: Vec<OpenComparison>,
    history: Vec<HistoryComparison>,
    /// The first hop of the block, and the pods that were present then.
    block: Option<(Hop, Mixture)>,
    counted_since_look: bool,
    /// For how many hops each build that was counted has been neither in the window nor in a comparison, while others were.
    absent: BTreeMap<Build, u64>,
}

/// The settings that decide comparisons.
#[derive(Clone, Debug)]
pub struct ComparisonRules {
    clock: HopClock,
    evaluate_every: Nanos,
    report_every: Nanos,
    epoch_hops: u64,
    min_head_pods: u64,
    comparing: Comparing,
    window_hops: u64,
    retention_hops: u64,
    /// How history is kept, if it is.
    keeping: Option<Keeping>,
}

impl ComparisonRules {
    /// Takes the relevant settings from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            clock: config.clock(),
            evaluate_every: config.evaluate_every,
            report_every: config.report_every,
            epoch_hops: config.clock().hops_in(config.epoch).max(1),
            min_head_pods: config.min_head_pods,
            comparing: config.comparing.clone(),
            window_hops: config.window_hops(),
            retention_hops: config.retention_hops(),
            keeping: Keeping::of(config),
        }
    }

    /// Hops before one at which something is counted that decide its blocks: own hops reach back by the window, and the block of
    /// the first of them begins at most an hour before.
    pub fn hops_before_counts(&self) -> u64 {
        self.window_hops.saturating_add(self.clock.hops_in(Nanos::from_seconds(3_600))).saturating_add(1)
    }

    fn ends_at(&self, hop: Hop, every: Nanos) -> bool {
        every.0 <= 0 || self.clock.end_of(hop).0 % every.0 == 0
    }
}

impl ServiceHistory {
    /// The state of a service of which nothing has been seen.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            places: BTreeMap::new(),
            initial: BTreeSet::new(),
            done: BTreeSet::new(),
            before: BTreeSet::new(),
            lately: BTreeSet::new(),
            returned: (Hop(0), BTreeSet::new()),
            open: Vec::new(),
            history: Vec::new(),
            block: None,
            counted_since_look: false,
            absent: BTreeMap::new(),
        }
    }

    /// Steps over one hop. Must be called for every hop from the first counted sample on, in order. `last` says that no
    /// hop follows.
    pub fn close(&mut self, hop: Hop, facts: &HopFacts, last: bool, rules: &ComparisonRules) -> Plan {
        self.place_builds(hop, facts, rules);
        let closed = self.close_comparisons(facts);
        let opened = self.open_comparisons(hop, facts, rules) | self.roll_epochs(hop, rules);
        self.follow_history(hop, &closed, facts, rules);
        let begins_block = self.begin_block(hop, facts, opened || !closed.is_empty(), rules);
        self.before = facts.in_window.keys().cloned().collect();
        self.counted_since_look |= !facts.counted.is_empty();
        let look = self.counted_since_look && (last || rules.ends_at(hop, rules.evaluate_every));
        if look {
            self.counted_since_look = false;
        }
        // A build that comes back gets its place anew.
        self.places.retain(|build, _| facts.in_window.contains_key(build));
        self.initial.retain(|build| facts.in_window.contains_key(build));
        self.done.retain(|build| facts.in_window.contains_key(build));
        let report = last || rules.ends_at(hop, rules.report_every);
        Plan {
            service: self.service.clone(),
            begins_block,
            open: self.open.clone(),
            closed,
            history: self.history.clone(),
            look,
            report,
            rings: self.rings(facts, rules),
            forgotten: self.forget_builds(facts, rules),
        }
    }

    /// Builds that others have replaced for as long as the retention: nothing that was kept of them serves a comparison any more. While
    /// no build runs, none is replaced.
    fn forget_builds(&mut self, facts: &HopFacts, rules: &ComparisonRules) -> Vec<Build> {
        if facts.in_window.is_empty() {
            return Vec::new();
        }
        let Self { absent, open, history, .. } = self;
        absent.extend(facts.in_window.keys().map(|build| (build.clone(), 0)));
        let compared = || open.iter().map(|open| &open.id).chain(history.iter().map(|history| &history.id));
        let is_needed =
            |build: &Build| facts.in_window.contains_key(build) || compared().any(|id| id.side(build).is_some());
        for (build, hops) in absent.iter_mut() {
            *hops = if is_needed(build) { 0 } else { *hops + 1 };
        }
        let forgotten = absent.extract_if(.., |_, hops| *hops >= rules.retention_hops);
        forgotten.map(|(build, _)| build).collect()
    }

    /// Whether an empty hop changes nothing but where a time block begins.
    pub fn is_idle(&self) -> bool {
        self.before.is_empty() && self.open.is_empty() && self.history.is_empty() && !self.counted_since_look
    }

    /// Gives builds that are new their place in build order. After a silence of all builds nothing is new: neither what is counted
    /// first, nor what was there before the silence and comes back within a window.
    fn place_builds(&mut self, hop: Hop, facts: &HopFacts, rules: &ComparisonRules) {
        if facts.counted.is_empty() {
            return;
        }
        let begins = self.before.is_empty();
        if begins {
            self.returned = (hop, std::mem::take(&mut self.lately));
        }
        self.lately = facts.in_window.keys().cloned().collect();
        let (since, known) = &self.returned;
        let returns = |build: &Build| hop < since.plus(rules.window_hops) && known.contains(build);
        for (build, start) in &facts.counted {
            // What exceeds the limits of a service is compared with nothing.
            if build.as_str() == OVERFLOW || self.places.contains_key(build) && self.before.contains(build) {
                continue;
            }
            self.places.insert(build.clone(), (hop, (start.is_none(), *start), build.clone()));
            self.done.remove(build);
            if begins || returns(build) {
                self.initial.insert(build.clone());
            } else {
                self.initial.remove(build);
            }
        }
    }

    fn close_comparisons(&mut self, facts: &HopFacts) -> Vec<ComparisonId> {
        let lives = |build: &Build| facts.in_window.contains_key(build);
        let (open, closed): (Vec<_>, Vec<_>) =
            self.open.drain(..).partition(|open| open.id.base.iter().any(lives) && lives(&open.id.head));
        self.open = open;
        let heads = closed.iter().map(|ended| &ended.id.head);
        let over: Vec<Build> = heads.filter(|head| !self.is_head(head)).cloned().collect();
        self.done.extend(over);
        closed.into_iter().map(|ended| ended.id).collect()
    }

    /// Comparisons against history. One begins if the head of a closed comparison still runs. It ends once the head is
    /// gone, is in an open comparison, or nothing kept of its base is left.
    fn follow_history(&mut self, hop: Hop, closed: &[ComparisonId], facts: &HopFacts, rules: &ComparisonRules) {
        let Some(keeping) = rules.keeping else { return };
        self.history.extend(closed.iter().map(|id| HistoryComparison { id: id.clone(), closed: hop }));
        let first = hop.plus(1).minus(rules.window_hops);
        let is_compared = |head: &Build| self.open.iter().any(|open| open.id.side(head).is_some());
        self.history.retain(|history| {
            let head = &history.id.head;
            facts.in_window.contains_key(head)
                && !is_compared(head)
                && !keeping.has_forgotten(history.closed.minus(rules.window_hops), first)
        });
        self.history.sort();
    }

    fn open_comparisons(&mut self, hop: Hop, facts: &HopFacts, rules: &ComparisonRules) -> bool {
        let ids = match &rules.comparing {
            Comparing::Named { base, head } => self.named(base, head, facts),
            Comparing::Rings(_) => self.between_rings(&self.rings(facts, rules)),
            Comparing::Deploys => self.deploys(facts, rules),
        };
        let any = !ids.is_empty();
        self.open.extend(ids.into_iter().map(|id| OpenComparison { id, epoch: hop }));
        self.open.sort();
        any
    }

    fn is_head(&self, build: &Build) -> bool {
        self.open.iter().any(|open| open.id.head == *build)
    }

    /// A comparison of single builds, unless it is open.
    fn unopened(&self, base: &Build, head: &Build) -> Option<ComparisonId> {
        let id = ComparisonId { service: self.service.clone(), base: vec![base.clone()], head: head.clone() };
        (!self.open.iter().any(|open| open.id == id)).then_some(id)
    }

    fn named(&self, base: &[Build], head: &Build, facts: &HopFacts) -> Vec<ComparisonId> {
        let lives = |build: &Build| facts.in_window.contains_key(build);
        let wanted = self.open.is_empty() && base.iter().any(lives) && lives(head);
        let id = ComparisonId { service: self.service.clone(), base: base.to_vec(), head: head.clone() };
        wanted.then_some(id).into_iter().collect()
    }

    /// The builds that run side by side, the earliest first: in the order of names where rings are named, else in build order.
    fn rings(&self, facts: &HopFacts, rules: &ComparisonRules) -> Vec<Build> {
        let lives = |build: &&Build| facts.in_window.contains_key(build);
        match &rules.comparing {
            Comparing::Named { .. } => Vec::new(),
            Comparing::Rings(rings) => rings.iter().filter(lives).cloned().collect(),
            Comparing::Deploys => {
                let mut order: Vec<&Place> = self.places.values().collect();
                order.sort();
                order.into_iter().map(|place| &place.2).filter(lives).cloned().collect()
            }
        }
    }

    /// Each ring against the one before it and against the first, unless that is open.
    fn between_rings(&self, rings: &[Build]) -> Vec<ComparisonId> {
        let pairs = rings
            .iter()
            .enumerate()
            .flat_map(|(ring, head)| ring_bases(rings.iter().take(ring)).filter_map(|base| self.unopened(base, head)));
        pairs.collect()
    }

    /// Each build that is new: against the build with the most pods, once; and, as a ring of a roll-out, against the build before it
    /// in build order and the first, as soon as that has as many pods as a head needs.
    fn deploys(&self, facts: &HopFacts, rules: &ComparisonRules) -> Vec<ComparisonId> {
        let rings = self.rings(facts, rules);
        let pods = |build: &Build| facts.in_window.get(build).copied().unwrap_or(0);
        let has_enough = |build: &&Build| pods(build) >= rules.min_head_pods.max(1);
        let is_new = |build: &Build| !self.initial.contains(build) && !self.done.contains(build);
        let mut ids = BTreeSet::new();
        for (ring, head) in rings.iter().enumerate().filter(|(_, head)| is_new(head) && has_enough(head)) {
            let others = rings.iter().enumerate().filter(|(other, _)| *other != ring);
            let largest = others.max_by_key(|(other, build)| (pods(build), *other)).map(|(_, build)| build);
            let largest = largest.filter(|_| !self.is_head(head));
            let earlier = ring_bases(rings.iter().take(ring).filter(has_enough));
            ids.extend(largest.into_iter().chain(earlier).filter_map(|base| self.unopened(base, head)));
        }
        ids.into_iter().collect()
    }

    fn roll_epochs(&mut self, hop: Hop, rules: &ComparisonRules) -> bool {
        let mut any = false;
        for open in &mut self.open {
            if open.epoch.plus(rules.epoch_hops) <= hop {
                open.epoch = hop;
                any = true;
            }
        }
        any
    }

    fn begin_block(&mut self, hop: Hop, facts: &HopFacts, changed: bool, rules: &ComparisonRules) -> bool {
        let begins = match &self.block {
            None => true,
            Some(_) if changed || rules.clock.hour_of(hop) != rules.clock.hour_of(hop.minus(1)) => true,
            Some((start, then)) => {
                start.plus(rules.clock.hops_in(SHORTEST_BLOCK)) <= hop
                    && (some_share_moved(&then.present, &facts.present) || then.some_build_aged(facts))
            }
        };
        if begins {
            self.block = Some((hop, Mixture { present: facts.present.clone(), old: facts.old.clone() }));
        }
        begins
    }
}

/// With which of the rings before it a ring is compared: the last and the first of them.
fn ring_bases<'a>(earlier: impl DoubleEndedIterator<Item = &'a Build> + Clone) -> impl Iterator<Item = &'a Build> {
    let previous = earlier.clone().next_back();
    let first = earlier.clone().next().filter(|first| Some(*first) != previous);
    previous.into_iter().chain(first)
}

impl Mixture {
    /// Whether the old pods' share among those of some build differs by more than a tenth. What costs follow with load or time would
    /// otherwise meet arms that are compared over different parts of a block: the old pods of a new build are there only at its end.
    fn some_build_aged(&self, now: &HopFacts) -> bool {
        let of = |pods: &BTreeMap<Build, u64>, build| pods.get(build).copied().unwrap_or(0);
        self.present.iter().any(|(build, &then)| {
            let (then, now_present) = (u128::from(then), u128::from(of(&now.present, build)));
            let (old_then, old_now) = (u128::from(of(&self.old, build)), u128::from(of(&now.old, build)));
            (old_then * now_present).abs_diff(old_now * then) * 10 > then * now_present
        })
    }
}

/// Whether some build's share of pods differs by more than a tenth, computed in whole numbers.
fn some_share_moved(then: &BTreeMap<Build, u64>, now: &BTreeMap<Build, u64>) -> bool {
    let sum = |pods: &BTreeMap<Build, u64>| pods.values().map(|&count| u128::from(count)).sum::<u128>();
    let (all_then, all_now) = (sum(then), sum(now));
    if all_then == 0 || all_now == 0 {
        return false;
    }
    let builds: BTreeSet<_> = then.keys().chain(now.keys()).collect();
    builds.into_iter().any(|build| {
        let of = |pods: &BTreeMap<Build, u64>| u128::from(pods.get(build).copied().unwrap_or(0));
        let moved = (of(then) * all_now).abs_diff(of(now) * all_then);
        moved * 10 > all_then * all_now
    })
}

#[cfg(test)]
mod tests;
