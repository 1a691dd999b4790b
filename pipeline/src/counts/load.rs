//! Samples and requests of a cell by minute: what its load was, and what each function cost under it.
//!
//! A minute is summed once, when its last hop closes, from the additions that the window still holds; what is late for it is added to
//! its sums. It is dropped as a whole as soon as its first hop leaves the window. Minutes without any request are not kept: without
//! them nothing can be said about load. Pods that may still be warming up are left out: they are the more, the more is scaled up
//! under load, and they cost more for another reason.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId};
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::{Deserialize, Serialize};

use super::bucket::{Addition, Age, known};
use super::encoding::{Entry, decode, encode, sum};
use super::functions::CellFunctions;

/// Additions of the window by their own hop, each with whatever else is kept.
type Ring<K> = BTreeMap<Hop, Vec<(K, Addition)>>;

/// Pods that are taken together: of one kind of machine, since what they cost must not depend on which of them serve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Replicate {
    /// Their kind of machine.
    pub hardware: Hardware,
    /// Their bucket.
    pub bucket: Bucket,
}

/// What the pods of one build that are taken together did in one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Operations served.
    pub requests: u64,
    /// Samples in all.
    pub samples: u64,
    /// The pods that served.
    pub pods: BTreeSet<PodId>,
    /// Samples by function, encoded with the cell's places in the place of the process's numbers.
    functions: Vec<u8>,
}

impl Served {
    /// Samples by the functions' places in the cell, ascending.
    pub fn counts(&self) -> impl Iterator<Item = (usize, Entry)> {
        decode(&self.functions).map(|entry| (index_of(entry.function), entry))
    }

    /// Bytes of the counts.
    fn size(&self) -> usize {
        self.functions.capacity()
    }

    fn add(&mut self, addition: &Addition, functions: &CellFunctions) {
        self.add_sizes(addition);
        if addition.samples > 0 {
            let mut more = Scratch::default();
            more.add(addition, functions);
            self.functions = sum([&*self.functions, &*more.take()].into_iter());
        }
    }

    fn add_sizes(&mut self, addition: &Addition) {
        self.requests += addition.requests;
        self.samples += addition.samples;
        if addition.requests > 0 {
            self.pods.insert(addition.pod.clone());
        }
    }
}

/// One minute of a cell, by build and replicate.
pub type Minute = BTreeMap<(Build, Replicate), Served>;

/// The minutes of a cell that lie within the window as a whole.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Hops that make up a minute, at least 1.
    hops: u64,
    minutes: BTreeMap<u64, Minute>,
    /// The number of the first minute that is not over.
    next: u64,
}

impl LoadCounts {
    /// Nothing counted so far. A minute is as many hops as it needs, counted from the Unix epoch.
    pub fn new(clock: HopClock) -> Self {
        Self { hops: clock.hops_in(Nanos::from_seconds(60)).max(1), minutes: BTreeMap::new(), next: 0 }
    }

    /// The minutes that are over, by number, ascending; those without requests are missing.
    pub fn minutes(&self) -> &BTreeMap<u64, Minute> {
        &self.minutes
    }

    /// The first hop of a minute.
    pub fn first_hop(&self, minute: u64) -> Hop {
        Hop(minute * self.hops)
    }

    /// Sums the minutes that are over once `hop` has closed, and drops those that began before `first`.
    pub(super) fn close<K>(&mut self, hop: Hop, first: Hop, ring: &Ring<K>, functions: &CellFunctions) {
        let over = (hop.0 + 1) / self.hops;
        if self.next < over {
            let held = ring.range(self.first_hop(self.next)..self.first_hop(over));
            let minutes: BTreeSet<u64> = held.map(|(own, _)| own.0 / self.hops).collect();
            minutes.into_iter().for_each(|minute| self.sum(minute, ring, functions));
            self.next = over;
        }
        while let Some(minute) = self.minutes.first_entry().filter(|minute| minute.key() * self.hops < first.0) {
            minute.remove();
        }
    }

    /// Whether an addition belongs to a minute that is over.
    pub(super) fn is_late(&self, addition: &Addition) -> bool {
        addition.own.0 / self.hops < self.next
    }

