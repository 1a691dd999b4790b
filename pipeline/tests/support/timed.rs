//! A topic under a clock that the test moves: records arrive in their time, partitions fall silent, come back and are added, and records
//! are deleted before they are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetdiff_pipeline::checkpoint::Checkpoint;
use fleetdiff_pipeline::run::SourceFactory;
use fleetdiff_pipeline::run::wall::Moved;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Nanos;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The name of the topic.
const NAME: &str = "topic";

/// One partition: since when it is there, and its records with the times at which they arrive, in the order of their offsets.
#[derive(Clone, Debug)]
pub struct Partition {
    pub added_at: Nanos,
    pub records: Vec<(Nanos, Decoded)>,
}

/// A topic.
#[derive(Clone, Debug)]
pub struct Topic(pub Arc<[Partition]>);

impl Topic {
    /// When its last record arrives.
    pub fn end(&self) -> Nanos {
        let arrivals = self.0.iter().flat_map(|partition| &partition.records).map(|(at, _)| *at);
        arrivals.max().unwrap_or_default()
    }

    /// The same without some records, by partition and offsets.
    pub fn without(&self, gone: &[(i32, Range<i64>)]) -> Self {
        let mut partitions = self.0.to_vec();
        for (number, partition) in (0..).zip(&mut partitions) {
            let is_gone = |offset| gone.iter().any(|(of, offsets)| *of == number && offsets.contains(&offset));
            partition.records.retain(|(_, record)| !is_gone(record.position.offset));
        }
        Self(partitions.into())
    }

    /// Partitions that are there at this time.
    fn there(&self, now: Nanos) -> impl Iterator<Item = (i32, &Partition)> {
        (0..).zip(&*self.0).filter(move |(_, partition)| partition.added_at <= now)
    }

    /// Sources of a process that begins now and ends within these times, for all workers: as soon as what it has lost is of no use to the
    /// next one, at the latest at the end.
    pub fn until(&self, dies: Range<Nanos>, life: &Life) -> Arc<SourceFactory> {
        self.sources(Some(dies), life)
    }

    /// Sources that read the whole topic, as fast as it goes.
    pub fn to_its_end(&self, life: &Life) -> Arc<SourceFactory> {
        self.sources(None, life)
    }

    fn sources(&self, dies: Option<Range<Nanos>>, life: &Life) -> Arc<SourceFactory> {
        let (topic, life) = (self.clone(), life.clone());
        let begun_at = life.clock.now();
        Arc::new(move |worker, workers| {
            let begins_at = |number: i32| {
                let kept = life.offsets.get(&number).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
                kept.max(life.retention.of(number).deleted)
            };
            let own =
                topic.there(begun_at).map(|(number, _)| number).filter(|number| is_read_by(*number, worker, workers));
            let next: BTreeMap<i32, usize> = own.map(|number| (number, begins_at(number))).collect();
            let held = topic.there(begun_at).map(|(number, partition)| (number, partition.end(begun_at))).collect();
            let seed = life.seed.wrapping_mul(31).wrapping_add(u64::try_from(worker).unwrap());
            let reading = Reading {
                topic: topic.clone(),
                life: life.clone(),
                dies: dies.clone(),
                worker,
                workers,
                held,
                next,
                paused: BTreeMap::new(),
                draws: Xoshiro256PlusPlus::seed_from_u64(seed),
            };
            let source: Box<dyn Source> = Box::new(reading);
            Ok(vec![source])
        })
    }
}

fn is_read_by(partition: i32, worker: usize, workers: usize) -> bool {
    usize::try_from(partition).is_ok_and(|partition| partition % workers == worker)
}

impl Partition {
    fn arrived(&self, now: Nanos) -> usize {
        self.records.partition_point(|(at, _)| *at <= now)
    }

    /// The offset after the last record that has arrived. Where records are missing, it is more than their number.
    fn end(&self, now: Nanos) -> i64 {
        self.records[..self.arrived(now)].last().map_or(0, |(_, record)| record.position.offset + 1)
    }
}

/// What brokers have deleted, and how far any process has read.
#[derive(Clone, Default)]
pub struct Retention(Arc<Mutex<BTreeMap<i32, Retained>>>);

#[derive(Clone, Copy, Default)]
struct Retained {
    /// Records that no process has read are from here on.
    furthest: usize,
    /// Records before this one are gone.
    deleted: usize,
}

impl Retention {
    fn of(&self, partition: i32) -> Retained {
        self.0.lock().unwrap().get(&partition).copied().unwrap_or_default()
    }

    fn change(&self, partition: i32, change: impl FnOnce(&mut Retained)) {
        change(self.0.lock().unwrap().entry(partition).or_default());
    }

    /// Whether something is gone.
    pub fn has_deleted(&self) -> bool {
        self.0.lock().unwrap().values().any(|retained| retained.deleted > 0)
    }

    /// Whether a process that goes on from there needs nothing that is gone.
    fn suffices(&self, offsets: &BTreeMap<i32, i64>) -> bool {
        let next = |partition| offsets.get(partition).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
        self.0.lock().unwrap().iter().all(|(partition, retained)| next(partition) >= retained.deleted)
    }
}

/// The last checkpoint.
#[derive(Clone, Default)]
pub struct Last(pub Arc<Mutex<Option<Checkpoint>>>);

impl Last {
    fn offsets(&self) -> BTreeMap<i32, i64> {
        let last = self.0.lock().unwrap();
        last.as_ref().map(|checkpoint| checkpoint.offsets(NAME).unwrap()).unwrap_or_default()
    }
}

