//! The sliding window: samples folded and expired per second, and milliseconds from hop close to flags.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench window -- [--quick] [--medium | --large] [--mix N]`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::drive::{HopTime, Outcome, drive};
use fleetdiff_benches::plain;
use fleetdiff_benches::roof::scatter_add;
use fleetdiff_benches::spread::Spread;
use fleetdiff_benches::workload::{LARGE, MEDIUM, Mix, Size, Workload};
use fleetdiff_schemas::number::float;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Hops in the window and hops that are measured: 30 minutes of 10 s, then 10 more; `--quick` has fewer.
const WHOLE: (u64, u64) = (180, 60);
const QUICK: (u64, u64) = (18, 12);

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick", "--medium", "--large", "--canary", "--every-cell", "--half"]) else {
        return ExitCode::from(2);
    };
    let (window, measured) = if asked.has("--quick") { QUICK } else { WHOLE };
    let sizes = [("--medium", MEDIUM), ("--large", LARGE)];
    let mixes = [("--canary", Mix::Canary), ("--every-cell", Mix::CanaryInEveryCell), ("--half", Mix::Half)];
    let any_size = sizes.iter().any(|(name, _)| asked.has(name));
    let any_mix = mixes.iter().any(|(name, _)| asked.has(name));
    say(&format!("window of {window} hops, {measured} hops measured; median [quartiles] over hops"));
    for (_, size) in sizes.iter().filter(|(name, _)| !any_size || asked.has(name)) {
        for (_, mix) in mixes.iter().filter(|(name, _)| !any_mix || asked.has(name)) {
            measure(*size, *mix, window, measured);
        }
    }
    ExitCode::SUCCESS
}

/// Measures one workload and prints the results.
///
/// Panics if flags differ from those of the plain evaluation, or if rows differ with the number of workers: a bench
/// with a wrong result would be meaningless.
fn measure(size: Size, mix: Mix, window: u64, measured: u64) {
    let workload = Arc::new(Workload::new(size, mix, window, measured));
    let plain = plain::evaluate(&workload, 2);
    assert!(!plain.raised.is_empty(), "nothing to flag: the workload proves nothing");
    say(&format!(
        "\n{}, {}: {} functions, {} samples a pod and hop; {} flags; plain evaluation {} ms a look with 2 threads",
        size.name,
        mix.name(),
        size.functions,
        size.samples,
        plain.raised.len(),
        Spread::of(plain.look[plain.look.len() - usize::try_from(measured / 2).unwrap_or(0)..].to_vec())
    ));
    let mut rows = None;
    for workers in [1, 2] {
        let before = scatter_add(size, columns(&workload), workers, 5);
        let outcome = drive(&workload, workers).expect("the dataflow runs");
        let after = scatter_add(size, columns(&workload), workers, 5);
        let whole = i64::from(size.samples)
            * i64::try_from(workload.pods.len()).unwrap_or(0)
            * i64::try_from(workload.hops() - 1).unwrap_or(0);
        assert_eq!(outcome.counted, whole, "samples are lost");
        assert_eq!(outcome.raised, plain.raised, "flags differ from the plain evaluation's with {workers} workers");
        assert_eq!(*rows.get_or_insert(outcome.rows), outcome.rows, "rows differ with the number of workers");
        report(
            &workload,
            workers,
            &outcome,
            Spread {
                low: before.low.min(after.low),
                median: f64::midpoint(before.median, after.median),
                high: before.high.max(after.high),
            },
        );
    }
}

fn report(workload: &Workload, workers: usize, outcome: &Outcome, roof: Spread) {
    let samples =
        float(u64::from(workload.size.samples)) * float(u64::try_from(workload.pods.len()).unwrap_or(0)) / 1e3;
    let of = |look: bool, time: fn(&HopTime) -> f64| {
        Spread::of(outcome.hops.iter().filter(|hop| hop.look == look).map(time).collect())
    };
    let whole = |look| of(look, |hop| hop.intake + hop.close);
    let (folding, looking) = (whole(false).map(|ms| samples / ms), whole(true).map(|ms| samples / ms));
    let pairs = outcome.hops.windows(2).filter(|pair| pair[1].look).map(|pair| pair[1].close - pair[0].close);
    let lines = [
        ("roof: scatter-add", roof, "M/s"),
        ("fold and expire, no look", folding, "M samples/s"),
        ("  of that intake", of(false, |hop| hop.intake), "ms a hop"),
        ("  of that close", of(false, |hop| hop.close), "ms a hop"),
        ("fold, expire and look", looking, "M samples/s"),
        ("hop close to flags", of(true, |hop| hop.close), "ms"),
        ("evaluation", Spread::of(pairs.collect()), "ms"),
    ];
    say(&format!(
        "  {workers} worker{}, {} tests at the last look",
        if workers == 1 { "" } else { "s" },
        outcome.tests
    ));
    for (what, spread, unit) in lines {
        say(&format!("    {what:<28}{spread:>24} {unit}"));
    }
    say(&format!(
        "    {:<28}{:>24} of the roof; with looks {:.3}",
        "fold and expire",
        format!("{:.3}", folding.median / roof.median),
        looking.median / roof.median
    ));
    say(&format!("    rows {:016x}", outcome.rows));
}

/// Columns that the window holds: one for each occupied bucket of each arm, stratum and cell.
fn columns(workload: &Workload) -> usize {
    let mut columns: Vec<_> =
        workload.pods.iter().map(|pod| (pod.cell, pod.head, &pod.identity.hardware, pod.identity.bucket().0)).collect();
    columns.sort();
    columns.dedup();
    columns.len() * (1 + workload.block(workload.hops() - 1))
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
