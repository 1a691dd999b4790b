//! A run that goes on from a checkpoint writes the rows that it would have written had it never ended.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fleetdiff_pipeline::checkpoint::{Checkpoint, Keep};
use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;

use super::processes::{Workers, run_with};

/// Whether a checkpoint is wanted at a boundary.
type IsWanted = Arc<dyn Fn(Hop) -> bool + Send + Sync>;

/// Keeps checkpoints: all, or those that are wanted.
#[derive(Clone, Default)]
struct Kept {
    checkpoints: Arc<Mutex<Vec<Checkpoint>>>,
    is_wanted: Option<IsWanted>,
    /// Boundaries at which one was wanted, and neither is there one nor was it said that there is none.
    open: Arc<Mutex<BTreeSet<Hop>>>,
}

impl Kept {
    fn wanted(is_wanted: impl Fn(Hop) -> bool + Send + Sync + 'static) -> Self {
        Self { is_wanted: Some(Arc::new(is_wanted)), ..Self::default() }
    }
}

impl Keep for Kept {
    fn is_ready(&self, boundary: Hop) -> bool {
        let is_wanted = self.is_wanted.as_ref().is_none_or(|is_wanted| is_wanted(boundary));
        if is_wanted {
            self.open.lock().unwrap().insert(boundary);
        }
        is_wanted
    }

    fn keep(&mut self, checkpoint: Checkpoint) {
        self.open.lock().unwrap().remove(&checkpoint.hop);
        self.checkpoints.lock().unwrap().push(checkpoint);
    }

    fn refused(&mut self, boundary: Hop) {
        self.open.lock().unwrap().remove(&boundary);
    }
}

/// Keeps the tables of each hop, and gives them to another sink too.
#[derive(Clone)]
struct ByHop<S> {
    hops: Arc<Mutex<Vec<(Hop, Tables)>>>,
    sink: S,
}

impl<S: Sink> Sink for ByHop<S> {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        self.hops.lock().unwrap().push((hop, tables.clone()));
        self.sink.take(hop, tables)
    }

    fn save(&mut self, _: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        Ok(Some(Vec::new()))
    }
}

/// A run that takes checkpoints.
pub struct Taken {
    config: Config,
    partitions: Vec<Vec<Decoded>>,
    checkpoints: Vec<Checkpoint>,
    open: BTreeSet<Hop>,
    hops: Vec<(Hop, Tables)>,
}

impl Taken {
    /// Runs with checkpoints every so many hops; its rows go to `sink` too.
    pub fn by_run(
        config: &Config,
        partitions: &[Vec<Decoded>],
        workers: usize,
        every: u64,
        sink: impl Sink + Clone + 'static,
    ) -> Self {
        Self::by_processes(config, partitions, Workers::in_one(workers), every, sink)
    }

    /// The same in several processes.
    pub fn by_processes(
        config: &Config,
        partitions: &[Vec<Decoded>],
        workers: Workers,
        every: u64,
        sink: impl Sink + Clone + 'static,
    ) -> Self {
        Self::after(None, (config, partitions), workers, (every, Kept::default()), sink)
    }

    /// The same with two workers and a checkpoint after each of these hops, ascending.
    pub fn after_hops(config: &Config, partitions: &[Vec<Decoded>], hops: impl IntoIterator<Item = Hop>) -> Self {
        let hops: Mutex<VecDeque<Hop>> = Mutex::new(hops.into_iter().collect());
        let kept = Kept::wanted(move |boundary| hops.lock().unwrap().pop_front_if(|next| *next <= boundary).is_some());
        Self::after(None, (config, partitions), Workers::in_one(2), (2, kept), Collected::default())
    }

