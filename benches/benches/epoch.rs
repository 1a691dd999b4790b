//! A growing epoch: the time of a look and a report of one cell, and the memory of its counts, by the number of closed
//! time blocks.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench epoch -- [--quick] [--reports]`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::cell::OneCell;
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_benches::workload::Mix;
use fleetdiff_pipeline::evidence::family::Family;
use fleetdiff_pipeline::evidence::look::{LookMemory, look};
use fleetdiff_pipeline::evidence::report::report;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::Scope;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Closed blocks of the epoch.
const CLOSED: [u64; 5] = [0, 1, 2, 4, 8];

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick", "--reports"]) else { return ExitCode::from(2) };
    let (looks, reports) = (if asked.has("--quick") { 5 } else { 41 }, if asked.has("--reports") { 5 } else { 0 });
    for (mix, hardware) in [(Mix::CanaryInEveryCell, "1 kind of machine"), (Mix::Half, "2 kinds of machine")] {
        say(&format!("one cell of medium, {hardware}, self and total; median [quartiles] of {looks} looks"));
        say("  closed blocks    tests   look on held, ms    look afresh, ms         report, ms  columns, MB");
        for closed in CLOSED {
            say(&measure(mix, closed, (looks, reports)));
        }
    }
    ExitCode::SUCCESS
}

/// Panics if a look that uses what is held differs from the one before it, which measured the same counts afresh.
fn measure(mix: Mix, closed: u64, (looks, reports): (u32, u32)) -> String {
    let cell = OneCell::after(closed, mix, 0);
    let (view, time) = (cell.view(), cell.time_of_look());
    let timed = |memory: &mut LookMemory| {
        let start = Instant::now();
        let seen = look(&view, time, &CountKind::ALL, memory);
        (milliseconds(start), seen)
    };
    let (mut afresh, mut on_held, mut tests) = (Vec::new(), Vec::new(), 0);
    for _ in 0..looks {
        let mut memory = LookMemory::default();
        memory.families.resize_with(CountKind::ALL.len(), Family::default);
        let ((first, expected), (second, seen)) = (timed(&mut memory), timed(&mut memory));
        assert_eq!(format!("{seen:?}"), format!("{expected:?}"), "what is held is not what was measured");
        tests = seen.iter().map(|kind| kind.tests).sum();
        afresh.push(first);
        on_held.push(second);
    }
    let reports = (0..reports).map(|_| {
        let mut memory = LookMemory::default();
        memory.families.resize_with(CountKind::ALL.len(), Family::default);
        let start = Instant::now();
        drop(report(&view, Scope::Epoch, &CountKind::ALL, &memory));
        milliseconds(start)
    });
    let [on_held, afresh, reports] = [on_held, afresh, reports.collect()].map(|times| Spread::of(times).to_string());
    let columns = f64::from(u32::try_from(cell.counts.size()[0] >> 10).unwrap_or(u32::MAX)) / 1024.0;
    format!("  {closed:>13} {tests:>8} {on_held:>18} {afresh:>18} {reports:>18} {columns:>12.1}")
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
