//! A canary that warms up for longer than the minute that is left out: what is flagged before pods of the same age meet is
//! provisional, and only what stays is confirmed.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, FlagRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Severity};
use fleetdiff_simulation::fleet::{Fleet, FleetBuilder};

use crate::seeds::{most_false, over, rows};

/// How long the pods of these fleets are cold.
const COLD: Nanos = Nanos::from_seconds(360);
/// Fleets of each kind: 18 cells, each looked at 60 times or more.
const SEEDS: u64 = 2;

/// The flags of a run, each by its changes.
struct Flags(Vec<Vec<FlagRow>>);

impl Flags {
    fn of(fleet: &Fleet) -> Self {
        let (evaluate_every, report_every) = (Nanos::from_seconds(30), Nanos::from_seconds(86_400));
        let config = Config { evaluate_every, report_every, ..Config::default() };
        let mut changes: BTreeMap<String, Vec<FlagRow>> = BTreeMap::new();
        for flag in rows(&config, fleet).flags {
            changes.entry(flag.flag_id.clone()).or_default().push(flag);
        }
        Self(changes.into_values().collect())
    }

    fn count(&self, of: impl Fn(&[FlagRow]) -> bool) -> usize {
        self.0.iter().filter(|changes| of(changes)).count()
    }
}

/// Whether a change of a flag is one of a provisional flag.
fn is_provisional(flag: &FlagRow) -> bool {
    flag.row.provisional_until_at.is_some()
}

fn last(changes: &[FlagRow]) -> &FlagRow {
    changes.last().expect("a flag has a change")
}

fn stands(changes: &[FlagRow]) -> bool {
    last(changes).state != FlagState::Cleared
}

/// Whether a flag was a page once, or stands at the end and is more than information.
fn is_firm(changes: &[FlagRow]) -> bool {
    let is_ticket = last(changes).severity != Severity::Info;
    changes.iter().any(|flag| flag.severity == Severity::Page) || stands(changes) && is_ticket
}

/// Whether a flag is of the self count of the changed function and stands without being provisional.
fn is_found(changes: &[FlagRow]) -> bool {
    let row = &last(changes).row;
    let is_changed = row.function == Fleet::DEMO_FUNCTION && row.count_kind == CountKind::SelfCount;
    is_changed && stands(changes) && !is_provisional(last(changes))
}

/// A canary of 8 pods beside 40, in each of 9 cells, all of whose pods are cold at first.
fn cold(seed: u64) -> FleetBuilder {
    Fleet::demo(seed).pods_per_cell(8, 40).warm_up(COLD)
}

#[test]
fn null_slow_warm_up() {
    let runs = over(1..=SEEDS, |seed| Flags::of(&cold(seed).unchanged().build()));
    let provisional: usize = runs.iter().map(|run| run.count(|changes| is_provisional(&changes[0]))).sum();
    let firm: Vec<&CellRow> =
        runs.iter().flat_map(|run| &run.0).filter(|changes| is_firm(changes)).map(|changes| &changes[0].row).collect();
    let false_runs = runs.iter().filter(|run| run.count(is_firm) > 0).count();
    println!(
        "{SEEDS} fleets that are cold for 6 min: {provisional} provisional flags; {false_runs} runs with {firm:?}"
    );
    assert!(provisional >= 10, "{provisional} provisional flags: the warm-up tests nothing");
    assert!(false_runs <= most_false(runs.len(), 0.05), "{false_runs} runs have a page, or a flag that stands");
    let undecided = |run: &Flags| run.count(|changes| stands(changes) && is_provisional(last(changes)));
    assert!(runs.iter().all(|run| undecided(run) == 0), "provisional flags stand 20 minutes after the last young pod");
}

#[test]
fn twin_slow_warm_up() {
    let runs = over(1..=SEEDS, |seed| Flags::of(&cold(seed).build()));
    let found: usize = runs.iter().map(|run| run.count(is_found)).sum();
    println!("{SEEDS} fleets that are cold for 6 min and cost more in 2 cells: {found} cells found");
    assert!(found >= 3, "{found} of 4 cells have a flag of the changed function that stands");
}

/// Without a warm-up, what young pods show is confirmed once they are old.
#[test]
fn twin_young_pods() {
    let runs = over(1..=SEEDS, |seed| Flags::of(&Fleet::demo(seed).pods_per_cell(8, 40).build()));
    let sums = |of: fn(&[FlagRow]) -> bool| runs.iter().map(|run| run.count(of)).sum::<usize>();
    let found = sums(|changes| is_found(changes) && is_provisional(&changes[0]));
    let cleared = sums(|changes| last(changes).cleared_because.as_deref() == Some("warm_up"));
    println!("{SEEDS} fleets that cost more in 2 cells: {found} provisional flags confirmed, {cleared} cleared");
    assert!(found >= 3, "of 4 cells {found} have a provisional flag of the changed function that was confirmed");
}
