//! How the cost of a hop grows with the fleet: nanoseconds per counted entry and per test, for more pods, more functions, cells of another
//! size, more strata, and a longer past.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench growth -- [--quick] [--shapes]`; see README.md of this folder.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::drive::{HopTime, drive};
use fleetdiff_benches::spread::Spread;
use fleetdiff_benches::workload::{MEDIUM, Mix, Pod, Size, Workload};
use fleetdiff_schemas::number::float;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const WORKERS: usize = 2;
/// Hops in the window, and hops that are measured after it.
const WHOLE: (u64, u64) = (60, 24);
const QUICK: (u64, u64) = (18, 12);
/// Pods and functions of the fleets; the others are those of the medium size.
const PODS: [usize; 4] = [200, 800, 3_200, 12_800];
const FUNCTIONS: [u32; 6] = [2_000, 6_000, 20_000, 60_000, 200_000, 300_000];
/// Fleets of other shapes beside the medium size: many small cells, two huge ones, and these in 4 and 64 strata. One worker, since cells go to
/// workers by their hash, and few cells are not halves.
const SHAPES: [(Size, Mix); 5] = [
    (MEDIUM, Mix::CanaryInEveryCell),
    (Size { pods: 2_000, cells: (20, 20), ..MEDIUM }, Mix::CanaryInEveryCell),
    (Size { cells: (2, 1), ..MEDIUM }, Mix::CanaryInEveryCell),
    (Size { cells: (2, 1), ..MEDIUM }, Mix::Half),
    (Size { cells: (2, 1), kinds: 32, ..MEDIUM }, Mix::Half),
];
/// How many times its window a service runs for the last line.
const PAST: u64 = 8;

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick", "--shapes"]) else { return ExitCode::from(2) };
    let is_quick = asked.has("--quick");
    let (window, measured) = if is_quick { QUICK } else { WHOLE };
    say(&format!(
        "window of {window} hops, {measured} measured, {} samples a pod and hop; median [quartiles] over hops",
        MEDIUM.samples
    ));
    say(&format!(
        "{:>8}{:>8}{:>7}{:>8}{:>11}{:>12}{:>22}{:>10}{:>26}{:>14}{:>16}",
        "workers",
        "pods",
        "cells",
        "strata",
        "functions",
        "entries",
        "fold, ns an entry",
        "tests",
        "look, ns a test",
        "adds a test",
        "ps an addition"
    ));
    let sizes = PODS.into_iter().take(if is_quick { 3 } else { PODS.len() }).map(|pods| Size { pods, ..MEDIUM });
    let sizes = sizes.chain(FUNCTIONS.into_iter().map(|functions| Size { functions, ..MEDIUM }));
    let is_whole = !asked.has("--shapes");
    for size in sizes.filter(|_| is_whole) {
        measure(Workload::new(size, Mix::CanaryInEveryCell, window, measured), WORKERS);
    }
    for (size, mix) in SHAPES {
        measure(Workload::new(size, mix, window, measured), 1);
    }
    if is_whole {
        over_time(Size { pods: 200, functions: 2_000, ..MEDIUM }, QUICK.0);
    }
    ExitCode::SUCCESS
}

/// A line of one fleet. Time is that of all workers: milliseconds of the wall clock, times workers.
fn measure(workload: Workload, workers: usize) {
    let (size, workload) = (workload.size, Arc::new(workload));
    let entries = entries_of(&workload);
    let outcome = drive(&workload, workers).expect("the dataflow runs");
    let folds = outcome.hops.iter().filter(|hop| !hop.look).map(|hop| (hop.intake + hop.close) / entries);
    let pairs = outcome.hops.windows(2).filter(|pair| pair[1].look).map(|pair| pair[1].close - pair[0].close);
    let tests = f64::from(i32::try_from(outcome.tests).unwrap_or(i32::MAX));
    let look = nanoseconds(pairs.map(|ms| ms / tests).collect(), workers);
    let (strata, additions) = (strata_of(&workload), additions_of(&workload));
    say(&format!(
        "{:>8}{:>8}{:>7}{:>8}{:>11}{:>12}{:>22}{:>10}{:>26}{:>14.0}{:>16}",
        workers,
        size.pods,
        workload.cells(),
        strata,
        size.functions,
        entries,
        nanoseconds(folds.collect(), workers).to_string(),
        outcome.tests,
        look.to_string(),
        additions,
        look.map(|ns| ns * 1e3 / additions).to_string(),
    ));
}

fn strata_of(workload: &Workload) -> usize {
    if workload.mix == Mix::Half { 2 * workload.size.kinds } else { 1 }
}

/// Multiply-adds of a test: twice the strata and 3 in each bucket that has pods, on average over cells.
fn additions_of(workload: &Workload) -> f64 {
    let bucket = |pod: &Pod| (pod.cell, pod.head, pod.identity.bucket());
    let buckets = workload.pods.iter().map(bucket).collect::<BTreeSet<_>>().len();
    let number = |number: usize| float(u64::try_from(number).unwrap_or(0));
    number(2 * strata_of(workload) + 3) * number(buckets) / number(workload.cells())
}

/// Whether a hop costs more after the window has been replaced several times.
fn over_time(size: Size, window: u64) {
    let workload = Arc::new(Workload::new(size, Mix::CanaryInEveryCell, window, window * PAST));
    let entries = entries_of(&workload);
    let outcome = drive(&workload, WORKERS).expect("the dataflow runs");
    let part = outcome.hops.len() / 4;
    let of = |hops: &[HopTime]| {
        let folds = hops.iter().filter(|hop| !hop.look).map(|hop| (hop.intake + hop.close) / entries);
        nanoseconds(folds.collect(), WORKERS)
    };
    say(&format!(
        "past, {} pods, {} functions: fold, ns an entry: {} while the window is replaced the first {} times, {} the last {}",
        size.pods,
        size.functions,
        of(&outcome.hops[..part]),
        PAST / 4,
        of(&outcome.hops[outcome.hops.len() - part..]),
        PAST / 4,
    ));
}

/// Functions with samples over all profiles of a hop.
fn entries_of(workload: &Workload) -> f64 {
    let entries: usize = workload.pods.iter().map(|pod| workload.samples(pod, 0).len()).sum();
    float(u64::try_from(entries).unwrap_or(0))
}

/// Milliseconds of the wall clock as nanoseconds of all workers.
fn nanoseconds(milliseconds: Vec<f64>, workers: usize) -> Spread {
    let workers = float(u64::try_from(workers).unwrap_or(1));
    Spread::of(milliseconds).map(|ms| ms * 1e6 * workers)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
