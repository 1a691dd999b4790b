//! By cell: dense counts, and the evidence computed from them at each look and report.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::comparison::{ComparisonId, OpenComparison};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{Archived, CellKey, ComparisonKey, LoadCurveRow, ScalingRow, Span};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::Map;

use super::at_close::{AtClose, AtHop, Closed};
use super::common::Common;
use super::ledger::Term;
use super::route;
use super::split::{OneOfTwo, To};
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::counts::archive::Keeping;
use crate::counts::archived::archived;
use crate::counts::bucket::Addition;
use crate::counts::cell::{Blocks, CellCounts};
use crate::counts::functions::FunctionTable;
use crate::evidence::callers::{CallerCounts, KnownPaths, callers};
use crate::evidence::family::Family;
use crate::evidence::gap::Gap;
use crate::evidence::heap::{HeapEvidence, heap_evidence};
use crate::evidence::held::LookTime;
use crate::evidence::history::history_report;
use crate::evidence::look::{KindLook, LookMemory, look};
use crate::evidence::plain::{PlainLook, plain_look};
use crate::evidence::report::{ScopeReport, report};
use crate::evidence::scaling::{CellScaling, ScalingFrame};
use crate::evidence::stacks::{StackCount, stacks};
use crate::evidence::view::{CellView, OnDemand};
use crate::evidence::waiting::{WaitingEvidence, measure, waiting_evidence};
use crate::rules::comparisons::Plan;
use crate::rules::pods::{CellAddition, CellId};
use crate::rules::scaling;

/// The evidence of one cell for one comparison at one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellEvaluation {
    /// The comparison; where the base is history, its epoch begins with this hop.
    pub comparison: OpenComparison,
    /// Which builds of what.
    pub key: ComparisonKey,
    /// Which cell.
    pub cell: CellKey,
    /// Each kind of count, if this hop is a look.
    pub looks: Vec<KindLook>,
    /// Each kind of count of the window, if this hop is a look and the method decides windows there.
    pub plain: Vec<PlainLook>,
    /// Which function calls which among those whose rows are watched, at a look; `None` without stacks.
    pub callers: Option<CallerCounts>,
    /// Samples by stack, if this hop is a report and a row is watched.
    pub stacks: Vec<StackCount>,
    /// Window and epoch, if this hop is a report.
    pub reports: Vec<ScopeReport>,
    /// How much more the head's functions cost under load than the base's, in no family yet; if this hop is a report.
    pub scaling: Vec<ScalingRow>,
    /// Minute by minute, functions that may be found there; if this hop is a report.
    pub curves: Vec<LoadCurveRow>,
    /// What became of memory, in no family yet; if this hop is a report.
    pub heap: Vec<HeapEvidence>,
    /// What requests wait for, in no family yet; if this hop is a report.
    pub waiting: Vec<WaitingEvidence>,
}

impl CellEvaluation {
    /// Of a cell in which nothing was found so far.
    fn without_findings(key: ComparisonKey, cell: CellKey, comparison: OpenComparison) -> Self {
        let (looks, plain, callers, stacks, reports) = (Vec::new(), Vec::new(), None, Vec::new(), Vec::new());
        let (scaling, curves, heap, waiting) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { comparison, key, cell, looks, plain, callers, stacks, reports, scaling, curves, heap, waiting }
    }
}

/// What follows from the cells of one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CellOutput {
    /// The evidence of a cell for a comparison.
    Evaluation(Box<CellEvaluation>),
    /// What was counted, for the ledger.
    Counted(Term),
    /// A row that concerns no comparison.
    Row(RowOfCell),
}

impl OneOfTwo for CellOutput {
    type First = Box<CellEvaluation>;
    type Second = Beside;

    fn destination(self) -> To<Box<CellEvaluation>, Beside> {
        match self {
            Self::Evaluation(evaluation) => To::First(evaluation),
            Self::Counted(term) => To::Second(Beside::Counted(term)),
            Self::Row(row) => To::Second(Beside::Row(row)),
        }
    }
}

/// A row of a cell that concerns no comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RowOfCell {
    /// How the cost of a function of one build follows load.
    Scaling(Box<ScalingRow>),
    /// What was counted, pod by pod.
    Archived(Box<Archived>),
}

