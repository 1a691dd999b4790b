//! Where a head keeps more memory from hour to hour, whether requests allocate more or not, from report to report of one comparison.
//!
//! Windows of successive reports overlap, and each is one more chance to be wrong. The r-th report with a test therefore decides at
//! the level q/(r(r+1)); these levels add up to q.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, HeapFindingRow, HeapRow, Interval};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::{FlagState, HeapClass, LevelDirection};
use fleetdiff_statistics::families::selected;
use serde::{Deserialize, Serialize};

use crate::rules::advice::{change, words};
use crate::rules::extent::extents;
use crate::rules::heap::{action, grown};
use crate::rules::scaling::lead_cell;

/// Why a finding is over.
const CLOSED: &str = "comparison_closed";
const GONE: &str = "no_longer_found";

/// How many functions are named.
const NAMED: usize = 3;

/// What was found so far in one comparison.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeapFindings {
    id: ComparisonId,
    clock: HopClock,
    q: f64,
    /// Reports with a test.
    reports: u64,
    standing: Option<Finding>,
}

/// A leak.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finding {
    raised_at: Nanos,
    cells: BTreeSet<CellKey>,
    /// As it was announced last.
    last: HeapFindingRow,
}

impl HeapFindings {
    /// Nothing found so far.
    pub(crate) fn new(id: ComparisonId, clock: HopClock, q: f64) -> Self {
        Self { id, clock, q, reports: 0, standing: None }
    }

    /// Takes the decided rows of a report, of all cells, and gives what is to be announced.
    pub(crate) fn report(&mut self, hop: Hop, rows: &[HeapRow]) -> Option<HeapFindingRow> {
        let of_cells: Vec<&HeapRow> = rows.iter().filter(|row| &*row.function == ALL_FUNCTIONS).collect();
        if of_cells.iter().any(|row| row.slope.q_value.is_some()) {
            self.reports += 1;
        }
        let reports = self.reports.max(1);
        let level = self.q / (float(reports) * float(reports + 1));
        let found = |row: &&&HeapRow| {
            let both = [row.live.q_value, row.slope.q_value];
            row.class.is_leak() && both.iter().all(|q| q.is_some_and(|q| selected(q, level)))
        };
        let now: BTreeSet<CellKey> = of_cells.iter().filter(found).map(|row| row.cell.clone()).collect();
        let mut cells = self.standing.as_ref().map(|finding| finding.cells.clone()).unwrap_or_default();
        let is_over = |cell: &CellKey| of_cells.iter().any(|row| row.cell == *cell && holds_no_more(row));
        if !cells.is_empty() && now.is_empty() && cells.iter().all(is_over) {
            return self.standing.take().map(|finding| self.cleared(hop, finding.last, GONE));
        }
        let before = cells.len();
        cells.extend(now);
        if cells.len() == before {
            return None;
        }
        let size = |row: &HeapRow| row.live.change.map_or(0.0, |ratio| ratio.value);
        let here = of_cells.iter().copied().filter(|row| cells.contains(&row.cell) && row.class.is_leak());
        let lead = here.max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let state = if self.standing.is_some() { FlagState::Updated } else { FlagState::Raised };
        let raised_at = self.standing.as_ref().map_or_else(|| self.clock.end_of(hop), |finding| finding.raised_at);
        let places = extents(&cells, of_cells.iter().map(|row| &row.cell));
        let carried_by = carriers(rows, &lead.cell);
        let grid: BTreeSet<&CellKey> = of_cells.iter().map(|row| &row.cell).collect();
        let here_of = |lead: &HeapRow| lead_cell(&lead.cell, cells.len() > 1, &grid);
        let last = HeapFindingRow {
            service: self.id.service.clone(),
            base_build: self.id.base_name(),
            head_build: self.id.head.clone(),
            class: lead.class,
            state,
            raised_at,
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            leaks_in: places.iter().map(ToString::to_string).collect(),
            alloc_ratio: lead.alloc.change,
            live_ratio: lead.live.change,
            slope_difference: lead.slope.change,
            summary: self.summary(&words(&places), (lead, &here_of(lead)), &carried_by),
            action: action(&self.id.head),
            carried_by,
            ..HeapFindingRow::blank()
        };
        self.standing = Some(Finding { raised_at, cells, last: last.clone() });
        Some(last)
    }

