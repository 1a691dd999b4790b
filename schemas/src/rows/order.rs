//! The order of the rows of a hop: time first, then the subject of the row.

use std::cmp::Ordering;

use super::{
    CellKey, CellRow, ComparisonKey, ComparisonRow, EvidenceRow, FlagRow, HeapFindingRow, HeapRow, IncidentRow,
    LoadCurveRow, RingRow, ScalingFindingRow, ScalingRow, StackRow, Tables, VerdictRow, WaitingRow,
};
use crate::comparison::Side;
use crate::identity::{Build, Service};
use crate::profile::{CountKind, ProfileType};
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, Scope, TimeMeasure};

impl Tables {
    /// Sorts each table by its key: time first, then the subject of the row.
    pub fn sort(&mut self) {
        self.cells.sort_by(CellRow::in_order);
        self.evidence.sort_by(|a, b| of_evidence(a).cmp(&of_evidence(b)));
        self.flags.sort_by(|a, b| of_flag(a).cmp(&of_flag(b)));
        self.comparisons.sort_by(|a, b| of_comparison(a).cmp(&of_comparison(b)));
        self.incidents.sort_by(|a, b| of_incident(a).cmp(&of_incident(b)));
        self.verdicts.sort_by(|a, b| of_verdict(a).cmp(&of_verdict(b)));
        self.scaling.sort_by(|a, b| of_scaling(a).cmp(&of_scaling(b)));
        self.load_curves.sort_by(|a, b| of_load_curve(a).cmp(&of_load_curve(b)));
        self.rings.sort_by(|a, b| of_ring(a).cmp(&of_ring(b)));
        self.scaling_findings.sort_by(|a, b| of_finding(a).cmp(&of_finding(b)));
        self.heap.sort_by(|a, b| of_heap(a).cmp(&of_heap(b)));
        self.waiting.sort_by(|a, b| of_waiting(a).cmp(&of_waiting(b)));
        self.stacks.sort_by(|a, b| of_stack(a).cmp(&of_stack(b)));
        self.heap_findings.sort_by(|a, b| of_heap_finding(a).cmp(&of_heap_finding(b)));
        self.ledger.sort_by(|a, b| (a.hop_at, &a.profile_type).cmp(&(b.hop_at, &b.profile_type)));
        self.rejected.sort();
        self.clocks.sort();
        self.limits.sort();
        self.fan_out.sort();
        self.archived.sort();
    }
}

impl CellRow {
    /// The order of rows in their table.
    #[must_use]
    pub fn in_order(&self, other: &Self) -> Ordering {
        of_cell(self).cmp(&of_cell(other))
    }
}

fn of_cell(row: &CellRow) -> (Nanos, Scope, &ComparisonKey, CountKind, &CellKey, &str) {
    (row.window_end_at, row.scope, &row.comparison, row.count_kind, &row.cell, &row.function)
}

fn of_evidence(row: &EvidenceRow) -> (Nanos, Scope, &ComparisonKey, CountKind, &CellKey, &str, (i64, Side, i64)) {
    let bucket = (row.stratum, row.arm, row.bucket);
    (row.window_end_at, row.scope, &row.comparison, row.count_kind, &row.cell, &row.function, bucket)
}

fn of_flag(row: &FlagRow) -> (Hop, &ComparisonKey, CountKind, &CellKey, &str, FlagState) {
    (row.sequence, &row.row.comparison, row.row.count_kind, &row.row.cell, &row.row.function, row.state)
}

fn of_comparison(row: &ComparisonRow) -> (Nanos, &ComparisonKey, CountKind, &CellKey) {
    (row.window_end_at, &row.comparison, row.count_kind, &row.cell)
}

fn of_incident(row: &IncidentRow) -> (Hop, &Service, &Build, &Build, &str) {
    (row.sequence, &row.service, &row.base_build, &row.head_build, &row.cause)
}

fn of_verdict(row: &VerdictRow) -> (Hop, &Service, &Build, &Build) {
    (row.sequence, &row.service, &row.base_build, &row.head_build)
}

fn of_scaling(row: &ScalingRow) -> (Nanos, &Service, ProfileType, CountKind, &Build, &Option<Build>, (&CellKey, &str)) {
    let place = (&row.cell, &*row.function);
    (row.window_end_at, &row.service, row.profile_type, row.count_kind, &row.build, &row.base_build, place)
}

fn of_load_curve(row: &LoadCurveRow) -> (Nanos, &ComparisonKey, &CellKey, &str, Side, Nanos) {
    (row.window_end_at, &row.comparison, &row.cell, &row.function, row.arm, row.minute_at)
}

fn of_ring(row: &RingRow) -> (Nanos, &Service, ProfileType, CountKind, &CellKey, &str, i64) {
    (row.window_end_at, &row.service, row.profile_type, row.count_kind, &row.cell, &row.function, row.ring)
}

fn of_finding(row: &ScalingFindingRow) -> (Hop, &Service, ProfileType, &Build, &Build, &str) {
    (row.sequence, &row.service, row.profile_type, &row.base_build, &row.head_build, &row.cause)
}

fn of_heap(row: &HeapRow) -> (Nanos, &Service, &Build, &Build, CountKind, &CellKey, &str) {
    let place = (&row.service, &row.base_build, &row.head_build);
    (row.window_end_at, place.0, place.1, place.2, row.count_kind, &row.cell, &row.function)
}

fn of_waiting(row: &WaitingRow) -> (Nanos, [&str; 3], TimeMeasure, CountKind, &CellKey, Option<&str>, &str) {
    let place = [row.service.as_str(), row.base_build.as_str(), row.head_build.as_str()];
    let (kind, cell) = (row.count_kind, &row.cell);
    (row.window_end_at, place, row.measure, kind, cell, row.thread.as_deref(), &row.function)
}

fn of_stack(row: &StackRow) -> (Nanos, &ComparisonKey, &CellKey, &[String]) {
    (row.window_end_at, &row.comparison, &row.cell, &row.stack)
}

fn of_heap_finding(row: &HeapFindingRow) -> (Hop, &Service, &Build, &Build) {
    (row.sequence, &row.service, &row.base_build, &row.head_build)
}
