//! Machines that no label names: what they make significant is announced with its doubt, and nobody is paged for it.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::identity::{Hardware, stable_hash};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Fleet, FleetBuilder};

use crate::doubt::{Doubt, config};
use crate::seeds::{over, seeds_to};

/// Fleets of each kind, each of 2 cells, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 2;
/// What warnings of this say.
const WITHOUT_A_LABEL: &str = "without a label";

fn fleet(seed: u64) -> FleetBuilder {
    let cells = Fleet::seeded(seed).regions(["eu", "us"]).cohorts(["tv"]).pods_per_cell(30, 120).pod_cv(0.1);
    cells.folded().unchanged().already_deployed().lasts(Nanos::from_seconds(900))
}

/// The tables of a fleet without the label of hardware.
fn tables(fleet: FleetBuilder, stays: impl Fn(&Profile) -> bool) -> Tables {
    let mut partitions = fleet.build().partitions(1);
    for record in partitions.iter_mut().flatten() {
        record.parts.retain(|part| part.as_ref().map_or(true, &stays));
        for profile in record.parts.iter_mut().flatten() {
            Arc::make_mut(&mut profile.identity).hardware = "unknown".into();
        }
    }
    run_in_memory(&config(), partitions, 1).expect("a synthetic fleet runs through")
}

/// Nine tenths of the head on new machines, and of the base on old ones.
fn mostly_apart(profile: &Profile) -> bool {
    let id = &profile.identity;
    let expected = if id.build.as_str() == "v42" { "new" } else { "old" };
    id.hardware.as_str() == expected || stable_hash(id.pod.as_str().as_bytes()).is_multiple_of(9)
}

#[test]
fn null_machines_without_a_label() {
    let runs = over(seeds_to(FLEETS), |seed| tables(fleet(seed).hardware(["old", "new"]), mostly_apart));
    let Doubt { cells, warned, pages, tickets } = Doubt::of(&runs, WITHOUT_A_LABEL);
    println!("new machines in most of the head: {warned} of {cells} cells warned; {pages} pages, {tickets} tickets");
    assert!(warned * 10 >= cells * 7, "{warned} of {cells} cells have a warning");
    assert!(tickets > 0, "nothing is flagged: the machines test nothing");
    assert!(pages * 4 <= tickets, "{pages} pages beside {tickets} tickets");
}

#[test]
fn null_nodes_without_a_label() {
    let nodes = |seed| (0..10).map(move |node| Hardware::new(format!("node-{seed}-{node}")));
    let runs = over(seeds_to(FLEETS), |seed| tables(fleet(seed).hardware(nodes(seed)), |_| true));
    let Doubt { cells, warned, .. } = Doubt::of(&runs, WITHOUT_A_LABEL);
    println!("10 nodes without a label: {warned} of {cells} cells warned");
    assert_eq!(warned, cells, "{warned} of {cells} cells have a warning");
}

/// Where all pods run on one kind of machine, hardly any cell is warned of.
#[test]
fn twin_machines_of_one_kind() {
    let runs = over(seeds_to(2 * FLEETS), |seed| tables(fleet(seed), |_| true));
    let Doubt { cells, warned, .. } = Doubt::of(&runs, WITHOUT_A_LABEL);
    println!("machines of one kind: {warned} of {cells} cells warned");
    assert!(warned * 6 <= cells, "{warned} of {cells} cells have a warning");
}
