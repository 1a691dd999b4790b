//! Running the dataflow: several workers in one process, each with its own sources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Hop;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::ActivateCapability;
use timely::dataflow::operators::core::unordered_input::{UnorderedHandle, UnorderedInput};
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use crate::config::Config;
use crate::counts::functions::FunctionTable;
use crate::dataflow::{Arrived, build};
use crate::operators::announce::{Announcements, Told};
use crate::operators::deliver::{Deliver, SharedSink, Sink, SinkError};
use crate::rules::admission::{Admission, Admitted};
use crate::rules::watermarks::{Announced, PartitionState, Report};

/// Hops that a partition may be ahead of the closed hop before it is held back.
const AHEAD: u64 = 12;
/// Records that a worker takes in before it lets the dataflow work.
const BATCH: usize = 64;
/// How long a worker with nothing to do sleeps at most before it asks its sources again.
const NAP: Duration = Duration::from_millis(2);

/// Why a run ended before its sources did.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A transport failed.
    #[error("reading failed")]
    Source(#[from] SourceError),
    /// Rows could not be written.
    #[error("writing failed")]
    Sink(#[source] SinkError),
    /// The workers could not be started, or one of them died.
    #[error("a worker failed: {0}")]
    Worker(String),
}

/// Makes the sources of one worker: (index, workers).
pub type SourceFactory = dyn Fn(usize, usize) -> Result<Vec<Box<dyn Source>>, SourceError> + Send + Sync;

/// Runs the dataflow on so many worker threads until every source has ended. Rows do not depend on their number.
///
/// # Errors
/// See [`RunError`]. A bad record is no error.
pub fn run(config: &Config, workers: usize, sources: Arc<SourceFactory>, sink: Box<dyn Sink>) -> Result<(), RunError> {
    let sink = SharedSink::new(sink);
    let shared = Shared { table: Arc::default(), sink: sink.clone(), stop: Arc::default(), failure: Arc::default() };
    let for_workers = (config.clone(), shared.clone());
    let guards = timely::execute(timely::Config::process(workers.max(1)), move |worker| {
        let (config, shared) = &for_workers;
        work(worker, config, shared, sources.as_ref());
    })
    .map_err(RunError::Worker)?;
    for ended in guards.join() {
        ended.map_err(RunError::Worker)?;
    }
    if let Some(failure) = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure.into());
    }
    sink.failure().map_or(Ok(()), |failure| Err(RunError::Sink(failure)))
}

#[derive(Clone)]
struct Shared {
    table: Arc<FunctionTable>,
    sink: SharedSink,
    /// Set when some worker cannot go on.
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<SourceError>>>,
}

impl Shared {
    fn fail(&self, failure: SourceError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.stop.store(true, Ordering::Release);
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.sink.has_failed()
    }
}

fn work(worker: &mut Worker, config: &Config, shared: &Shared, sources: &SourceFactory) {
    let (index, peers) = (worker.index(), worker.peers());
    let announcements = Announcements::build(worker);
    let probe = Handle::new();
    let (input, capability) = worker.dataflow::<u64, _, _>(|scope| {
        let (input, arrived) = scope.new_unordered_input::<CapacityContainerBuilder<Vec<Arrived>>>();
        build(arrived, config, &shared.table).rows.deliver(shared.sink.clone()).probe_with(&probe);
        input
    });
    let sources = sources(index, peers).unwrap_or_else(|failure| {
        shared.fail(failure);
        Vec::new()
    });
    let mut feeder = Feeder::new(config, sources, announcements, input, capability);
    while feeder.is_open() && !shared.must_stop() {
        let fed = if feeder.is_far_ahead_of(&probe) { Ok(false) } else { feeder.feed(&shared.table) };
        let busy = fed.unwrap_or_else(|failure| {
            shared.fail(failure);
            false
        });
        feeder.heed();
        if busy { worker.step() } else { worker.step_or_park(Some(NAP)) };
    }
    if shared.must_stop() {
        // NB: what is in flight is thrown away; nothing of an unfinished hop has left.
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
    }
    drop(feeder);
    while worker.has_dataflows() && !shared.must_stop() {
        worker.step_or_park(None);
    }
    for dataflow in worker.installed_dataflows() {
        worker.drop_dataflow(dataflow);
    }
}

struct Reader {
    source: Box<dyn Source>,
    admission: Admission,
    partitions: BTreeMap<i32, (PartitionState, i64)>,
    ended: bool,
}

/// Takes records from a worker's sources into its dataflow, and tells and heeds the announcements.
struct Feeder {
    readers: Vec<Reader>,
    announcements: Announcements,
    input: UnorderedHandle<u64, CapacityContainerBuilder<Vec<Arrived>>>,
    capability: Option<ActivateCapability<u64>>,
}

