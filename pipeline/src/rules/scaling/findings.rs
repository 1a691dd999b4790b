//! Of which functions a head scales worse than its base, from report to report of one comparison.
//!
//! Windows of successive reports overlap, and each is one more chance to be wrong. The r-th report with a test therefore decides at
//! the level q/(r(r+1)); these levels add up to q.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, Interval, ScalingFindingRow, ScalingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::{FlagState, ScalingVerdict};
use fleetdiff_statistics::families::selected;
use serde::{Deserialize, Serialize};

use crate::rules::advice::{change, words};
use crate::rules::extent::extents;
use crate::rules::scaling::{action, at_twice_the_load, lead_cell, name};

/// Why a finding is over.
const CLOSED: &str = "comparison_closed";

/// A function and the type of profile that shows it.
type Subject = (ProfileType, Arc<str>);

/// What was found so far in one comparison.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScalingFindings {
    id: ComparisonId,
    clock: HopClock,
    q: f64,
    /// The kind of count whose rows are announced: a caller's total follows its callee.
    kind: CountKind,
    /// Reports with a test, by type of profile.
    reports: BTreeMap<ProfileType, u64>,
    standing: BTreeMap<Subject, Finding>,
}

/// One function that scales worse.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finding {
    raised_at: Nanos,
    cells: BTreeSet<CellKey>,
    /// As it was announced last.
    last: ScalingFindingRow,
}

impl ScalingFindings {
    /// Nothing found so far; `kinds` are those that are counted.
    pub(crate) fn new(id: ComparisonId, clock: HopClock, q: f64, kinds: &[CountKind]) -> Self {
        let kind = kinds.first().copied().unwrap_or(CountKind::SelfCount);
        Self { id, clock, q, kind, reports: BTreeMap::new(), standing: BTreeMap::new() }
    }

    /// Takes the decided rows of a report, of all cells and types of profile, and gives what is to be announced.
    pub(crate) fn report(&mut self, hop: Hop, rows: &[ScalingRow]) -> Vec<ScalingFindingRow> {
        let rows: Vec<&ScalingRow> = rows.iter().filter(|row| row.count_kind == self.kind).collect();
        let tested: BTreeSet<ProfileType> =
            rows.iter().filter(|row| row.q_value.is_some()).map(|row| row.profile_type).collect();
        for kind in tested {
            *self.reports.entry(kind).or_default() += 1;
        }
        let mut of_subject: BTreeMap<Subject, Vec<&ScalingRow>> = BTreeMap::new();
        for &row in &rows {
            of_subject.entry((row.profile_type, Arc::clone(&row.function))).or_default().push(row);
        }
        let grid: BTreeSet<&CellKey> = rows.iter().map(|row| &row.cell).collect();
        let mut changes = Vec::new();
        // All functions together come last: they are a finding of their own only where no function is.
        let (all, functions): (Vec<_>, Vec<_>) =
            of_subject.into_iter().partition(|((_, function), _)| &**function == ALL_FUNCTIONS);
        for (subject, rows) in functions.into_iter().chain(all) {
            let is_all = &*subject.1 == ALL_FUNCTIONS;
            let explained = is_all && self.standing.keys().any(|other| other.0 == subject.0 && *other != subject);
            if !explained {
                changes.extend(self.follow(hop, subject, &rows, &grid));
            }
        }
        changes
    }

    /// The comparison has ended: so has everything that stands.
    pub(crate) fn close(&mut self, hop: Hop) -> Vec<ScalingFindingRow> {
        let standing = std::mem::take(&mut self.standing);
        standing.into_values().map(|finding| self.cleared(hop, finding.last, CLOSED)).collect()
    }

