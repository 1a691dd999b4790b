//! What a cell keeps after it has left the window: the history with which the head is compared once no base build runs
//! any more.
//!
//! Counts are kept by build, UTC hour of the day, kind of machine, age and bucket. Three things save memory. First, one
//! hop of each stretch of hops is kept; which one varies, so that a pod that sends once a minute is not always missed,
//! and work done at the full minute is not always caught. Second, only functions with samples are stored, as bytes.
//! Third, there are two generations, and the older one is dropped as a whole. Additions are stored as the bytes that
//! arrived, which are summed a few at a time.
//!
//! Of young pods every hop is kept, by their age in minutes: a process is young for a few minutes of its life, and pods of
//! one deploy start together, so that one hop of each stretch would show all of them at the same few ages.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId, stable_hash};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::bucket::{Addition, Age, BucketState, KeptSizes, StratumKey, square};
use super::encoding::{Entry, add_up, decode, encode};
use super::functions::CellFunctions;

const HOURS_OF_DAY: u64 = 24;
/// Additions that wait before they are summed; several, so that most of the work is reading new additions.
const WAITING: usize = 16;

/// Which hops are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    clock: HopClock,
    /// Hops in a stretch; one of them is kept.
    stretch: u64,
    /// Hops in a generation.
    generation: u64,
}

impl Keeping {
    /// What a configuration keeps; `None` if it keeps no history, or if its method does not use strata.
    pub fn of(config: &Config) -> Option<Self> {
        let clock = config.clock();
        let length = |length: Nanos| clock.hops_in(length).max(1);
        let keeping = Self { clock, stretch: length(config.history_every), generation: length(config.history) };
        (config.history.0 > 0 && config.method.is_calibrated()).then_some(keeping)
    }

    /// Whether what happened at this hop is kept: one hop per stretch, chosen by the hash of the stretch's number.
    #[must_use]
    pub fn keeps(&self, own: Hop) -> bool {
        let number = own.0 / self.stretch;
        own.0 % self.stretch == stable_hash(&number.to_le_bytes()) % self.stretch
    }

    /// Whether everything up to `then` is dropped once all hops before `first` have left the window.
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

    /// UTC hours from 1970 to the start of a block; a block never spans two hours.
    fn hour_of(&self, block: Hop) -> u64 {
        u64::try_from(self.clock.hour_of(block)).unwrap_or(0)
    }

    /// The hour of the day (0..24, UTC) in which a block lies.
    #[must_use]
    pub fn hour_of_day(&self, block: Hop) -> u64 {
        self.hour_of(block) % HOURS_OF_DAY
    }
}

/// What is kept of one cell.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Archive {
    keeping: Option<Keeping>,
    /// The hour of the latest additions, counted from 1970.
    hour: u64,
    generations: BTreeMap<u64, BTreeMap<Place, Slot>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    build: Build,
    /// Of the day.
    hour: u64,
    hardware: Hardware,
    age: Age,
    /// Whole minutes since the process began; 0 if it is old.
    minutes: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Slot {
    /// Days since 1970 on which there were samples.
    days: BTreeSet<u64>,
    buckets: BTreeMap<Bucket, Kept>,
}

/// One bucket of one build at one hour of the day.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    sizes: KeptSizes,
    pods: BTreeSet<PodId>,
    /// Counts by place in columns, see [`super::encoding`].
    #[serde(with = "serde_bytes")]
    sums: Vec<u8>,
    /// Pairs of samples of a profile that share a function, by place in columns.
    #[serde(with = "serde_bytes")]
    pairs: Vec<u8>,
    /// Counts by the process's function numbers that are not summed yet.
    waiting: Vec<ByteBuf>,
}

/// What pods of one age of builds that no longer run showed on one kind of machine at one hour of the day.
#[derive(Debug)]
pub struct HistoryStratum<'a> {
    /// Of the day, 0..24, UTC.
    pub hour: u64,
    /// The kind of machine.
    pub hardware: &'a Hardware,
    /// How old the pods were.
    pub age: Age,
    slots: Vec<&'a Slot>,
}

