//! By comparison: which rows are significant and flagged, over all functions and cells together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::comparison::{ComparisonId, OpenComparison};
use fleetdiff_schemas::config::{Config, Method};
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::number::{float, table_count};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{
    CellKey, CellRow, ComparisonKey, ComparisonRow, FlagRow, HeapFindingRow, ScalingFindingRow, ScalingRow, StackRow,
};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Scope;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::Map;

use super::at_close::{AtClose, AtHop, Closed};
use super::by_cell::CellEvaluation;
use super::common::Common;
use super::deliver::OutputRow;
use super::route;
use super::split::{OneOfTwo, To};
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::evidence::imbalance::Imbalance;
use crate::evidence::look::KindLook;
use crate::evidence::stacks::StackCount;
use crate::evidence::strata_detail::History;
use crate::rules::aa_check::{aa_check, telling};
use crate::rules::comparisons::Plan;
use crate::rules::heap;
use crate::rules::heap::findings::HeapFindings;
use crate::rules::lifecycle::{LiveRule, Look};
use crate::rules::live_family::LiveFamily;
use crate::rules::method::Findings;
use crate::rules::plain::PlainRule;
use crate::rules::scaling;
use crate::rules::scaling::findings::ScalingFindings;
use crate::rules::summary::{Reported, SummaryFrame, summarise, summarise_history};
use crate::rules::table::scope::{ScopeCells, TableRules};
use crate::rules::table::{DecidedTable, LiveRows, decide};
use crate::rules::waiting;

/// What is decided about one comparison at one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Decision {
    /// A row of a report; large, and read in several places.
    Cell(Arc<CellRow>),
    /// A change of a flag.
    Flag(Box<FlagRow>),
    /// A verdict of a comparison.
    Comparison(Box<ComparisonRow>),
    /// A function of which the head scales worse, or does no longer.
    Scaling(Box<ScalingFindingRow>),
    /// A leak of the head, or its end.
    Heap(Box<HeapFindingRow>),
    /// A verdict against history, which affects nothing else.
    History(Box<ComparisonRow>),
    /// The comparison has ended.
    Ended(ComparisonId),
}

/// What follows from the cells of a comparison at one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ComparisonOutput {
    /// What is decided.
    Decision(Decision),
    /// A row that affects nothing else.
    Row(OutputRow),
}

impl OneOfTwo for ComparisonOutput {
    type First = Decision;
    type Second = OutputRow;

