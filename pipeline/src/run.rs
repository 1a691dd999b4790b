//! Running the dataflow: several workers, each with its own sources, in one process or in several.

pub mod cluster;
mod error;
pub mod in_memory;
pub mod pulse;
mod reader;
pub(crate) mod readers;
pub mod wall;

pub use self::error::RunError;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::sink::Sink;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::time::Hop;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::ActivateCapability;
use timely::dataflow::operators::core::unordered_input::{UnorderedHandle, UnorderedInput};
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use self::cluster::{Cluster, Doing};
use self::pulse::{MemoryVitals, Pulse, Watched};
use self::reader::{AHEAD, Reader};
use self::readers::Readers;
use self::wall::WallClock;
use crate::checkpoint::{Checkpoints, Keeper};
use crate::counts::functions::FunctionTable;
use crate::dataflow::build;
use crate::operators::announce::{Announcement, Announcements};
use crate::operators::arrive::Arrived;
use crate::operators::common::Common;
use crate::operators::deliver::{Deliver, SharedSink};
use crate::rules::decisions::Decisions;
use crate::rules::decisions::limits::LimitsInForce;
use crate::rules::watermarks::Announced;

/// Records that a worker reads before it lets the dataflow work.
const BATCH: usize = 64;
/// How long a worker whose input has ended sleeps at most before it checks whether it must stop.
const REST: Duration = Duration::from_millis(50);

/// How often a worker says how its sources are.
const PULSE: Duration = Duration::from_millis(500);

/// Makes the sources of one worker: (index, workers).
pub type SourceFactory = dyn Fn(usize, usize) -> Result<Vec<Box<dyn Source>>, SourceError> + Send + Sync;

/// What a service adds to a run. By default nothing: the run lasts until its sources end, and depends only on records.
#[derive(Clone, Default)]
pub struct Service {
    /// Set from outside to end the run at once.
    pub stop: Arc<AtomicBool>,
    /// How long a partition may give nothing good, although its transport has nothing more, before event time goes on
    /// without it; `None` waits for ever. Not for a bounded read, whose partitions end.
    pub idle_after: Option<Duration>,
    /// The log of which partition was declared idle and when it came back, with the decisions that it already holds.
    pub decisions: Decisions,
    /// The limits of each service, if they may change while it runs; else those of the configuration, or of the decisions.
    pub limits: Option<LimitsInForce>,
    /// Where the run says how it is.
    pub pulse: Pulse,
    /// The checkpoints that it takes, and the one with which it begins.
    pub checkpoints: Checkpoints,
    /// By which clock a partition is silent.
    pub wall: WallClock,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every source ended; every hop was closed and delivered.
    Complete,
    /// It was stopped: hops closed by then were delivered completely, and nothing of later hops was.
    Stopped,
}

/// Runs the dataflow on so many worker threads until every source has ended. Rows do not depend on their number.
///
/// # Errors
/// See [`RunError`]. A bad record is no error.
pub fn run(config: &Config, workers: usize, sources: Arc<SourceFactory>, sink: Box<dyn Sink>) -> Result<(), RunError> {
    run_service(config, workers, sources, sink, Service::default()).map(|_| ())
}

/// [`run`] for a service, which may be stopped and has partitions that fall silent.
///
/// # Errors
/// See [`RunError`]. A bad record is no error.
pub fn run_service(
    config: &Config,
    workers: usize,
    sources: Arc<SourceFactory>,
    sink: Box<dyn Sink>,
    service: Service,
) -> Result<Ended, RunError> {
    run_as(config, workers, sources, sink, service, None)
}

/// [`run_service`] as one of the processes of a run. The sink of a process that is not the first is given nothing.
///
/// # Errors
/// See [`RunError`]. A bad record is no error.
pub fn run_in_cluster(
    config: &Config,
    cluster: Cluster,
    sources: Arc<SourceFactory>,
    sink: Box<dyn Sink>,
    service: Service,
) -> Result<Ended, RunError> {
    run_as(config, cluster.shape().workers, sources, sink, service, Some(cluster))
}

