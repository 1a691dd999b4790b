//! What a checkpoint holds. That runs go on from it with the same rows is checked with every fleet of these tests.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::FleetBuilder;

use super::going_on::Taken;
use super::{builder, config, delivered, rolled_out};

/// One cell with few samples.
fn small(fleet: FleetBuilder) -> FleetBuilder {
    fleet.regions(["east"]).cohorts(["tv"]).samples_per_second(40.0)
}

/// The twin of those checks: with any state as at the beginning, rows are others. Sources are read again from their first record then,
/// and the sink of these tests keeps nothing.
#[test]
fn regression_every_state_of_a_checkpoint_decides_rows() {
    let few = Limits { retention: Nanos::from_seconds(10), functions: 20, pods: 6, ..Limits::default() };
    let (roll_out, of_roll_out) = rolled_out(743);
    // Of each, when what only one state knows of decides rows: of the roll-out, after the base is gone and before its window is.
    let fleets = [
        (small(builder(741)).cumulative(), config(), &[450, 650][..]),
        (small(builder(742)), Config { window: Nanos::from_seconds(150), limits: few, ..config() }, &[450, 650]),
        (small(roll_out), of_roll_out, &[620]),
    ];
    let mut decisive = BTreeSet::new();
    for (fleet, config, when) in fleets {
        let fleet = delivered(fleet);
        let taken = Taken::by_run(&config, &fleet.partitions(2), 2, 6, Collected::default());
        // Which there are depends on timing: one is taken at a time.
        for &seconds in when {
            let hop = config.clock().hop_of(fleet.time().start.plus(Nanos::from_seconds(seconds)));
            decisive.extend(taken.decisive(taken.nearest(hop)));
        }
        println!("{} checkpoints: {decisive:?}", taken.count());
    }
    let expected =
        ["by_cell", "by_comparison", "by_pod", "held_pods", "incidents", "limits", "overflow", "plan", "standing"];
    assert_eq!(decisive, expected.map(str::to_owned).into());
}