    /// Adds what is late, and is in the ring by now, to the minutes to which it belongs.
    pub(super) fn add_late<K>(&mut self, late: &[Addition], ring: &Ring<K>, functions: &CellFunctions) {
        let mut unknown = BTreeSet::new();
        for addition in late.iter().filter(|addition| addition.age == Age::Old) {
            let number = addition.own.0 / self.hops;
            match self.minutes.get_mut(&number) {
                Some(minute) => minute.entry(place_of(addition)).or_default().add(addition, functions),
                None => drop(unknown.insert(number)),
            }
        }
        unknown.into_iter().for_each(|minute| self.sum(minute, ring, functions));
    }

    /// Marks the places of functions that are in a minute.
    pub(super) fn mark_used(&self, used: &mut [bool]) {
        let served = self.minutes.values().flat_map(BTreeMap::values);
        served.flat_map(Served::counts).for_each(|(place, _)| used[place] = true);
    }

    /// Bytes of the counts.
    pub fn size(&self) -> usize {
        self.minutes.values().flat_map(BTreeMap::values).map(Served::size).sum()
    }

    /// Sums one minute from the additions of its hops, unless none of them has a request.
    fn sum<K>(&mut self, number: u64, ring: &Ring<K>, functions: &CellFunctions) {
        let hops = self.first_hop(number)..self.first_hop(number + 1);
        let held = || ring.range(hops.clone()).flat_map(|(_, additions)| additions).map(|(_, addition)| addition);
        let old = || held().filter(|addition| addition.age == Age::Old);
        if old().all(|addition| addition.requests == 0) {
            return;
        }
        let mut parts: BTreeMap<(Build, Replicate), Vec<&Addition>> = BTreeMap::new();
        old().for_each(|addition| parts.entry(place_of(addition)).or_default().push(addition));
        let mut scratch = Scratch::default();
        let summed = parts.into_iter().map(|(place, additions)| {
            let mut served = Served::default();
            for addition in additions {
                served.add_sizes(addition);
                scratch.add(addition, functions);
            }
            served.functions = scratch.take();
            (place, served)
        });
        self.minutes.insert(number, summed.collect());
    }
}

fn place_of(addition: &Addition) -> (Build, Replicate) {
    (addition.build.clone(), Replicate { hardware: addition.hardware.clone(), bucket: addition.bucket })
}

/// Sums of a few profiles by place, to be used again.
#[derive(Default)]
struct Scratch {
    /// Self and total.
    sums: Vec<(u64, u64)>,
    /// One bit for each place that was touched.
    touched: Vec<u64>,
}

impl Scratch {
    fn add(&mut self, addition: &Addition, functions: &CellFunctions) {
        if self.sums.len() < functions.len() {
            self.sums.resize(functions.len(), (0, 0));
            self.touched.resize(functions.len().div_ceil(64), 0);
        }
        for (place, entry) in known(addition, functions) {
            let sum = &mut self.sums[place];
            *sum = (sum.0 + entry.own, sum.1 + entry.total);
            self.touched[place / 64] |= 1 << (place % 64);
        }
    }

    /// The sums as bytes; nothing is left.
    fn take(&mut self) -> Vec<u8> {
        let mut entries = Vec::new();
        for (word, bits) in self.touched.iter_mut().enumerate() {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let place = word * 64 + usize::try_from(left.trailing_zeros()).unwrap_or(0);
                left &= left - 1;
                let (own, total) = std::mem::take(&mut self.sums[place]);
                entries.push(Entry { function: u32::try_from(place).unwrap_or(u32::MAX), own, total });
            }
        }
        let mut bytes = encode(&entries);
        bytes.shrink_to_fit();
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counts::functions::FunctionTable;

    /// Hops of a window.
    const WINDOW: u64 = 30;

