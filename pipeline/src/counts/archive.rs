//! What a cell keeps of what has left the window: the baseline once no base build runs beside the head.
//!
//! By build, UTC hour of the day, kind of machine and bucket. It is sparse three times over: of each stretch of hops one is
//! kept, and which one changes from stretch to stretch, so that a pod that sends once a minute is not always missed and work
//! that is done at the full minute is not always met; only functions with samples are held, as bytes; and there are two
//! generations, of which the older is forgotten as a whole. What is kept goes in as the bytes that it came as, which are added up
//! a few at a time.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId, stable_hash};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use super::cell::{Addition, BucketState, StratumKey};
use super::encoding::{Entry, decode, encode};
use super::functions::CellFunctions;
use crate::config::Config;

const HOUR: i64 = 3_600_000_000_000;
const HOURS_OF_DAY: u64 = 24;
/// Additions that wait before they are added up: a few, so that most of the work is reading what is new.
const WAITING: usize = 16;

/// Which hops are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    clock: HopClock,
    /// Hops in a stretch, of which one is kept.
    stretch: u64,
    /// Hops in a generation.
    generation: u64,
}

impl Keeping {
    /// What a configuration wants kept; `None` if it wants no past, or if its method knows no strata.
    pub fn of(config: &Config) -> Option<Self> {
        let clock = config.clock();
        let length = |length: Nanos| clock.hops_in(length).max(1);
        let keeping = Self { clock, stretch: length(config.baseline_every), generation: length(config.baseline) };
        (config.baseline.0 > 0 && config.method.is_calibrated()).then_some(keeping)
    }

    /// Whether what happened at this hop is kept: of each stretch one hop, which one follows from the hash of its number.
    #[must_use]
    pub fn keeps(&self, own: Hop) -> bool {
        let number = own.0 / self.stretch;
        own.0 % self.stretch == stable_hash(&number.to_le_bytes()) % self.stretch
    }

    /// Whether everything up to `then` is forgotten once all hops before `first` have left the window.
    #[must_use]
    pub fn has_forgotten(&self, then: Hop, first: Hop) -> bool {
        self.generation_of(then) < self.oldest(first)
    }

    fn generation_of(&self, hop: Hop) -> u64 {
        hop.0 / self.generation
    }

    /// The generation before that of the last hop that left the window.
    fn oldest(&self, first: Hop) -> u64 {
        self.generation_of(first.minus(1)).saturating_sub(1)
    }

    /// UTC hours from 1970 to the start of a block, which lies within one hour.
    fn hour_of(&self, block: Hop) -> u64 {
        u64::try_from(self.clock.start_of(block).0.div_euclid(HOUR)).unwrap_or(0)
    }

    /// The hour of the day (0..24, UTC) in which a block lies.
    #[must_use]
    pub fn hour_of_day(&self, block: Hop) -> u64 {
        self.hour_of(block) % HOURS_OF_DAY
    }
}

/// What is kept of one cell.
#[derive(Debug, Default)]
pub struct Archive {
    keeping: Option<Keeping>,
    /// The hour, counted from 1970, in which the latest additions lie.
    hour: u64,
    generations: BTreeMap<u64, BTreeMap<Place, Slot>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    build: Build,
    /// Of the day.
    hour: u64,
    hardware: Hardware,
}

#[derive(Debug, Default)]
struct Slot {
    /// Days since 1970 on which there were samples.
    days: BTreeSet<u64>,
    buckets: BTreeMap<Bucket, Kept>,
}

/// One bucket of one build at one hour of the day.
#[derive(Debug, Default)]
struct Kept {
    samples: u64,
    requests: u64,
    pods: BTreeSet<PodId>,
    /// Counts by place in columns, see [`super::encoding`].
    sums: Vec<u8>,
    /// Counts by number of the process that are not added up yet.
    waiting: Vec<Vec<u8>>,
}

/// What builds that are gone showed on one kind of machine at one hour of the day.
#[derive(Debug)]
pub struct PastStratum<'a> {
    /// Of the day, 0..24, UTC.
    pub hour: u64,
    /// The kind of machine.
    pub hardware: &'a Hardware,
    slots: Vec<&'a Slot>,
}

impl Archive {
    /// Nothing is kept yet.
    pub fn new(keeping: Option<Keeping>) -> Self {
        Self { keeping, ..Self::default() }
    }

    /// What is kept at all.
    pub fn keeping(&self) -> Option<&Keeping> {
        self.keeping.as_ref()
    }

    /// Whether what happened at this hop is kept.
    pub fn keeps(&self, own: Hop) -> bool {
        self.keeping.is_some_and(|keeping| keeping.keeps(own))
    }