impl Feeder {
    fn new(
        config: &Config,
        sources: Vec<Box<dyn Source>>,
        mut announcements: Announcements,
        input: UnorderedHandle<u64, CapacityContainerBuilder<Vec<Arrived>>>,
        capability: ActivateCapability<u64>,
    ) -> Self {
        let mut readers = Vec::new();
        for source in sources {
            let partitions: BTreeMap<_, _> = source.partitions().into_iter().map(|partition| (partition, (PartitionState::Silent, 0))).collect();
            let reader = Reader { ended: partitions.is_empty(), source, admission: Admission::new(config), partitions };
            reader.partitions.keys().for_each(|&partition| announcements.tell(Told::Partition(reader.report(partition))));
            readers.push(reader);
        }
        announcements.tell(Told::Complete);
        Self { readers, announcements, input, capability: Some(capability) }
    }

    fn is_open(&self) -> bool {
        self.capability.is_some()
    }

    /// Whether the dataflow lags so far behind what was announced that taking in more would only fill memory.
    fn is_far_ahead_of(&self, probe: &Handle<u64>) -> bool {
        self.capability.as_ref().is_some_and(|capability| probe.less_than(&capability.time().saturating_sub(AHEAD)))
    }

    /// Takes in what the sources have; whether there was anything.
    fn feed(&mut self, table: &FunctionTable) -> Result<bool, SourceError> {
        let Some(capability) = &self.capability else { return Ok(false) };
        let open_from = *capability.time();
        let mut busy = false;
        for reader in &mut self.readers {
            if reader.ended || reader.is_ahead_of(open_from) {
                continue;
            }
            for _ in 0..BATCH {
                let more = reader.poll(Hop(0), table, |hop, arrived| {
                    self.input.activate().session(&capability.delayed(&hop.0.max(open_from))).give(arrived);
                })?;
                for partition in more.changed {
                    self.announcements.tell(Told::Partition(reader.report(partition)));
                }
                busy |= more.busy;
                if !more.busy || reader.ended || reader.is_ahead_of(open_from) {
                    break;
                }
            }
        }
        Ok(busy)
    }

    /// Lets go of the hops that were announced to be closed.
    fn heed(&mut self) {
        match self.announcements.heard() {
            Announced::Nothing => {}
            Announced::OpenFrom(hop) => {
                if let Some(capability) = &mut self.capability
                    && hop.0 > *capability.time()
                {
                    *capability = capability.delayed(&hop.0);
                }
            }
            Announced::All => self.capability = None,
        }
    }
}

struct Progress {
    busy: bool,
    changed: Vec<i32>,
}

impl Reader {
    fn report(&self, partition: i32) -> Report {
        let (state, next_offset) = self.partitions.get(&partition).copied().unwrap_or((PartitionState::Ended, 0));
        Report { source: self.source.name().to_owned(), partition, state, next_offset }
    }

    /// Whether every partition that still gives has run too far ahead; single ones are held back at the source.
    fn is_ahead_of(&mut self, open_from: u64) -> bool {
        let mut any_behind = false;
        for (&partition, (state, _)) in &self.partitions {
            let ahead = matches!(state, PartitionState::Watermark(hop) if open_from > 0 && hop.0 > open_from + AHEAD);
            if *state != PartitionState::Ended {
                self.source.set_paused(partition, ahead);
                any_behind |= !ahead;
            }
        }
        !any_behind
    }

    fn poll(&mut self, not_before: Hop, table: &FunctionTable, mut give: impl FnMut(Hop, Arrived)) -> Result<Progress, SourceError> {
        match self.source.poll()? {
            Polled::Idle => Ok(Progress { busy: false, changed: Vec::new() }),
            Polled::PartitionEnd(partition) => Ok(Progress { busy: true, changed: self.end(&[partition], give) }),
            Polled::End => {
                self.ended = true;
                let open: Vec<_> = self.partitions.iter().filter(|(_, (state, _))| *state != PartitionState::Ended).map(|(&partition, _)| partition).collect();
                Ok(Progress { busy: true, changed: self.end(&open, give) })
            }
            Polled::Record(record) => {
                let (partition, offset) = (record.position.partition, record.position.offset);
                for admitted in self.admission.admit(*record, not_before, table) {
                    let (hop, arrived) = arrived(admitted);
                    give(hop, arrived);
                }
                let state = self.admission.watermark(partition).map_or(PartitionState::Silent, PartitionState::Watermark);
                let known = self.partitions.insert(partition, (state, offset + 1));
                let changed = known.is_none_or(|(before, _)| before != state);
                Ok(Progress { busy: true, changed: changed.then_some(partition).into_iter().collect() })
            }
        }
    }

    fn end(&mut self, partitions: &[i32], mut give: impl FnMut(Hop, Arrived)) -> Vec<i32> {
        for partition in partitions {
            self.partitions.entry(*partition).or_insert((PartitionState::Ended, 0)).0 = PartitionState::Ended;
        }
        self.ended |= self.partitions.values().all(|(state, _)| *state == PartitionState::Ended);
        if self.ended {
            for admitted in self.admission.leftovers() {
                let (hop, arrived) = arrived(admitted);
                give(hop, arrived);
            }
        }
        partitions.to_vec()
    }
}

fn arrived(admitted: Admitted) -> (Hop, Arrived) {
    match admitted {
        Admitted::Profile(hop, profile) => (hop, Arrived { hop, content: Ok(profile) }),
        Admitted::Rejected(hop, row) => (hop, Arrived { hop, content: Err(row) }),
    }
}
