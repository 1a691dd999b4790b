//! How a run is at this moment: what its readers have read and refused, which partition holds event time up, what is being
//! computed and written.
//!
//! Readers and the sink write here, a service shows it. Nothing of it ever flows back: rows do not depend on the wall clock.
//! The lock is held for moments only, and by a reader twice a second, so that a run that hangs can still be asked.

pub mod diagnosis;
mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::source::{Health, Trouble};
use fleetdiff_schemas::time::{Hop, Nanos};

pub(super) use self::watched::Watched;
use crate::counts::held::Figures;
pub use crate::rules::watermarks::PartitionState;

/// The state of a run, shared by its parts.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Mutex<Vitals>>);

/// Topic or folder, and the number of a partition.
pub type PartitionName = (Arc<str>, i32);

/// The partition that event time waits for.
#[derive(Clone, Copy, Debug)]
pub struct Frontier<'vitals> {
    /// Which.
    pub name: &'vitals PartitionName,
    /// How it is.
    pub partition: &'vitals PartitionVitals,
    /// The first hop at which it may still give something.
    pub from: Hop,
}

/// The state of a run at one moment.
#[derive(Clone, Debug)]
pub struct Vitals {
    /// When the run began.
    pub started_at: Instant,
    /// Every partition that is read, by topic or folder and number.
    pub partitions: BTreeMap<PartitionName, PartitionVitals>,
    /// How each transport is, by topic or folder and worker.
    pub transports: BTreeMap<(Arc<str>, usize), Health>,
    /// When each worker last took a step.
    pub workers: BTreeMap<usize, Instant>,
    /// Nothing will be applied before this hop: all before it may be evaluated.
    pub open_from: Hop,
    /// Everything before this hop is evaluated and delivered.
    pub evaluated_before: Hop,
    /// What is kept in memory.
    pub memory: MemoryVitals,
    /// What the sink does.
    pub output: OutputVitals,
    announced: VecDeque<(Hop, Instant)>,
}

/// What the dataflow keeps in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryVitals {
    /// Functions that have a number.
    pub functions: usize,
    /// Call paths that are known to the process.
    pub paths: usize,
    /// Cells, builds, pods, and the counts within the window.
    pub held: Figures,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionVitals {
    /// As event time sees it.
    pub state: PartitionState,
    /// The offset that is read next.
    pub next_offset: i64,
    /// The offset after its last record at the transport, if known.
    pub end: Option<i64>,
    /// Whether it waits because it has run ahead of others.
    pub held_back: bool,
    /// Profiles and counts of requests that wait for the time on which its pods agree.
    pub early: usize,
    /// What it has given.
    pub given: Given,
}

/// What a partition has given so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Records.
    pub records: u64,
    /// Profiles and counts of requests that were taken.
    pub taken: u64,
    /// Profiles that are late, but within the window.
    pub late: u64,
    /// Profiles that are older than the window.
    pub too_late: u64,
    /// Records that its transport deleted before they were read, by their offsets.
    pub lost: u64,
    /// Refused parts, by reason.
    pub refused: BTreeMap<Reason, u64>,
    /// The last of them.
    pub last_refusal: Option<Refusal>,
    /// When the last record came.
    pub last_at: Option<Instant>,
    /// When the transport received that record.
    pub last_sent_at: Option<Nanos>,
}

/// A part that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The offset of its record.
    pub offset: i64,
    /// Why.
    pub reason: Reason,
    /// What was found and what was expected.
    pub detail: String,
}

/// What the sink does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputVitals {
    /// The hop whose rows it is taking.
    pub writing: Option<Writing>,
    /// The last hop whose rows it has taken.
    pub closed: Option<Closed>,
    /// How often it has completed files.
    pub flushes: u64,
    /// What cannot be written for now, by what it is; it is tried again until it succeeds.
    pub waiting: BTreeMap<&'static str, Trouble>,
    /// How often something was tried again.
    pub retries: u64,
}

/// A hop whose rows are being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    /// The hop.
    pub hop: Hop,
    /// Since when.
    pub since: Instant,
    /// How long it took from the moment at which all its records had come until its rows were there.
    pub evaluation: Option<Duration>,
}

/// A hop whose rows were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The hop.
    pub hop: Hop,
    /// When.
    pub at: Instant,
}

impl Given {
    /// Parts that were refused.
    pub fn refused_in_all(&self) -> u64 {
        self.refused.values().sum()
    }
}

impl PartitionVitals {
    /// Records between what was read and the end, if the end is known. Offsets that hold no record (markers of transactions,
    /// compacted records) count too.
    pub fn lag(&self) -> Option<u64> {
        self.end.map(|end| u64::try_from(end.saturating_sub(self.next_offset)).unwrap_or(0))
    }

    /// How old the last record is if more are waiting; zero if none are.
    pub fn lag_time(&self, now: Nanos) -> Option<Nanos> {
        match (self.lag()?, self.given.last_sent_at) {
            (0, _) => Some(Nanos(0)),
            (_, Some(sent)) => Some(Nanos(now.since(sent).0.max(0))),
            (_, None) => None,
        }
    }
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Vitals::at_start(Instant::now()))))
    }
}