    fn follow(
        &mut self,
        hop: Hop,
        subject: Subject,
        rows: &[&ScalingRow],
        grid: &BTreeSet<&CellKey>,
    ) -> Option<ScalingFindingRow> {
        let reports = self.reports.get(&subject.0).copied().unwrap_or(0).max(1);
        let level = self.q / (float(reports) * float(reports + 1));
        let found = |row: &&&ScalingRow| {
            row.verdict == ScalingVerdict::ScalesWorse && row.q_value.is_some_and(|q_value| selected(q_value, level))
        };
        let now: BTreeSet<CellKey> = rows.iter().filter(found).map(|row| row.cell.clone()).collect();
        let known = self.standing.get(&subject);
        let mut cells = known.map(|finding| finding.cells.clone()).unwrap_or_default();
        let verdict_in = |cell: &CellKey| rows.iter().find(|row| row.cell == *cell).map(|row| row.verdict);
        let is_over = |verdict| matches!(verdict, ScalingVerdict::ScalesEqually | ScalingVerdict::ScalesBetter);
        if !cells.is_empty() && now.is_empty() && cells.iter().all(|cell| verdict_in(cell).is_some_and(is_over)) {
            let finding = self.standing.remove(&subject)?;
            return Some(self.cleared(hop, finding.last, ScalingVerdict::ScalesEqually.name()));
        }
        let before = cells.len();
        cells.extend(now);
        if cells.len() == before {
            return None;
        }
        let here = rows.iter().filter(|row| cells.contains(&row.cell));
        let size = |row: &ScalingRow| row.elasticity_difference.map_or(f64::NEG_INFINITY, |slope| slope.value);
        let lead = here.copied().max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let raised_at = known.map_or_else(|| self.clock.end_of(hop), |finding| finding.raised_at);
        let state = if known.is_some() { FlagState::Updated } else { FlagState::Raised };
        let places = extents(&cells, grid.iter().copied());
        let last = ScalingFindingRow {
            service: self.id.service.clone(),
            profile_type: subject.0,
            base_build: self.id.base_name(),
            head_build: self.id.head.clone(),
            cause: Arc::clone(&subject.1),
            state,
            raised_at,
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            scales_worse_in: places.iter().map(ToString::to_string).collect(),
            elasticity: lead.elasticity,
            base_elasticity: lead.base_elasticity,
            elasticity_difference: lead.elasticity_difference,
            share_high_load: lead.high.share,
            load_span: lead.basis.load_span,
            summary: self.summary(&subject.1, &words(&places), (lead, &lead_cell(&lead.cell, cells.len() > 1, grid))),
            action: action(&self.id.head, &self.id.base_name()),
            ..ScalingFindingRow::blank()
        };
        self.standing.insert(subject, Finding { raised_at, cells, last: last.clone() });
        Some(last)
    }

    fn summary(&self, function: &str, places: &str, (lead, there): (&ScalingRow, &str)) -> String {
        let (head, base) = (&self.id.head, self.id.base_name());
        let what = name(function);
        let at_twice = |slope: Option<Interval>| {
            slope.map_or_else(|| "an unknown amount".to_owned(), |slope| change(at_twice_the_load(slope)))
        };
        format!(
            "{what}: {head} scales worse than {base} in {places}. At twice the load a request costs {}{there}; in {base} {}. \
             Load of {head} spanned a factor of {:.1}.",
            at_twice(lead.elasticity),
            at_twice(lead.base_elasticity),
            lead.basis.load_span.unwrap_or(1.0),
        )
    }