/// One process.
#[derive(Clone)]
pub struct Life {
    pub clock: Moved,
    pub stop: Arc<AtomicBool>,
    pub seed: u64,
    offsets: BTreeMap<i32, i64>,
    last: Last,
    retention: Retention,
    /// Whether records may be deleted under it.
    loses: bool,
}

impl Life {
    /// A process that begins with the last checkpoint, if there is one.
    pub fn new(clock: Moved, seed: u64, last: &Last, retention: &Retention, loses: bool) -> Self {
        let (last, retention) = (last.clone(), retention.clone());
        Self { clock, stop: Arc::default(), seed, offsets: last.offsets(), last, retention, loses }
    }

    /// A process that reads everything that was not lost.
    pub fn of_reader(clock: Moved) -> Self {
        Self::new(clock, 0, &Last::default(), &Retention::default(), false)
    }
}

/// The source of one worker.
struct Reading {
    topic: Topic,
    life: Life,
    /// From when on and at the latest when the process is killed; `None` for one that reads to the end of the topic.
    dies: Option<Range<Nanos>>,
    worker: usize,
    workers: usize,
    /// The end of each partition at the start.
    held: BTreeMap<i32, i64>,
    /// The next record of each partition; none any more once its end was given.
    next: BTreeMap<i32, usize>,
    paused: BTreeMap<i32, bool>,
    draws: Xoshiro256PlusPlus,
}

impl Reading {
    /// A partition of this worker that was added since it began.
    fn added(&self) -> Option<i32> {
        let is_own = |number: i32| is_read_by(number, self.worker, self.workers);
        let mut there = self.topic.there(self.life.clock.now()).map(|(number, _)| number);
        there.find(|number| is_own(*number) && !self.next.contains_key(number) && !self.held.contains_key(number))
    }

    fn records(&self, partition: i32) -> &Partition {
        &self.topic.0[usize::try_from(partition).unwrap()]
    }

    /// Something of one of the partitions that may give, chosen at random.
    fn any(&mut self) -> Option<Polled> {
        let now = self.life.clock.now();
        let waiting = |(number, next): (&i32, &usize)| {
            let is_paused = self.paused.get(number).is_some_and(|paused| *paused);
            let is_there = *next < self.records(*number).arrived(now);
            (!is_paused && (is_there || self.dies.is_none())).then_some(*number)
        };
        let ready: Vec<i32> = self.next.iter().filter_map(waiting).collect();
        let number = *ready.get(self.draws.random_range(0..ready.len().max(1)))?;
        let next = *self.next.get(&number)?;
        if let Some(lost) = self.lost(number, next) {
            return Some(lost);
        }
        let Some((_, record)) = self.records(number).records.get(next) else {
            self.next.remove(&number);
            return Some(Polled::PartitionEnd(number));
        };
        let record = record.clone();
        self.next.insert(number, next + 1);
        self.life.retention.change(number, |retained| retained.furthest = retained.furthest.max(next + 1));
        Some(Polled::Record(Box::new(record)))
    }

    /// Sometimes brokers delete records that are next and that nobody has read.
    fn lost(&mut self, number: i32, next: usize) -> Option<Polled> {
        let arrived = self.records(number).arrived(self.life.clock.now());
        let is_unread = next >= self.life.retention.of(number).furthest && next < arrived;
        if !self.life.loses || !is_unread || self.draws.random_range(0..100) > 0 {
            return None;
        }
        let end = self.draws.random_range(next + 1..=arrived);
        self.life.retention.change(number, |retained| retained.deleted = end);
        self.next.insert(number, end);
        let offset = |place: usize| i64::try_from(place).unwrap();
        Some(Polled::Lost(number, offset(next)..offset(end)))
    }

    fn dies_now(&self) -> bool {
        let now = self.life.clock.now();
        let may = |dies: &Range<Nanos>| now >= dies.start && self.life.retention.suffices(&self.life.last.offsets());
        self.dies.as_ref().is_some_and(|dies| now >= dies.end || may(dies))
    }
}

impl Source for Reading {
    fn name(&self) -> &str {
        NAME
    }

    fn partitions(&self) -> Vec<i32> {
        self.next.keys().copied().collect()
    }

    fn may_grow(&self) -> bool {
        self.dies.is_some()
    }

    fn held(&self, partition: i32) -> Option<Range<i64>> {
        let deleted = i64::try_from(self.life.retention.of(partition).deleted).unwrap();
        Some(deleted..self.held.get(&partition).copied().unwrap_or_default())
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.dies_now() {
            self.life.stop.store(true, Ordering::Release);
            return Ok(Polled::Idle);
        }
        if self.dies.is_none() && self.next.is_empty() {
            return Ok(Polled::End);
        }
        if let Some(added) = self.added() {
            self.next.insert(added, 0);
            return Ok(Polled::PartitionAdded(added));
        }
        if let Some(given) = self.any() {
            return Ok(given);
        }
        self.life.clock.forward(Duration::from_millis(self.draws.random_range(200..3_000)));
        Ok(Polled::Idle)
    }

    fn is_drained(&self, partition: i32) -> bool {
        let arrived = self.records(partition).arrived(self.life.clock.now());
        self.next.get(&partition).is_none_or(|next| *next >= arrived)
    }

    fn set_paused(&mut self, partition: i32, paused: bool) {
        self.paused.insert(partition, paused);
    }
}
