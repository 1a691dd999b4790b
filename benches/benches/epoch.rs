//! A growing epoch: the time of a look and a report of one cell, and the memory of its counts, by the number of closed
//! time blocks.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench epoch -- [--quick] [--reports]`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::cell::OneCell;
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_benches::workload::Mix;
use fleetdiff_pipeline::evidence::closed::ClosedStrata;
use fleetdiff_pipeline::evidence::family::Family;
use fleetdiff_pipeline::evidence::look::{LookAt, look};
use fleetdiff_pipeline::evidence::report::report;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::Scope;

/// Closed blocks of the epoch.
const CLOSED: [u64; 5] = [0, 1, 2, 4, 8];

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let known = ["--bench", "--quick", "--reports"];
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        let _ = writeln!(std::io::stderr(), "unknown option {unknown}; there are {}", known[1..].join(", "));
        return ExitCode::from(2);
    }
    let has = |name: &str| options.iter().any(|option| option == name);
    let (looks, reports) = (if has("--quick") { 5 } else { 41 }, if has("--reports") { 5 } else { 0 });
    for (mix, hardware) in [(Mix::CanaryInEveryCell, "1 kind of machine"), (Mix::Half, "2 kinds of machine")] {
        say(&format!("one cell of medium, {hardware}, self and total; median [quartiles] of {looks} looks"));
        say(
            "  closed blocks    tests  look on sums, ms      look anew, ms         report, ms  taking in, ms  columns, MB  deviations, MB  sums, MB",
        );
        for closed in CLOSED {
            say(&measure(mix, closed, (looks, reports)));
        }
    }
    ExitCode::SUCCESS
}

/// Panics if looks that use the sums of closed strata differ from looks that measure every stratum again.
fn measure(mix: Mix, closed: u64, (looks, reports): (u32, u32)) -> String {
    let cell = OneCell::after(closed, mix, 0);
    let (view, comparison) = (cell.view(), &cell.comparison);
    let (mut held, none) = (ClosedStrata::default(), ClosedStrata::default());
    let start = Instant::now();
    held.advance(&cell.counts, comparison, cell.first_open, &CountKind::ALL);
    let taking_in = milliseconds(start);
    let timed = |closed: &ClosedStrata| {
        let mut families = [Family::default(), Family::default()];
        let start = Instant::now();
        let seen = look(&LookAt { view: &view, comparison, closed }, &CountKind::ALL, &mut families);
        (milliseconds(start), seen)
    };
    let (mut on_sums, mut anew, mut tests) = (Vec::new(), Vec::new(), 0);
    for _ in 0..looks {
        let ((one, seen), (other, expected)) = (timed(&held), timed(&none));
        assert_eq!(format!("{seen:?}"), format!("{expected:?}"), "a look depends on what is kept of closed strata");
        tests = seen.iter().map(|kind| kind.tests).sum();
        on_sums.push(one);
        anew.push(other);
    }
    let reports = (0..reports).map(|_| {
        let start = Instant::now();
        let families = [Family::default(), Family::default()];
        drop(report(&view, comparison, Scope::Epoch, &CountKind::ALL, &families, &held));
        milliseconds(start)
    });
    let [on_sums, anew, reports] = [on_sums, anew, reports.collect()].map(|times| Spread::of(times).to_string());
    let megabytes = |bytes: usize| f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
    let [columns, deviations, sums] = [cell.counts.size().0, held.size().0, held.size().1].map(megabytes);
    format!(
        "  {closed:>13} {tests:>8} {on_sums:>17} {anew:>18} {reports:>18} {taking_in:>14.1} {columns:>12.1} {deviations:>15.1} {sums:>9.1}"
    )
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
