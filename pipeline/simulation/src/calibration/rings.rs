//! Four rings of one code, deployed one after the other and compared with each other, through the dataflow itself.

use fleetdiff_schemas::time::Nanos;

use super::figure::{Figure, Observed, Seen};
use super::row::{Chance, Row};
use crate::experiment::Experiment;
use crate::fleet::{Fleet, FleetBuilder};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "rings",
            "4 builds of one code side by side, 24, 8, 8 and 4 pods in each of 2 cells, CV 10 % (in load 15 %), 5 comparisons looked at every minute for 40 minutes; through the dataflow",
            Fleet::rings,
        ),
        row(
            "rings at twice the load",
            "the same, two of the builds at twice the load, one function of fixed cost and one that grows with load to the power .3",
            Fleet::rings_at_twice_the_load,
        ),
    ]
}

fn row(name: &'static str, simulates: &'static str, preset: fn(u64) -> FleetBuilder) -> Row {
    Row::through_the_dataflow(
        name,
        simulates,
        vec![
            Figure::rate("P(any alert)").at_most(0.05),
            Figure::rate("P(any row significant by q at the end)").at_most(0.10),
        ],
        move |chance: &mut Chance| {
            let outcome = Experiment::deployed(preset).every(Nanos::from_seconds(60)).outcome(chance.seed)?;
            let beside_plain =
                |ours: usize| Observed::beside(Seen::whether(ours > 0), Seen::whether(outcome.plain > 0));
            Ok(vec![beside_plain(outcome.raised), beside_plain(outcome.significant)])
        },
    )
}
