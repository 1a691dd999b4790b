//! The same program with other names: modules and functions are renamed in the head, and some functions inlined. Nothing costs more.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Verdict;
use fleetdiff_simulation::fleet::{Cells, Fleet};

use crate::other_builds::{inline, rename};
use crate::seeds::{most_false, over, seeds_to};

/// The function that costs more in the twin.
const FUNCTION: &str = "serialize_video_chunk";

/// A module in four, and a function in ten, has another name, as the seed draws them.
fn other_name(seed: u64, name: &str) -> Option<String> {
    let is_drawn = |what: &str, one_in: u64| stable_hash(format!("{seed} {what}").as_bytes()).is_multiple_of(one_in);
    let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
    let new_module = if !module.is_empty() && is_drawn(module, 4) { format!("{module}2::") } else { String::new() };
    let new_function = if name == FUNCTION || is_drawn(name, 10) { format!("{function}_v2") } else { String::new() };
    match (new_module.is_empty(), new_function.is_empty()) {
        (true, true) => None,
        (true, false) if module.is_empty() => Some(new_function),
        (true, false) => Some(format!("{module}::{new_function}")),
        (false, true) => Some(format!("{new_module}{function}")),
        (false, false) => Some(format!("{new_module}{new_function}")),
    }
}

/// Functions whose work is that of their only caller.
const INLINED: [&str; 4] = ["cache::probe", "json::write_string", "recommend::dot_product", "http::parse_headers"];

fn tables(seed: u64, factor: f64) -> Tables {
    let fleet = Fleet::seeded(seed).regions(["eu", "us"]).cohorts(["tv", "web"]).pods_per_cell(10, 30).pod_cv(0.05);
    let fleet = fleet.already_deployed().lasts(Nanos::from_seconds(1200)).unchanged();
    let fleet = fleet.regress(FUNCTION, Cells::all(), factor).build();
    let mut partitions = fleet.partitions(1);
    for (place, function) in (0..).zip(INLINED) {
        let build = if (seed + place).is_multiple_of(2) { fleet.head() } else { fleet.base() };
        inline(&mut partitions, build, function);
    }
    rename(&mut partitions, fleet.head(), |name| other_name(seed, name));
    let config = Config {
        evaluate_every: Nanos::from_seconds(60),
        report_every: Nanos::from_seconds(300),
        comparing: Comparing::Named { base: vec!["v41".into()], head: "v42".into() },
        ..Config::default()
    };
    run_in_memory(&config, partitions, 1).expect("a synthetic fleet runs through")
}

/// Rows of cells in the last report, by verdict.
fn rows(tables: &Tables, is: impl Fn(Verdict) -> bool) -> usize {
    let last = tables.cells.iter().map(|row| row.window_end_at).max();
    let of_last = tables.cells.iter().filter(|row| Some(row.window_end_at) == last && !row.is_roll_up);
    of_last.filter(|row| is(row.verdict)).count()
}

#[test]
fn null_rebuilt() {
    let runs = over(seeds_to(3), |seed| tables(seed, 1.0));
    for (seed, tables) in (1..).zip(&runs) {
        let (looked, moved) = (rows(tables, |_| true), rows(tables, |verdict| verdict == Verdict::Moved));
        let (flags, incidents) = (tables.flags.len(), tables.incidents.len());
        println!("seed {seed}: of {looked} rows {moved} moved, {flags} changes of flags, {incidents} of incidents");
        assert!(looked > 4000 && moved > 1000, "seed {seed}: {moved} of {looked} rows moved");
    }
    let alerting = runs.iter().filter(|tables| !tables.flags.is_empty()).count();
    let significant = runs.iter().filter(|tables| rows(tables, Verdict::is_significant) > 0).count();
    assert!(alerting <= most_false(runs.len(), 0.05), "{alerting} of {} fleets have a flag", runs.len());
    assert!(
        significant <= most_false(runs.len(), 0.05),
        "{significant} of {} fleets have a significant row",
        runs.len()
    );
}

/// The function that costs more has another name too: it is flagged, and as what it is.
#[test]
fn twin_rebuilt() {
    let tables = tables(1, 1.3);
    let causes: BTreeSet<&str> = tables.incidents.iter().map(|row| row.cause.as_str()).collect();
    let new_name = format!("{FUNCTION}_v2");
    assert_eq!(causes, BTreeSet::from([new_name.as_str()]), "what stands out");
    let summary = tables.incidents.last().map(|row| row.summary.as_str()).unwrap_or_default();
    assert!(summary.contains(&format!("it was {FUNCTION} in the base; together x 1.")), "{summary}");
}