fn run_as(
    config: &Config,
    workers: usize,
    sources: Arc<SourceFactory>,
    sink: Box<dyn Sink>,
    service: Service,
    cluster: Option<Cluster>,
) -> Result<Ended, RunError> {
    let sink = SharedSink::new(Box::new(Watched::new(sink, service.pulse.clone())));
    let elsewhere = cluster.as_ref().and_then(Cluster::elsewhere);
    let checkpoints = service.checkpoints.clone();
    let checkpoints = cluster.iter().fold(checkpoints, |checkpoints, cluster| checkpoints.awaiting(cluster.awaited()));
    let shared = Shared {
        common: Common::new(checkpoints, elsewhere)?,
        limits: service.limits.clone().unwrap_or_else(|| LimitsInForce::of(&service.decisions, config.limits)),
        sink,
        service,
        workers: workers.max(1),
        broken_off: Arc::default(),
        failure: Arc::default(),
    };
    let for_workers = (config.clone(), shared.clone());
    let work = move |worker: &mut Worker| {
        let (config, shared) = &for_workers;
        work(worker, config, shared, sources.as_ref());
    };
    let (builders, joined) = match cluster {
        Some(cluster) => {
            let (builders, joined) =
                cluster.start(shared.doing()).map_err(|error| RunError::Worker(error.to_string()))?;
            (builders, Some(joined))
        }
        None => {
            let built = timely::CommunicationConfig::Process(shared.workers).try_build().map_err(RunError::Worker)?;
            (built.0, None)
        }
    };
    let others = Box::new(());
    let guards = timely::execute::execute_from(builders, others, timely::WorkerConfig::default(), work);
    let ended = guards.map_err(RunError::Worker).and_then(|guards| shared.ended(guards.join()));
    match (joined, &ended) {
        (Some(joined), Ok(_)) => joined.end(),
        (Some(joined), Err(why)) => joined.fail(&why.to_string()),
        (None, _) => {}
    }
    ended
}

#[derive(Clone)]
struct Shared {
    common: Common,
    limits: LimitsInForce,
    sink: SharedSink,
    service: Service,
    /// Workers of this process.
    workers: usize,
    /// Whether some worker left before its sources ended.
    broken_off: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<RunError>>>,
}

impl Shared {
    fn fail(&self, failure: impl Into<RunError>) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure.into());
        self.service.stop.store(true, Ordering::Release);
    }

    /// How it ended, once all workers have.
    fn ended(&self, workers: impl IntoIterator<Item = Result<(), String>>) -> Result<Ended, RunError> {
        for ended in workers {
            ended.map_err(|_| RunError::Panic)?;
        }
        if let Some(failure) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(failure);
        }
        if let Some(failure) = self.sink.failure() {
            return Err(RunError::Sink(failure));
        }
        Ok(if self.broken_off.load(Ordering::Acquire) { Ended::Stopped } else { Ended::Complete })
    }

    /// With what this process does what others of the run ask for.
    fn doing(&self) -> Doing {
        let (failure, sink) = (Arc::clone(&self.failure), self.sink.clone());
        let failure = move || {
            let failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            let of_sink = || sink.has_failed().then(|| "its rows cannot be written".to_owned());
            failure.as_ref().map(ToString::to_string).or_else(of_sink)
        };
        Doing {
            table: Arc::clone(&self.common.table),
            decisions: self.service.decisions.clone(),
            checkpoints: self.common.checkpoints.clone(),
            stop: Arc::clone(&self.service.stop),
            pulse: self.service.pulse.clone(),
            failure: Box::new(failure),
        }
    }

    fn must_stop(&self) -> bool {
        self.service.stop.load(Ordering::Acquire) || self.sink.has_failed()
    }
}

/// A worker that panics ends the run: the others would wait for it for ever.
struct StopIfPanics<'a>(&'a Shared);

