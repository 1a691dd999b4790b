//! A roll-out from nothing to all of 100 pods while the costs of the whole fleet drift, through the dataflow itself: blocks of
//! time, comparisons that open, hops and all.

use fleetdiff_schemas::time::Nanos;

use super::figure::{Figure, Observed, Seen};
use super::row::{Chance, Row};
use crate::experiment::Experiment;
use crate::fleet::Fleet;

pub(super) fn rows() -> Vec<Row> {
    vec![Row::through_the_dataflow(
        "rollout",
        "0 to 100 % of 100 pods in 30 minutes, CV 10 %, costs of the whole fleet drifting by 5 %, looked at every 10 s; through the dataflow",
        vec![Figure::rate("P(any alert)").at_most(0.05), Figure::rate("P(any row significant by q at the end)")],
        |chance: &mut Chance| {
            let experiment = Experiment::deployed(Fleet::rollout).every(Nanos::from_seconds(10));
            let outcome = experiment.outcome(chance.seed)?;
            let beside_plain =
                |ours: usize| Observed::beside(Seen::whether(ours > 0), Seen::whether(outcome.plain > 0));
            Ok(vec![beside_plain(outcome.raised), beside_plain(outcome.significant)])
        },
    )]
}
