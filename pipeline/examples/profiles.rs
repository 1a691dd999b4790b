//! The dataflow on an iterator of profiles: two builds in memory, and the rows that come out.
//!
//! ```sh
//! cargo run --release -p fleetdiff-pipeline --example profiles
//! ```

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::{records, run_in_memory};
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{CountKind, Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::{Scope, Verdict};

/// One profile of 10 s of one pod: `main` calls 40 functions, and build v2 spends half as much again in function 3.
fn profile(build: &str, pod: u32, hop: i64) -> Profile {
    let names: Vec<Arc<str>> =
        std::iter::once("main".into()).chain((0..40).map(|number| format!("f{number:02}").into())).collect();
    let stack = |function: u32| {
        let usual = u64::from(400 / (function + 1) + (pod * 7 + function * 3) % 5);
        let count = if build == "v2" && function == 3 { usual + usual / 2 } else { usual };
        Stack { frames: vec![0, function + 1], count, cohort: None, value: 0 }
    };
    let identity = Identity {
        service: "checkout".into(),
        build: build.into(),
        region: "eu-west-1".into(),
        cohort: "web".into(),
        hardware: "amd64".into(),
        node: None,
        pod: format!("{build}-{pod}").as_str().into(),
        process_start: None,
    };
    let start = Nanos::from_seconds(1_700_000_000 + 10 * hop);
    Profile {
        identity: Arc::new(identity),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: TimeRange { start, end: start.plus(Nanos::from_seconds(10)) },
        requests: None,
        names: names.into(),
        samples: Samples::Stacks((0..40).map(stack).collect()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pods = || (0..30).map(|pod| ("v1", pod)).chain((0..12).map(|pod| ("v2", pod)));
    let profiles = (0..60).flat_map(|hop| pods().map(move |(build, pod)| profile(build, pod, hop)));
    let config =
        Config { comparing: Comparing::Named { base: vec!["v1".into()], head: "v2".into() }, ..Config::default() };
    let tables = run_in_memory(&config, vec![records(profiles)], 2)?;
    let mut out = std::io::stdout().lock();
    let last = tables.cells.iter().map(|row| row.window_end_at).max().ok_or("no report was written")?;
    let rows = tables.cells.iter().filter(|row| {
        row.window_end_at == last && row.scope == Scope::Window && row.count_kind == CountKind::SelfCount
    });
    let mut regressed = Vec::new();
    for row in rows.filter(|row| row.verdict == Verdict::Regressed && row.cell.region.as_str() == "eu-west-1") {
        let ratio = row.adjusted_ratio.ok_or("a regressed row has a ratio here")?;
        writeln!(out, "{}: x {:.2} ({:.2} to {:.2})", row.function, ratio.value, ratio.low, ratio.high)?;
        regressed.push(row.function.as_str());
    }
    assert_eq!(regressed, ["f03"]);
    Ok(())
}
