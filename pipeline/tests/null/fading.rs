//! A canary that is cold for longer than its pods are young: what is flagged then is cleared once it is gone, and what stays is not.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::{FlagRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Severity};
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};

use crate::seeds::{over, rows};

/// Fleets of each kind, each of 2 cells.
const SEEDS: u64 = 3;

/// A canary whose pods are cold for 25 minutes, and are watched for an hour after that.
fn fleet(seed: u64) -> FleetBuilder {
    let cells = Fleet::seeded(seed).regions(["eu"]).cohorts(["tv", "web"]).pods_per_cell(10, 30).pod_cv(0.05);
    let cold = cells.folded().deploy_after(Nanos::from_seconds(300)).warm_up(Nanos::from_seconds(1500));
    cold.lasts(Nanos::from_seconds(6000))
}

fn tables(seed: u64, fleet: FleetBuilder) -> Tables {
    let config = Config {
        young: Nanos(0),
        evaluate_every: Nanos::from_seconds(60),
        report_every: Nanos::from_seconds(600),
        ..Config::default()
    };
    println!("seed {seed}");
    rows(&config, &fleet.build())
}

/// The flags that stand at the end, and how many were raised.
fn standing(tables: &Tables) -> (Vec<&FlagRow>, usize) {
    let of = |state| tables.flags.iter().filter(move |flag| flag.state == state);
    let is_over = |flag: &FlagRow| of(FlagState::Cleared).any(|over| over.flag_id == flag.flag_id);
    (of(FlagState::Raised).filter(|flag| !is_over(flag)).collect(), of(FlagState::Raised).count())
}

#[test]
fn null_warm_up_of_old_pods() {
    let runs = over(1..=SEEDS, |seed| tables(seed, fleet(seed).unchanged()));
    let raised: usize = runs.iter().map(|run| standing(run).1).sum();
    let left: Vec<&str> = runs.iter().flat_map(|run| standing(run).0).map(|flag| flag.row.function.as_str()).collect();
    println!("{SEEDS} fleets that are cold for 25 min: {raised} flags, {} stand an hour later: {left:?}", left.len());
    assert!(raised >= 10, "{raised} flags: the warm-up tests nothing");
    assert!(left.len() * 10 <= raised, "{} of {raised} flags stand", left.len());
}

#[test]
fn twin_change_of_old_pods() {
    let changed = |seed| {
        let cells = Cells::all();
        fleet(seed).unchanged().regress(Fleet::DEMO_FUNCTION, cells, 1.15)
    };
    let runs = over(1..=SEEDS, |seed| tables(seed, changed(seed)));
    let pages = |run: &Tables| {
        let (standing, _) = standing(run);
        let own = standing.iter().filter(|flag| flag.row.function == Fleet::DEMO_FUNCTION);
        own.filter(|flag| flag.severity == Severity::Page).count()
    };
    let found: usize = runs.iter().map(pages).sum();
    println!("{SEEDS} fleets that cost more after that too: {found} cells found");
    assert!(found >= usize::try_from(2 * SEEDS).unwrap_or(0), "{found} flags of the change stand");
}
