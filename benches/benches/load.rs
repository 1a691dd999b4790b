//! What load scaling costs in one cell: the sums of each minute as samples come, their memory beside that of the window, and the
//! elasticities of all functions at a report; beside the same hops without requests, for which nothing is summed.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench load -- [--quick]`; see README.md of this folder.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::cell::Profiles;
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_benches::workload::Mix;
use fleetdiff_pipeline::counts::cell::{Blocks, CellCounts};
use fleetdiff_pipeline::counts::functions::FunctionTable;
use fleetdiff_pipeline::evidence::scaling::{CellScaling, ScalingFrame};
use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, HopClock};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Hops that are measured, after those that fill the window.
const MEASURED: u64 = 120;

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick"]) else { return ExitCode::from(2) };
    let quick = asked.has("--quick");
    let (measured, reports) = if quick { (30, 3) } else { (MEASURED, 11) };
    for (mix, hardware) in [(Mix::CanaryInEveryCell, "1 kind of machine"), (Mix::Half, "2 kinds of machine")] {
        say(&format!("one cell of medium, {hardware}; median [quartiles] of {measured} hops and {reports} reports"));
        say(
            "  requests       a hop, ms     of these minutes, ms   mean, ms  window, MB  minutes, MB   rows   a report, ms",
        );
        for requests in [0, 10] {
            say(&measure(mix, requests, measured, reports));
        }
    }
    ExitCode::SUCCESS
}

fn measure(mix: Mix, requests: u64, measured: u64, reports: u32) -> String {
    let config = Config::default();
    let (clock, table) = (config.clock(), FunctionTable::default());
    let profiles = Profiles::new(mix, requests, &table);
    let (mut counts, mut blocks) = (CellCounts::new(clock, None), Blocks::default());
    blocks.begin(Hop(0));
    let (mut hops, mut minutes) = (Vec::new(), Vec::new());
    let filled = config.window_hops();
    for hop in (0..filled + measured).map(Hop) {
        let additions = profiles.of(hop);
        let first = hop.plus(1).minus(filled);
        let start = Instant::now();
        counts.add(additions, &blocks, &table);
        counts.expire(first, None);
        let before = milliseconds(start);
        counts.close_minutes(hop, first);
        let all = milliseconds(start);
        if hop.0 >= filled {
            hops.push(all);
            minutes.push(all - before);
        }
    }
    let mean = minutes.iter().sum::<f64>() / f64::from(u32::try_from(minutes.len()).unwrap_or(1));
    let id = ComparisonId { service: "video".into(), base: vec!["base".into()], head: "head".into() };
    let mut rows = 0;
    let timed = (0..reports).map(|_| {
        let start = Instant::now();
        let scaling = CellScaling::of(&counts, std::iter::once(&id), frame(clock, filled + measured), &config);
        rows = scaling.rows().map(|rows| rows.len()).sum::<usize>() + scaling.rows_against(&id).len();
        milliseconds(start)
    });
    let [reports, hops, minutes] = [timed.collect(), hops, minutes].map(|times| Spread::of(times).to_string());
    let [columns, ring, sums] =
        counts.size().map(|bytes| f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0);
    let window = columns + ring;
    format!("  {requests:>8} {hops:>18} {minutes:>20} {mean:>10.2} {window:>11.1} {sums:>12.1} {rows:>6} {reports:>18}")
}

fn frame(clock: HopClock, hop: u64) -> ScalingFrame {
    ScalingFrame {
        service: "video".into(),
        profile_type: ProfileType::Cpu,
        cell: CellKey { region: "north".into(), cohort: "tv".into() },
        window_end_at: clock.start_of(Hop(hop)),
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