    /// Takes what leaves the window, by ascending own hop.
    pub fn take(&mut self, key: StratumKey, addition: Addition, functions: &CellFunctions) {
        let Some(keeping) = self.keeping else { return };
        let hour = keeping.hour_of(key.block);
        if hour != self.hour {
            self.hour = hour;
            self.add_up(functions);
        }
        let place = Place { build: addition.build, hour: hour % HOURS_OF_DAY, hardware: key.hardware };
        let slot = self.generations.entry(keeping.generation_of(addition.own)).or_default().entry(place).or_default();
        let kept = slot.buckets.entry(addition.bucket).or_default();
        kept.requests += addition.requests;
        if addition.samples == 0 {
            return;
        }
        slot.days.insert(hour / HOURS_OF_DAY);
        kept.samples += addition.samples;
        kept.pods.insert(addition.pod);
        kept.waiting.push(addition.functions);
        if kept.waiting.len() >= WAITING {
            kept.add_up(functions);
        }
    }

    /// Forgets generations once all hops before `first` have left the window.
    pub fn forget(&mut self, first: Hop) {
        let Some(keeping) = self.keeping else { return };
        let oldest = keeping.oldest(first);
        if self.generations.keys().next().is_some_and(|&generation| generation < oldest) {
            self.generations = self.generations.split_off(&oldest);
        }
    }

    /// What these builds showed, by hour of the day and kind of machine, ascending; only where there are samples.
    pub fn strata<'a>(&'a self, builds: &[Build]) -> Vec<PastStratum<'a>> {
        let mut strata: BTreeMap<(u64, &Hardware), Vec<&Slot>> = BTreeMap::new();
        for (place, slot) in self.generations.values().flatten().filter(|(place, slot)| builds.contains(&place.build) && !slot.days.is_empty()) {
            strata.entry((place.hour, &place.hardware)).or_default().push(slot);
        }
        strata.into_iter().map(|((hour, hardware), slots)| PastStratum { hour, hardware, slots }).collect()
    }

    /// Bytes of counts.
    pub fn size(&self) -> usize {
        let kept = self.generations.values().flat_map(BTreeMap::values).flat_map(|slot| slot.buckets.values());
        kept.map(|kept| kept.sums.len() + kept.waiting.iter().map(Vec::len).sum::<usize>()).sum()
    }

    /// Adds up what waits: an hour is over, and most of it will not be added to before tomorrow.
    fn add_up(&mut self, functions: &CellFunctions) {
        let kept = self.generations.values_mut().flat_map(BTreeMap::values_mut).flat_map(|slot| slot.buckets.values_mut());
        kept.filter(|kept| !kept.waiting.is_empty()).for_each(|kept| kept.add_up(functions));
    }
}

impl PastStratum<'_> {
    /// Days since 1970 on which there were samples.
    pub fn days(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().flat_map(|slot| slot.days.iter().copied())
    }

    /// The counts, with samples, of each build and generation; those of one bucket add up.
    pub fn buckets(&self, functions: &CellFunctions) -> Vec<(Bucket, BucketState)> {
        let kept = self.slots.iter().flat_map(|slot| &slot.buckets).filter(|(_, kept)| kept.samples > 0);
        kept.map(|(&bucket, kept)| (bucket, kept.state(functions))).collect()
    }
}

impl Kept {
    fn add_up(&mut self, functions: &CellFunctions) {
        let mut sums = vec![(0, 0); functions.len()];
        self.for_each_entry(functions, |place, entry| {
            sums[place].0 += entry.own;
            sums[place].1 += entry.total;
        });
        let entries = (0u32..).zip(sums).filter(|(_, (_, total))| *total > 0);
        self.sums = encode(&entries.map(|(function, (own, total))| Entry { function, own, total }).collect::<Vec<_>>());
        self.sums.shrink_to_fit();
        self.waiting = Vec::new();
    }

    fn state(&self, functions: &CellFunctions) -> BucketState {
        let mut entries = Vec::new();
        self.for_each_entry(functions, |place, entry| entries.push((place, entry)));
        BucketState::kept(self.samples, self.requests, self.pods.iter().cloned(), entries.into_iter())
    }

    fn for_each_entry(&self, functions: &CellFunctions, mut act: impl FnMut(usize, Entry)) {
        for entry in decode(&self.sums) {
            if let Ok(place) = usize::try_from(entry.function) {
                act(place, entry);
            }
        }
        for entry in self.waiting.iter().flat_map(|bytes| decode(bytes)) {
            if let Some(place) = functions.place(entry.function) {
                act(place, entry);
            }
        }
    }
}