/// What young pods of builds showed so many minutes after their start, on one kind of machine.
#[derive(Debug)]
pub struct YoungHistory<'a> {
    /// Whole minutes since the process began.
    pub minutes: u64,
    /// The kind of machine.
    pub hardware: &'a Hardware,
    slots: Vec<&'a Slot>,
}

impl Archive {
    /// Nothing is kept yet.
    pub fn new(keeping: Option<Keeping>) -> Self {
        Self { keeping, ..Self::default() }
    }

    /// Which hops are kept.
    pub fn keeping(&self) -> Option<&Keeping> {
        self.keeping.as_ref()
    }

    /// Whether what pods of this age did at this hop is kept.
    pub fn keeps(&self, own: Hop, age: Age) -> bool {
        self.keeping.is_some_and(|keeping| age.is_young() || keeping.keeps(own))
    }

    /// Takes what leaves the window, in ascending order of own hops.
    pub fn take(&mut self, key: StratumKey, addition: Addition, functions: &CellFunctions) {
        let Some(keeping) = self.keeping else { return };
        let hour = keeping.hour_of(key.block);
        if hour != self.hour {
            self.hour = hour;
            self.add_up(functions);
        }
        let minutes = if key.age.is_young() { addition.minutes_old(keeping.clock) } else { 0 };
        let (hardware, age) = (key.hardware, key.age);
        let place = Place { build: addition.build, hour: hour % HOURS_OF_DAY, hardware, age, minutes };
        let slot = self.generations.entry(keeping.generation_of(addition.own)).or_default().entry(place).or_default();
        let kept = slot.buckets.entry(addition.bucket).or_default();
        kept.sizes.requests += addition.requests;
        if addition.samples == 0 {
            return;
        }
        slot.days.insert(hour / HOURS_OF_DAY);
        kept.sizes.samples += addition.samples;
        kept.sizes.hop_squares += square(addition.samples);
        kept.pods.insert(addition.pod);
        kept.waiting.push(addition.functions.into());
        if kept.waiting.len() >= WAITING {
            kept.add_up(functions);
        }
    }

    /// Drops old generations once all hops before `first` have left the window.
    pub fn forget(&mut self, first: Hop) {
        let Some(keeping) = self.keeping else { return };
        let oldest = keeping.oldest(first);
        if self.generations.keys().next().is_some_and(|&generation| generation < oldest) {
            self.generations = self.generations.split_off(&oldest);
        }
    }