    fn destination(self) -> To<Decision, OutputRow> {
        match self {
            Self::Decision(decision) => To::First(decision),
            Self::Row(row) => To::Second(row),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum ComparisonInput {
    Evaluation(Box<CellEvaluation>),
    Plan { worker: u64, plan: Plan },
}

/// See [`DecideByComparison::decide_by_comparison`].
pub trait DecideByComparison<'scope> {
    /// Sends all cells of a comparison to one worker: the live rule at each look, then the tables at each report.
    fn decide_by_comparison(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, ComparisonOutput>;
}

impl<'scope> DecideByComparison<'scope> for StreamVec<'scope, u64, Box<CellEvaluation>> {
    fn decide_by_comparison(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, ComparisonOutput> {
        let workers = u64::try_from(self.scope().peers()).unwrap_or(1);
        let plans = plans
            .flat_map(move |plan| (0..workers).map(move |worker| ComparisonInput::Plan { worker, plan: plan.clone() }));
        let comparisons = Comparisons {
            config: config.clone(),
            states: BTreeMap::new(),
            plain: BTreeMap::new(),
            scaling: BTreeMap::new(),
            heap: BTreeMap::new(),
            blocks: BTreeMap::new(),
        };
        let to_worker = |input: &ComparisonInput| match input {
            ComparisonInput::Evaluation(evaluation) => route_of(&evaluation.comparison.id),
            ComparisonInput::Plan { worker, .. } => *worker,
        };
        self.map(ComparisonInput::Evaluation).concat(plans).keep_at_close(comparisons, to_worker, common)
    }
}

fn route_of(id: &ComparisonId) -> u64 {
    route(&[id.service.as_str(), id.base_name().as_str(), id.head.as_str()])
}

/// What is decided at one hop, and from what.
#[derive(Default)]
struct Outcome {
    decisions: Vec<Decision>,
    /// Rows that affect nothing else.
    rows: Vec<OutputRow>,
}

impl Outcome {
    /// Adds of which functions a head scales worse.
    fn announce(&mut self, findings: Vec<ScalingFindingRow>) {
        self.decisions.extend(findings.into_iter().map(|row| Decision::Scaling(Box::new(row))));
    }

    /// Adds where a head leaks.
    fn announce_heap(&mut self, finding: Option<HeapFindingRow>) {
        self.decisions.extend(finding.map(|row| Decision::Heap(Box::new(row))));
    }

    /// Adds flags that affect nothing else: nobody is told of them.
    fn note(&mut self, flags: Vec<FlagRow>) {
        self.rows.extend(flags.into_iter().map(|flag| OutputRow::Flag(Box::new(flag))));
    }

    /// Adds the stacks of the cells that changed most.
    fn show(&mut self, stacks: Vec<StackRow>) {
        self.rows.extend(stacks.into_iter().map(|row| OutputRow::Stack(Box::new(row))));
    }

    /// Adds what a report says.
    fn report(&mut self, table: DecidedTable) {
        self.decisions.extend(table.rows.into_iter().map(Decision::Cell));
        self.rows.extend(table.evidence.into_iter().map(|row| OutputRow::Evidence(Box::new(row))));
    }
}

struct Comparisons {
    config: Config,
    states: BTreeMap<ComparisonId, LiveRule>,
    /// Of a method that decides windows at looks.
    plain: BTreeMap<ComparisonId, PlainRule>,
    scaling: BTreeMap<ComparisonId, ScalingFindings>,
    heap: BTreeMap<ComparisonId, HeapFindings>,
    /// First hops of each service's time blocks since the earliest open epoch.
    blocks: BTreeMap<Service, Vec<Hop>>,
}

type Evaluations = BTreeMap<ComparisonId, Vec<CellEvaluation>>;

impl State for Comparisons {
    const NAME: &'static str = "by_comparison";

    fn save(&self, to: &mut Saving) {
        self.states.iter().for_each(|live| to.routed("live", route_of(live.0), &live));
        self.plain.iter().for_each(|plain| to.routed("plain", route_of(plain.0), &plain));
        self.scaling.iter().for_each(|found| to.routed("scaling", route_of(found.0), &found));
        self.heap.iter().for_each(|found| to.routed("heap", route_of(found.0), &found));
        to.everywhere("blocks", &self.blocks);
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.states = from.all("live")?.into_iter().collect();
        self.plain = from.all("plain")?.into_iter().collect();
        self.scaling = from.all("scaling")?.into_iter().collect();
        self.heap = from.all("heap")?.into_iter().collect();
        self.blocks = from.all::<BTreeMap<_, _>>("blocks")?.into_iter().flatten().collect();
        Ok(())
    }
}

impl AtHop<ComparisonInput> for Comparisons {
    type Output = ComparisonOutput;

    fn close(&mut self, closed: Closed<ComparisonInput>) -> Vec<ComparisonOutput> {
        let hop = Hop(closed.hop);
        let mut plans = Vec::new();
        let mut evaluations: Evaluations = BTreeMap::new();
        for input in closed.items {
            match input {
                ComparisonInput::Plan { plan, .. } => plans.push(plan),
                ComparisonInput::Evaluation(evaluation) => {
                    evaluations.entry(evaluation.comparison.id.clone()).or_default().push(*evaluation);
                }
            }
        }
        plans.sort();
        let mut outcome = Outcome::default();
        for plan in plans {
            self.note_block(hop, &plan);
            for id in &plan.closed {
                outcome.note(self.plain.remove(id).map(|mut plain| plain.close(hop)).unwrap_or_default());
                let Some(mut live) = self.states.remove(id) else { continue };
                outcome.decisions.extend(live.close(hop).into_iter().map(|flag| Decision::Flag(Box::new(flag))));
                outcome.decisions.push(Decision::Ended(id.clone()));
                outcome.announce(self.scaling.remove(id).map(|mut found| found.close(hop)).unwrap_or_default());
                outcome.announce_heap(self.heap.remove(id).and_then(|mut found| found.close(hop)));
            }
            for open in &plan.open {
                if plan.look && self.config.method.decides_windows_at_looks() {
                    self.decide_window(hop, &open.id, evaluations.get_mut(&open.id), &mut outcome);
                }
                if let Some(mut cells) = evaluations.remove(&open.id) {
                    self.decide_scaling(hop, &open.id, &mut cells, &mut outcome);
                    self.decide_heap(hop, &open.id, &mut cells, &mut outcome);
                    self.decide_waiting(hop, &open.id, &mut cells, &mut outcome);
                    self.decide(hop, open, &plan, cells, &mut outcome);
                }
            }
            for history in &plan.history {
                if let Some(cells) = evaluations.remove(&history.id) {
                    self.decide_history(hop, cells, &mut outcome);
                }
            }
        }
        let Outcome { decisions, rows } = outcome;
        let method = self.config.method;
        let decisions = if method.is_calibrated() { decisions } else { stated_by(method, decisions) };
        let rows = rows.into_iter().map(ComparisonOutput::Row);
        decisions.into_iter().map(ComparisonOutput::Decision).chain(rows).collect()
    }
}

impl Comparisons {
    /// Which rows of the window are significant by the plain method; a cell that is not evaluated has none.
    fn decide_window(
        &mut self,
        hop: Hop,
        id: &ComparisonId,
        cells: Option<&mut Vec<CellEvaluation>>,
        outcome: &mut Outcome,
    ) {
        let looks = cells.into_iter().flatten().flat_map(|evaluation| {
            let (key, cell) = (evaluation.key.clone(), evaluation.cell.clone());
            evaluation.plain.drain(..).map(move |look| (key.clone(), cell.clone(), look))
        });
        let looks: Vec<_> = looks.collect();
        let plain = self.plain.entry(id.clone()).or_insert_with(|| PlainRule::new(&self.config));
        outcome.note(plain.look(hop, looks));
    }

    /// How much more the head costs under load than the base, in all cells together.
    fn decide_scaling(&mut self, hop: Hop, id: &ComparisonId, cells: &mut [CellEvaluation], outcome: &mut Outcome) {
        let mut rows: Vec<ScalingRow> = cells.iter_mut().flat_map(|cell| cell.scaling.drain(..)).collect();
        if rows.is_empty() {
            return;
        }
        let Config { q, ref count_kinds, .. } = self.config;
        scaling::decide(&mut rows, q);
        let clock = self.config.clock();
        let curves = cells.iter_mut().flat_map(|cell| cell.curves.drain(..));
        let curves = scaling::curves_of_worse(curves, &rows);
        outcome.rows.extend(curves.map(|row| OutputRow::LoadCurve(Box::new(row))));
        let new = || ScalingFindings::new(id.clone(), clock, q, count_kinds);
        outcome.announce(self.scaling.entry(id.clone()).or_insert_with(new).report(hop, &rows));
        outcome.rows.extend(rows.into_iter().map(|row| OutputRow::Scaling(Box::new(row))));
    }

    /// What became of memory, in all cells together.
    fn decide_heap(&mut self, hop: Hop, id: &ComparisonId, cells: &mut [CellEvaluation], outcome: &mut Outcome) {
        let evidence = cells.iter_mut().flat_map(|evaluation| {
            let cell = evaluation.cell.clone();
            evaluation.heap.drain(..).map(move |found| (cell.clone(), found))
        });
        let evidence: Vec<_> = evidence.collect();
        if evidence.is_empty() {
            return;
        }
        let (q, clock) = (self.config.q, self.config.clock());
        let rows = heap::decide(id, evidence, hop, (clock, self.config.window_hops()), q);
        let new = || HeapFindings::new(id.clone(), clock, q);
        outcome.announce_heap(self.heap.entry(id.clone()).or_insert_with(new).report(hop, &rows));
        outcome.rows.extend(rows.into_iter().map(|row| OutputRow::Heap(Box::new(row))));
    }

    /// What requests wait for, in all cells together.
    fn decide_waiting(&self, hop: Hop, id: &ComparisonId, cells: &mut [CellEvaluation], outcome: &mut Outcome) {
        let evidence = cells.iter_mut().flat_map(|evaluation| {
            let cell = evaluation.cell.clone();
            evaluation.waiting.drain(..).map(move |found| (cell.clone(), found))
        });
        let at = (self.config.clock(), self.config.window_hops());
        let rows = waiting::decide(id, evidence.collect(), hop, at, self.config.q);
        outcome.rows.extend(rows.into_iter().map(|row| OutputRow::Waiting(Box::new(row))));
    }

    fn note_block(&mut self, hop: Hop, plan: &Plan) {
        let blocks = self.blocks.entry(plan.service.clone()).or_default();
        if plan.begins_block {
            blocks.push(hop);
        }
        let earliest = plan.earliest_epoch().unwrap_or(hop);
        blocks.retain(|&block| block >= earliest);
    }

    fn decide(
        &mut self,
        hop: Hop,
        open: &OpenComparison,
        plan: &Plan,
        mut cells: Vec<CellEvaluation>,
        outcome: &mut Outcome,
    ) {
        let clock = self.config.clock();
        let rules = self.rules();
        let live = self.states.entry(open.id.clone()).or_insert_with(|| LiveRule::new(&self.config));
        let (looks, look) = gather(hop, open, &mut cells);
        if plan.look {
            outcome.decisions.extend(live.look(look).into_iter().map(|flag| Decision::Flag(Box::new(flag))));
        }
        outcome.show(stacks_of_worst(&mut cells, live, clock.start_of(open.epoch), clock.end_of(hop)));
        let kinds = &self.config.count_kinds;
        let mut reported: BTreeMap<(ComparisonKey, CountKind), Reported> = BTreeMap::new();
        let mut doubts = BTreeSet::new();
        for (comparison, scope) in by_scope(cells) {
            let table = decide(&scope, kinds, &live.of_tables(&comparison), &rules);
            if scope.scope == Scope::Window {
                live.report(hop, &comparison, &table.rows);
            }
            outcome.report(table);
            if scope.scope == Scope::Window {
                let mut imbalance = telling(&scope, kinds, &rules);
                for (cell, report) in &scope.cells {
                    imbalance.entry(cell.clone()).or_default().splice(..0, report.imbalance.iter().cloned());
                }
                let doubtful = imbalance.iter().filter(|(_, found)| found.iter().any(Imbalance::is_doubtful));
                doubts.extend(doubtful.map(|(cell, _)| (comparison.clone(), cell.clone())));
                let each = kinds.iter().zip(aa_check(&scope, kinds, &rules));
                reported.extend(each.map(|(&kind, checked)| {
                    ((comparison.clone(), kind), Reported { checked, imbalance: imbalance.clone() })
                }));
            }
        }
        if plan.report {
            live.doubt(doubts);
        }
        let blocks = self
            .blocks
            .get(&plan.service)
            .map_or(0, |blocks| blocks.iter().filter(|&&block| block >= open.epoch).count());
        for (key, cells) in looks {
            let reported = reported.remove(&key).unwrap_or_default();
            let frame = SummaryFrame {
                comparison: key.0,
                window_start_at: clock.start_of(open.epoch),
                window_end_at: clock.end_of(hop),
                blocks: u64::try_from(blocks).unwrap_or(0),
            };
            outcome.decisions.extend(
                summarise(&frame, &cells, live, &reported).into_iter().map(|row| Decision::Comparison(Box::new(row))),
            );
        }
    }
}

impl Comparisons {
    fn rules(&self) -> TableRules {
        let Config { q, min_effect, method, .. } = self.config;
        let clock = self.config.clock();
        let window_seconds = clock.length_of(self.config.window_hops()).as_seconds();
        TableRules { q, min_effect, min_count: float(self.config.min_count), window_seconds, method, clock }
    }

    /// The rows of a window whose base is history: no live rule, no flag, no A/A check.
    fn decide_history(&self, hop: Hop, mut cells: Vec<CellEvaluation>, outcome: &mut Outcome) {
        let mut looks = Looks::new();
        for evaluation in &mut cells {
            for look in evaluation.looks.drain(..) {
                looks
                    .entry((evaluation.key.clone(), look.count_kind))
                    .or_default()
                    .insert(evaluation.cell.clone(), look);
            }
        }
        let (rules, clock) = (self.rules(), self.config.clock());
        let first = hop.plus(1).minus(self.config.window_hops());
        for (comparison, scope) in by_scope(cells) {
            let table = decide(&scope, &self.config.count_kinds, &LiveRows::default(), &rules);
            let histories: BTreeMap<&CellKey, &History> =
                scope.cells.iter().filter_map(|(cell, report)| Some((cell, report.history.as_ref()?))).collect();
            for &kind in &self.config.count_kinds {
                let Some(cells) = looks.get(&(comparison.clone(), kind)) else { continue };
                let frame = SummaryFrame {
                    comparison: comparison.clone(),
                    window_start_at: clock.start_of(first),
                    window_end_at: clock.end_of(hop),
                    blocks: 0,
                };
                outcome.decisions.extend(
                    summarise_history(frame, cells, &histories, &table.rows)
                        .into_iter()
                        .map(|row| Decision::History(Box::new(row))),
                );
            }
            outcome.report(table);
        }
    }
}

/// The output of a method that is not calibrated: no flags of the live rule, and comparisons in the words of the method.
fn stated_by(method: Method, decisions: Vec<Decision>) -> Vec<Decision> {
    let cells =
        decisions.iter().filter_map(|decision| if let Decision::Cell(row) = decision { Some(&**row) } else { None });
    let findings = Findings::of(method, cells);
    let stated = decisions.into_iter().filter_map(|decision| match decision {
        Decision::Flag(_) => None,
        Decision::Comparison(row) => findings.restate(*row).map(|row| Decision::Comparison(Box::new(row))),
        other => Some(other),
    });
    stated.collect()
}

type Looks = BTreeMap<(ComparisonKey, CountKind), BTreeMap<CellKey, KindLook>>;

/// The looks of all cells, by type and kind, and the look of the live rule that they form.
fn gather(hop: Hop, open: &OpenComparison, cells: &mut [CellEvaluation]) -> (Looks, Look) {
    let mut looks = Looks::new();
    let mut all = Look {
        hop,
        epoch: open.epoch,
        family: LiveFamily::default(),
        rows: Vec::new(),
        of_same_age: BTreeSet::new(),
        callers: BTreeMap::new(),
        compositional: BTreeMap::new(),
    };
    for evaluation in cells {
        for mut look in evaluation.looks.drain(..) {
            all.family.add(&look);
            if look.of_same_age {
                all.of_same_age.insert((evaluation.key.clone(), evaluation.cell.clone()));
            }
            all.rows.append(&mut look.watched);
            if !look.compositional.is_empty() {
                all.compositional
                    .insert((evaluation.key.clone(), evaluation.cell.clone()), std::mem::take(&mut look.compositional));
            }
            looks.entry((evaluation.key.clone(), look.count_kind)).or_default().insert(evaluation.cell.clone(), look);
        }
        if let Some(callers) = evaluation.callers.take() {
            all.callers.insert((evaluation.key.clone(), evaluation.cell.clone()), callers);
        }
    }
    (looks, all)
}

/// The stacks of the cell of each type of profile that changed most, from `since` to `at`.
fn stacks_of_worst(cells: &mut [CellEvaluation], live: &LiveRule, since: Nanos, at: Nanos) -> Vec<StackRow> {
    let mut rows = Vec::new();
    for evaluation in cells.iter_mut().filter(|evaluation| !evaluation.stacks.is_empty()) {
        let stacks = std::mem::take(&mut evaluation.stacks);
        if live.worst_cell(&evaluation.key).as_ref() != Some(&evaluation.cell) {
            continue;
        }
        rows.extend(stacks.into_iter().map(|StackCount { stack, samples: [head, base] }| StackRow {
            comparison: evaluation.key.clone(),
            cell: evaluation.cell.clone(),
            window_start_at: since,
            window_end_at: at,
            stack,
            head_samples: table_count(head),
            base_samples: table_count(base),
        }));
    }
    rows
}

fn by_scope(cells: Vec<CellEvaluation>) -> Vec<(ComparisonKey, ScopeCells)> {
    let mut scopes: BTreeMap<(ComparisonKey, Scope), ScopeCells> = BTreeMap::new();
    for evaluation in cells {
        for report in evaluation.reports {
            let key = (evaluation.key.clone(), report.scope);
            let scope = scopes.entry(key).or_insert_with(|| ScopeCells { scope: report.scope, cells: BTreeMap::new() });
            scope.cells.insert(evaluation.cell.clone(), report);
        }
    }
    scopes.into_iter().map(|((key, _), scope)| (key, scope)).collect()
}
