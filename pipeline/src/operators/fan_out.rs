//! The fan-out: in which cells each function is flagged, in which it is not, and the shortest description of where.
//!
//! Two collections are maintained as flags come and go: the current flags, and what is known about each cell. Every
//! function with a flag is joined with the cells of its comparison, and a row is written whenever the result for a
//! function changes. At any hop the current rows equal those computed from the flags and verdicts of that hop alone.

use std::collections::{BTreeMap, BTreeSet};

use differential_dataflow::{AsCollection, VecCollection};
use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::fan_out::{FanOutCell, FanOutRow};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey, ComparisonRow, FlagRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, FlagState, Verdict};
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::vec::{Delay, Map};

use super::at_close::{AtClose, AtHop, Closed};
use super::by_comparison::Decision;
use super::common::Common;
use super::route;
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::rules::extent::extents;
use crate::rules::summary::CLEAN_SHARE;

/// The cells over which a function is spread.
type Spread = (ComparisonKey, CountKind);
/// One function of a spread.
type Function = (Spread, String);
/// What is known about a cell.
type Known = (CellKey, FanOutState);

/// See [`FanOut::fan_out`].
pub trait FanOut<'scope> {
    /// Gives a row for a function whenever the cells in which it is flagged, or what is known about the other cells,
    /// have changed.
    fn fan_out(self, clock: HopClock, common: &Common) -> StreamVec<'scope, u64, FanOutRow>;
}

impl<'scope> FanOut<'scope> for StreamVec<'scope, u64, Decision> {
    fn fan_out(self, clock: HopClock, common: &Common) -> StreamVec<'scope, u64, FanOutRow> {
        let changes = self.flat_map(Event::of).standing(common);
        let flags = changes.clone().flat_map(|(fact, hop, by)| Some((fact.flag()?, hop, by))).as_collection();
        let cells = changes.flat_map(|(fact, hop, by)| Some((fact.cell()?, hop, by))).as_collection();
        spread(flags, cells).rows(clock, common.checkpoints.begun_from())
    }
}

/// The input of the fan-out.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Event {
    Flag(Box<FlagRow>),
    Cell(Box<ComparisonRow>),
    Ended(ComparisonId),
}

impl Event {
    fn of(decision: Decision) -> Option<Self> {
        match decision {
            Decision::Cell(_) | Decision::Scaling(_) | Decision::Heap(_) | Decision::History(_) => None,
            Decision::Flag(row) => Some(Self::Flag(row)),
            Decision::Comparison(row) => Some(Self::Cell(row)),
            Decision::Ended(id) => Some(Self::Ended(id)),
        }
    }

    fn route(&self) -> u64 {
        match self {
            Self::Flag(row) => route_of(&row.row.comparison),
            Self::Cell(row) => route_of(&row.comparison),
            Self::Ended(id) => route(&[id.service.as_str(), id.base_name().as_str(), id.head.as_str()]),
        }
    }
}

fn route_of(key: &ComparisonKey) -> u64 {
    route(&[key.service.as_str(), key.base_build.as_str(), key.head_build.as_str()])
}

/// A member of one of the two collections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Fact {
    Flag(Function, Known),
    Cell(Spread, Known),
}

impl Fact {
    fn flag(self) -> Option<(Function, Known)> {
        if let Self::Flag(function, known) = self { Some((function, known)) } else { None }
    }

    fn cell(self) -> Option<(Spread, Known)> {
        if let Self::Cell(spread, known) = self { Some((spread, known)) } else { None }
    }

    fn spread(&self) -> &Spread {
        match self {
            Self::Flag((spread, _), _) | Self::Cell(spread, _) => spread,
        }
    }
}

type Change = (Fact, u64, isize);

trait StandingFacts<'scope> {
    fn standing(self, common: &Common) -> StreamVec<'scope, u64, Change>;
}

impl<'scope> StandingFacts<'scope> for StreamVec<'scope, u64, Event> {
    /// Flags and verdicts as changes of the current state.
    fn standing(self, common: &Common) -> StreamVec<'scope, u64, Change> {
        self.keep_at_close(Standing::default(), Event::route, common)
    }
}

/// The current state, by flag and by cell, so that it can be retracted.
#[derive(Default)]
struct Standing {
    flags: BTreeMap<String, Fact>,
    cells: BTreeMap<(Spread, CellKey), Fact>,
    /// The hop before the first one, if the state is that of a checkpoint.
    before: Hop,
}

impl State for Standing {
    const NAME: &'static str = "standing";

    fn save(&self, to: &mut Saving) {
        self.flags.iter().for_each(|flag| to.routed("flag", route_of(&flag.1.spread().0), &flag));
        self.cells.iter().for_each(|cell| to.routed("cell", route_of(&cell.1.spread().0), &cell));
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.flags = from.all("flag")?.into_iter().collect();
        self.cells = from.all("cell")?.into_iter().collect();
        self.before = from.hop().minus(1);
        Ok(())
    }
}

impl AtHop<Event> for Standing {
    type Output = Change;

    fn say_again(&self) -> Vec<Change> {
        self.flags.values().chain(self.cells.values()).map(|fact| (fact.clone(), self.before.0, 1)).collect()
    }

