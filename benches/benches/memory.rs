//! What a fleet costs in memory: bytes per pod, function, call path, hop and counted entry of the window.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench memory`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cap::Cap;
use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::workload::{MEDIUM, Mix, Size, Workload};
use fleetdiff_pipeline::run::in_memory::InMemory;
use fleetdiff_pipeline::run::run;
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{Decoded, Samples, Stack};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::time::Hop;
use tikv_jemallocator::Jemalloc;

/// Counts what is in use; what the allocator keeps beyond that is not the dataflow's.
#[global_allocator]
static ALLOCATOR: Cap<Jemalloc> = Cap::new(Jemalloc, usize::MAX);

/// One fleet.
#[derive(Clone, Copy)]
struct Fleet {
    size: Size,
    window: u64,
    /// From how many callers each function is called; 0: profiles come without stacks.
    callers: u32,
}

/// What a fleet is compared with: half as many of everything.
const BASE: Fleet = Fleet { size: Size { pods: 400, functions: 10_000, ..MEDIUM }, window: 60, callers: 0 };

/// What a fleet holds once its window is full.
#[derive(Clone, Copy)]
struct Held {
    bytes: f64,
    /// Functions with samples, over all profiles of the window.
    entries: f64,
}

fn main() -> ExitCode {
    if Asked::given(&[]).is_none() {
        return ExitCode::from(2);
    }
    let Fleet { size, window, .. } = BASE;
    let base = held(BASE);
    say(&format!(
        "{} pods in 42 cells, {} functions, {} samples a pod and hop, window of {window} hops: {:.1} MB in use once it is full",
        size.pods,
        size.functions,
        size.samples,
        base.bytes / 1e6,
    ));
    let each = |count: usize| float(u64::try_from(count).unwrap_or(0));
    let pods = held(Fleet { size: Size { pods: 2 * size.pods, ..size }, ..BASE });
    row("pods", pods, base, each(size.pods), "pod, whose profiles are in the window");
    let functions = held(Fleet { size: Size { functions: 2 * size.functions, ..size }, ..BASE });
    row("functions", functions, base, f64::from(size.functions), "function of the fleet");
    let hops = held(Fleet { window: 2 * window, ..BASE });
    row("hops", hops, base, float(window), "hop of the window");
    let entries = hops.entries - base.entries;
    say(&format!(
        "{:<12}{:>43.2} bytes more a counted entry (a function with samples in a profile)",
        "",
        (hops.bytes - base.bytes) / entries
    ));
    let (one, two) = (held(Fleet { callers: 1, ..BASE }), held(Fleet { callers: 2, ..BASE }));
    row("stacks", one, base, float(window) * each(size.pods), "profile, by having stacks");
    row("paths", two, one, f64::from(size.functions), "further path of each function");
    ExitCode::SUCCESS
}

/// What twice as many of one thing take.
fn row(what: &str, more: Held, base: Held, by: f64, unit: &str) {
    say(&format!(
        "{what:<12}{:>8.1} MB instead of {:>8.1} MB {:>12.0} bytes more a {unit}",
        more.bytes / 1e6,
        base.bytes / 1e6,
        (more.bytes - base.bytes) / by
    ));
}

/// Runs a fleet until its window is full, and reads what is in use before the first hop that replaces another is over.
fn held(fleet: Fleet) -> Held {
    let workload = Arc::new(Workload::new(fleet.size, Mix::CanaryInEveryCell, fleet.window, 1));
    let before = ALLOCATOR.allocated();
    let entries = Arc::new(AtomicUsize::new(0));
    let records = {
        let (workload, entries) = (Arc::clone(&workload), Arc::clone(&entries));
        let pods = workload.pods.len();
        (0..workload.hops()).flat_map(move |hop| {
            let (workload, entries) = (Arc::clone(&workload), Arc::clone(&entries));
            (0..pods).map(move |pod| {
                let record = workload.record(pod, hop, 0);
                if hop < workload.window {
                    entries.fetch_add(entries_of(&record), Ordering::Relaxed);
                }
                if fleet.callers > 0 { with_stacks(record, hop, fleet.callers, fleet.size.functions) } else { record }
            })
        })
    };
    let records: Mutex<Option<Box<dyn Iterator<Item = Decoded> + Send>>> = Mutex::new(Some(Box::new(records)));
    let sources = move |_, _| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let records = records.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(vec![Box::new(InMemory::new(records.map(|records| (0, records))))])
    };
    let meter = Meter { full: workload.hop(fleet.window - 1), bytes: Arc::default() };
    let bytes = Arc::clone(&meter.bytes);
    run(&workload.config(), 1, Arc::new(sources), Box::new(meter)).expect("the dataflow runs");
    let bytes = bytes.load(Ordering::Relaxed);
    assert!(bytes > before, "the last hop of the window was not delivered");
    let float = |count: usize| float(u64::try_from(count).unwrap_or(0));
    Held { bytes: float(bytes - before), entries: float(entries.load(Ordering::Relaxed)) }
}

fn entries_of(record: &Decoded) -> usize {
    let profiles = record.parts.iter().flatten();
    let folded = profiles.map(|profile| match &profile.samples {
        Samples::Folded { cohorts, .. } => cohorts.iter().map(|of| of.functions.len()).sum(),
        Samples::Stacks(stacks) => stacks.len(),
    });
    folded.sum()
}

/// The same samples with the function that was running called by one of `callers` others, from the entry of the program.
fn with_stacks(mut record: Decoded, hop: u64, callers: u32, functions: u32) -> Decoded {
    for profile in record.parts.iter_mut().flatten() {
        let Samples::Folded { cohorts, .. } = &profile.samples else { continue };
        let key = stable_hash(profile.identity.pod.as_str().as_bytes()) ^ hop;
        let stack = |(name, count): (u32, u64)| {
            let drawn = stable_hash(&(key ^ u64::from(name)).to_le_bytes()) % u64::from(callers);
            let caller = (functions - 1).saturating_sub(u32::try_from(drawn).unwrap_or(0));
            Stack { frames: vec![0, caller, name], count, cohort: None, value: 0 }
        };
        let counted = cohorts.iter().flat_map(|of| &of.functions).map(|of| (of.name, of.own));
        profile.samples = Samples::Stacks(counted.map(stack).collect());
    }
    record
}

/// Reads what is in use when a hop is delivered.
struct Meter {
    full: Hop,
    bytes: Arc<AtomicUsize>,
}

impl Sink for Meter {
    fn take(&mut self, hop: Hop, _: Tables) -> Result<(), SinkError> {
        if hop == self.full {
            self.bytes.store(ALLOCATOR.allocated(), Ordering::Relaxed);
        }
        Ok(())
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
