//! A canary that warms up for longer than the minute that is left out: what is flagged before pods of the same age meet is
//! provisional, and only what stays is confirmed.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Severity;
use fleetdiff_simulation::flags::{Changes, Flags};
use fleetdiff_simulation::fleet::{Fleet, FleetBuilder};

use crate::seeds::{most_false, over, rows, seeds_to};

/// How long the pods of these fleets are cold.
const COLD: Nanos = Nanos::from_seconds(360);
/// Fleets of each kind, unless `FLEETDIFF_NULL_FLEETS` says how many: 9 cells, each looked at 60 times or more.
const FLEETS: u64 = 2;

fn flags(fleet: &Fleet) -> Flags {
    let (evaluate_every, report_every) = (Nanos::from_seconds(30), Nanos::from_seconds(86_400));
    Flags::of(rows(&Config { evaluate_every, report_every, ..Config::default() }, fleet).flags)
}

/// Whether a flag was a page once, or stands at the end and is more than information.
fn is_firm(changes: &Changes) -> bool {
    changes.has_paged() || changes.stands() && changes.last().severity != Severity::Info
}

/// Whether a flag is of the self count of the changed function and stands without being provisional.
fn is_found(changes: &Changes) -> bool {
    let row = &changes.last().row;
    let is_changed = row.function == Fleet::DEMO_FUNCTION && row.count_kind == CountKind::SelfCount;
    is_changed && changes.stands() && !changes.is_undecided()
}

/// A canary of 8 pods beside 40, in each of 9 cells, all of whose pods are cold at first.
fn cold(seed: u64) -> FleetBuilder {
    Fleet::demo(seed).pods_per_cell(8, 40).warm_up(COLD)
}

#[test]
fn null_slow_warm_up() {
    let runs = over(seeds_to(FLEETS), |seed| flags(&cold(seed).unchanged().build()));
    let provisional: usize = runs.iter().map(|run| run.count(Changes::is_raised_provisionally)).sum();
    let firm: Vec<&CellRow> = runs
        .iter()
        .flat_map(Flags::iter)
        .filter(|changes| is_firm(changes))
        .map(|changes| &changes.first().row)
        .collect();
    let false_runs = runs.iter().filter(|run| run.count(is_firm) > 0).count();
    println!(
        "{} fleets that are cold for 6 min: {provisional} provisional flags; {false_runs} runs with {firm:?}",
        runs.len()
    );
    assert!(provisional >= 10, "{provisional} provisional flags: the warm-up tests nothing");
    assert!(false_runs <= most_false(runs.len(), 0.05), "{false_runs} runs have a page, or a flag that stands");
    assert!(
        runs.iter().all(|run| run.count(Changes::is_undecided) == 0),
        "provisional flags stand 20 minutes after the last young pod"
    );
}

#[test]
fn twin_slow_warm_up() {
    let runs = over(seeds_to(FLEETS), |seed| flags(&cold(seed).build()));
    let found: usize = runs.iter().map(|run| run.count(is_found)).sum();
    println!("{} fleets that are cold for 6 min and cost more in 2 cells: {found} cells found", runs.len());
    assert!(4 * found >= 6 * runs.len(), "{found} cells have a flag of the changed function that stands");
}

/// Without a warm-up, what young pods show is confirmed once they are old.
#[test]
fn twin_young_pods() {
    let runs = over(seeds_to(FLEETS), |seed| flags(&Fleet::demo(seed).pods_per_cell(8, 40).build()));
    let sums = |of: fn(&Changes) -> bool| runs.iter().map(|run| run.count(of)).sum::<usize>();
    let found = sums(|changes| is_found(changes) && changes.is_raised_provisionally());
    let cleared = sums(|changes| changes.last().cleared_because.as_deref() == Some("warm_up"));
    println!("{} fleets that cost more in 2 cells: {found} provisional flags confirmed, {cleared} cleared", runs.len());
    assert!(
        4 * found >= 6 * runs.len(),
        "{found} cells have a provisional flag of the changed function that was confirmed"
    );
}