    /// What these builds showed, by hour of the day, kind of machine and age, ascending; only where there are samples.
    pub fn strata<'a>(&'a self, builds: &[Build]) -> Vec<HistoryStratum<'a>> {
        let mut strata: BTreeMap<(u64, &Hardware, Age), Vec<&Slot>> = BTreeMap::new();
        for (place, slot) in self.generations.values().flatten().filter(|(place, _)| builds.contains(&place.build)) {
            strata.entry((place.hour, &place.hardware, place.age)).or_default().push(slot);
        }
        strata.retain(|_, slots| slots.iter().any(|slot| !slot.days.is_empty()));
        let each = strata.into_iter();
        each.map(|((hour, hardware, age), slots)| HistoryStratum { hour, hardware, age, slots }).collect()
    }

    /// What young pods of these builds showed, at any hour, by their age in minutes and kind of machine, ascending; only
    /// where there are samples.
    pub fn young<'a>(&'a self, builds: &[Build]) -> Vec<YoungHistory<'a>> {
        let mut ages: BTreeMap<(u64, &Hardware), Vec<&Slot>> = BTreeMap::new();
        let is_young = |place: &Place| place.age.is_young() && builds.contains(&place.build);
        for (place, slot) in self.generations.values().flatten().filter(|(place, _)| is_young(place)) {
            ages.entry((place.minutes, &place.hardware)).or_default().push(slot);
        }
        ages.retain(|_, slots| slots.iter().any(|slot| !slot.days.is_empty()));
        ages.into_iter().map(|((minutes, hardware), slots)| YoungHistory { minutes, hardware, slots }).collect()
    }

    /// Drops all that is kept of these builds.
    pub(super) fn forget_builds(&mut self, builds: &[Build]) {
        self.generations.values_mut().for_each(|places| places.retain(|place, _| !builds.contains(&place.build)));
        self.generations.retain(|_, places| !places.is_empty());
    }

    /// Marks the places of functions that are kept.
    pub(super) fn mark_used(&self, used: &mut [bool], functions: &CellFunctions) {
        let kept = self.generations.values().flat_map(BTreeMap::values).flat_map(|slot| slot.buckets.values());
        kept.for_each(|kept| kept.for_each_count(functions, |place, _| used[place] = true));
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// Bytes of counts.
    pub fn size(&self) -> usize {
        let kept = self.generations.values().flat_map(BTreeMap::values).flat_map(|slot| slot.buckets.values());
        kept.map(|kept| {
            kept.sums.len() + kept.pairs.len() + kept.waiting.iter().map(|bytes| bytes.len()).sum::<usize>()
        })
        .sum()
    }

    /// Sums the waiting additions: the hour is over, and most of its buckets get no more before tomorrow.
    fn add_up(&mut self, functions: &CellFunctions) {
        let kept =
            self.generations.values_mut().flat_map(BTreeMap::values_mut).flat_map(|slot| slot.buckets.values_mut());
        kept.filter(|kept| !kept.waiting.is_empty()).for_each(|kept| kept.add_up(functions));
    }
}

impl HistoryStratum<'_> {
    /// Days since 1970 on which there were samples.
    pub fn days(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().flat_map(|slot| slot.days.iter().copied())
    }

    /// The counts in buckets that have samples; the entries of one bucket are summed.
    pub fn buckets(&self, functions: &CellFunctions) -> Vec<(Bucket, BucketState)> {
        buckets(&self.slots, functions)
    }
}

impl YoungHistory<'_> {
    /// The counts in buckets that have samples; the entries of one bucket are summed.
    pub fn buckets(&self, functions: &CellFunctions) -> Vec<(Bucket, BucketState)> {
        buckets(&self.slots, functions)
    }
}

/// The counts of each build and generation, in buckets that have samples.
fn buckets(slots: &[&Slot], functions: &CellFunctions) -> Vec<(Bucket, BucketState)> {
    let all = || slots.iter().flat_map(|slot| &slot.buckets);
    let occupied: BTreeSet<Bucket> =
        all().filter(|(_, kept)| kept.sizes.samples > 0).map(|(bucket, _)| *bucket).collect();
    let kept = all().filter(|(bucket, _)| occupied.contains(bucket));
    kept.map(|(&bucket, kept)| (bucket, kept.state(functions))).collect()
}

impl Kept {
    fn add_up(&mut self, functions: &CellFunctions) {
        let (mut counts, mut pairs) = (Vec::new(), Vec::new());
        self.for_each_count(functions, |place, entry| counts.extend(at_place(place, entry)));
        self.for_each_pairs(functions, |place, entry| pairs.extend(at_place(place, entry)));
        (self.sums, self.pairs) = (summed(counts), summed(pairs));
        self.waiting = Vec::new();
    }

    fn state(&self, functions: &CellFunctions) -> BucketState {
        let mut state = BucketState::kept(self.sizes, self.pods.iter().cloned());
        self.for_each_count(functions, |place, entry| state.add_counts(place, entry));
        self.for_each_pairs(functions, |place, entry| state.add_pairs(place, entry));
        state
    }

    fn for_each_count(&self, functions: &CellFunctions, mut act: impl FnMut(usize, Entry)) {
        by_place(&self.sums).for_each(|(place, entry)| act(place, entry));
        self.waiting(functions).for_each(|(place, entry)| act(place, entry));
    }