    /// The comparison has ended: so has what stands.
    pub(crate) fn close(&mut self, hop: Hop) -> Option<HeapFindingRow> {
        self.standing.take().map(|finding| self.cleared(hop, finding.last, CLOSED))
    }

    fn summary(&self, places: &str, (lead, there): (&HeapRow, &str), carried_by: &[String]) -> String {
        let (head, base) = (&self.id.head, self.id.base_name());
        let of = |ratio: Option<Interval>| ratio.map_or_else(|| "an unknown amount".to_owned(), change);
        let allocated = match lead.alloc.direction {
            LevelDirection::Down => format!("A request allocates {}, but", of(lead.alloc.change)),
            LevelDirection::Flat => "A request allocates as much, but".to_owned(),
            LevelDirection::Up => format!("A request allocates {}, and", of(lead.alloc.change)),
            LevelDirection::Unknown => "Whether a request allocates more is not known;".to_owned(),
        };
        let grows = lead.slope.change.map(grown);
        let time = grows.map_or("an hour", |(_, time)| time);
        let by =
            if carried_by.is_empty() { String::new() } else { format!(" Most is kept by {}.", carried_by.join(", ")) };
        format!(
            "{}: {head} keeps more memory than {base} in {places}, and ever more. {allocated} a pod has {} in use{there}, \
             and within {time} that becomes {} than in {base}.{by}",
            title(lead.class),
            of(lead.live.change),
            of(grows.map(|(ratio, _)| ratio)),
        )
    }

    fn cleared(&self, hop: Hop, last: HeapFindingRow, because: &str) -> HeapFindingRow {
        let head = &self.id.head;
        let why = match because {
            CLOSED => "one of the builds has no pods any more",
            _ => "the last window shows that it does not keep more, or does not keep growing",
        };
        HeapFindingRow {
            state: FlagState::Cleared,
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            cleared_because: Some(because.to_owned()),
            summary: format!("{}: no longer followed in {head}, because {why}.", title(last.class)),
            action: "Nothing.".to_owned(),
            ..last
        }
    }
}

/// What was found, as a sentence begins.
pub(crate) fn title(class: HeapClass) -> &'static str {
    if class == HeapClass::HiddenLeak { "Hidden leak" } else { "Leak" }
}

/// Whether a cell is shown to hold no more than the base, or not to grow faster.
fn holds_no_more(row: &HeapRow) -> bool {
    let is_known = |direction| matches!(direction, LevelDirection::Flat | LevelDirection::Down);
    is_known(row.live.direction) || is_known(row.slope.direction)
}

