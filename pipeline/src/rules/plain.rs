//! The flags of the plain method: which rows are significant at a look, and since when.
//!
//! The state of one comparison. A row is raised at the look at which it becomes significant and cleared at the first at
//! which it no longer is, so that the significant rows of every look follow from what was raised and cleared. Nothing holds a flag
//! up or down in between, and nobody is told: such flags are as little calibrated as their method ([`super::article`]).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use fleetdiff_schemas::alert::flag_id;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ArmFigures, CellKey, CellRow, ComparisonKey, FlagRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{FlagState, Scope, Severity, Support};
use fleetdiff_statistics::families::{bh_among, selected};
use serde::{Deserialize, Serialize};

use super::lifecycle::CLOSED;
use super::method;
use crate::evidence::plain::{PlainLook, PlainRow};
use crate::evidence::row::recount;

/// Why a flag is cleared at a look: the family does not select its row any more.
pub(crate) const NOT_SIGNIFICANT: &str = "not_significant";

/// Rows of the same kind of the same cell.
type Place = (ComparisonKey, CellKey, CountKind);

/// The flags of one comparison.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlainRule {
    clock: HopClock,
    window_hops: u64,
    q: f64,
    /// By function; none is empty.
    raised: BTreeMap<Place, BTreeMap<Arc<str>, Significant>>,
}

/// A row that is significant, as of the last look.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Significant {
    /// The hop at which it became so.
    since: Hop,
    row: PlainRow,
    q_value: f64,
    /// Samples of all functions, head and base.
    totals: [u64; 2],
}

impl PlainRule {
    /// A rule without flags.
    pub fn new(config: &Config) -> Self {
        Self { clock: config.clock(), window_hops: config.window_hops(), q: config.q, raised: BTreeMap::new() }
    }

    /// Takes the look of every cell and gives what was raised and cleared.
    pub fn look(&mut self, hop: Hop, looks: Vec<(ComparisonKey, CellKey, PlainLook)>) -> Vec<FlagRow> {
        let mut families: BTreeMap<(ComparisonKey, CountKind), Vec<(CellKey, PlainLook)>> = BTreeMap::new();
        for (comparison, cell, look) in looks {
            families.entry((comparison, look.count_kind)).or_default().push((cell, look));
        }
        let mut before = std::mem::take(&mut self.raised);
        let mut flags = Vec::new();
        for ((comparison, kind), cells) in families {
            for (cell, now) in self.significant(hop, cells) {
                let place = (comparison.clone(), cell, kind);
                let mut earlier = before.remove(&place).unwrap_or_default();
                let mut kept = BTreeMap::new();
                for (function, mut row) in now {
                    match earlier.remove(&function) {
                        Some(known) => row.since = known.since,
                        None => flags.push(self.flag(hop, &place, &row, None)),
                    }
                    kept.insert(function, row);
                }
                flags.extend(earlier.values().map(|row| self.flag(hop, &place, row, Some(NOT_SIGNIFICANT))));
                self.keep(place, kept);
            }
        }
        flags.extend(self.cleared(hop, &before, NOT_SIGNIFICANT));
        flags
    }

    /// Ends the comparison: every flag is cleared.
    pub fn close(&mut self, hop: Hop) -> Vec<FlagRow> {
        let raised = std::mem::take(&mut self.raised);
        self.cleared(hop, &raised, CLOSED)
    }

    fn keep(&mut self, place: Place, rows: BTreeMap<Arc<str>, Significant>) {
        if let (false, Entry::Vacant(vacant)) = (rows.is_empty(), self.raised.entry(place)) {
            vacant.insert(rows);
        }
    }

    fn cleared(
        &self,
        hop: Hop,
        raised: &BTreeMap<Place, BTreeMap<Arc<str>, Significant>>,
        because: &str,
    ) -> Vec<FlagRow> {
        let each = raised.iter().flat_map(|(place, rows)| rows.values().map(move |row| (place, row)));
        each.map(|(place, row)| self.flag(hop, place, row, Some(because))).collect()
    }

    /// The rows that Benjamini-Hochberg selects over all cells together, by cell.
    fn significant(
        &self,
        hop: Hop,
        cells: Vec<(CellKey, PlainLook)>,
    ) -> Vec<(CellKey, BTreeMap<Arc<str>, Significant>)> {
        let tests: u64 = cells.iter().map(|(_, look)| look.tests).sum();
        let ln_p: Vec<f64> = cells.iter().flat_map(|(_, look)| &look.candidates).map(|row| row.ln_p).collect();
        let mut q_values = bh_among(&ln_p, usize::try_from(tests).unwrap_or(usize::MAX)).into_iter();
        let of_cell = |(cell, look): (CellKey, PlainLook)| {
            let totals = [look.head_total, look.base_total];
            let rows = look.candidates.into_iter().zip(q_values.by_ref());
            let rows = rows.filter(|(_, q_value)| selected(*q_value, self.q));
            let rows = rows
                .map(|(row, q_value)| (Arc::clone(&row.function), Significant { since: hop, row, q_value, totals }));
            (cell, rows.collect())
        };
        cells.into_iter().map(of_cell).collect()
    }

