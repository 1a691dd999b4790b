//! What a run found, by comparison: cells, and the significant functions, the worst first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::advice;
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::kernel::callers_outside;
use fleetdiff_schemas::fan_out::{Extent, FanOutRow};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, ComparisonRow, IncidentRow, Tables};
use fleetdiff_schemas::verdict::{BaseKind, FanOutState, IncidentState, Scope, Verdict};

/// One comparison in one kind of count, at the last look.
pub(crate) struct Findings<'a> {
    /// Which builds of what.
    pub(crate) key: &'a ComparisonKey,
    /// Self counts if there are any, otherwise total counts.
    pub(crate) kind: CountKind,
    /// Which history the base is, in words, if no build of it runs any more.
    pub(crate) history: Option<&'a str>,
    /// What to do, over all types of profile; none against history, and of methods that are not calibrated.
    pub(crate) action: Option<&'a str>,
    /// What is known of each cell.
    pub(crate) cells: BTreeMap<&'a CellKey, &'a ComparisonRow>,
    /// The rows of all functions together in the window of the last report; cells without request counts have none.
    pub(crate) uniform: BTreeMap<&'a CellKey, &'a CellRow>,
    /// Functions that are flagged, or significant against history: those that cost more somewhere first, then by the
    /// largest change of a share.
    pub(crate) flagged: Vec<FlaggedFunction<'a>>,
}

/// A function that is flagged in some cell, or significant in some cell against history.
pub(crate) struct FlaggedFunction<'a> {
    /// Its name.
    pub(crate) function: &'a str,
    /// Whether it is flagged by its total counts alone, with all that it calls.
    is_total: bool,
    /// The functions outside the kernel that it is below, if it is one of the kernel's.
    callers: Vec<String>,
    /// What is known of it in each cell.
    pub(crate) states: BTreeMap<&'a CellKey, FanOutState>,
    /// The shortest description of where it costs more.
    pub(crate) regressed: Vec<Extent>,
    /// Where it costs less.
    pub(crate) improved: Vec<Extent>,
    /// Its rows of the last report.
    pub(crate) rows: BTreeMap<&'a CellKey, &'a CellRow>,
}

impl<'a> Findings<'a> {
    /// The findings in tables that hold the last look, the last report and the current fan-out.
    pub(crate) fn of(tables: &'a Tables) -> Vec<Self> {
        let has_self = tables.comparisons.iter().any(|row| row.count_kind == CountKind::SelfCount);
        let kind = if has_self { CountKind::SelfCount } else { CountKind::Total };
        let keys: BTreeSet<&ComparisonKey> =
            tables.comparisons.iter().filter(|row| row.count_kind == kind).map(|row| &row.comparison).collect();
        keys.into_iter().map(|key| Self::of_key(tables, key, kind)).collect()
    }

    fn of_key(tables: &'a Tables, key: &'a ComparisonKey, kind: CountKind) -> Self {
        let of_key = tables.comparisons.iter().filter(|row| row.comparison == *key && row.count_kind == kind);
        let mut cells: BTreeMap<&CellKey, &ComparisonRow> = of_key.map(|row| (&row.cell, row)).collect();
        let of_history = cells
            .iter()
            .filter(|(cell, row)| row.base_kind == BaseKind::History && (cell.is_over_all() || cells.len() == 1));
        let history = of_history.filter_map(|(_, row)| row.warnings.first()).map(String::as_str).next();
        let action = cells.iter().filter(|(cell, _)| cell.is_over_all()).find_map(|(_, row)| row.action.as_deref());
        if cells.len() > 1 {
            cells.retain(|cell, _| !cell.is_over_all());
        }
        let scope = if history.is_some() { Scope::Window } else { Scope::Epoch };
        let of_report = tables.cells.iter().filter(|row| row.comparison == *key && row.scope == scope);
        let of_report: Vec<&CellRow> = of_report.filter(|row| cells.contains_key(&row.cell)).collect();
        let of_window = tables
            .cells
            .iter()
            .filter(|row| row.comparison == *key && row.scope == Scope::Window && row.function == ALL_FUNCTIONS);
        let uniform = of_window.filter(|row| cells.contains_key(&row.cell)).map(|row| (&row.cell, row)).collect();
        let mut flagged: Vec<FlaggedFunction<'a>> = match history {
            None => FlaggedFunction::standing(tables, key, &of_report),
            Some(_) => FlaggedFunction::of_history(of_report.iter().copied().filter(|row| row.count_kind == kind)),
        };
        flagged.sort_by(|a, b| {
            let order = |flagged: &FlaggedFunction<'_>| Reverse(!flagged.regressed.is_empty());
            order(a).cmp(&order(b)).then(b.change().total_cmp(&a.change())).then(a.function.cmp(b.function))
        });
        Self { key, kind, history, action, cells, uniform, flagged }
    }
}

/// The incidents that stand of the service of a comparison, by cause: builds of one roll-out share theirs.
fn standing_incidents<'a>(tables: &'a Tables, key: &ComparisonKey) -> BTreeMap<&'a str, &'a IncidentRow> {
    let mut last: BTreeMap<&str, &IncidentRow> = BTreeMap::new();
    for row in tables.incidents.iter().filter(|row| row.service == key.service) {
        last.insert(&row.incident_id, row);
    }
    let is_open = |row: &&IncidentRow| matches!(row.state, IncidentState::Raised | IncidentState::Updated);
    last.into_values().filter(is_open).map(|row| (row.cause.as_str(), row)).collect()
}

