//! What a checkpoint holds. That runs go on from it with the same rows is checked with every fleet of these tests.

use std::collections::BTreeSet;
use std::path::Path;

use fleetdiff_pipeline::checkpoint::Checkpoint;
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

/// A service that is replaced by a newer one goes on from what the older one has written, or reads its topic anew because the layout has
/// another number; never anything between. If this fails, what is kept has changed, or which rows follow from it: raise
/// [`Checkpoint::FORMAT`], and write the file anew. If only the fleet of this test has changed, write the file anew.
#[test]
fn regression_what_an_earlier_build_has_kept_is_gone_on_from() {
    let layout = Checkpoint::FORMAT;
    let file = format!("{}/tests/oracle/kept/layout-{layout}.checkpoint.zst", env!("CARGO_MANIFEST_DIR"));
    let write = "FLEETDIFF_WRITE_CHECKPOINT=1 cargo test --release --workspace --test oracle -- an_earlier_build";
    let (fleet, config) = rolled_out(746);
    let fleet = delivered(small(fleet).pods_per_cell(2, 3).cumulative());
    let taken = Taken::by_run(&config, &fleet.partitions(2), 1, 6, Collected::default());
    let hop = config.clock().hop_of(fleet.time().start.plus(Nanos::from_seconds(620)));
    if std::env::var_os("FLEETDIFF_WRITE_CHECKPOINT").is_some() {
        let bytes = zstd::encode_all(&*taken.bytes(taken.nearest(hop)), 19).unwrap();
        std::fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        return;
    }
    let kept = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}; write it: {write}"));
    let kept = zstd::decode_all(&*kept).unwrap();
    let about = format!("layout {layout}, kept by an earlier build; if it has changed on purpose: {write}");
    let checkpoint = Checkpoint::from_bytes(&kept).unwrap_or_else(|error| panic!("{about}: {error}"));
    let states: Vec<String> = checkpoint.states().map(str::to_owned).collect();
    let now = Checkpoint::from_bytes(&taken.bytes(taken.nearest(hop))).unwrap();
    assert_eq!(states, now.states().collect::<Vec<_>>(), "{about}");
    assert!(taken.hops_from(checkpoint.hop) > 50);
    taken.go_on_from(checkpoint, 5, 2, &about);
}
