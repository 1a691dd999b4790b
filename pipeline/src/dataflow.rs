//! The whole program on one page: records in, rows out.
//!
//! Timely carries data and progress; a timestamp is a hop. What changes rarely (pods, builds, standing flags) is kept by
//! differential dataflow, counts are dense columns in an operator of their own, and every decision is a pure function of
//! what a closed hop brought. ARCHITECTURE.md walks one sample from bytes to alert.

use std::convert::identity;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::RejectedRow;
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::vec::Map;

use crate::counts::functions::FunctionTable;
use crate::operators::by_cell::CountByCell;
use crate::operators::by_comparison::{DecideByComparison, Decision};
use crate::operators::by_pod::{DecideByPod, PodOutput};
use crate::operators::deliver::OutputRow;
use crate::operators::fan_out::FanOut;
use crate::operators::ledger::{Balance, Term};
use crate::operators::registry::Register;
use crate::operators::split::Split;
use crate::rules::admission::OfPod;
use crate::rules::comparisons::ComparisonRules;
use crate::rules::pods::PodRules;

/// What enters: what is told of a pod at its application hop, or a part that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arrived {
    /// The hop under which it is booked.
    pub hop: Hop,
    /// What is told, or why that is nothing.
    pub content: Result<OfPod, Box<RejectedRow>>,
}

impl Arrived {
    /// What the ledger takes in: profiles and what was refused.
    fn term(&self) -> Option<Term> {
        match &self.content {
            Ok(OfPod::Profile(profile)) => Some(Term::received(self.hop, profile)),
            Ok(OfPod::Requests(_) | OfPod::Seen(_)) => None,
            Err(row) => Some(Term::rejected(self.hop, row)),
        }
    }
}

/// Everything that leaves.
pub struct Outputs<'scope> {
    /// Rows of every table, at the hop at whose close they were made.
    pub rows: StreamVec<'scope, u64, OutputRow>,
}

/// Builds the dataflow behind a stream of arrivals.
pub fn build<'scope>(
    arrived: StreamVec<'scope, u64, Arrived>,
    config: &Config,
    table: &Arc<FunctionTable>,
) -> Outputs<'scope> {
    let scope = arrived.scope();

    // What came, counted where it came in.
    let (content, received) =
        arrived.flat_map(|arrived| arrived.term().map(Err).into_iter().chain([Ok(arrived.content)])).split(identity);
    let (told, rejected) = content.split(identity);

    // By pod: duplicates, snapshots made deltas, warm-up, drain, requests; then which cell gets what.
    let pods = told.decide_by_pod(PodRules::new(config), Arc::clone(table));
    let (additions, seen) = pods.split(PodOutput::addition);
    let (activity, dropped) = seen.split(identity);

    // The registry: which builds are compared, in which time blocks, and when that is looked at.
    let plans = activity.register(ComparisonRules::new(config), config.window_hops());

    // By cell: dense counts, and what the tests say of them.
    let cells = additions.count_by_cell(plans.clone(), config, Arc::clone(table));
    let (evidence, counted) = cells.split(identity);

    // By comparison: false discovery over functions and cells, verdicts, the life cycle of flags.
    let decisions = evidence.decide_by_comparison(plans, config);

    // The fan-out: where the flags of each called function stand, and the fewest words for that.
    let fan_out = decisions.clone().fan_out(config.clock());

    // Everything taken in is accounted for.
    let ledger = scope.concatenate([received, dropped, counted]).balance(config.clock());

    let rows = scope.concatenate([
        decisions.flat_map(|decision| match decision {
            Decision::Cell(row) => Some(OutputRow::Cell(row)),
            Decision::Flag(row) => Some(OutputRow::Flag(row)),
            Decision::Comparison(row) | Decision::Past(row) => Some(OutputRow::Comparison(row)),
            Decision::Ended(_) => None,
        }),
        fan_out.map(OutputRow::FanOut),
        ledger.map(OutputRow::Ledger),
        rejected.map(|row| OutputRow::Rejected(*row)),
    ]);
    Outputs { rows }
}