impl<'a> FlaggedFunction<'a> {
    /// The functions whose flags stand in a comparison, with their rows `of_report`. Total counts are flags of callers too until their
    /// cause is known, so of these only causes of incidents are meant.
    fn standing(tables: &'a Tables, key: &ComparisonKey, of_report: &[&'a CellRow]) -> Vec<Self> {
        let incidents = standing_incidents(tables, key);
        let is_only_kind = tables.fan_out.iter().all(|row| row.count_kind == CountKind::Total);
        let mut functions: BTreeMap<&str, Vec<&FanOutRow>> = BTreeMap::new();
        for fan_out in tables.fan_out.iter().filter(|row| row.comparison == *key && !row.cells.is_empty()) {
            let is_cause = incidents.contains_key(fan_out.function.as_str());
            if is_cause || is_only_kind || fan_out.count_kind == CountKind::SelfCount {
                functions.entry(&fan_out.function).or_default().push(fan_out);
            }
        }
        let mut rows: BTreeMap<&str, Vec<&CellRow>> = BTreeMap::new();
        for row in of_report.iter().filter(|row| functions.contains_key(row.function.as_str())) {
            rows.entry(&row.function).or_default().push(row);
        }
        let of = |(function, fan_outs): (&'a str, Vec<&'a FanOutRow>)| {
            let rows = rows.get(function).map_or(&[][..], Vec::as_slice);
            let explains = incidents.get(function).map_or(&[][..], |row| &row.explains);
            Self { callers: callers_outside(function, explains), ..Self::of(function, fan_outs, rows) }
        };
        functions.into_iter().map(of).collect()
    }

    /// One function by what is known of it in each kind of count: in each cell by the first in which it is flagged there.
    fn of(function: &'a str, mut fan_outs: Vec<&'a FanOutRow>, rows: &[&'a CellRow]) -> Self {
        fan_outs.sort_by_key(|fan_out| fan_out.count_kind);
        let first = fan_outs.first().map_or(CountKind::SelfCount, |fan_out| fan_out.count_kind);
        let mut known: BTreeMap<&CellKey, (CountKind, FanOutState)> = BTreeMap::new();
        for (fan_out, cell) in fan_outs.iter().flat_map(|fan_out| fan_out.cells.iter().map(move |cell| (fan_out, cell)))
        {
            let is_flagged = |state| matches!(state, FanOutState::Regressed | FanOutState::Improved);
            let before = known.entry(&cell.cell).or_insert((fan_out.count_kind, cell.state));
            if is_flagged(cell.state) && !is_flagged(before.1) {
                *before = (fan_out.count_kind, cell.state);
            }
        }
        let places = |wanted: FanOutState| {
            let meant = known.iter().filter(|(_, (_, state))| *state == wanted).map(|(cell, _)| *cell);
            extents(meant, known.keys().copied())
        };
        let is_shown = |row: &&CellRow| row.count_kind == known.get(&row.cell).map_or(first, |(kind, _)| *kind);
        Self {
            function,
            is_total: first == CountKind::Total,
            callers: Vec::new(),
            regressed: places(FanOutState::Regressed),
            improved: places(FanOutState::Improved),
            rows: rows.iter().copied().filter(is_shown).map(|row| (&row.cell, row)).collect(),
            states: known.into_iter().map(|(cell, (_, state))| (cell, state)).collect(),
        }
    }

    /// The functions that are significant in these rows of the window, if the base is history.
    fn of_history(rows: impl Iterator<Item = &'a CellRow>) -> Vec<Self> {
        let mut functions: BTreeMap<&str, BTreeMap<&'a CellKey, &'a CellRow>> = BTreeMap::new();
        let mut cells: BTreeSet<&CellKey> = BTreeSet::new();
        for row in rows {
            functions.entry(&row.function).or_default().insert(&row.cell, row);
            cells.insert(&row.cell);
        }
        functions.retain(|_, rows| rows.values().any(|row| row.verdict.is_significant()));
        let of_function = |(function, of_function): (&'a str, BTreeMap<&'a CellKey, &'a CellRow>)| {
            let with = |verdict| {
                extents(
                    of_function.iter().filter(|(_, row)| row.verdict == verdict).map(|(cell, _)| *cell),
                    cells.iter().copied(),
                )
            };
            let state = |row: &CellRow| match row.verdict {
                Verdict::Regressed => FanOutState::Regressed,
                Verdict::Improved => FanOutState::Improved,
                Verdict::Equivalent => FanOutState::Clean,
                _ => FanOutState::Unknown,
            };
            Self {
                function,
                is_total: of_function.values().all(|row| row.count_kind == CountKind::Total),
                callers: Vec::new(),
                states: of_function.iter().map(|(cell, row)| (*cell, state(row))).collect(),
                regressed: with(Verdict::Regressed),
                improved: with(Verdict::Improved),
                rows: of_function,
            }
        };
        functions.into_iter().map(of_function).collect()
    }

    /// Its name, and what makes it understood: whether its total counts are flagged alone, and what it is below.
    pub(crate) fn named(&self) -> String {
        let with = if self.is_total { " (total)" } else { "" };
        let below =
            if self.callers.is_empty() { String::new() } else { format!(" below {}", advice::named(&self.callers)) };
        format!("{}{with}{below}", advice::name(self.function))
    }

    /// The cells in which it has this verdict.
    pub(crate) fn cells(&self, state: FanOutState) -> impl Iterator<Item = &'a CellKey> {
        self.states.iter().filter(move |(_, known)| **known == state).map(|(cell, _)| *cell)
    }

    /// The largest change of its share in a cell where it is significant, in the direction that ranks it.
    fn change(&self) -> f64 {
        let state = if self.regressed.is_empty() { FanOutState::Improved } else { FanOutState::Regressed };
        let changes = self.cells(state).filter_map(|cell| self.rows.get(cell)?.share_delta);
        changes.map(|delta| delta.value.abs()).fold(0.0, f64::max)
    }
}
