//! A topic under a clock that the test moves: records arrive in their time, partitions fall silent, come back and are added.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

    /// Partitions that are there at this time.
    fn there(&self, now: Nanos) -> impl Iterator<Item = (i32, &Partition)> {
        (0..).zip(&*self.0).filter(move |(_, partition)| partition.added_at <= now)
    }

    /// Sources of a process that begins now and ends at a time, for all workers.
    pub fn until(&self, dies_at: Nanos, life: &Life) -> Arc<SourceFactory> {
        self.sources(Some(dies_at), life)
    }

    /// Sources that read the whole topic, as fast as it goes.
    pub fn to_its_end(&self, life: &Life) -> Arc<SourceFactory> {
        self.sources(None, life)
    }

    fn sources(&self, dies_at: Option<Nanos>, life: &Life) -> Arc<SourceFactory> {
        let (topic, life) = (self.clone(), life.clone());
        let begun_at = life.clock.now();
        Arc::new(move |worker, workers| {
            let begins_at =
                |number: i32| life.offsets.get(&number).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
            let own =
                topic.there(begun_at).map(|(number, _)| number).filter(|number| is_read_by(*number, worker, workers));
            let next: BTreeMap<i32, usize> = own.map(|number| (number, begins_at(number))).collect();
            let held = topic.there(begun_at).map(|(number, partition)| (number, partition.arrived(begun_at))).collect();
            let seed = life.seed.wrapping_mul(31).wrapping_add(u64::try_from(worker).unwrap());
            let reading = Reading {
                topic: topic.clone(),
                life: life.clone(),
                dies_at,
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
}

/// One process.
#[derive(Clone)]
pub struct Life {
    pub clock: Moved,
    pub stop: Arc<AtomicBool>,
    pub seed: u64,
    offsets: BTreeMap<i32, i64>,
}

impl Life {
    /// A process that begins with this checkpoint.
    pub fn new(clock: Moved, seed: u64, begun_with: Option<&Checkpoint>) -> Self {
        let offsets = begun_with.map(|checkpoint| checkpoint.offsets(NAME).unwrap()).unwrap_or_default();
        Self { clock, stop: Arc::default(), seed, offsets }
    }
}

/// The source of one worker.
struct Reading {
    topic: Topic,
    life: Life,
    /// When the process is killed; `None` for one that reads to the end of the topic.
    dies_at: Option<Nanos>,
    worker: usize,
    workers: usize,
    /// Records that each partition held at the start.
    held: BTreeMap<i32, usize>,
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
            (!is_paused && (is_there || self.dies_at.is_none())).then_some(*number)
        };
        let ready: Vec<i32> = self.next.iter().filter_map(waiting).collect();
        let number = *ready.get(self.draws.random_range(0..ready.len().max(1)))?;
        let next = *self.next.get(&number)?;
        let Some((_, record)) = self.records(number).records.get(next) else {
            self.next.remove(&number);
            return Some(Polled::PartitionEnd(number));
        };
        let record = record.clone();
        self.next.insert(number, next + 1);
        Some(Polled::Record(Box::new(record)))
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
        self.dies_at.is_some()
    }

    fn held(&self, partition: i32) -> Option<Range<i64>> {
        Some(0..i64::try_from(self.held.get(&partition).copied().unwrap_or_default()).unwrap())
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.dies_at.is_some_and(|at| self.life.clock.now() >= at) {
            self.life.stop.store(true, Ordering::Release);
            return Ok(Polled::Idle);
        }
        if self.dies_at.is_none() && self.next.is_empty() {
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
