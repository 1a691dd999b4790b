//! Flags of a change that goes away.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::FlagState;

use super::{agreed, builder, config};

#[test]
fn oracle_flags_fade() {
    let one = builder(71).regions(["east"]).cohorts(["tv"]).pods_per_cell(6, 10).unchanged();
    let cold = one.warm_up(Nanos::from_seconds(700)).lasts(Nanos::from_seconds(2900)).folded();
    let config = Config { young: Nanos(0), evaluate_every: Nanos::from_seconds(70), ..config() };
    let got = agreed(71, &config, &cold.build().partitions(2));
    let faded = got.flags.iter().filter(|flag| flag.cleared_because.as_deref() == Some("faded"));
    let cleared = got.flags.iter().filter(|flag| flag.state == FlagState::Cleared).count();
    println!("{} of {cleared} flags cleared have faded", faded.clone().count());
    assert!(faded.count() >= 5, "{:?}", got.flags.iter().map(|flag| &flag.cleared_because).collect::<Vec<_>>());
}
