//! What a run found, by comparison: cells, and the significant functions, the worst first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_schemas::fan_out::{Extent, FanOutRow};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, ComparisonRow, Tables};
use fleetdiff_schemas::verdict::{BaseKind, FanOutState, Scope, Verdict};

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
        let mut rows: BTreeMap<&CellKey, Vec<&CellRow>> = BTreeMap::new();
        let of_report =
            tables.cells.iter().filter(|row| row.comparison == *key && row.count_kind == kind && row.scope == scope);
        of_report
            .filter(|row| cells.contains_key(&row.cell))
            .for_each(|row| rows.entry(&row.cell).or_default().push(row));
        let of_window = tables
            .cells
            .iter()
            .filter(|row| row.comparison == *key && row.scope == Scope::Window && row.function == ALL_FUNCTIONS);
        let uniform = of_window.filter(|row| cells.contains_key(&row.cell)).map(|row| (&row.cell, row)).collect();
        let standing = tables
            .fan_out
            .iter()
            .filter(|row| row.comparison == *key && row.count_kind == kind && !row.cells.is_empty());
        let mut flagged: Vec<FlaggedFunction<'a>> = match history {
            None => standing.map(|fan_out| FlaggedFunction::of(fan_out, &rows)).collect(),
            Some(_) => FlaggedFunction::of_history(&rows),
        };
        flagged.sort_by(|a, b| {
            let order = |flagged: &FlaggedFunction<'_>| Reverse(!flagged.regressed.is_empty());
            order(a).cmp(&order(b)).then(b.change().total_cmp(&a.change())).then(a.function.cmp(b.function))
        });
        Self { key, kind, history, action, cells, uniform, flagged }
    }
}

impl<'a> FlaggedFunction<'a> {
    fn of(fan_out: &'a FanOutRow, rows: &BTreeMap<&'a CellKey, Vec<&'a CellRow>>) -> Self {
        let of_function = |(cell, rows): (&&'a CellKey, &Vec<&'a CellRow>)| {
            Some((*cell, *rows.iter().find(|row| row.function == fan_out.function)?))
        };
        Self {
            function: &fan_out.function,
            states: fan_out.cells.iter().map(|known| (&known.cell, known.state)).collect(),
            regressed: fan_out.regressed.clone(),
            improved: fan_out.improved.clone(),
            rows: rows.iter().filter_map(of_function).collect(),
        }
    }

    /// The functions that are significant in rows of the window, if the base is history.
    fn of_history(rows: &BTreeMap<&'a CellKey, Vec<&'a CellRow>>) -> Vec<Self> {
        let mut functions: BTreeMap<&str, BTreeMap<&'a CellKey, &'a CellRow>> = BTreeMap::new();
        for (cell, row) in rows.iter().flat_map(|(cell, rows)| rows.iter().map(move |row| (cell, row))) {
            functions.entry(&row.function).or_default().insert(cell, row);
        }
        functions.retain(|_, rows| rows.values().any(|row| row.verdict.is_significant()));
        let of_function = |(function, of_function): (&'a str, BTreeMap<&'a CellKey, &'a CellRow>)| {
            let with = |verdict| {
                extents(
                    of_function.iter().filter(|(_, row)| row.verdict == verdict).map(|(cell, _)| *cell),
                    rows.keys().copied(),
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
                states: of_function.iter().map(|(cell, row)| (*cell, state(row))).collect(),
                regressed: with(Verdict::Regressed),
                improved: with(Verdict::Improved),
                rows: of_function,
            }
        };
        functions.into_iter().map(of_function).collect()
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