    fn cleared(&self, hop: Hop, last: ScalingFindingRow, because: &str) -> ScalingFindingRow {
        let (head, base, what) = (&self.id.head, self.id.base_name(), &last.cause);
        let why = match because {
            CLOSED => "one of the builds has no pods any more".to_owned(),
            _ => format!("the last minutes show that it does not cost more under load than in {base}"),
        };
        ScalingFindingRow {
            state: FlagState::Cleared,
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            cleared_because: Some(because.to_owned()),
            summary: format!("{what}: no longer followed in {head}, because {why}."),
            action: "Nothing.".to_owned(),
            ..last
        }
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::verdict::Severity;

    use super::*;

    /// A row of the head in a cell, with this verdict and q.
    fn row(function: &str, cell: &str, verdict: ScalingVerdict, q_value: f64) -> ScalingRow {
        let slope = |value: f64| Some(Interval { value, low: value - 0.1, high: value + 0.1 });
        ScalingRow {
            build: "v2".into(),
            base_build: Some("v1".into()),
            cell: CellKey { region: cell.into(), cohort: "tv".into() },
            function: function.into(),
            elasticity: slope(0.4),
            base_elasticity: slope(0.0),
            elasticity_difference: slope(if cell == "south" { 0.5 } else { 0.4 }),
            q_value: Some(q_value),
            verdict,
            ..ScalingRow::blank()
        }
    }

    fn worse(function: &str, cell: &str, q_value: f64) -> ScalingRow {
        row(function, cell, ScalingVerdict::ScalesWorse, q_value)
    }

    fn findings() -> ScalingFindings {
        let id = ComparisonId { service: "api".into(), base: vec!["v1".into()], head: "v2".into() };
        ScalingFindings::new(id, HopClock::new(Nanos::from_seconds(10)), 0.05, &CountKind::ALL)
    }

    #[test]
    fn a_finding_is_raised_grows_and_is_cleared() {
        let mut found = findings();
        let raised = found.report(
            Hop(60),
            &[worse("encode", "north", 1e-9), row("encode", "south", ScalingVerdict::Inconclusive, 0.4)],
        );
        let [raised] = &raised[..] else { panic!("{raised:?}") };
        assert_eq!(
            (raised.state, raised.severity, raised.raised_at),
            (FlagState::Raised, Severity::Ticket, Nanos::from_seconds(610))
        );
        assert_eq!(raised.scales_worse_in, ["tv in north"]);
        assert_eq!(
            raised.summary,
            "encode: v2 scales worse than v1 in tv in north. At twice the load a request costs 32 % more (23 to 41 %) there; in v1 \
             0.0 % more (-7 to 7 %). Load of v2 spanned a factor of 1.0."
        );
        assert!(found.report(Hop(120), &[worse("encode", "north", 1e-9)]).is_empty(), "nothing new");
        let grown = found.report(Hop(180), &[worse("encode", "north", 1e-9), worse("encode", "south", 1e-9)]);
        let [grown] = &grown[..] else { panic!("{grown:?}") };
        assert_eq!((grown.state, grown.raised_at), (FlagState::Updated, raised.raised_at));
        assert_eq!(grown.scales_worse_in, ["all cells"]);
        assert!(grown.elasticity_difference.unwrap().value > 0.45, "of the worst cell");
        let equal = |cell| row("encode", cell, ScalingVerdict::ScalesEqually, 1.0);
        assert!(found.report(Hop(240), &[equal("north"), worse("encode", "south", 1e-9)]).is_empty());
        let cleared = found.report(Hop(300), &[equal("north"), equal("south")]);
        assert_eq!(
            (cleared[0].state, cleared[0].cleared_because.as_deref()),
            (FlagState::Cleared, Some("scales_equally"))
        );
        assert!(found.close(Hop(301)).is_empty(), "nothing stands");
        found.report(Hop(360), &[worse("encode", "north", 1e-9)]);
        assert_eq!(found.close(Hop(361))[0].cleared_because.as_deref(), Some("comparison_closed"));
    }

    #[test]
    fn levels_of_all_reports_add_up_to_the_rate() {
        let mut found = findings();
        assert!(
            found.report(Hop(60), &[worse("encode", "north", 0.03)]).is_empty(),
            "the first report has half of .05"
        );
        assert_eq!(found.report(Hop(120), &[worse("decode", "north", 0.008)]).len(), 1, "the second a sixth");
        assert!(found.report(Hop(180), &[worse("encode", "north", 0.0042)]).is_empty(), "the third a twelfth");
        let untested = ScalingRow { q_value: None, ..row("encode", "north", ScalingVerdict::Withheld, 1.0) };
        assert!(found.report(Hop(240), &[untested]).is_empty());
        assert_eq!(
            found.report(Hop(300), &[worse("encode", "north", 0.0024)]).len(),
            1,
            "a report without a test costs nothing"
        );
    }

    #[test]
    fn callers_and_all_functions_together_follow_their_cause() {
        let mut found = findings();
        let caller = ScalingRow { count_kind: CountKind::Total, ..worse("main", "north", 1e-9) };
        let news =
            found.report(Hop(60), &[worse(ALL_FUNCTIONS, "north", 1e-9), worse("encode", "north", 1e-9), caller]);
        assert_eq!(news.iter().map(|row| &*row.cause).collect::<Vec<_>>(), ["encode"]);
        let alone = findings().report(Hop(60), &[worse(ALL_FUNCTIONS, "north", 1e-9)]);
        assert!(
            alone.len() == 1 && alone[0].summary.starts_with("all functions together: v2 scales worse"),
            "{alone:?}"
        );
    }
}
