//! The whole program on one page: records in, rows out.
//!
//! Timely carries data and progress; a timestamp is a hop. What changes rarely (pods, builds, current flags) is kept by
//! differential dataflow, counts are dense columns in a separate operator, and every decision is a pure function of
//! what a closed hop brought. ARCHITECTURE.md walks one sample from bytes to alert.

use fleetdiff_schemas::config::Config;
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::vec::Map;

use crate::operators::add_up::AddUp;
use crate::operators::arrive::{Arrived, CountIn};
use crate::operators::by_cell::{CountByCell, RowOfCell};
use crate::operators::by_comparison::{DecideByComparison, Decision};
use crate::operators::by_pod::DecideByPod;
use crate::operators::common::Common;
use crate::operators::deliver::OutputRow;
use crate::operators::fan_out::FanOut;
use crate::operators::incidents::Incident;
use crate::operators::ledger::Balance;
use crate::operators::limits::KeepWithin;
use crate::operators::registry::Register;
use crate::operators::split::Split;
use crate::rules::comparisons::ComparisonRules;
use crate::rules::decisions::limits::LimitsInForce;
use crate::rules::limits::LimitRules;
use crate::rules::pods::PodRules;

/// The outputs of the dataflow.
pub struct Outputs<'scope> {
    /// Rows of every table, at the hop at whose close they were made.
    pub rows: StreamVec<'scope, u64, OutputRow>,
}

/// Builds the dataflow behind a stream of arrivals.
pub fn build<'scope>(
    arrived: StreamVec<'scope, u64, Arrived>,
    config: &Config,
    limits: &LimitsInForce,
    common: &Common,
) -> Outputs<'scope> {
    let scope = arrived.scope();

    // Arrivals, counted where they enter; of what other shards count, only that there was something.
    let (content, received) = arrived.count_in();
    let (of_pods, remarks) = content.split();
    let (rows_of_records, elsewhere) = remarks.split();
    let (rejected, clocks) = rows_of_records.split();

    // By pod: duplicates, deltas of snapshots, warm-up, drain, requests; then the additions to each cell.
    let within = LimitRules::new(config, limits.clone());
    let of_pods = of_pods.decide_by_pod((PodRules::new(config), within.clone()), common);

    // Within the limits of each service: what exceeds them is counted together.
    let (within, exceeded) = of_pods.keep_within(within, config.clock(), common);
    let (additions, seen) = within.split();
    let (activity, dropped) = seen.split();

    // The registry: which builds are compared, in which time blocks, and when they are evaluated.
    let plans = activity.register(elsewhere, ComparisonRules::new(config), config.window_hops(), common);

    // By cell: dense counts, and the results of the tests on them; also how costs of single builds follow load, and what was counted.
    let (evidence, beside) = additions.count_by_cell(plans.clone(), config, common).split();
    let (counted, rows_of_cells) = beside.split();

    // By comparison: false discovery over functions and cells, verdicts, the life cycle of flags; and rows that affect nothing else:
    // counts behind verdicts, and how much more the head costs under load.
    let (decisions, behind) = evidence.decide_by_comparison(plans.clone(), config, common).split();

    // The fan-out: in which cells each function is flagged, and the shortest description of them.
    let fan_out = decisions.clone().fan_out(config.clock(), common);

    // Incidents: one for each cause over all rings of a roll-out, and one verdict for each comparison: what is announced. Also what a
    // function costs from ring to ring.
    let announced = decisions.clone().incidents(plans, config, common);

    // The ledger: everything that came in is accounted for.
    let ledger = scope.concatenate([received, dropped, counted]).balance(config.clock());

    let rows = scope.concatenate([
        decisions.flat_map(|decision| match decision {
            Decision::Cell(row) => Some(OutputRow::Cell(row)),
            Decision::Flag(row) => Some(OutputRow::Flag(row)),
            Decision::History(row) => Some(OutputRow::Comparison(row)),
            // Their rows come with the incidents: with advice, and once over all rings.
            Decision::Comparison(_) | Decision::Scaling(_) | Decision::Heap(_) | Decision::Ended(_) => None,
        }),
        behind,
        rows_of_cells.map(|row| match row {
            RowOfCell::Scaling(row) => OutputRow::Scaling(row),
            RowOfCell::Archived(rows) => OutputRow::Archived(rows),
        }),
        fan_out.map(OutputRow::FanOut),
        announced,
        ledger.map(OutputRow::Ledger),
        rejected.map(|row| OutputRow::Rejected(*row)),
        clocks.map(|row| *row).add_up("Clocks").map(OutputRow::Clock),
        exceeded.add_up("Exceeded").map(OutputRow::Limit),
    ]);
    Outputs { rows }
}