impl Drop for StopIfPanics<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(RunError::Panic);
        }
    }
}

fn work(worker: &mut Worker, config: &Config, shared: &Shared, sources: &SourceFactory) {
    let _guard = StopIfPanics(shared);
    let (index, peers) = (worker.index(), worker.peers());
    let announcements = Announcements::build(worker, &shared.common.checkpoints);
    let probe = Handle::new();
    let (input, capability) = worker.dataflow::<u64, _, _>(|scope| {
        let (input, arrived) = scope.new_unordered_input::<CapacityContainerBuilder<Vec<Arrived>>>();
        let outputs = build(arrived, config, &shared.limits, &shared.common);
        outputs.rows.deliver(shared.sink.clone(), &shared.common).probe_with(&probe);
        input
    });
    let sources = sources(index, peers).unwrap_or_else(|failure| {
        shared.fail(failure);
        Vec::new()
    });
    let mut readers = Readers::default();
    let keeper = shared.common.keeper((index, peers), &mut readers);
    readers.open(config, sources, &shared.service).unwrap_or_else(|failure| shared.fail(failure));
    shared.common.checkpoints.loaded(shared.workers);
    if let Some(unreadable) = shared.common.unreadable() {
        shared.fail(unreadable);
    }
    let begun_from = shared.common.checkpoints.begun_from().unwrap_or_default();
    let ends = Ends { input, capability, begun_from };
    let mut feeder = Feeder::new(readers, announcements, ends, shared.service.idle_after, keeper);
    let mut beat = Beat::new(index, shared.service.pulse.clone());
    while feeder.is_open() && !shared.must_stop() {
        let fed = if feeder.is_far_ahead_of(&probe) { Ok(false) } else { feeder.feed(&shared.common.table) };
        let busy = fed.unwrap_or_else(|failure| {
            shared.fail(failure);
            false
        });
        feeder.heed();
        beat.strike(&mut feeder, &probe, shared).unwrap_or_else(|failure| shared.fail(failure));
        if busy {
            worker.step()
        } else {
            worker.step_or_park(Some(shared.service.wall.nap()))
        };
    }
    // NB: dataflows are dropped before the capabilities in the feeder; otherwise an open hop would seem closed. What is
    // in flight is thrown away; nothing of an unfinished hop has been delivered.
    if shared.must_stop() {
        break_off(worker, shared);
    }
    drop(feeder);
    while worker.has_dataflows() && !shared.must_stop() {
        worker.step_or_park(Some(REST));
    }
    break_off(worker, shared);
}

/// Says how a worker is, twice a second.
struct Beat {
    worker: usize,
    pulse: Pulse,
    announced: Hop,
    last: Option<Instant>,
}

impl Beat {
    fn new(worker: usize, pulse: Pulse) -> Self {
        Self { worker, pulse, announced: Hop(0), last: None }
    }

    fn strike(&mut self, feeder: &mut Feeder, probe: &Handle<u64>, shared: &Shared) -> Result<(), RunError> {
        let now = Instant::now();
        if let Announced::OpenFrom(hop) = feeder.announcements.heard()
            && hop > self.announced
        {
            self.announced = hop;
            self.pulse.announce(hop, now);
        }
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < PULSE) {
            return Ok(());
        }
        self.last = Some(now);
        feeder.readers.each.iter_mut().try_for_each(|reader| reader.report_to(&self.pulse, self.worker))?;
        let evaluated = probe.with_frontier(|frontier| frontier.first().copied());
        let Common { table, held, .. } = &shared.common;
        let memory = MemoryVitals { functions: table.count(), paths: table.paths().count(), held: held.figures() };
        self.pulse.step(self.worker, now, evaluated.map(Hop), memory);
        Ok(())
    }
}

fn break_off(worker: &mut Worker, shared: &Shared) {
    for dataflow in worker.installed_dataflows() {
        shared.broken_off.store(true, Ordering::Release);
        worker.drop_dataflow(dataflow);
    }
}