impl Vitals {
    /// The state of a run that has read nothing.
    pub fn at_start(now: Instant) -> Self {
        Self {
            started_at: now,
            partitions: BTreeMap::new(),
            transports: BTreeMap::new(),
            workers: BTreeMap::new(),
            open_from: Hop(0),
            evaluated_before: Hop(0),
            memory: MemoryVitals::default(),
            output: OutputVitals::default(),
            announced: VecDeque::new(),
        }
    }

    /// Records that were read.
    pub fn records(&self) -> u64 {
        self.partitions.values().map(|partition| partition.given.records).sum()
    }

    /// Profiles and counts of requests that were taken.
    pub fn taken(&self) -> u64 {
        self.partitions.values().map(|partition| partition.given.taken).sum()
    }

    /// Refused parts, by reason.
    pub fn refused(&self) -> BTreeMap<Reason, u64> {
        let mut all = BTreeMap::new();
        for (reason, count) in self.partitions.values().flat_map(|partition| &partition.given.refused) {
            *all.entry(*reason).or_default() += count;
        }
        all
    }

    /// Records that wait at the transports, as far as their ends are known.
    pub fn lag(&self) -> u64 {
        self.partitions.values().filter_map(PartitionVitals::lag).sum()
    }

    /// The partition that event time waits for.
    pub fn frontier(&self) -> Option<Frontier<'_>> {
        let open = self.partitions.iter().filter_map(|(name, partition)| match partition.state {
            PartitionState::Silent => Some(Frontier { name, partition, from: Hop(0) }),
            PartitionState::Watermark(from) => Some(Frontier { name, partition, from }),
            PartitionState::Idle | PartitionState::Ended => None,
        });
        open.min_by_key(|frontier| (frontier.from, frontier.name))
    }

    /// The partition with the last refusal, and the refusal.
    pub fn last_refusal(&self) -> Option<(&PartitionName, &Refusal)> {
        let refused = self.partitions.iter().filter_map(|(name, partition)| {
            partition.given.last_refusal.as_ref().map(|refusal| (partition.given.last_at, name, refusal))
        });
        refused.max_by_key(|(at, ..)| *at).map(|(_, name, refusal)| (name, refusal))
    }

    /// How long the evaluation of a hop took that ends now.
    fn evaluation_of(&self, hop: Hop, now: Instant) -> Option<Duration> {
        let (_, announced_at) = self.announced.iter().find(|(open_from, _)| *open_from > hop)?;
        Some(now.saturating_duration_since(*announced_at))
    }
}

impl Pulse {
    /// The state at this moment.
    pub fn read(&self) -> Vitals {
        self.lock().clone()
    }

    /// The hop whose rows the sink is taking.
    pub fn writing(&self) -> Option<Writing> {
        self.lock().output.writing
    }

    /// The sink has completed files.
    pub fn flushed(&self) {
        self.lock().output.flushes += 1;
    }

    /// How often it has, and the hop that was closed last.
    pub(super) fn output(&self) -> (u64, Option<Hop>) {
        let output = &self.lock().output;
        (output.flushes, output.closed.map(|closed| closed.hop))
    }

    /// The same of the sink of another process, which has the one of the run.
    pub(super) fn output_elsewhere(&self, flushes: u64, closed: Option<Hop>) {
        let output = &mut self.lock().output;
        output.flushes = flushes;
        if closed != output.closed.map(|closed| closed.hop) {
            output.closed = closed.map(|hop| Closed { hop, at: Instant::now() });
        }
    }

    /// Something cannot be written for now, and is tried again.
    pub fn retries(&self, what: &'static str, detail: String, now: Instant) {
        let output = &mut self.lock().output;
        output.retries += 1;
        output.waiting.entry(what).or_insert_with(|| Trouble { since: now, detail: String::new() }).detail = detail;
    }

    /// It is written, or given up.
    pub fn retries_no_more(&self, what: &'static str) {
        self.lock().output.waiting.remove(what);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vitals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All records before this hop have come.
    pub(super) fn announce(&self, open_from: Hop, now: Instant) {
        let vitals = &mut *self.lock();
        if open_from > vitals.open_from {
            vitals.open_from = open_from;
            vitals.announced.push_back((open_from, now));
        }
    }

    fn begin_writing(&self, hop: Hop, now: Instant) {
        let vitals = &mut *self.lock();
        let evaluation = vitals.evaluation_of(hop, now);
        vitals.output.writing = Some(Writing { hop, since: now, evaluation });
    }

    /// A worker has taken a step; everything before the hop `evaluated` is delivered, or everything at all.
    pub(super) fn step(&self, worker: usize, now: Instant, evaluated: Option<Hop>, memory: MemoryVitals) {
        let vitals = &mut *self.lock();
        let before = evaluated.unwrap_or(vitals.open_from);
        vitals.workers.insert(worker, now);
        vitals.memory = memory;
        vitals.evaluated_before = vitals.evaluated_before.max(before);
        while vitals.announced.front().is_some_and(|(open_from, _)| *open_from <= before) {
            vitals.announced.pop_front();
        }
    }
}
