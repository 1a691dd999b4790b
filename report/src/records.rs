//! What a report needs of an output folder: rows with the files that they lie in.
//!
//! A long run has far more rows than a report shows, so files come one by one, by time, and only what may be shown is kept:
//! the last look and the last report of each comparison, the earlier reports of functions that caused an incident, sums of the
//! ledger. Incidents come first, since they say which functions these are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{
    CellKey, CellRow, ComparisonKey, ComparisonRow, EvidenceRow, FlagRow, HeapRow, IncidentRow, LedgerRow,
    LoadCurveRow, RejectedRow, RingRow, ScalingRow, StackRow, WaitingRow,
};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{BaseKind, Scope};

use crate::subject::Subject;

mod last_report;

pub(crate) use last_report::LastReport;

/// A row with the file that it lies in.
#[derive(Clone, Debug, PartialEq)]
pub struct Filed<R> {
    /// The file, below the output folder.
    pub file: Arc<str>,
    /// The row.
    pub row: R,
}

/// Rows of a file, each with its path.
fn filed<R>(file: &str, rows: Vec<R>) -> impl Iterator<Item = Filed<R>> {
    let file: Arc<str> = file.into();
    rows.into_iter().map(move |row| Filed { file: Arc::clone(&file), row })
}

/// What is kept of an output folder.
#[derive(Debug, Default)]
pub struct Records {
    pub(crate) incidents: Vec<Filed<IncidentRow>>,
    pub(crate) flags: Vec<Filed<FlagRow>>,
    /// The last row of each comparison, kind, cell and kind of base.
    pub(crate) verdicts: BTreeMap<(ComparisonKey, CountKind, BaseKind, CellKey), Filed<ComparisonRow>>,
    /// Rows over all cells that have an A/A check.
    pub(crate) checked: Vec<Filed<ComparisonRow>>,
    pub(crate) looks: BTreeMap<(ComparisonKey, BaseKind), Looks>,
    /// Rows of the last report in each scope, and all reports of the epoch of what caused an incident.
    pub(crate) cells: Vec<Filed<CellRow>>,
    last_report: BTreeMap<(ComparisonKey, Scope), Nanos>,
    pub(crate) evidence: Vec<Filed<EvidenceRow>>,
    /// How costs follow load, by what is compared and type of profile: functions that scale worse, and one row for each cell whose
    /// load says nothing.
    pub(crate) load: BTreeMap<(Subject, ProfileType), LastReport<ScalingRow>>,
    /// What functions cost from ring to ring, by service and type of profile.
    pub(crate) rings: BTreeMap<(Service, ProfileType), LastReport<RingRow>>,
    /// What became of memory, by what is compared.
    pub(crate) memory: BTreeMap<Subject, LastReport<HeapRow>>,
    /// What requests waited for, by what is compared.
    pub(crate) waiting: BTreeMap<Subject, LastReport<WaitingRow>>,
    /// Minutes of functions that cost more under load, by what is compared and type of profile.
    pub(crate) load_curves: BTreeMap<(Subject, ProfileType), LastReport<LoadCurveRow>>,
    /// The stacks of the cell that changed most, by what is compared and type of profile.
    pub(crate) stacks: BTreeMap<(Subject, ProfileType), LastReport<StackRow>>,
    /// Sums by type of profile.
    pub(crate) ledger: BTreeMap<String, LedgerRow>,
    pub(crate) rejected: BTreeMap<Reason, Rejections>,
    causes: BTreeSet<(Subject, String)>,
}

/// The looks at one comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    pub(crate) number: i64,
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
}

/// What was rejected for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejections {
    pub(crate) records: i64,
    /// The first, as an example.
    pub(crate) example: String,
}

impl Records {
    /// Takes a file of `incidents`.
    pub fn take_incidents(&mut self, file: &str, rows: Vec<IncidentRow>) {
        self.causes.extend(rows.iter().map(|row| (Subject::of_incident(row), row.cause.clone())));
        self.incidents.extend(filed(file, rows));
    }

    /// Takes a file of `flags`.
    pub fn take_flags(&mut self, file: &str, rows: Vec<FlagRow>) {
        self.flags.extend(filed(file, rows));
    }

    /// Takes a file of `comparisons`.
    pub fn take_comparisons(&mut self, file: &str, rows: Vec<ComparisonRow>) {
        for filed in filed(file, rows) {
            let row = &filed.row;
            let is_over_all = row.cell.is_over_all();
            if is_over_all {
                let looks = self.looks.entry((row.comparison.clone(), row.base_kind)).or_default();
                looks.take(row.window_end_at);
            }
            if is_over_all && row.aa_check_tests.is_some() {
                self.checked.push(filed.clone());
            }
            let key = (row.comparison.clone(), row.count_kind, row.base_kind, row.cell.clone());
            let later = self.verdicts.get(&key).is_none_or(|old| old.row.window_end_at <= row.window_end_at);
            if later {
                self.verdicts.insert(key, filed);
            }
        }
    }

    /// Takes a file of `cells`, after all of `incidents`.
    pub fn take_cells(&mut self, file: &str, rows: Vec<CellRow>) {
        for row in &rows {
            let last = self.last_report.entry((row.comparison.clone(), row.scope)).or_insert(row.window_end_at);
            *last = row.window_end_at.max(*last);
        }
        self.cells.extend(filed(file, rows));
        let (causes, last_report) = (&self.causes, &self.last_report);
        self.cells.retain(|Filed { row, .. }| {
            let is_last = last_report.get(&(row.comparison.clone(), row.scope)) == Some(&row.window_end_at);
            let is_cause = || {
                row.scope == Scope::Epoch && causes.contains(&(Subject::of_key(&row.comparison), row.function.clone()))
            };
            !row.is_roll_up && (is_last || is_cause())
        });
    }

