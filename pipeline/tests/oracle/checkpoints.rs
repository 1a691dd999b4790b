//! What a checkpoint holds. That runs go on from it with the same rows is checked with every fleet of these tests.

use std::collections::BTreeSet;

use fleetdiff_pipeline::checkpoint::Checkpoint;
use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::FleetBuilder;

use super::going_on::Taken;
use super::processes::Workers;
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
        let hop = |seconds: &i64| config.clock().hop_of(fleet.time().start.plus(Nanos::from_seconds(*seconds)));
        let taken = Taken::after_hops(&config, &fleet.partitions(2), when.iter().map(hop));
        assert_eq!(taken.count(), when.len());
        (0..when.len()).for_each(|number| decisive.extend(taken.decisive(number)));
        println!("{} checkpoints: {decisive:?}", taken.count());
    }
    let expected =
        ["by_cell", "by_comparison", "by_pod", "held_pods", "incidents", "limits", "overflow", "plan", "standing"];
    assert_eq!(decisive, expected.map(str::to_owned).into());
}

/// A boundary at which none is wanted has none, also if one is wanted before the next boundary: those that have passed it have no state of
/// it any more, and no other would ever be taken.
#[test]
fn regression_checkpoints_go_on_after_boundaries_at_which_none_was_wanted() {
    let fleet = delivered(small(builder(747)));
    for (every, n) in [(6, 2), (6, 3), (4, 5), (10, 2)] {
        let taken = Taken::seldom(&config(), &fleet.partitions(2), every, n);
        println!("every {every} hops, one in {n}: {} checkpoints", taken.count());
        // How often it is asked depends on how many boundaries are passed at a time: the busier the machine, the fewer.
        // Of the 90 hops, the first half: the first one that never comes is the last for which it is asked.
        assert_eq!(taken.never_came(45), []);
        assert!(taken.count() > 0);
        taken.go_on(taken.count() - 1, Workers::in_one(1), "the last one");
    }
}

/// A service that is replaced by a newer one goes on from what the older one has kept, or reads its topic anew because the layout has another
/// number; never anything between. With one worker what is kept has the same bytes at each run. If they are others, then what is kept has
/// changed, or what it means: raise [`Checkpoint::FORMAT`], and write the file anew. If only the fleet of this test has changed, write the file
/// anew.
#[test]
fn regression_what_is_kept_is_what_an_earlier_build_of_this_layout_has_kept() {
    let layout = Checkpoint::FORMAT;
    let file = format!("{}/tests/oracle/kept/layout-{layout}.checkpoint.zst", env!("CARGO_MANIFEST_DIR"));
    let write = "FLEETDIFF_WRITE_CHECKPOINT=1 cargo test --release --workspace --test oracle -- an_earlier_build";
    let (fleet, config) = rolled_out(746);
    let fleet = delivered(small(fleet).pods_per_cell(2, 3).cumulative());
    // So far apart that a run is never at two of them at a time, of which it would take one.
    let taken = Taken::by_run(&config, &fleet.partitions(2), 1, 30, Collected::default());
    let hop = config.clock().hop_of(fleet.time().start.plus(Nanos::from_seconds(620)));
    let now = taken.bytes(taken.nearest(hop));
    if std::env::var_os("FLEETDIFF_WRITE_CHECKPOINT").is_some() {
        std::fs::write(&file, zstd::encode_all(&*now, 19).unwrap()).unwrap();
        return;
    }
    let kept = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}; write it: {write}"));
    let kept = zstd::decode_all(&*kept).unwrap();
    let read = |bytes: &[u8]| Checkpoint::from_bytes(bytes.to_vec()).map(|checkpoint| checkpoint.hop);
    assert_eq!(read(&kept).ok(), read(&now).ok(), "layout {layout}: {write}");
    assert!(kept == now, "what is kept has changed: raise Checkpoint::FORMAT, now {layout}, and then {write}");
}