    fn close(&mut self, closed: Closed<Event>) -> Vec<Change> {
        let hop = closed.hop;
        let mut changes = Vec::new();
        let mut cells: BTreeMap<Spread, Vec<ComparisonRow>> = BTreeMap::new();
        for event in closed.items {
            match event {
                Event::Flag(row) => replace(&mut self.flags, row.flag_id.clone(), flag_of(&row), hop, &mut changes),
                Event::Cell(row) => cells.entry((row.comparison.clone(), row.count_kind)).or_default().push(*row),
                Event::Ended(id) => self.forget(&id, hop, &mut changes),
            }
        }
        for (spread, mut rows) in cells {
            if rows.len() > 1 {
                rows.retain(|row| !row.cell.is_over_all());
            }
            for row in rows {
                let fact = Fact::Cell(spread.clone(), (row.cell.clone(), state_of(&row)));
                replace(&mut self.cells, (spread.clone(), row.cell), Some(fact), hop, &mut changes);
            }
        }
        changes
    }
}

impl Standing {
    fn forget(&mut self, id: &ComparisonId, hop: u64, changes: &mut Vec<Change>) {
        let base = id.base_name();
        let is_of = |fact: &Fact| {
            let (key, _) = fact.spread();
            key.service == id.service && key.base_build == base && key.head_build == id.head
        };
        let ended = self.cells.extract_if(.., |_, fact| is_of(fact));
        changes.extend(ended.map(|(_, fact)| (fact, hop, -1)));
    }
}

/// Replaces the current entry of `key` by `new`, and records both changes if they differ.
fn replace<K: Ord>(standing: &mut BTreeMap<K, Fact>, key: K, new: Option<Fact>, hop: u64, changes: &mut Vec<Change>) {
    let old = standing.remove(&key);
    if let Some(fact) = &new {
        standing.insert(key, fact.clone());
    }
    if old != new {
        changes.extend(old.map(|fact| (fact, hop, -1)));
        changes.extend(new.map(|fact| (fact, hop, 1)));
    }
}

/// The state after a change of a flag.
fn flag_of(flag: &FlagRow) -> Option<Fact> {
    let row = &flag.row;
    let state = if row.verdict == Verdict::Improved { FanOutState::Improved } else { FanOutState::Regressed };
    let function = ((row.comparison.clone(), row.count_kind), row.function.clone());
    (flag.state != FlagState::Cleared).then(|| Fact::Flag(function, (row.cell.clone(), state)))
}

/// The state of a function in a cell in which it has no flag.
fn state_of(row: &ComparisonRow) -> FanOutState {
    let comparable = row.verdict != ComparisonVerdict::NotComparable;
    let equivalent = row.equivalent_share.is_some_and(|share| share >= CLEAN_SHARE);
    if comparable && equivalent { FanOutState::Clean } else { FanOutState::Unknown }
}

/// Every function that has a flag, with all cells of its comparison; the state of a flag takes precedence over that of
/// the cell.
fn spread<'scope>(
    flags: VecCollection<'scope, u64, (Function, Known)>,
    cells: VecCollection<'scope, u64, (Spread, Known)>,
) -> VecCollection<'scope, u64, (Function, Vec<FanOutCell>)> {
    let selected = flags.clone().map(|(function, _)| function).distinct();
    let everywhere = selected.join(cells).map(|(spread, (function, known))| ((spread, function), (known, false)));
    let hit = flags.map(|(function, known)| (function, (known, true)));
    everywhere.concat(hit).reduce(|_, known, output| {
        let mut cells = BTreeMap::new();
        for (((cell, state), is_flag), _) in known {
            if *is_flag || !cells.contains_key(cell) {
                cells.insert(cell.clone(), *state);
            }
        }
        output.push((cells.into_iter().map(|(cell, state)| FanOutCell { cell, state }).collect(), 1));
    })
}

trait Rows<'scope> {
    fn rows(self, clock: HopClock, from: Option<Hop>) -> StreamVec<'scope, u64, FanOutRow>;
}

impl<'scope> Rows<'scope> for VecCollection<'scope, u64, (Function, Vec<FanOutCell>)> {
    /// One row per function and hop: the new cells, or none if they were only retracted. What was said before is not repeated.
    fn rows(self, clock: HopClock, from: Option<Hop>) -> StreamVec<'scope, u64, FanOutRow> {
        let changes = self.inner.delay(|(_, hop, _), _| *hop).map(|(change, _, by)| (change, by));
        changes.at_close(
            "FanOut",
            |(((spread, _), _), _)| route(&[spread.0.service.as_str()]),
            move |closed| {
                if from.is_some_and(|from| Hop(closed.hop) < from) {
                    return Vec::new();
                }
                let mut now: BTreeMap<Function, Vec<FanOutCell>> = BTreeMap::new();
                for ((function, cells), by) in closed.items {
                    let entry = now.entry(function).or_default();
                    if by > 0 {
                        *entry = cells;
                    }
                }
                now.into_iter().map(|(function, cells)| row(clock, Hop(closed.hop), function, cells)).collect()
            },
        )
    }
}

fn row(clock: HopClock, hop: Hop, ((comparison, count_kind), function): Function, cells: Vec<FanOutCell>) -> FanOutRow {
    let with = |state| {
        let meant: BTreeSet<&CellKey> =
            cells.iter().filter(|known| known.state == state).map(|known| &known.cell).collect();
        extents(meant, cells.iter().map(|known| &known.cell))
    };
    let (regressed, improved) = (with(FanOutState::Regressed), with(FanOutState::Improved));
    FanOutRow { changed_at: clock.end_of(hop), comparison, count_kind, function, cells, regressed, improved }
}