    /// A change of a flag. A cleared row is as of the last look at which it was significant.
    fn flag(&self, hop: Hop, place: &Place, significant: &Significant, because: Option<&str>) -> FlagRow {
        let (comparison, cell, kind) = place.clone();
        let Significant { since, row: counts, q_value, totals } = significant;
        let mut row = CellRow::untested(Scope::Window, comparison, kind, cell, counts.function.to_string());
        [row.head, row.base] = totals.map(|total| ArmFigures { total: table_count(total), ..ArmFigures::default() });
        recount(&mut row, table_count(counts.head), table_count(counts.base));
        let (verdict, reason) = method::significant(&row);
        let row = CellRow {
            window_start_at: self.clock.start_of(hop.plus(1).minus(self.window_hops)),
            window_end_at: self.clock.end_of(hop),
            strata: 1,
            support: Support::Untestable,
            q_value: Some(*q_value),
            verdict,
            reason,
            ..row
        };
        FlagRow {
            flag_id: flag_id(&row, *since),
            row,
            state: if because.is_some() { FlagState::Cleared } else { FlagState::Raised },
            raised_at: self.clock.end_of(*since),
            sequence: hop,
            severity: Severity::Info,
            cleared_because: because.map(str::to_owned),
            explains: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::profile::ProfileType;
    use fleetdiff_schemas::verdict::Verdict;

    use super::*;

    fn row(function: &str, ln_p: f64) -> PlainRow {
        PlainRow { function: function.into(), head: 90, base: 30, ln_p }
    }

    fn cell(region: &str, tests: u64, candidates: Vec<PlainRow>) -> (ComparisonKey, CellKey, PlainLook) {
        let comparison = ComparisonKey {
            service: "s".into(),
            profile_type: ProfileType::Cpu,
            measure: ProfileType::Cpu.measure(),
            base_build: "old".into(),
            head_build: "new".into(),
        };
        let key = CellKey { region: region.into(), cohort: "c".into() };
        let totals = (1_000, 1_000);
        let look = PlainLook {
            count_kind: CountKind::SelfCount,
            tests,
            head_total: totals.0,
            base_total: totals.1,
            candidates,
        };
        (comparison, key, look)
    }

    fn changes(flags: &[FlagRow]) -> Vec<(&str, FlagState, Option<&str>)> {
        flags.iter().map(|flag| (flag.row.function.as_str(), flag.state, flag.cleared_because.as_deref())).collect()
    }

    #[test]
    fn a_row_is_raised_once_and_cleared_when_the_family_does_not_select_it() {
        let mut rule = PlainRule::new(&Config::default());
        let p = libm::log(0.004);
        let raised = rule.look(Hop(10), vec![cell("a", 10, vec![row("f", p)])]);
        assert_eq!(changes(&raised), [("f", FlagState::Raised, None)]);
        assert_eq!(raised[0].row.verdict, Verdict::Regressed);
        assert!(raised[0].row.q_value.is_some_and(|q_value| (q_value - 0.04).abs() < 1e-12));
        assert!(rule.look(Hop(11), vec![cell("a", 10, vec![row("f", p)])]).is_empty());
        // The tests of another cell are in the same family: .004 x 20 > .05.
        let cleared = rule.look(Hop(12), vec![cell("a", 10, vec![row("f", p)]), cell("b", 10, vec![])]);
        assert_eq!(changes(&cleared), [("f", FlagState::Cleared, Some(NOT_SIGNIFICANT))]);
        assert_eq!(cleared[0].flag_id, raised[0].flag_id);
        assert!(rule.close(Hop(13)).is_empty());
    }

    #[test]
    fn flags_of_a_cell_without_samples_are_cleared_and_of_a_comparison_that_ends() {
        let mut rule = PlainRule::new(&Config::default());
        rule.look(Hop(10), vec![cell("a", 1, vec![row("f", -20.0)]), cell("b", 1, vec![row("g", -20.0)])]);
        let cleared = rule.look(Hop(11), vec![cell("b", 1, vec![row("g", -20.0)])]);
        assert_eq!(changes(&cleared), [("f", FlagState::Cleared, Some(NOT_SIGNIFICANT))]);
        assert_eq!(changes(&rule.close(Hop(12))), [("g", FlagState::Cleared, Some(CLOSED))]);
    }
}