/// The functions of a cell that hold the most beyond the base, of the first kind that is counted.
fn carriers(rows: &[HeapRow], cell: &CellKey) -> Vec<String> {
    let kind = rows.iter().map(|row| row.count_kind).min();
    let more = |row: &HeapRow| row.live.head.unwrap_or(0.0) - row.live.base.unwrap_or(0.0);
    let mut up: Vec<&HeapRow> = rows
        .iter()
        .filter(|row| row.cell == *cell && Some(row.count_kind) == kind && &*row.function != ALL_FUNCTIONS)
        .filter(|row| row.live.direction == LevelDirection::Up)
        .collect();
    up.sort_by(|a, b| more(b).total_cmp(&more(a)).then_with(|| a.function.cmp(&b.function)));
    up.iter().take(NAMED).map(|row| row.function.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::rows::LevelFace;
    use fleetdiff_schemas::verdict::Severity;

    use super::*;

    fn face(direction: LevelDirection, value: f64, q_value: f64) -> LevelFace {
        LevelFace {
            head: Some(2.0 * value),
            base: Some(2.0),
            change: Some(Interval { value, low: value - 0.1, high: value + 0.1 }),
            ln_p: Some(libm::log(q_value)),
            q_value: Some(q_value),
            tests: Some(1),
            direction,
            reason: None,
        }
    }

    fn row(function: &str, cell: &str, class: HeapClass, q_value: f64) -> HeapRow {
        let up = if class == HeapClass::HiddenLeak { LevelDirection::Up } else { LevelDirection::Flat };
        HeapRow {
            function: function.into(),
            cell: CellKey { region: cell.into(), cohort: "tv".into() },
            alloc: face(LevelDirection::Down, 0.8, 1e-9),
            live: face(up, 1.5, q_value),
            slope: face(up, 0.5, q_value),
            class,
            ..HeapRow::blank()
        }
    }

    fn leak(cell: &str, q_value: f64) -> HeapRow {
        row(ALL_FUNCTIONS, cell, HeapClass::HiddenLeak, q_value)
    }

    fn findings() -> HeapFindings {
        let id = ComparisonId { service: "api".into(), base: vec!["v1".into()], head: "v2".into() };
        HeapFindings::new(id, HopClock::new(Nanos::from_seconds(10)), 0.05)
    }

    #[test]
    fn a_hidden_leak_is_raised_grows_and_is_cleared() {
        let mut found = findings();
        let quiet = |cell| row(ALL_FUNCTIONS, cell, HeapClass::Win, 1.0);
        let first = [leak("north", 1e-9), quiet("south"), row("cache", "north", HeapClass::HiddenLeak, 1e-9)];
        let raised = found.report(Hop(60), &first).unwrap();
        assert_eq!((raised.state, raised.severity), (FlagState::Raised, Severity::Ticket));
        assert_eq!(
            (&raised.leaks_in[..], &raised.carried_by[..]),
            (&["tv in north".into()][..], &["cache".into()][..])
        );
        assert_eq!(
            raised.summary,
            "Hidden leak: v2 keeps more memory than v1 in tv in north, and ever more. A request allocates 20 % less (10 to 30 %), but \
             a pod has 50 % more (40 to 60 %) in use there, and within an hour that becomes 65 % more (49 to 82 %) than in v1. Most is kept by \
             cache."
        );
        assert!(found.report(Hop(120), &first).is_none(), "nothing new");
        let grown = found.report(Hop(180), &[leak("north", 1e-9), leak("south", 1e-9)]).unwrap();
        assert_eq!((grown.state, grown.raised_at), (FlagState::Updated, raised.raised_at));
        assert!(found.report(Hop(240), &[quiet("north"), leak("south", 1e-9)]).is_none());
        let cleared = found.report(Hop(300), &[quiet("north"), quiet("south")]).unwrap();
        assert_eq!((cleared.state, cleared.cleared_because.as_deref()), (FlagState::Cleared, Some(GONE)));
        assert!(found.close(Hop(301)).is_none(), "nothing stands");
        found.report(Hop(360), &[leak("north", 1e-9)]).unwrap();
        assert_eq!(found.close(Hop(361)).unwrap().cleared_because.as_deref(), Some(CLOSED));
    }

    #[test]
    fn levels_of_all_reports_add_up_to_the_rate() {
        let mut found = findings();
        assert!(found.report(Hop(60), &[leak("north", 0.03)]).is_none(), "the first report has half of .05");
        let untested = row(ALL_FUNCTIONS, "north", HeapClass::Unknown, 1.0);
        let untested = HeapRow { slope: LevelFace { q_value: None, ..untested.slope }, ..untested };
        assert!(found.report(Hop(120), &[untested]).is_none());
        assert!(found.report(Hop(180), &[leak("north", 0.008)]).is_some(), "the second with a test has a sixth");
    }
}