    /// The same with checkpoints that are wanted when it is asked for the `n`-th, 2n-th, ... time, as by a disk that is slow.
    pub fn seldom(config: &Config, partitions: &[Vec<Decoded>], every: u64, n: usize) -> Self {
        let asked = AtomicUsize::new(1);
        let kept = Kept::wanted(move |_| asked.fetch_add(1, Ordering::AcqRel).is_multiple_of(n));
        Self::after(None, (config, partitions), Workers::in_one(2), (every, kept), Collected::default())
    }

    fn after(
        before: Option<Checkpoint>,
        (config, partitions): (&Config, &[Vec<Decoded>]),
        workers: Workers,
        (every, kept): (u64, Kept),
        sink: impl Sink + Clone + 'static,
    ) -> Self {
        let by_hop = ByHop { hops: Arc::default(), sink };
        let keep = Box::new(kept.clone());
        run_with((config, partitions), workers, before, (every, keep), Box::new(by_hop.clone()));
        let (checkpoints, open) = (kept.checkpoints.lock().unwrap().clone(), kept.open.lock().unwrap().clone());
        let hops = by_hop.hops.lock().unwrap().clone();
        Self { config: config.clone(), partitions: partitions.to_vec(), checkpoints, open, hops }
    }

    /// How many checkpoints were taken.
    pub fn count(&self) -> usize {
        self.checkpoints.len()
    }

    /// Boundaries at which a checkpoint was wanted and never came, but for those of the `last` hops: a worker that hears of a boundary
    /// and of the end of the data at once has no state of it.
    pub fn never_came(&self, last: u64) -> Vec<Hop> {
        let end = self.hops.last().map_or(Hop(0), |(hop, _)| *hop);
        self.open.range(..end.minus(last)).copied().collect()
    }

    /// Goes on from one of the checkpoints, which `number` chooses, with other workers: the rows must be the same. Gives the run.
    pub fn go_on(&self, number: usize, workers: Workers, what: &str) -> Self {
        let checkpoint = Checkpoint::from_bytes(self.bytes(number % self.count())).unwrap();
        let from = checkpoint.hop;
        let every = 1 + u64::try_from(number).unwrap() % 7;
        let of = (&self.config, &*self.partitions);
        let run = Self::after(Some(checkpoint), of, workers, (every, Kept::default()), Collected::default());
        self.assert_same_from(from, &run, &format!("{what}: after the checkpoint of {from:?}, with {workers:?}"));
        run
    }

    /// Another run has the same rows from a hop on.
    pub fn assert_same_from(&self, from: Hop, other: &Self, what: &str) {
        let expected: Vec<&(Hop, Tables)> = self.hops.iter().filter(|(hop, _)| *hop >= from).collect();
        let got: Vec<&(Hop, Tables)> = other.hops.iter().collect();
        for (expected, got) in expected.iter().zip(&got) {
            assert_eq!(expected, got, "{what}");
        }
        assert_eq!(expected.len(), got.len(), "{what}: hops");
    }

    /// The bytes of one of the checkpoints.
    pub fn bytes(&self, number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.checkpoints[number].write_to(&mut bytes).unwrap();
        bytes
    }

    /// The number of the checkpoint that is nearest to a hop.
    pub fn nearest(&self, hop: Hop) -> usize {
        let distance = |number: &usize| self.checkpoints[*number].hop.0.abs_diff(hop.0);
        (0..self.count()).min_by_key(distance).unwrap()
    }

    /// The states of a checkpoint without which rows are others.
    pub fn decisive(&self, number: usize) -> Vec<String> {
        let checkpoint = &self.checkpoints[number];
        let expected: Vec<&(Hop, Tables)> = self.hops.iter().filter(|(hop, _)| *hop >= checkpoint.hop).collect();
        let decides = |state: &&str| {
            let without = Some(checkpoint.clone().without(state));
            let of = (&self.config, &*self.partitions);
            let run = Self::after(without, of, Workers::in_one(2), (1_000_000, Kept::default()), Collected::default());
            run.hops.iter().collect::<Vec<_>>() != expected
        };
        checkpoint.states().filter(decides).map(str::to_owned).collect()
    }
}
