//! One comparison as its report sees it: what was said last, by type of profile and kind of count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_schemas::fan_out::Extent;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{
    ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, ComparisonRow, FlagRow, HeapRow, IncidentRow, LoadCurveRow,
    ScalingRow, StackRow, WaitingRow,
};
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, FlagState, IncidentState, Scope};

use crate::document::Verdict;
use crate::records::{Filed, LastReport, Looks, Records};
use crate::subject::Subject;
use crate::verdicts;

/// Everything that is kept of one comparison.
pub(crate) struct Comparison<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) records: &'a Records,
    /// Its types of profile.
    pub(crate) keys: Vec<&'a ComparisonKey>,
}

/// One incident, from raised to its end.
pub(crate) struct Incident<'a> {
    /// When it was raised.
    pub(crate) raised: &'a Filed<IncidentRow>,
    /// The last row that says what stands.
    pub(crate) standing: &'a Filed<IncidentRow>,
    /// The row with which it ended.
    pub(crate) ended: Option<&'a Filed<IncidentRow>>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn of(subject: &'a Subject, records: &'a Records) -> Self {
        let keys: BTreeSet<&ComparisonKey> = records.looks.keys().map(|(key, _)| key).collect();
        let keys = keys.into_iter().filter(|key| Subject::of_key(key) == *subject).collect();
        Self { subject, records, keys }
    }

    /// The first type of profile that was compared with this kind of base.
    pub(crate) fn first_key(&self, base: BaseKind) -> Option<&'a ComparisonKey> {
        self.keys.iter().copied().find(|key| self.looks(key, base).is_some())
    }

    pub(crate) fn looks(&self, key: &ComparisonKey, base: BaseKind) -> Option<&'a Looks> {
        self.records.looks.get(&(key.clone(), base))
    }

    /// Self counts if they are counted, otherwise total counts.
    pub(crate) fn kind(&self, key: &ComparisonKey, base: BaseKind) -> CountKind {
        let has_self = self.last_rows(key, base).any(|filed| filed.row.count_kind == CountKind::SelfCount);
        if has_self { CountKind::SelfCount } else { CountKind::Total }
    }

    fn last_rows(&self, key: &ComparisonKey, base: BaseKind) -> impl Iterator<Item = &'a Filed<ComparisonRow>> {
        let key = key.clone();
        let of_key = self.records.verdicts.iter().filter(move |((of, _, kind, _), _)| *of == key && *kind == base);
        of_key.map(|(_, filed)| filed)
    }

    /// The verdict over all cells at the last look.
    pub(crate) fn over_all(&self, key: &ComparisonKey, base: BaseKind) -> Option<&'a Filed<ComparisonRow>> {
        let kind = self.kind(key, base);
        self.last_rows(key, base).find(|filed| filed.row.count_kind == kind && filed.row.cell.is_over_all())
    }

    /// The verdicts of its cells at the last look. Where nothing but the row over all cells is there, that is the only cell.
    pub(crate) fn cells(&self, key: &ComparisonKey, base: BaseKind) -> BTreeMap<&'a CellKey, &'a Filed<ComparisonRow>> {
        let kind = self.kind(key, base);
        let of_kind = self.last_rows(key, base).filter(|filed| filed.row.count_kind == kind);
        let mut cells: BTreeMap<_, _> = of_kind.map(|filed| (&filed.row.cell, filed)).collect();
        if cells.len() > 1 {
            cells.retain(|cell, _| !cell.is_over_all());
        }
        cells
    }

    /// How costs follow load, by type of profile.
    pub(crate) fn load(&self) -> impl Iterator<Item = (ProfileType, &'a LastReport<ScalingRow>)> {
        let of_subject = self.records.load.iter().filter(|((subject, _), _)| subject == self.subject);
        of_subject.map(|((_, profile_type), load)| (*profile_type, load))
    }

    /// What became of memory.
    pub(crate) fn memory(&self) -> Option<&'a LastReport<HeapRow>> {
        self.records.memory.get(self.subject)
    }

    /// The minutes of a function that costs more under load.
    pub(crate) fn load_curve(&self, of: &ScalingRow) -> impl Iterator<Item = &'a Filed<LoadCurveRow>> {
        let curves = self.records.load_curves.get(&(self.subject.clone(), of.profile_type));
        let (cell, function, at) = (of.cell.clone(), Arc::clone(&of.function), of.window_end_at);
        let is_meant =
            move |row: &LoadCurveRow| row.window_end_at == at && row.cell == cell && row.function == function;
        curves.into_iter().flat_map(|last| &last.rows).filter(move |filed| is_meant(&filed.row))
    }

    /// The stacks of the cell that changed most, by type of profile.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &'a [Filed<StackRow>]> {
        let of_subject = self.records.stacks.iter().filter(|((subject, _), _)| subject == self.subject);
        of_subject.map(|(_, stacks)| &stacks.rows[..])
    }

    /// What requests waited for.
    pub(crate) fn waiting(&self) -> Option<&'a LastReport<WaitingRow>> {
        self.records.waiting.get(self.subject)
    }

    /// A cell in words.
    pub(crate) fn place(&self, cell: &CellKey) -> String {
        let key = self.first_key(BaseKind::Concurrent);
        key.map_or_else(String::new, |key| self.places(key, BaseKind::Concurrent, [cell]))
    }

    /// Some cells in the fewest words.
    pub(crate) fn places<'c>(
        &self,
        key: &ComparisonKey,
        base: BaseKind,
        meant: impl IntoIterator<Item = &'c CellKey>,
    ) -> String {
        let grid: Vec<CellKey> = self.cells(key, base).into_keys().cloned().collect();
        let meant: Vec<CellKey> = meant.into_iter().cloned().collect();
        let extents: Vec<Extent> = extents(&meant, &grid);
        extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The rows of the last report in one scope.
    pub(crate) fn last_report(
        &self,
        key: &'a ComparisonKey,
        kind: CountKind,
        scope: Scope,
    ) -> impl Iterator<Item = &'a Filed<CellRow>> {
        let at = self.records.last_report(key, scope);
        self.reports(key, kind, scope).filter(move |filed| Some(filed.row.window_end_at) == at)
    }

    /// The rows of all reports in one scope that are kept.
    pub(crate) fn reports(
        &self,
        key: &'a ComparisonKey,
        kind: CountKind,
        scope: Scope,
    ) -> impl Iterator<Item = &'a Filed<CellRow>> {
        self.records
            .cells
            .iter()
            .filter(move |Filed { row, .. }| row.comparison == *key && row.count_kind == kind && row.scope == scope)
    }

    /// Its incidents: those that stand first, then the most severe, then those that change the largest share. All functions together come
    /// second among those of equal severity: after the function that most likely makes the change, before the many that may share in it.
    pub(crate) fn incidents(&self) -> Vec<Incident<'a>> {
        let mut by_id: BTreeMap<&str, Vec<&Filed<IncidentRow>>> = BTreeMap::new();
        for filed in self.records.incidents.iter().filter(|filed| Subject::of_incident(&filed.row) == *self.subject) {
            by_id.entry(&filed.row.incident_id).or_default().push(filed);
        }
        let mut incidents: Vec<Incident<'a>> = by_id.into_values().filter_map(Incident::of).collect();
        incidents.sort_by(|a, b| {
            let rank = |incident: &Incident<'_>| {
                let row = &incident.standing.row;
                (incident.ended.is_some(), row.severity, row.cause == ALL_FUNCTIONS)
            };
            let by_impact = b.impact().total_cmp(&a.impact());
            rank(a).cmp(&rank(b)).then(by_impact).then(a.standing.row.cause.cmp(&b.standing.row.cause))
        });
        let group = |incident: &Incident<'_>| (incident.ended.is_some(), incident.standing.row.severity);
        let of_all = incidents.iter().position(|incident| incident.standing.row.cause == ALL_FUNCTIONS);
        if let Some(of_all) = of_all
            && let Some(first) = incidents.iter().position(|other| group(other) == group(&incidents[of_all]))
        {
            let together = incidents.remove(of_all);
            incidents.insert((first + 1).min(of_all), together);
        }
        incidents
    }

    /// What it was last compared with while both builds ran, otherwise history.
    pub(crate) fn base_kind(&self) -> BaseKind {
        let concurrent = self.first_key(BaseKind::Concurrent);
        concurrent.map_or(BaseKind::History, |_| BaseKind::Concurrent)
    }

    /// The verdict over all types of profile, in a word: the first that holds of regressed, improved, inconclusive and no change.
    pub(crate) fn verdict(&self) -> Verdict {
        let base = self.base_kind();
        let verdicts = self.keys.iter().filter_map(|key| self.over_all(key, base)).map(|filed| filed.row.verdict);
        let verdicts: Vec<ComparisonVerdict> = verdicts.collect();
        let order = [
            ComparisonVerdict::Regressed,
            ComparisonVerdict::Improved,
            ComparisonVerdict::Inconclusive,
            ComparisonVerdict::Clean,
        ];
        let first = order.into_iter().find(|verdict| verdicts.contains(verdict));
        verdicts::of_cell(first.unwrap_or(ComparisonVerdict::NotComparable))
    }

    /// The flags of an incident as they stand, or as they stood when it ended.
    pub(crate) fn flags_of(&self, incident: &Incident<'_>) -> Vec<&'a Filed<FlagRow>> {
        let end = incident.ended.map(|filed| filed.row.sequence);
        let of_cause = self.records.flags.iter().filter(|filed| {
            let row = &filed.row.row;
            row.function == incident.standing.row.cause && Subject::of_key(&row.comparison) == *self.subject
        });
        let mut by_id: BTreeMap<&str, &Filed<FlagRow>> = BTreeMap::new();
        let mut cleared: BTreeSet<&str> = BTreeSet::new();
        for filed in of_cause {
            let flag = &filed.row;
            if end.is_some_and(|end| flag.sequence > end) {
                continue;
            }
            if flag.state == FlagState::Cleared {
                if end != Some(flag.sequence) {
                    cleared.insert(&flag.flag_id);
                }
                continue;
            }
            let last = by_id.entry(&flag.flag_id).or_insert(filed);
            if flag.sequence > last.row.sequence {
                *last = filed;
            }
        }
        by_id.retain(|id, _| !cleared.contains(id));
        by_id.into_values().collect()
    }
}

impl<'a> Incident<'a> {
    fn of(mut rows: Vec<&'a Filed<IncidentRow>>) -> Option<Self> {
        rows.sort_by_key(|filed| filed.row.sequence);
        let is_open =
            |filed: &&&Filed<IncidentRow>| matches!(filed.row.state, IncidentState::Raised | IncidentState::Updated);
        let last = *rows.last()?;
        let standing = rows.iter().rfind(is_open).copied().unwrap_or(last);
        Some(Self { raised: rows[0], standing, ended: (!is_open(&&last)).then_some(last) })
    }

    /// The size of the change of its share, or of its cost per request.
    pub(crate) fn impact(&self) -> f64 {
        let row = &self.standing.row;
        let per_request = row.effect.map_or(0.0, |effect| (effect.value - 1.0).abs());
        row.share_delta.map_or(per_request, |delta| delta.value.abs())
    }
}