    /// Takes a file of `evidence`, after all of `cells`.
    pub fn take_evidence(&mut self, file: &str, rows: Vec<EvidenceRow>) {
        let wanted = rows.into_iter().filter(|row| {
            let last = self.last_report.get(&(row.comparison.clone(), row.scope));
            row.scope == Scope::Epoch
                && !row.is_roll_up
                && last == Some(&row.window_end_at)
                && self.causes.contains(&(Subject::of_key(&row.comparison), row.function.to_string()))
        });
        let wanted: Vec<EvidenceRow> = wanted.collect();
        self.evidence.extend(filed(file, wanted));
    }

    /// Takes a file of `scaling`.
    pub fn take_scaling(&mut self, file: &str, rows: Vec<ScalingRow>) {
        for filed in filed(file, rows) {
            let row = &filed.row;
            let Some(base) = row.base_build.clone() else { continue };
            let subject = Subject { service: row.service.clone(), head: row.build.clone(), base };
            self.load.entry((subject, row.profile_type)).or_default().take(filed);
        }
    }

    /// Takes a file of `rings`.
    pub fn take_rings(&mut self, file: &str, rows: Vec<RingRow>) {
        for filed in filed(file, rows) {
            let service = filed.row.service.clone();
            self.rings.entry((service, filed.row.profile_type)).or_default().take(filed);
        }
    }

    /// Takes a file of `heap`.
    pub fn take_heap(&mut self, file: &str, rows: Vec<HeapRow>) {
        for filed in filed(file, rows) {
            let HeapRow { service, head_build, base_build, .. } = &filed.row;
            let subject = Subject { service: service.clone(), head: head_build.clone(), base: base_build.clone() };
            self.memory.entry(subject).or_default().take(filed);
        }
    }

    /// Takes a file of `waiting`.
    pub fn take_waiting(&mut self, file: &str, rows: Vec<WaitingRow>) {
        for filed in filed(file, rows) {
            let WaitingRow { service, head_build, base_build, .. } = &filed.row;
            let subject = Subject { service: service.clone(), head: head_build.clone(), base: base_build.clone() };
            self.waiting.entry(subject).or_default().take(filed);
        }
    }

    /// Takes a file of `load_curves`.
    pub fn take_load_curves(&mut self, file: &str, rows: Vec<LoadCurveRow>) {
        for filed in filed(file, rows) {
            let key = (Subject::of_key(&filed.row.comparison), filed.row.comparison.profile_type);
            self.load_curves.entry(key).or_default().take(filed);
        }
    }

    /// Takes a file of `stacks`.
    pub fn take_stacks(&mut self, file: &str, rows: Vec<StackRow>) {
        for filed in filed(file, rows) {
            let key = (Subject::of_key(&filed.row.comparison), filed.row.comparison.profile_type);
            self.stacks.entry(key).or_default().take(filed);
        }
    }

    /// Takes rows of `ledger`.
    pub fn take_ledger(&mut self, rows: &[LedgerRow]) {
        for row in rows {
            add(self.ledger.entry(row.profile_type.clone()).or_default(), row);
        }
    }

    /// Takes rows of `rejected`.
    pub fn take_rejected(&mut self, rows: &[RejectedRow]) {
        for row in rows {
            let first = || Rejections { records: 0, example: row.rejection.detail.clone() };
            self.rejected.entry(row.rejection.reason).or_insert_with(first).records += 1;
        }
    }

    /// Everything that was compared.
    pub fn subjects(&self) -> BTreeSet<Subject> {
        let compared = self.looks.keys().map(|(key, _)| Subject::of_key(key));
        compared.chain(self.incidents.iter().map(|filed| Subject::of_incident(&filed.row))).collect()
    }

    /// When the last report of a comparison was, in one scope.
    pub(crate) fn last_report(&self, key: &ComparisonKey, scope: Scope) -> Option<Nanos> {
        self.last_report.get(&(key.clone(), scope)).copied()
    }
}

impl Looks {
    /// NB: rows over all cells come by kind within a file, each kind by time, so that a look is counted once only if its time
    /// was not seen yet.
    fn take(&mut self, at: Nanos) {
        if self.number == 0 {
            self.first = at;
        }
        if self.number == 0 || at > self.last {
            self.number += 1;
            self.last = at;
        }
    }
}

/// Adds the sums of a row.
fn add(sum: &mut LedgerRow, row: &LedgerRow) {
    sum.records_consumed += row.records_consumed;
    sum.records_decoded += row.records_decoded;
    sum.records_rejected += row.records_rejected;
    sum.samples_received += row.samples_received;
    sum.samples_counted += row.samples_counted;
    sum.samples_late_counted += row.samples_late_counted;
    sum.samples_warm_up += row.samples_warm_up;
    sum.samples_drain += row.samples_drain;
    sum.samples_idle += row.samples_idle;
    sum.samples_late_dropped += row.samples_late_dropped;
    sum.samples_duplicate += row.samples_duplicate;
    sum.samples_superseded += row.samples_superseded;
    sum.samples_carried_over += row.samples_carried_over;
    sum.samples_rejected += row.samples_rejected;
}
