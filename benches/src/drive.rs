//! The dataflow under a clock, one hop after the other.
//!
//! The real path: `fleetdiff_pipeline::run` with one source per worker and a sink. A source makes the profiles of the
//! next hop while no clock runs; then all workers start together:
//!
//! ```text
//! started --(records handed out, folded, exchanged)--> given --(first record of the next hop closes this one)--> flagged
//! ```
//!
//! At `flagged` the sink has the rows of the hop. Nothing of the next hop is in flight meanwhile, so a hop's time is
//! the cost of one hop, not the throughput of a pipeline that overlaps several.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Instant;

use fleetdiff_pipeline::run::{RunError, run};
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::{CellKey, FlagRow, Tables};
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::FlagState;

use crate::article::hash;
use crate::workload::Workload;

/// A flag as it is raised: hop counted from 0, cell, function.
pub type Raised = BTreeSet<(u64, CellKey, String)>;

/// When things happened in one hop.
#[derive(Clone, Copy, Debug)]
struct Moments {
    started: Option<Instant>,
    given: Option<Instant>,
    flagged: Option<Instant>,
}

impl Moments {
    fn times(&self, look: bool) -> Option<HopTime> {
        let given = self.given?;
        let milliseconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
        Some(HopTime { look, intake: milliseconds(self.started?, given), close: milliseconds(given, self.flagged?) })
    }
}

/// The times of one hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HopTime {
    /// Whether it was a look.
    pub look: bool,
    /// Milliseconds from start to last record given: records are folded and sent to their workers.
    pub intake: f64,
    /// Milliseconds from then until the rows of the hop are in the sink.
    pub close: f64,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Measured hops in their order; every second one is a look.
    pub hops: Vec<HopTime>,
    /// What was raised.
    pub raised: Raised,
    /// The rows that were raised and not cleared by the end of each measured hop.
    pub standing: Standing,
    /// Rows tested at the last measured look.
    pub tests: i64,
    /// Samples counted, by the ledger.
    pub counted: i64,
    /// Hash of every flag and every evaluation, including all bits of their floats.
    pub rows: u64,
}

/// The rows that are raised, and their count and hash over hops: what is [`Found`](crate::article::Found) where no row stays flagged that is not
/// significant.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    now: BTreeSet<(CellKey, String)>,
    /// Rows of all measured hops.
    pub flags: u64,
    /// Sum of [`hash`] over them.
    pub hash: u64,
}

impl Standing {
    /// Takes the changes of a hop, counted from 0.
    fn change(&mut self, flags: &[FlagRow]) {
        for flag in flags {
            let row = (flag.row.cell.clone(), flag.row.function.clone());
            if flag.state == FlagState::Raised {
                self.now.insert(row)
            } else {
                self.now.remove(&row)
            };
        }
    }

    /// Counts what stands at the end of a hop.
    fn count(&mut self, hop: u64, numbers: &Numbers) {
        for (cell, function) in &self.now {
            let found = numbers.cells.get(cell).zip(numbers.functions.get(function));
            let (cell, function) = found.expect("the workload has the cells and functions of its flags");
            self.flags += 1;
            self.hash = self.hash.wrapping_add(hash(hop, *cell, *function));
        }
    }
}

/// The numbers of a workload's cells and functions.
struct Numbers {
    cells: HashMap<CellKey, u64>,
    functions: HashMap<String, u64>,
}

impl Numbers {
    fn of(workload: &Workload) -> Self {
        let functions = 0..usize::try_from(workload.size.functions).unwrap_or(0);
        Self {
            cells: (0..workload.cells()).map(|number| workload.cell(number)).zip(0..).collect(),
            functions: functions.map(|number| workload.name(number).to_string()).zip(0..).collect(),
        }
    }
}

/// Runs a workload with this number of workers.
///
/// # Errors
/// See [`RunError`].
pub fn drive(workload: &Arc<Workload>, workers: usize) -> Result<Outcome, RunError> {
    let hops = usize::try_from(workload.hops()).unwrap_or(0);
    let nothing = Moments { started: None, given: None, flagged: None };
    let clock = Arc::new(Clock {
        barrier: Barrier::new(workers),
        flagged: AtomicU64::new(0),
        moments: Mutex::new(vec![nothing; hops]),
        outcome: Mutex::default(),
        first: workload.hop(0),
    });
    let for_sources = (Arc::clone(workload), Arc::clone(&clock));
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(Feed::new(&for_sources.0, &for_sources.1, worker, workers))])
    };
    let (measured, numbers) = (workload.window..=workload.hops() - 2, Numbers::of(workload));
    let rows = Rows { clock: Arc::clone(&clock), measured, numbers };
    run(&workload.config(), workers, Arc::new(sources), Box::new(rows))?;
    let mut outcome = std::mem::take(&mut *clock.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    let moments = clock.moments.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = (0..).zip(&*moments).skip(usize::try_from(workload.window).unwrap_or(0));
    outcome.hops = measured.filter_map(|(number, moments)| moments.times(workload.looks_at(number))).collect();
    Ok(outcome)
}

