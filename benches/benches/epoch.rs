//! An epoch that grows: what a look and a report of one cell cost, and what its counts take, by the number of closed time blocks.
//!
//! `cargo bench -p fleetdiff-benches --bench epoch -- [--quick] [--reports]`; see README.md of this folder.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fleetdiff_benches::spread::Spread;
use fleetdiff_benches::workload::{MEDIUM, Mix, Pod, Size, Workload};
use fleetdiff_pipeline::config::{Config, Method};
use fleetdiff_pipeline::counts::bucket::Addition;
use fleetdiff_pipeline::counts::cell::{Blocks, CellCounts};
use fleetdiff_pipeline::counts::encoding::{Entry, encode};
use fleetdiff_pipeline::counts::functions::{FunctionId, FunctionTable};
use fleetdiff_pipeline::evidence::closed::ClosedStrata;
use fleetdiff_pipeline::evidence::family::Family;
use fleetdiff_pipeline::evidence::look::{LookAt, look};
use fleetdiff_pipeline::evidence::report::{CellView, report};
use fleetdiff_pipeline::rules::comparisons::{ComparisonId, OpenComparison};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::ComparisonKey;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Scope;

/// Hops of a time block: an hour.
const BLOCK: u64 = 360;
/// Hops of the open block that have passed.
const OPEN: u64 = 180;
/// Closed blocks of the epoch.
const CLOSED: [u64; 5] = [0, 1, 2, 4, 8];
/// Who calls a function: the one with a fourth of its rank, so that callers are popular too.
const CALLERS: u32 = 4;

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
        say("  closed blocks    tests  look on sums, ms      look anew, ms         report, ms  taking in, ms  columns, MB  deviations, MB  sums, MB");
        for closed in CLOSED {
            say(&measure(mix, closed, (looks, reports)));
        }
    }
    ExitCode::SUCCESS
}

/// A cell whose epoch has so many closed blocks, all out of the window, and an open one within it. Panics where looks on top of
/// the sums of closed strata differ from looks that measure every stratum anew.
fn measure(mix: Mix, closed: u64, (looks, reports): (u32, u32)) -> String {
    let table = FunctionTable::default();
    let (mut counts, mut blocks) = (CellCounts::default(), Blocks::default());
    let workload = |hops| Workload::new(Size { samples: MEDIUM.samples * hops, ..MEDIUM }, mix, 1, 1);
    let (whole, begun) = (workload(u32::try_from(BLOCK).unwrap_or(0)), workload(u32::try_from(OPEN).unwrap_or(0)));
    let ids = table.intern(&(0..20_000).map(|f| Arc::clone(whole.name(f))).collect::<Vec<_>>());
    for block in 0..=closed {
        let (start, fleet) = (block * BLOCK, if block == closed { &begun } else { &whole });
        blocks.begin(Hop(start));
        let pods = fleet.pods.iter().filter(|pod| pod.cell == 0);
        counts.add(pods.map(|pod| addition(fleet, pod, Hop(start), &ids)).collect(), &blocks, &table);
        counts.expire(Hop(start), Some(Hop(0)));
    }
    let config = Config::default();
    let id = ComparisonId { service: "video".into(), base: vec!["base".into()], head: "head".into() };
    let comparison = OpenComparison { id, epoch: Hop(0) };
    let view = CellView {
        counts: &counts,
        cell: whole.cell(0),
        key: ComparisonKey {
            service: "video".into(),
            profile_type: ProfileType::Cpu,
            measure: ProfileType::Cpu.measure(),
            base_build: comparison.id.base_name(),
            head_build: comparison.id.head.clone(),
        },
        epoch: Hop(0),
        hop: Hop(closed * BLOCK + OPEN - 1),
        window_hops: config.window_hops(),
        clock: config.clock(),
        min_count: 30.0,
        delta: config.delta,
        q: config.q,
        untested: None,
        method: Method::Honest,
    };
    let (mut held, none) = (ClosedStrata::default(), ClosedStrata::default());
    let start = Instant::now();
    held.advance(&counts, &comparison, blocks.first_open(Hop(closed * BLOCK)), &CountKind::ALL);
    let taking_in = milliseconds(start);
    let timed = |closed: &ClosedStrata| {
        let mut families = [Family::default(), Family::default()];
        let start = Instant::now();
        let seen = look(&LookAt { view: &view, comparison: &comparison, closed }, &CountKind::ALL, &mut families);
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
        drop(report(&view, &comparison, Scope::Epoch, &CountKind::ALL, &families, &held));
        milliseconds(start)
    });
    let [on_sums, anew, reports] = [on_sums, anew, reports.collect()].map(|times| Spread::of(times).to_string());
    let megabytes = |bytes: usize| f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
    let [columns, deviations, sums] = [counts.size().0, held.size().0, held.size().1].map(megabytes);
    format!("  {closed:>13} {tests:>8} {on_sums:>17} {anew:>18} {reports:>18} {taking_in:>14.1} {columns:>12.1} {deviations:>15.1} {sums:>9.1}")
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// All that a pod gives from `start` on: each sample a leaf and its caller.
fn addition(fleet: &Workload, pod: &Pod, start: Hop, ids: &[FunctionId]) -> Addition {
    let mut counts: BTreeMap<FunctionId, (u64, u64)> = BTreeMap::new();
    for (function, samples) in fleet.samples(pod, start.0) {
        let place = |function: u32| usize::try_from(function).map_or(0, |function| ids[function]);
        let own = counts.entry(place(function)).or_default();
        own.0 += u64::from(samples);
        own.1 += u64::from(samples);
        if function >= CALLERS {
            counts.entry(place(function / CALLERS)).or_default().1 += u64::from(samples);
        }
    }
    let entries: Vec<Entry> = counts.into_iter().map(|(function, (own, total))| Entry { function, own, total }).collect();
    Addition {
        own: start,
        hardware: pod.identity.hardware.clone(),
        build: pod.identity.build.clone(),
        pod: pod.identity.pod.clone(),
        bucket: pod.identity.bucket(),
        started: Nanos(0),
        samples: u64::from(fleet.size.samples),
        requests: 0,
        functions: encode(&entries),
        paths: Vec::new(),
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