/// Feeds records from a worker's sources into its dataflow, reports the state of its partitions, and follows the
/// announcements.
struct Feeder {
    readers: Readers,
    announcements: Announcements,
    input: UnorderedHandle<u64, CapacityContainerBuilder<Vec<Arrived>>>,
    capability: Option<ActivateCapability<u64>>,
    idle_after: Option<Duration>,
    /// What is applied before this hop is in the checkpoint with which the run began.
    begun_from: Hop,
    keeper: Option<Keeper>,
}

/// Where a feeder puts what it reads.
struct Ends {
    input: UnorderedHandle<u64, CapacityContainerBuilder<Vec<Arrived>>>,
    capability: ActivateCapability<u64>,
    begun_from: Hop,
}

impl Feeder {
    fn new(
        readers: Readers,
        mut announcements: Announcements,
        Ends { input, capability, begun_from }: Ends,
        idle_after: Option<Duration>,
        keeper: Option<Keeper>,
    ) -> Self {
        for reader in &readers.each {
            reader
                .partitions()
                .for_each(|partition| announcements.send(Announcement::Partition(reader.report(partition))));
        }
        announcements.send(Announcement::Complete);
        Self { readers, announcements, input, capability: Some(capability), idle_after, begun_from, keeper }
    }

    fn is_open(&self) -> bool {
        self.capability.is_some()
    }

    /// Whether the dataflow is so far behind the announcements that reading more would only fill memory.
    fn is_far_ahead_of(&self, probe: &Handle<u64>) -> bool {
        self.capability.as_ref().is_some_and(|capability| probe.less_than(&capability.time().saturating_sub(AHEAD)))
    }

    /// Reads what the sources have; returns whether there was anything.
    fn feed(&mut self, table: &FunctionTable) -> Result<bool, RunError> {
        let Some(capability) = &self.capability else { return Ok(false) };
        // What is applied before the checkpoint is read once more, but nothing new is applied there.
        let given_from = Hop(*capability.time());
        let open_from = given_from.max(self.begun_from);
        let mut busy = false;
        for reader in &mut self.readers.each {
            if reader.has_ended() || reader.is_ahead_of(open_from) {
                continue;
            }
            for _ in 0..BATCH {
                let mut polled = reader.poll(open_from, table, |hop, arrived| {
                    let hop = hop.max(given_from);
                    if hop >= self.begun_from {
                        self.input.activate().session(&capability.delayed(&hop.0)).give(arrived);
                    }
                })?;
                if let Some(after) = self.idle_after.filter(|_| !polled.busy) {
                    polled.changed.extend(reader.find_idle(after, open_from)?);
                    // NB: reports are heard one by one, so the first moves event time although the second ends it.
                    for report in reader.close_refused(after, open_from)? {
                        self.announcements.send(Announcement::Partition(report));
                    }
                }
                for partition in polled.changed {
                    self.announcements.send(Announcement::Partition(reader.report(partition)));
                }
                busy |= polled.busy;
                if !polled.busy || reader.has_ended() || reader.is_ahead_of(open_from) {
                    break;
                }
            }
        }
        Ok(busy)
    }

    /// Releases the hops that were announced as closed, except those at which a partition of this worker may still give
    /// records: a partition that has just come back was not waited for.
    fn heed(&mut self) {
        let announced = match self.announcements.heard() {
            Announced::Nothing => return,
            Announced::All => {
                self.capability = None;
                return;
            }
            Announced::OpenFrom(hop) => hop,
        };
        let own = self.readers.each.iter().filter_map(Reader::open_from).min();
        let open_from = own.map_or(announced, |own| own.min(announced));
        if let Some(capability) = &mut self.capability
            && open_from.0 > *capability.time()
        {
            *capability = capability.delayed(&open_from.0);
            if let Some(keeper) = &mut self.keeper
                && let Some(boundary) = keeper.reach(open_from, &self.readers)
            {
                self.readers.each.iter_mut().for_each(|reader| reader.forget_before(boundary));
            }
        }
    }
}
