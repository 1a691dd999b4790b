//! What a checkpoint costs, and how long a service that starts again takes until it has closed its first new hop.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench restart -- [--quick | --long]`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cap::Cap;
use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::spread::milliseconds;
use fleetdiff_benches::workload::{MEDIUM, Mix, Workload};
use fleetdiff_connectors::checkpoints::{About, CheckpointFolder};
use fleetdiff_pipeline::checkpoint::{Checkpoint, Checkpoints, Keep};
use fleetdiff_pipeline::counts::archive::Keeping;
use fleetdiff_pipeline::run::{Service, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::{Hop, Nanos};
use tempfile::TempDir;
use tikv_jemallocator::Jemalloc;

/// Counts what is in use.
#[global_allocator]
static ALLOCATOR: Cap<Jemalloc> = Cap::new(Jemalloc, usize::MAX);

const HOPS_AN_HOUR: u64 = 360;
/// Hops of the window, 30 minutes.
const WINDOW: u64 = 180;
/// Hops between two checkpoints, 2 minutes.
const EVERY: u64 = 12;
const WORKERS: usize = 2;
/// The fleet is not evaluated until the checkpoint, so that hours pass in seconds.
const SELDOM: Nanos = Nanos::from_seconds(1000 * 3600);

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick", "--long"]) else { return ExitCode::from(2) };
    let hours: &[u64] = match (asked.has("--quick"), asked.has("--long")) {
        (true, _) => &[1],
        (_, false) => &[1, 6],
        (_, true) => &[1, 6, 72],
    };
    say(
        "medium, 10 % in every cell, 2 workers; a window of 30 minutes, evaluated every minute after the start, lateness 30 s, history of a week",
    );
    say(
        "  hours  in use, MB  peak, MB  state, MB  file, MB  written, ms   read, ms  first hop, ms  records read again and new",
    );
    for hours in hours {
        say(&measure(*hours));
    }
    ExitCode::SUCCESS
}

fn measure(hours: u64) -> String {
    let workload = Arc::new(Workload::new(MEDIUM, Mix::CanaryInEveryCell, WINDOW, hours * HOPS_AN_HOUR));
    let folder = TempDir::new().expect("a temporary folder");
    let last = (hours * HOPS_AN_HOUR).next_multiple_of(EVERY);
    let rows = Rows::default();
    let writer = Writer::new(&folder, workload.hop(last), Arc::clone(&rows.stop));
    let written = Arc::clone(&writer.written);
    let before = run(&workload, &rows, Checkpoints::default().taken(EVERY, Box::new(writer)), 0, (SELDOM, SELDOM));
    assert!(before > 0, "records were read");
    let Some(Written { state, file, took, in_use, peak }) = *written.lock().unwrap_or_else(PoisonError::into_inner)
    else {
        panic!("no checkpoint at hop {last}");
    };

    let began = Instant::now();
    let found = CheckpointFolder::of(folder.path()).last().expect("readable").expect("one");
    let checkpoint = Checkpoint::from_bytes(found.state().expect("whole")).expect("as it was written");
    let read = milliseconds(began);
    let sizes = checkpoint.sizes();
    let offsets = checkpoint.offsets("bench").expect("as they were written");
    let first = offsets.values().min().copied().unwrap_or(0);
    let from = u64::try_from(first).unwrap_or(0) / u64::try_from(workload.pods.len()).unwrap_or(1);
    let rows = Rows { until_first: true, ..Rows::default() };
    let often = (Config::default().evaluate_every, Config::default().report_every);
    let records = run(&workload, &rows, Checkpoints::default().begun_with(checkpoint), from, often);
    let first_hop = rows.first.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.duration_since(began));
    let first_hop = first_hop.expect("a hop was closed").as_millis();
    let mb = |bytes: usize| bytes >> 20;
    for (part, bytes) in sizes.into_iter().filter(|(_, bytes)| *bytes > 1 << 20) {
        say(&format!("        {part}: {} MB", mb(bytes)));
    }
    format!(
        "  {hours:>5} {:>11} {:>9} {:>10} {:>9} {:>12} {read:>10.0} {first_hop:>14} {records:>30}",
        mb(in_use),
        mb(peak),
        mb(state),
        mb(file),
        took.as_millis(),
    )
}