    fn for_each_pairs(&self, functions: &CellFunctions, mut act: impl FnMut(usize, Entry)) {
        by_place(&self.pairs).for_each(|(place, entry)| act(place, entry));
        let several = self.waiting(functions).filter(|(_, entry)| entry.total > 1);
        several.for_each(|(place, entry)| act(place, entry.pairs()));
    }

    /// The entries of profiles that are not summed yet.
    fn waiting<'a>(&'a self, functions: &'a CellFunctions) -> impl Iterator<Item = (usize, Entry)> + 'a {
        let entries = self.waiting.iter().flat_map(|bytes| decode(bytes));
        entries.filter_map(|entry| Some((functions.place(entry.function)?, entry)))
    }
}

/// Sums are kept up to this, so that they fit into their bytes.
const MOST_KEPT: u64 = 1 << 60;

/// Entries whose function is a place in columns.
fn by_place(bytes: &[u8]) -> impl Iterator<Item = (usize, Entry)> + '_ {
    decode(bytes).filter_map(|entry| Some((usize::try_from(entry.function).ok()?, entry)))
}

/// An entry whose function is its place in columns.
fn at_place(place: usize, entry: Entry) -> Option<Entry> {
    Some(Entry { function: u32::try_from(place).ok()?, ..entry })
}