    fn addition(own: u64, bucket: u8, young: bool, requests: u64, counts: &[(u64, u64)]) -> Addition {
        let entries: Vec<Entry> = (0..)
            .zip(counts)
            .filter(|(_, (_, total))| *total > 0)
            .map(|(function, &(own, total))| Entry { function, own, total })
            .collect();
        Addition {
            own: Hop(own),
            hardware: "one".into(),
            build: "v1".into(),
            pod: PodId::new(format!("pod {bucket}")),
            bucket: Bucket(bucket),
            started: Nanos(0),
            age: if young { Age::Young(0) } else { Age::Old },
            samples: counts.iter().map(|(_, total)| total).sum(),
            requests,
            functions: encode(&entries),
            paths: Vec::new(),
            values: Vec::new(),
            value: 0,
        }
    }

    /// What the minutes hold: (minute, bucket), then requests, samples, pods and the counts of each function.
    type Held = BTreeMap<(u64, u8), (u64, u64, usize, BTreeMap<usize, (u64, u64)>)>;

    fn held(load: &LoadCounts) -> Held {
        let each = load.minutes().iter().flat_map(|(&minute, served)| {
            served.iter().map(move |((_, replicate), served)| {
                let counts = served.counts().map(|(place, entry)| (place, (entry.own, entry.total))).collect();
                let all = (served.requests, served.samples, served.pods.len(), counts);
                ((minute, replicate.bucket.0), all)
            })
        });
        each.collect()
    }

    /// The same from all additions of the window at once.
    fn summed(additions: &[Addition], functions: &CellFunctions, hop: u64) -> Held {
        let first = (hop + 1).saturating_sub(WINDOW);
        let is_whole = |minute: u64| minute * 6 >= first && minute * 6 + 5 <= hop;
        let mut sums: Held = BTreeMap::new();
        for one in additions.iter().filter(|one| one.age == Age::Old && is_whole(one.own.0 / 6)) {
            let sum = sums.entry((one.own.0 / 6, one.bucket.0)).or_default();
            sum.0 += one.requests;
            sum.1 += one.samples;
            sum.2 |= usize::from(one.requests > 0);
            for (place, entry) in known(one, functions) {
                let counts = sum.3.entry(place).or_default();
                *counts = (counts.0 + entry.own, counts.1 + entry.total);
            }
        }
        let served: BTreeSet<u64> = sums.iter().filter(|(_, sum)| sum.0 > 0).map(|((minute, _), _)| *minute).collect();
        sums.retain(|(minute, _), _| served.contains(minute));
        sums
    }

    proptest! {
        /// Law: whenever a hop closes, the minutes hold what a sum over the whole window gives, however late anything came.
        #[test]
        fn minutes_are_sums_of_the_window(
            arrivals in proptest::collection::vec(
                (0u64..80, 0u64..25, 0u8..4, any::<bool>(), 0u64..3, proptest::collection::vec((0u64..4, 0u64..4), 4)),
                0..120,
            ),
        ) {
            let table = FunctionTable::default();
            table.intern(&["a", "b", "c", "d"].map(Into::into));
            let mut functions = CellFunctions::default();
            functions.admit(0..4, &table);
            let clock = HopClock::new(Nanos::from_seconds(10));
            let mut load = LoadCounts::new(clock);
            let mut ring: Ring<()> = BTreeMap::new();
            let mut seen = Vec::new();
            for hop in 0..80 {
                let of_hop = arrivals.iter().filter(|arrival| arrival.0 == hop);
                let additions = of_hop.map(|(at, behind, bucket, young, requests, counts)| {
                    let counts: Vec<_> = counts.iter().map(|&(own, above)| (own, own + above)).collect();
                    addition(at.saturating_sub(*behind), *bucket, *young && *bucket == 0, *requests, &counts)
                });
                let additions: Vec<Addition> = additions.collect();
                let late: Vec<Addition> = additions.iter().filter(|one| load.is_late(one)).cloned().collect();
                for one in &additions {
                    ring.entry(one.own).or_default().push(((), one.clone()));
                }
                load.add_late(&late, &ring, &functions);
                seen.extend(additions);
                let first = Hop((hop + 1).saturating_sub(WINDOW));
                ring.retain(|own, _| *own >= first);
                load.close(Hop(hop), first, &ring, &functions);
                prop_assert_eq!(held(&load), summed(&seen, &functions, hop), "hop {}", hop);
            }
        }
    }
}
