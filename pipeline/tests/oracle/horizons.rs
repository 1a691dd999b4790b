//! The window may be as long as the horizon within which pods count as present: 12 hops.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::FlagState;

use super::{agreed, builder, config};

#[test]
fn regression_flags_are_cleared_whatever_the_window() {
    let gone = builder(721)
        .pods_per_cell(0, 9)
        .samples_per_second(200.0)
        .rollout(Nanos::from_seconds(200), Nanos::from_seconds(300))
        .partition_count(2)
        .build();
    for seconds in [110, 120, 130] {
        let config = Config { window: Nanos::from_seconds(seconds), history: Nanos(0), ..config() };
        let tables = agreed(721, &config, &gone.partitions(2));
        let in_state = |state| tables.flags.iter().filter(|flag| flag.state == state).count();
        let (raised, cleared) = (in_state(FlagState::Raised), in_state(FlagState::Cleared));
        assert!(raised > 0, "no flag with a window of {seconds} s");
        assert_eq!(raised, cleared, "the base is gone, so is each flag with a window of {seconds} s");
    }
}