/// Entries by place as bytes, those of one place summed.
fn summed(mut entries: Vec<Entry>) -> Vec<u8> {
    add_up(&mut entries);
    entries.retain(|entry| entry.total > 0);
    for entry in &mut entries {
        (entry.own, entry.total) = (entry.own.min(MOST_KEPT), entry.total.min(MOST_KEPT));
    }
    let mut bytes = encode(&entries);
    bytes.shrink_to_fit();
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::profile::CountKind;
    use proptest::prelude::*;

    use super::*;
    use crate::counts::functions::FunctionTable;

    const FUNCTIONS: u32 = 6;

    fn keeping(history_every: i64, history: i64) -> Keeping {
        let seconds = Nanos::from_seconds;
        Keeping::of(&Config { history_every: seconds(history_every), history: seconds(history), ..Config::default() })
            .expect("history is wanted")
    }

    fn met() -> CellFunctions {
        let (table, mut functions) = (FunctionTable::default(), CellFunctions::default());
        let names: Vec<Arc<str>> = (0..FUNCTIONS).map(|f| format!("f{f}").into()).collect();
        functions.admit(table.intern(&names).into_iter(), &table);
        functions
    }

    #[test]
    fn of_each_stretch_one_hop_is_kept_and_not_always_the_same() {
        let keeping = keeping(60, 604_800);
        let places: Vec<u64> = (100..1100)
            .map(|stretch| {
                let kept: Vec<u64> = (0..6).filter(|place| keeping.keeps(Hop(stretch * 6 + place))).collect();
                assert_eq!(kept.len(), 1, "stretch {stretch}");
                kept[0]
            })
            .collect();
        let times = |place| places.iter().filter(|&&one| one == place).count();
        assert!((0..6).all(|place| (110..230).contains(&times(place))), "{:?}", [0, 1, 2, 3, 4, 5].map(times));
    }

    #[test]
    fn no_history_is_kept_if_not_configured_or_by_a_method_without_strata() {
        let config = Config::default();
        assert!(Keeping::of(&config).is_some());
        assert_eq!(Keeping::of(&Config { history: Nanos(0), ..config.clone() }), None);
        assert_eq!(Keeping::of(&Config { method: fleetdiff_schemas::config::Method::Article, ..config }), None);
    }

    /// (hop within a day, of which day, build, bucket, pod, samples by function, requests)
    type Raw = (u64, u64, u8, u8, u8, Vec<u64>, u64);

    fn addition(raw: &Raw) -> Addition {
        let (within, day, build, bucket, pod, counts, requests) = raw;
        let entries: Vec<Entry> = (0u32..)
            .zip(counts)
            .filter(|(_, count)| **count > 0)
            .map(|(function, &count)| Entry { function, own: count / 2, total: count })
            .collect();
        Addition {
            own: Hop(day * 8640 + within),
            hardware: "x".into(),
            build: format!("b{build}").as_str().into(),
            pod: format!("p{pod}").as_str().into(),
            bucket: Bucket(*bucket),
            started: fleetdiff_schemas::time::Nanos(0),
            age: if pod % 2 == 0 { Age::Old } else { Age::Young(pod / 2 % 3) },
            samples: counts.iter().sum(),
            requests: *requests,
            functions: encode(&entries),
            paths: Vec::new(),
            values: Vec::new(),
            value: 0,
        }
    }

    proptest! {
        /// Law: what an archive holds of some builds is the sum of what came from them in the generations that were not
        /// dropped.
        #[test]
        fn what_is_kept_is_the_sum_of_what_came(mut raw in proptest::collection::vec((0u64..8640, 0u64..4, 0u8..3, 0u8..3, 0u8..9, proptest::collection::vec(0u64..3, 6), 0u64..5), 0..200), forgotten in 0u64..5) {
            raw.sort();
            let (keeping, functions) = (keeping(10, 86_400), met());
            let mut archive = Archive::new(Some(keeping));
            for one in &raw {
                let addition = addition(one);
                let block = Hop(addition.own.0 / 360 * 360);
                let key = StratumKey { block, hardware: addition.hardware.clone(), age: addition.age };
                archive.take(key, addition, &functions);
            }
            let first = Hop(forgotten * 8640 + 1);
            archive.forget(first);
            let builds: [Build; 2] = ["b0".into(), "b2".into()];
            type Sums = BTreeMap<(u64, Age, Bucket), (u64, u64, Vec<u64>, BTreeSet<PodId>, u128)>;
            let (mut expected, mut got) = (Sums::new(), Sums::new());
            for (raw, one) in raw.iter().map(|raw| (raw, addition(raw))).filter(|(raw, one)| builds.contains(&one.build) && raw.1 + 1 >= forgotten) {
                let sum = expected.entry((one.own.0 / 360 % 24, one.age, one.bucket)).or_default();
                (sum.0, sum.1) = (sum.0 + one.samples, sum.1 + one.requests);
                sum.2.resize(12, 0);
                let pairs = raw.5.iter().map(|count| count * count.saturating_sub(1));
                sum.2.iter_mut().zip(raw.5.iter().copied().chain(pairs)).for_each(|(sum, count)| *sum += count);
                sum.4 += square(one.samples);
                if one.samples > 0 {
                    sum.3.insert(one.pod.clone());
                }
            }
            for stratum in archive.strata(&builds) {
                for (bucket, state) in stratum.buckets(&functions) {
                    let sum = got.entry((stratum.hour, stratum.age, bucket)).or_default();
                    (sum.0, sum.1) = (sum.0 + state.samples, sum.1 + state.requests);
                    sum.2.resize(12, 0);
                    let total = |planes: &[crate::counts::plane::Plane], place: usize| planes.iter().map(|plane| plane.get(place)).sum::<u64>();
                    let kind = CountKind::Total;
                    let each = (0..6).map(|place| total(state.planes(kind), place)).chain((0..6).map(|place| total(state.pairs(kind), place)));
                    sum.2.iter_mut().zip(each).for_each(|(sum, more)| *sum += more);
                    sum.4 += state.hop_squares;
                    sum.3.extend(state.pods.keys().cloned());
                }
            }
            let samples = |sums: &Sums| sums.iter().map(|(key, sum)| (*key, sum.clone())).filter(|(_, sum)| sum.0 > 0).collect::<Vec<_>>();
            prop_assert_eq!(samples(&expected), samples(&got));
        }
    }
}