/// What follows from cells and concerns no comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Beside {
    /// What was counted, for the ledger.
    Counted(Term),
    /// A row.
    Row(RowOfCell),
}

impl OneOfTwo for Beside {
    type First = Term;
    type Second = RowOfCell;

    fn destination(self) -> To<Term, RowOfCell> {
        match self {
            Self::Counted(term) => To::First(term),
            Self::Row(row) => To::Second(row),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum CellInput {
    Addition(CellAddition),
    Plan { worker: u64, plan: Plan },
}

/// See [`CountByCell::count_by_cell`].
pub trait CountByCell<'scope> {
    /// Sends all counts of a cell to one worker, adds them at the close of their application hop according to that
    /// hop's plan, removes what has left the window, and evaluates every open comparison if the plan says so.
    fn count_by_cell(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, CellOutput>;
}

impl<'scope> CountByCell<'scope> for StreamVec<'scope, u64, CellAddition> {
    fn count_by_cell(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, CellOutput> {
        let workers = u64::try_from(self.scope().peers()).unwrap_or(1);
        let plans =
            plans.flat_map(move |plan| (0..workers).map(move |worker| CellInput::Plan { worker, plan: plan.clone() }));
        let cells = Cells {
            config: config.clone(),
            table: Arc::clone(&common.table),
            worker: (self.scope().index(), self.scope().peers()),
            blocks: HashMap::new(),
            cells: BTreeMap::new(),
            swept: Hop(0),
        };
        let to_worker = |input: &CellInput| match input {
            CellInput::Addition(addition) => route_of(&addition.cell),
            CellInput::Plan { worker, .. } => *worker,
        };
        self.map(CellInput::Addition).concat(plans).keep_at_close(cells, to_worker, common)
    }
}

fn route_of(cell: &CellId) -> u64 {
    // All types of profile together: time on the CPU is added to time off it.
    route(&[cell.service.as_str(), cell.cell.region.as_str(), cell.cell.cohort.as_str()])
}

struct Cells {
    config: Config,
    table: Arc<FunctionTable>,
    /// Its index, and how many there are.
    worker: (usize, usize),
    blocks: HashMap<Service, Blocks>,
    cells: BTreeMap<CellId, CellState>,
    /// The hop at which what is not used any more was forgotten.
    swept: Hop,
}

#[derive(Serialize, Deserialize)]
struct CellState {
    counts: CellCounts,
    memories: BTreeMap<ComparisonId, Memory>,
}

/// What a cell remembers of one comparison between looks.
#[derive(Default, Serialize, Deserialize)]
struct Memory {
    look: LookMemory,
    /// What follows from the counts too, only slower.
    #[serde(skip)]
    paths: KnownPaths,
}

impl State for Cells {
    const NAME: &'static str = "by_cell";

    fn save(&self, to: &mut Saving) {
        self.cells.iter().for_each(|cell| to.routed("cell", route_of(cell.0), &cell));
        let blocks: BTreeMap<&Service, &Blocks> = self.blocks.iter().collect();
        to.everywhere("blocks", &(blocks, self.swept));
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        for (id, mut cell) in from.all::<(CellId, CellState)>("cell")? {
            let unnamed = |number| from.unreadable("cell", format!("function {number} of {id:?} has no name"));
            cell.counts.restore(&self.table).map_err(unnamed)?;
            self.cells.insert(id, cell);
        }
        for (blocks, swept) in from.all("blocks")? {
            (self.blocks, self.swept) = (blocks, swept);
        }
        Ok(())
    }
}

impl AtHop<CellInput> for Cells {
    type Output = CellOutput;

    fn close(&mut self, closed: Closed<CellInput>) -> Vec<CellOutput> {
        let hop = Hop(closed.hop);
        let mut plans = Vec::new();
        // Of each cell, with how many of the samples are late.
        let mut additions: BTreeMap<CellId, (Vec<Addition>, u64)> = BTreeMap::new();
        let mut counted: BTreeMap<ProfileType, (u64, u64)> = BTreeMap::new();
        for input in closed.items {
            match input {
                CellInput::Plan { plan, .. } => plans.push(plan),
                CellInput::Addition(CellAddition { cell, addition, late }) => {
                    let (of_cell, late_samples) = additions.entry(cell).or_default();
                    *late_samples += if late { addition.samples } else { 0 };
                    of_cell.push(addition);
                }
            }
        }
        plans.sort();
        let first = self.first_of_window(hop);
        self.begin_blocks(hop, &plans);
        let mut rows = Vec::new();
        for (cell, (additions, late)) in additions {
            let Some(blocks) = self.blocks.get(&cell.service) else {
                tracing::error!(
                    ?cell,
                    hop = hop.0,
                    "samples of a service without a time block are lost: the ledger will not balance"
                );
                continue;
            };
            let (all, of_late) = counted.entry(cell.profile_type).or_default();
            *all += additions.iter().map(|addition| addition.samples).sum::<u64>();
            *of_late += late;
            let plan = plans.iter().find(|plan| plan.service == cell.service);
            let keeping = Keeping::of(&self.config);
            let clock = self.config.clock();
            rows.extend(self.archived(hop, &cell, &additions));
            let merges = self.config.method.decides_windows_at_looks();
            let new = || {
                let counts = CellCounts::new(clock, keeping);
                CellState { counts: if merges { counts.merging() } else { counts }, memories: BTreeMap::new() }
            };
            let counts = &mut self.cells.entry(cell).or_insert_with(new).counts;
            counts.add(additions, blocks, &self.table);
            // Removes from the same columns to which it has just added, while they are in cache.
            if let Some(plan) = plan {
                counts.expire(first, plan.earliest_epoch());
            }
        }
        let terms = counted
            .into_iter()
            .map(|(kind, (samples, late))| CellOutput::Counted(Term::counted(hop, kind, samples, late)));
        let mut output: Vec<CellOutput> = terms.chain(rows).collect();
        for plan in &plans {
            self.follow(hop, plan, &mut output);
        }
        if self.swept.plus(self.config.retention_hops()) <= hop {
            self.forget_unused(hop);
        }
        output
    }
}

impl Cells {
    /// Forgets functions that have left the window, all epochs and the history, and cells that are left empty. Every worker does so
    /// at the same hops, since it is given the same plans.
    fn forget_unused(&mut self, hop: Hop) {
        self.swept = hop;
        for CellState { counts, memories } in self.cells.values_mut() {
            // Paths are known by numbers that may change.
            memories.values_mut().for_each(|memory| memory.paths = KnownPaths::default());
            let watched: BTreeSet<usize> = memories.values().flat_map(|memory| memory.look.watched()).collect();
            counts.forget_functions(|number| watched.contains(&number), &self.table);
        }
        self.cells.retain(|_, state| !(state.counts.is_empty() && state.memories.is_empty()));
        let (worker, workers) = self.worker;
        self.table.finish_round(worker, workers, hop);
    }

    /// Blocks that begin at this hop by these plans; forgets those that have left the window.
    fn begin_blocks(&mut self, hop: Hop, plans: &[Plan]) {
        let first = self.first_of_window(hop);
        for plan in plans {
            let blocks = self.blocks.entry(plan.service.clone()).or_default();
            if plan.begins_block {
                blocks.begin(hop);
            }
            blocks.forget_before(first);
        }
    }

    /// What is added to a cell, for the archive if there is one.
    fn archived(&self, hop: Hop, cell: &CellId, additions: &[Addition]) -> Option<CellOutput> {
        let clock = self.config.clock();
        let span = Span { start_at: clock.start_of(hop), end_at: clock.end_of(hop) };
        let rows = || archived(cell, additions, span, &self.table);
        self.config.archive.then(|| CellOutput::Row(RowOfCell::Archived(Box::new(rows()))))
    }

    fn first_of_window(&self, hop: Hop) -> Hop {
        hop.plus(1).minus(self.config.window_hops())
    }

    /// Advances the cells of a service and evaluates them.
    fn follow(&mut self, hop: Hop, plan: &Plan, output: &mut Vec<CellOutput>) {
        let first = self.first_of_window(hop);
        let config = &self.config;
        let at = At { hop, block: self.blocks.get(&plan.service).map(|blocks| blocks.of(hop)).unwrap_or_default() };
        for (_, state) in self.cells.iter_mut().filter(|(cell, _)| cell.service == plan.service) {
            state.counts.expire(first, plan.earliest_epoch());
            state.counts.close_minutes(hop, first);
            state.counts.forget_builds(&plan.forgotten);
        }
        let mut waiting = waiting(&self.cells, plan, hop, config);
        let mut memory = memory(&self.cells, plan, hop, config);
        for (cell, state) in self.cells.iter_mut().filter(|(cell, _)| cell.service == plan.service) {
            state.memories.retain(|id, _| plan.open.iter().any(|open| open.id == *id));
            if !(plan.look || plan.report) {
                continue;
            }
            let scaling =
                (plan.report && config.method.is_calibrated()).then(|| scaling_of(cell, state, hop, plan, config));
            for mut rows in scaling.iter().flat_map(CellScaling::rows) {
                scaling::decide(&mut rows, config.q);
                output.extend(rows.into_iter().map(|row| CellOutput::Row(RowOfCell::Scaling(Box::new(row)))));
            }
            for open in &plan.open {
                let mut evaluation = evaluate(cell, state, open, at, plan, config, &self.table);
                evaluation.scaling = scaling.as_ref().map(|scaling| scaling.rows_against(&open.id)).unwrap_or_default();
                let curves = scaling.as_ref().map(|scaling| scaling.curves(&open.id, &evaluation.scaling, config.q));
                evaluation.curves = curves.unwrap_or_default();
                evaluation.heap = memory.remove(&(cell.clone(), open.id.clone())).unwrap_or_default();
                evaluation.waiting = waiting.remove(&(cell.clone(), open.id.clone())).unwrap_or_default();
                let beside =
                    evaluation.scaling.is_empty() && evaluation.heap.is_empty() && evaluation.waiting.is_empty();
                let found = !(evaluation.looks.is_empty() && evaluation.plain.is_empty());
                if found || !(evaluation.reports.is_empty() && beside) {
                    output.push(CellOutput::Evaluation(Box::new(evaluation)));
                }
            }
            let history = plan.history.iter().filter(|_| plan.report);
            output.extend(
                history
                    .filter_map(|history| evaluate_history(cell, state, &history.id, hop, config))
                    .map(|evaluation| CellOutput::Evaluation(Box::new(evaluation))),
            );
        }
    }
}

/// What requests wait for at a report, by cell of waiting and comparison.
fn waiting(
    cells: &BTreeMap<CellId, CellState>,
    plan: &Plan,
    hop: Hop,
    config: &Config,
) -> BTreeMap<(CellId, ComparisonId), Vec<WaitingEvidence>> {
    let mut found = BTreeMap::new();
    if !(plan.report && config.method.is_calibrated()) {
        return found;
    }
    let waits = |cell: &CellId| cell.service == plan.service && measure(cell.profile_type).is_some();
    for (cell, state) in cells.iter().filter(|(cell, _)| waits(cell)) {
        let cpu = cells.get(&CellId { profile_type: ProfileType::Cpu, ..cell.clone() }).map(|cpu| &cpu.counts);
        for open in &plan.open {
            let gap = gap(cells, cell, state, (open, hop, config));
            let evidence = waiting_evidence(&state.counts, cell.profile_type, cpu, (&open.id, gap), config);
            found.insert((cell.clone(), open.id.clone()), evidence);
        }
    }
    found
}

/// How the arms of a cell differ in load and age. Profiles need not say what was served, and snapshots never do, so what load may
/// have done is the most that profiles of any type show.
fn gap(
    cells: &BTreeMap<CellId, CellState>,
    cell: &CellId,
    state: &CellState,
    (open, hop, config): (&OpenComparison, Hop, &Config),
) -> Gap {
    let beside = cells.iter().filter(|(other, _)| other.service == cell.service && other.cell == cell.cell);
    let gaps = beside.map(|(cell, state)| view(cell, &state.counts, open, hop, config).gap());
    view(cell, &state.counts, open, hop, config).gap().with_load_of(gaps)
}

/// What became of memory at a report, by cell of memory and comparison.
fn memory(
    cells: &BTreeMap<CellId, CellState>,
    plan: &Plan,
    hop: Hop,
    config: &Config,
) -> BTreeMap<(CellId, ComparisonId), Vec<HeapEvidence>> {
    let mut found = BTreeMap::new();
    if !(plan.report && config.method.is_calibrated()) {
        return found;
    }
    let of_memory = |cell: &CellId| {
        cell.service == plan.service && matches!(cell.profile_type, ProfileType::Heap | ProfileType::LiveHeap)
    };
    for (cell, state) in cells.iter().filter(|(cell, _)| of_memory(cell)) {
        for open in &plan.open {
            let gap = gap(cells, cell, state, (open, hop, config));
            let untested = view(cell, &state.counts, open, hop, config).untested;
            let evidence = heap_evidence(&state.counts, cell.profile_type, &open.id, config, untested, gap);
            found.insert((cell.clone(), open.id.clone()), evidence);
        }
    }
    found
}

/// How costs of the cell's functions follow load.
fn scaling_of(cell: &CellId, state: &CellState, hop: Hop, plan: &Plan, config: &Config) -> CellScaling {
    let frame = ScalingFrame {
        service: cell.service.clone(),
        profile_type: cell.profile_type,
        cell: cell.cell.clone(),
        window_end_at: config.clock().end_of(hop),
    };
    CellScaling::of(&state.counts, plan.open.iter().map(|open| &open.id), frame, config)
}

/// The hop that is closing, and the first hop of its time block.
#[derive(Clone, Copy)]
struct At {
    hop: Hop,
    block: Hop,
}

fn view<'a>(
    cell: &CellId,
    counts: &'a CellCounts,
    comparison: &'a OpenComparison,
    hop: Hop,
    config: &Config,
) -> CellView<'a> {
    let key = ComparisonKey {
        service: cell.service.clone(),
        profile_type: cell.profile_type,
        measure: cell.profile_type.measure(),
        base_build: comparison.id.base_name(),
        head_build: comparison.id.head.clone(),
    };
    CellView {
        counts,
        cell: cell.cell.clone(),
        comparison,
        key,
        hop,
        window_hops: config.window_hops(),
        clock: config.clock(),
        young: config.young,
        min_count: float(config.min_count),
        min_effect: config.min_effect,
        q: config.q,
        untested: counts.functions().untested(),
        method: config.method,
        on_demand: OnDemand::default(),
    }
}

fn evaluate(
    cell: &CellId,
    state: &mut CellState,
    open: &OpenComparison,
    at: At,
    plan: &Plan,
    config: &Config,
    table: &FunctionTable,
) -> CellEvaluation {
    let view = view(cell, &state.counts, open, at.hop, config);
    let kinds: &[CountKind] = &config.count_kinds;
    let Memory { look: memory, paths } = state.memories.entry(open.id.clone()).or_default();
    memory.families.resize_with(kinds.len(), Family::default);
    let number = at.hop.0 / config.clock().hops_in(config.evaluate_every).max(1);
    let time = LookTime { epoch: open.epoch, block: at.block, number, reports: plan.report };
    let merged = state.counts.merged().filter(|_| plan.look);
    let plain = merged.map(|merged| plain_look(&view, merged, kinds)).unwrap_or_default();
    // What a plain look takes from the epoch is only what its reports show.
    let looks_at_epoch = plan.look && (merged.is_none() || plan.report);
    let looks = if looks_at_epoch { look(&view, time, kinds, memory) } else { Vec::new() };
    let scopes = if plan.report { &[Scope::Window, Scope::Epoch][..] } else { &[] };
    let reports = scopes.iter().filter_map(|&scope| report(&view, scope, kinds, memory)).collect();
    let watched = || memory.watched().collect();
    let callers = looks_at_epoch.then(|| callers(&state.counts, open, watched(), paths, table)).flatten();
    let is_watched = memory.watched().next().is_some();
    let calibrated = plan.report && config.method.is_calibrated();
    let stacks = if calibrated && is_watched { stacks(&state.counts, open, table) } else { Vec::new() };
    let nothing = CellEvaluation::without_findings(view.key, view.cell, open.clone());
    CellEvaluation { looks, plain, callers, stacks, reports, ..nothing }
}

/// The cell compared with the history of the base, at a report; `None` if the head has no sample in it.
fn evaluate_history(
    cell: &CellId,
    state: &CellState,
    id: &ComparisonId,
    hop: Hop,
    config: &Config,
) -> Option<CellEvaluation> {
    let comparison = OpenComparison { id: id.clone(), epoch: hop };
    let view = view(cell, &state.counts, &comparison, hop, config);
    let (looks, report) = history_report(&view, &config.count_kinds)?;
    let nothing = CellEvaluation::without_findings(view.key, view.cell, comparison);
    Some(CellEvaluation { looks, reports: vec![report], ..nothing })
}
