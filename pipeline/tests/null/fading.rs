//! A canary that is cold for longer than its pods are young: what is flagged then is cleared once it is gone, and what stays is not.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Severity;
use fleetdiff_simulation::flags::{Changes, Flags};
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};

use crate::seeds::{over, rows, seeds_to};

/// Fleets of each kind, each of 2 cells, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 2;

/// A canary whose pods are cold for 25 minutes, and are watched for an hour after that.
fn fleet(seed: u64) -> FleetBuilder {
    let cells = Fleet::seeded(seed).regions(["eu"]).cohorts(["tv", "web"]).pods_per_cell(10, 30).pod_cv(0.05);
    let cold = cells.folded().deploy_after(Nanos::from_seconds(300)).warm_up(Nanos::from_seconds(1500));
    cold.lasts(Nanos::from_seconds(6000))
}

fn flags(seed: u64, fleet: FleetBuilder) -> Flags {
    let config = Config {
        young: Nanos(0),
        evaluate_every: Nanos::from_seconds(60),
        report_every: Nanos::from_seconds(600),
        ..Config::default()
    };
    println!("seed {seed}");
    Flags::of(rows(&config, &fleet.build()).flags)
}

#[test]
fn null_warm_up_of_old_pods() {
    let runs = over(seeds_to(FLEETS), |seed| flags(seed, fleet(seed).unchanged()));
    let raised: usize = runs.iter().map(|run| run.count(|_| true)).sum();
    let standing = runs.iter().flat_map(Flags::iter).filter(|flag| flag.stands());
    let left: Vec<&str> = standing.map(|flag| flag.first().row.function.as_str()).collect();
    println!(
        "{} fleets that are cold for 25 min: {raised} flags, {} stand an hour later: {left:?}",
        runs.len(),
        left.len()
    );
    assert!(raised >= 10, "{raised} flags: the warm-up tests nothing");
    assert!(left.len() * 10 <= raised, "{} of {raised} flags stand", left.len());
}

#[test]
fn twin_change_of_old_pods() {
    let changed = |seed| {
        let cells = Cells::all();
        fleet(seed).unchanged().regress(Fleet::DEMO_FUNCTION, cells, 1.15)
    };
    let runs = over(seeds_to(FLEETS), |seed| flags(seed, changed(seed)));
    let is_found = |flag: &Changes| {
        let raised = flag.first();
        flag.stands() && raised.row.function == Fleet::DEMO_FUNCTION && raised.severity == Severity::Page
    };
    let found: usize = runs.iter().map(|run| run.count(is_found)).sum();
    println!("{} fleets that cost more after that too: {found} cells found", runs.len());
    assert!(found >= 2 * runs.len(), "{found} flags of the change stand");
}