/// What sources and sink share.
struct Clock {
    barrier: Barrier,
    /// Hops whose rows are out.
    flagged: AtomicU64,
    moments: Mutex<Vec<Moments>>,
    outcome: Mutex<Outcome>,
    first: Hop,
}

impl Clock {
    fn note(&self, hop: u64, change: impl Fn(&mut Moments)) {
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(moment) = usize::try_from(hop).ok().and_then(|hop| moments.get_mut(hop)) {
            change(moment);
        }
    }
}

/// What a source does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Make the next hop's records, wait for the other workers, start the clock.
    Prepare,
    /// Give the remaining records of this hop.
    Give,
    /// Give the first record of the next hop.
    Close,
    /// Wait until this hop's rows are out.
    Await,
    /// Report the end.
    End,
}

/// The source of one worker: one partition with every n-th pod.
struct Feed {
    workload: Arc<Workload>,
    clock: Arc<Clock>,
    partition: i32,
    pods: Vec<usize>,
    hop: u64,
    stage: Stage,
    now: VecDeque<Decoded>,
    next: VecDeque<Decoded>,
}

impl Feed {
    fn new(workload: &Arc<Workload>, clock: &Arc<Clock>, worker: usize, workers: usize) -> Self {
        let mut feed = Self {
            workload: Arc::clone(workload),
            clock: Arc::clone(clock),
            partition: i32::try_from(worker).unwrap_or(0),
            pods: (worker..workload.pods.len()).step_by(workers).collect(),
            hop: 0,
            stage: Stage::Prepare,
            now: VecDeque::new(),
            next: VecDeque::new(),
        };
        feed.now = feed.records(0);
        feed
    }

    /// The records of a hop; for the last hop only the first record, which closes the hop before.
    fn records(&self, hop: u64) -> VecDeque<Decoded> {
        let last = hop + 1 >= self.workload.hops();
        let pods = self.pods.iter().take(if last { 1 } else { self.pods.len() });
        pods.map(|&pod| self.workload.record(pod, hop, self.partition)).collect()
    }

    fn prepare(&mut self) {
        self.next = self.records(self.hop + 1);
        self.clock.barrier.wait();
        let now = Instant::now();
        self.clock.note(self.hop, |moment| moment.started = moment.started.max(Some(now)));
        self.stage = Stage::Give;
    }

    fn closing(&mut self) -> Option<Decoded> {
        let now = Instant::now();
        self.clock.note(self.hop, |moment| moment.given = moment.given.max(Some(now)));
        self.stage = Stage::Await;
        self.next.pop_front()
    }
}

impl Source for Feed {
    fn name(&self) -> &str {
        "bench"
    }

    fn partitions(&self) -> Vec<i32> {
        vec![self.partition]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        loop {
            match self.stage {
                Stage::Prepare => self.prepare(),
                Stage::Give => match self.now.pop_front() {
                    Some(record) => return Ok(Polled::Record(Box::new(record))),
                    None => self.stage = Stage::Close,
                },
                Stage::Close => {
                    if let Some(record) = self.closing() {
                        return Ok(Polled::Record(Box::new(record)));
                    }
                }
                Stage::Await if self.clock.flagged.load(Ordering::Acquire) <= self.hop => return Ok(Polled::Idle),
                Stage::Await => {
                    self.hop += 1;
                    self.now = std::mem::take(&mut self.next);
                    self.stage = if self.hop + 1 < self.workload.hops() { Stage::Prepare } else { Stage::End };
                }
                Stage::End => return Ok(Polled::End),
            }
        }
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// Notes when rows come, and what they raise.
struct Rows {
    clock: Arc<Clock>,
    /// The hops that are measured, counted from 0: none after them counts.
    measured: RangeInclusive<u64>,
    numbers: Numbers,
}

impl Sink for Rows {
    fn take(&mut self, hop: Hop, rows: Tables) -> Result<(), SinkError> {
        let now = Instant::now();
        let number = hop.0 - self.clock.first.0;
        self.clock.note(number, |moment| moment.flagged = Some(now));
        if number <= *self.measured.end() {
            let mut outcome = self.clock.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.rows =
                stable_hash(format!("{:x} {:?} {:?}", outcome.rows, rows.flags, rows.comparisons).as_bytes());
            outcome.standing.change(&rows.flags);
            if self.measured.contains(&number) {
                outcome.standing.count(number, &self.numbers);
            }
            let raised = rows.flags.into_iter().filter(|flag| flag.state == FlagState::Raised);
            outcome.raised.extend(raised.map(|flag| (number, flag.row.cell, flag.row.function)));
            outcome.counted += rows.ledger.iter().map(|row| row.samples_counted).sum::<i64>();
            if number == *self.measured.end() {
                outcome.tests = rows
                    .comparisons
                    .iter()
                    .filter(|row| row.cell.region.as_str() != "*")
                    .map(|row| row.functions_tested)
                    .sum();
            }
        }
        self.clock.flagged.store(number + 1, Ordering::Release);
        Ok(())
    }
}