/// Runs the dataflow over the workload from a hop counted from 0; gives how many records were read.
fn run(
    workload: &Arc<Workload>,
    rows: &Rows,
    checkpoints: Checkpoints,
    from: u64,
    (evaluate_every, report_every): (Nanos, Nanos),
) -> usize {
    let config = Config { lateness: Nanos::from_seconds(30), evaluate_every, report_every, ..workload.config() };
    let service = Service { stop: Arc::clone(&rows.stop), checkpoints, ..Service::default() };
    let read = Arc::new(AtomicUsize::new(0));
    let for_sources = (Arc::clone(workload), Arc::clone(&read));
    let keeping = Keeping::of(&config).expect("history is kept");
    let sources = move |worker: usize, workers: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let (workload, read) = for_sources.clone();
        Ok(vec![Box::new(Feed { workload, read, worker, workers, keeping, hop: from, pod: worker })])
    };
    let ended = run_service(&config, WORKERS, Arc::new(sources), Box::new(rows.clone()), service);
    ended.expect("the run does not fail");
    read.load(Ordering::Acquire)
}

/// The source of one worker: one partition with every n-th pod.
struct Feed {
    workload: Arc<Workload>,
    read: Arc<AtomicUsize>,
    worker: usize,
    workers: usize,
    keeping: Keeping,
    hop: u64,
    pod: usize,
}

impl Feed {
    /// What the history would not keep of a hop that has left the window before the checkpoint: the same state is filled in a sixth of
    /// the time.
    fn is_left_out(&self) -> bool {
        let in_windows = self.workload.measured.saturating_sub(WINDOW + 3 * EVERY);
        self.hop < in_windows && !self.keeping.keeps(self.workload.hop(self.hop))
    }
}

impl Source for Feed {
    fn name(&self) -> &str {
        "bench"
    }

    fn partitions(&self) -> Vec<i32> {
        vec![i32::try_from(self.worker).unwrap_or(0)]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.pod >= self.workload.pods.len() {
            (self.hop, self.pod) = (self.hop + 1, self.worker);
        }
        while self.is_left_out() {
            self.hop += 1;
        }
        // The end is some minutes after the last checkpoint, so that a start has new records.
        if self.hop >= self.workload.measured + 3 * EVERY {
            return Ok(Polled::End);
        }
        let record: Decoded = self.workload.record(self.pod, self.hop, i32::try_from(self.worker).unwrap_or(0));
        self.pod += self.workers;
        self.read.fetch_add(1, Ordering::AcqRel);
        Ok(Polled::Record(Box::new(record)))
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// Notes when the first rows come.
#[derive(Clone, Default)]
struct Rows {
    first: Arc<Mutex<Option<Instant>>>,
    until_first: bool,
    stop: Arc<AtomicBool>,
}

impl Sink for Rows {
    fn take(&mut self, _: Hop, _: Tables) -> Result<(), SinkError> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        self.stop.fetch_or(self.until_first, Ordering::AcqRel);
        Ok(())
    }

    fn save(&mut self, _: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        Ok(Some(Vec::new()))
    }
}

/// What one checkpoint cost.
#[derive(Clone, Copy, Debug)]
struct Written {
    state: usize,
    file: usize,
    took: Duration,
    /// Bytes of the whole process before the checkpoint was taken, and at most while it was taken and written.
    in_use: usize,
    peak: usize,
}

/// Writes the checkpoint of one hop.
struct Writer {
    folder: CheckpointFolder,
    at: Hop,
    asked: Mutex<usize>,
    written: Arc<Mutex<Option<Written>>>,
    /// Ends the run afterwards.
    stop: Arc<AtomicBool>,
}

impl Writer {
    fn new(folder: &TempDir, at: Hop, stop: Arc<AtomicBool>) -> Self {
        let folder = CheckpointFolder::of(folder.path());
        Self { folder, at, asked: Mutex::default(), written: Arc::default(), stop }
    }
}

impl Keep for Writer {
    fn is_ready(&self, boundary: Hop) -> bool {
        // Asked before anything of a checkpoint is taken.
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = ALLOCATOR.allocated();
        boundary == self.at
    }

    fn keep(&mut self, checkpoint: Checkpoint) {
        let in_use = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let peak = ALLOCATOR.allocated();
        let mut state = Vec::new();
        checkpoint.write_to(&mut state).expect("memory");
        let state = state.len();
        let began = Instant::now();
        let about = About::new(Checkpoint::FORMAT, String::new(), Nanos(0));
        let file = self.folder.write(&about, |to| checkpoint.write_to(to)).expect("the disk takes it");
        let file = usize::try_from(file).unwrap_or(0);
        let written = Written { state, file, took: began.elapsed(), in_use, peak };
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        self.stop.store(true, Ordering::Release);
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
