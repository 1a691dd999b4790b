//! Which functions, call paths, cells, builds and pods of a service have a place within its limits.
//!
//! Time is cut into generations as long as the retention. What is seen in a generation has a place in it if it had one in the
//! generation before, or if there are still places when it is first seen: at the close of that hop, in the order of stable hashes. What
//! finds no place is counted as [`OVERFLOW`](fleetdiff_schemas::profile::OVERFLOW) ([`overflow`]) until a later generation has a place
//! for it. A service that has more than the limit thus takes memory from nobody, and what was there first stays.
//!
//! Workers say what they see for the first time in a generation ([`sights`]); one worker a service decides; all of them are told.

pub mod overflow;
pub mod sights;

use std::collections::{HashSet, VecDeque};

use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::time::Hop;
use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use self::sights::Sights;
use super::decisions::limits::LimitsInForce;
use crate::counts::held::Figures;

/// Stable hashes.
type Hashes = HashSet<u64, FixedState>;

/// One entry each for functions, call paths, cells, builds and pods, in this order.
pub type OfEach<T> = [T; 5];

/// The settings. Limits may change from hop to hop.
#[derive(Clone, Debug)]
pub struct LimitRules {
    in_force: LimitsInForce,
    generation: u64,
    window: u64,
}

impl LimitRules {
    /// Takes the relevant settings from the configuration.
    pub fn new(config: &Config, in_force: LimitsInForce) -> Self {
        Self { in_force, generation: config.retention_hops(), window: config.window_hops() }
    }

    /// The limits of a hop that closes now.
    pub fn at(&self, hop: Hop) -> Limits {
        self.in_force.at(hop)
    }

    /// The generation of a hop.
    pub fn generation_of(&self, hop: Hop) -> u64 {
        hop.0 / self.generation
    }
}

/// What a worker is told about the places of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ruling {
    /// Everything has a place.
    All,
    /// Exactly these have one.
    Only(Vec<u64>),
    /// These have one too.
    Also(Vec<u64>),
}

/// What is decided about a service at a hop; said only where something changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruled {
    /// Which service.
    pub service: Service,
    /// `None` where nothing changes.
    pub places: OfEach<Option<Ruling>>,
    /// Whether what is applied at this hop is more than the window may hold.
    pub is_full: bool,
}

/// The places of one service.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ServicePlaces {
    generation: u64,
    kinds: OfEach<Places>,
    /// What was counted at the hops of the window, in bytes.
    bytes: VecDeque<(Hop, u64)>,
}

impl ServicePlaces {
    /// Decides about what workers saw at a hop for the first time in its generation, by the limits of that hop.
    pub fn close(&mut self, hop: Hop, seen: Vec<Sights>, rules: &LimitRules, limits: &Limits) -> Option<Ruled> {
        let service = seen.first()?.service.clone();
        let generation = rules.generation_of(hop);
        let ends = generation - std::mem::replace(&mut self.generation, generation);
        let is_full = self.weigh(hop, &seen, rules, limits.bytes);
        let mut new: OfEach<Vec<u64>> = Default::default();
        for sights in seen {
            new.iter_mut().zip(sights.places).for_each(|(new, seen)| new.extend(seen));
        }
        let mut places: OfEach<Option<Ruling>> = Default::default();
        let Limits { functions, paths, cells, builds, pods, .. } = *limits;
        let most = [functions, paths, cells, builds, pods];
        for (((kind, new), most), ruling) in self.kinds.iter_mut().zip(new).zip(most).zip(&mut places) {
            *ruling = kind.close(ends, new, most);
        }
        (is_full || places.iter().any(Option::is_some)).then_some(Ruled { service, places, is_full })
    }

    /// Whether nothing of it has a place any more, so that it is like a service that was never seen.
    pub fn are_forgotten(&self, hop: Hop, rules: &LimitRules) -> bool {
        // NB: a window is no longer than a generation, so nothing is in it either.
        rules.generation_of(hop) >= self.generation + 3
    }

    /// What is decided once nothing has a place any more: what comes is as at the beginning.
    pub fn forget(self, service: Service) -> Option<Ruled> {
        let places = self.kinds.map(|kind| kind.is_limited().then_some(Ruling::All));
        places.iter().any(Option::is_some).then_some(Ruled { service, places, is_full: false })
    }

    /// How much it holds at a hop. While it is silent, nothing of it is dropped.
    pub fn figures(&self, hop: Hop, rules: &LimitRules) -> Figures {
        let [.., cells, builds, pods] = self.kinds.each_ref().map(Places::taken);
        let in_window = self.bytes.iter().rev().take_while(|(at, _)| at.plus(rules.window) > hop);
        Figures { cells, builds, pods, window_bytes: in_window.map(|(_, bytes)| bytes).sum() }
    }

    /// Whether what is applied at a hop is too much; if so, only what is left of it once its functions are counted together stays in
    /// the window.
    fn weigh(&mut self, hop: Hop, seen: &[Sights], rules: &LimitRules, most: u64) -> bool {
        while self.bytes.front().is_some_and(|(at, _)| at.plus(rules.window) <= hop) {
            self.bytes.pop_front();
        }
        let held: u64 = self.bytes.iter().map(|(_, bytes)| bytes).sum();
        let more: u64 = seen.iter().map(|sights| sights.bytes).sum();
        let is_full = held.saturating_add(more) > most;
        let least = || seen.iter().map(|sights| sights.profiles.saturating_mul(Limits::bytes_of(1, 1))).sum();
        self.bytes.push_back((hop, if is_full { least() } else { more }));
        is_full
    }
}

/// The places of one kind.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Places {
    /// Had a place in the generation before.
    earlier: Hashes,
    /// Have a place and were seen in this generation.
    now: Hashes,
    /// Of `now`, those that were in `earlier` too.
    stayed: u64,
    /// Whether something found no place in this generation, and in the one before.
    refused: [bool; 2],
}

impl Places {
    fn close(&mut self, ends: u64, mut new: Vec<u64>, most: u64) -> Option<Ruling> {
        let was_limited = self.is_limited();
        for _ in 0..ends.min(2) {
            self.earlier = std::mem::take(&mut self.now);
            self.stayed = 0;
            self.refused = [false, self.refused[0]];
        }
        let begins_limited = self.is_limited();
        new.sort_unstable();
        new.dedup();
        let mut admitted = Vec::new();
        for hash in new {
            let had_place = self.earlier.contains(&hash);
            if !had_place && !self.now.contains(&hash) && self.taken() >= most {
                self.refused[0] = true;
            } else if self.now.insert(hash) {
                if had_place {
                    self.stayed += 1;
                } else {
                    admitted.push(hash);
                }
            }
        }
        match (was_limited, self.is_limited()) {
            (false, false) => None,
            (true, false) => Some(Ruling::All),
            (true, true) if ends == 0 && begins_limited => (!admitted.is_empty()).then_some(Ruling::Also(admitted)),
            (_, true) => Some(Ruling::Only(self.all())),
        }
    }

    /// Whether not everything has a place.
    fn is_limited(&self) -> bool {
        self.refused.contains(&true)
    }

    fn taken(&self) -> u64 {
        u64::try_from(self.earlier.len() + self.now.len()).unwrap_or(u64::MAX) - self.stayed
    }

    /// Everything that has a place, ascending.
    fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.earlier.union(&self.now).copied().collect();
        all.sort_unstable();
        all
    }
}
