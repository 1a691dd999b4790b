//! The columns of `heap`, one row per function and cell of a comparison at each report, and the data of a finding.

use super::cells::blank_cell;
use super::rings::columns_in_rings;
use super::{Column, Columns, Holds, TableRow, columns_of};
use crate::profile::CountKind;
use crate::rows::{HeapFindingRow, HeapRow, InRings, LevelFace};
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, HeapClass, LevelReason, Severity, Support};

impl TableRow for HeapRow {
    const TABLE: &'static str = "heap";
    const SORTED_BY: &'static [&'static str] =
        &["service", "base_build", "head_build", "count_kind", "region", "cohort", "function", "window_end_at"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<HeapRow> = Columns::new(|| {
            let mut columns = columns_of_identity();
            columns.extend(columns_of_allocation());
            columns.extend(columns_of_memory_in_use());
            columns.extend(columns_of_growth());
            columns.extend(columns_of_class());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            base_build: "".into(),
            head_build: "".into(),
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            function: "".into(),
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            alloc: LevelFace::unknown(LevelReason::NoAllocations),
            live: LevelFace::unknown(LevelReason::NoSnapshots),
            slope: LevelFace::unknown(LevelReason::NoSnapshots),
            support: Support::Untestable,
            class: HeapClass::Unknown,
            reason: None,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which function of which cell of which comparison.
fn columns_of_identity() -> Vec<Column<HeapRow>> {
    columns_of!(HeapRow:
        "service": service => "The service, within which builds are compared.",
        "base_build": base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": head_build => "The canary: the build in question.",
        "count_kind": count_kind =>
            "`self`: memory that the function itself allocated; `total`: that it did, or a function below it in the call tree. The row `(all)` has the \
             first kind that is counted.",
        "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
        "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
        "function": function =>
            "Name of the function; `(all)` for all memory of the cell. A function is listed only if one of its figures is `up` \
             or `down`.",
        "window_start_at": window_start_at => "Start of the window, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// What requests allocate.
fn columns_of_allocation() -> Vec<Column<HeapRow>> {
    columns_of!(HeapRow:
        "alloc_head" in "bytes/request": alloc.head =>
            "Bytes allocated per request in the head: the mean over buckets of pods, weighted over kinds of machine. Null where \
             `alloc_reason` names anything but `imprecise`.",
        "alloc_base" in "bytes/request": alloc.base => "The same in the base; null where `alloc_head` is.",
        "alloc_ratio" in "1" +-: alloc.change =>
            "Head over base within each kind of machine; infinite if the base has none. Null where `alloc_head` is.",
        "alloc_ln_p" in "nats": alloc.ln_p =>
            "Natural logarithm of the p-value of no change, pods being the replicates. Null where `alloc_head` is.",
        "alloc_q_value" in "1": alloc.q_value =>
            "Smallest false-discovery rate at which the change is significant, 0 to 1. The family is all functions of the cell and \
             `count_kind`; for `(all)`, all cells of the comparison. Null where `alloc_ln_p` is.",
        "alloc_tests" in "rows": alloc.tests =>
            "Tests of that family, for which `alloc_q_value` is corrected. Null where it is.",
        "alloc_direction": alloc.direction =>
            "`up` or `down` if the change is significant and larger than 5 %, `flat` if its 90 % interval lies within 5 %, \
             else `unknown`.",
        "alloc_reason": alloc.reason => "Why the direction is `unknown`; null otherwise.",
    )
}

/// What stays.
fn columns_of_memory_in_use() -> Vec<Column<HeapRow>> {
    columns_of!(HeapRow:
        "live_head" in "bytes": live.head =>
            "Bytes in use of a pod of the head: the mean of its snapshots, then over buckets of pods, weighted over kinds of \
             machine. Null where `live_reason` names anything but `imprecise`.",
        "live_base" in "bytes": live.base => "The same in the base; null where `live_head` is.",
        "live_ratio" in "1" +-: live.change =>
            "Head over base within each kind of machine; infinite if the base has none. Null where `live_head` is.",
        "live_ln_p" in "nats": live.ln_p => "As `alloc_ln_p`, of memory in use. Null where `live_head` is.",
        "live_q_value" in "1": live.q_value => "As `alloc_q_value`, of memory in use. Null where `live_ln_p` is.",
        "live_tests" in "rows": live.tests => "As `alloc_tests`, of memory in use. Null where `live_q_value` is.",
        "live_direction": live.direction => "As `alloc_direction`, of memory in use.",
        "live_reason": live.reason => "Why the direction is `unknown`; null otherwise.",
    )
}

/// Whether it grows.
fn columns_of_growth() -> Vec<Column<HeapRow>> {
    columns_of!(HeapRow:
        "slope_head" in "1/h": slope.head =>
            "By how much the natural logarithm of the bytes in use of a pod grows in an hour, in the head: least squares over its \
             snapshots (at least 3, over at least 5 minutes), then the mean over buckets of pods. Null where `slope_reason` names anything but \
             `imprecise`.",
        "slope_base" in "1/h": slope.base => "The same in the base; null where `slope_head` is.",
        "slope_difference" in "1/h" +-: slope.change => "Head less base within each kind of machine. Null where `slope_head` is.",
        "slope_ln_p" in "nats": slope.ln_p => "As `alloc_ln_p`, of the difference. Null where `slope_head` is.",
        "slope_q_value" in "1": slope.q_value => "As `alloc_q_value`, of the difference. Null where `slope_ln_p` is.",
        "slope_tests" in "rows": slope.tests => "As `alloc_tests`, of the difference. Null where `slope_q_value` is.",
        "slope_direction": slope.direction =>
            "`up` or `down` if the difference is significant and larger than .1 an hour, `flat` if its 90 % interval lies within \
             .1 an hour, else `unknown`.",
        "slope_reason": slope.reason => "Why the direction is `unknown`; null otherwise.",
    )
}

/// What follows.
fn columns_of_class() -> Vec<Column<HeapRow>> {
    columns_of!(HeapRow:
        "support": support =>
            "`firm`: each figure that is known rests on 5 buckets of pods in each arm; `tentative`: on 2 to 4 in the smaller; \
             `untestable` if no figure is known.",
        "class": class =>
            "`hidden_leak`: more in use, growing, and no more allocated; `leak`: the same with more allocated, or \
             where that is `unknown`; `retention_step`: more in use, not growing; `churn`: more allocated, as much in use; `win`: \
             less allocated, and no more in use; `unchanged`: all three are `flat`; else `unknown`. A direction that is `unknown` is never taken for `flat`.",
        "reason": reason => "Why the class is `unknown`; null otherwise.",
    )
}

impl Holds<InRings> for HeapFindingRow {
    fn part(&self) -> &InRings {
        &self.rings
    }

    fn part_mut(&mut self) -> &mut InRings {
        &mut self.rings
    }
}

impl TableRow for HeapFindingRow {
    const TABLE: &'static str = "heap_findings";
    const SORTED_BY: &'static [&'static str] = &["service", "base_build", "head_build", "sequence"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<HeapFindingRow> = Columns::new(|| {
            let mut columns = columns_of_finding();
            columns.extend(columns_of_found());
            columns.extend(columns_in_rings());
            columns.extend(columns_of_words());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            base_build: "".into(),
            head_build: "".into(),
            class: HeapClass::HiddenLeak,
            state: FlagState::Raised,
            severity: Severity::Ticket,
            raised_at: Nanos(0),
            changed_at: Nanos(0),
            sequence: Hop(0),
            leaks_in: Vec::new(),
            carried_by: Vec::new(),
            alloc_ratio: None,
            live_ratio: None,
            slope_difference: None,
            rings: InRings::default(),
            cleared_because: None,
            summary: String::new(),
            action: String::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.changed_at
    }
}

/// Which finding, and what happened to it.
fn columns_of_finding() -> Vec<Column<HeapFindingRow>> {
    columns_of!(HeapFindingRow:
        "service": service => "The service, within which builds are compared.",
        "base_build": base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": head_build => "The canary: the build in question.",
        "class": class => "`hidden_leak` or `leak`: that of the row `(all)` of the cell with the largest `live_ratio`.",
        "state": state =>
            "What happened at `changed_at`: `raised` when it was found first, `updated` when it was found in another cell or ring, \
             `cleared` when the comparison ended or a later window showed no cell to hold more or to grow.",
        "severity": severity => "Who should look: always `ticket`.",
        "raised_at": raised_at => "When it was found first, in event time.",
        "changed_at": changed_at => "End of the hop at whose close the change happened, in event time.",
        "sequence" in "hops": sequence =>
            "Number of that hop, counted from the Unix epoch; it grows from change to change.",
    )
}

/// What was found.
fn columns_of_found() -> Vec<Column<HeapFindingRow>> {
    columns_of!(HeapFindingRow:
        "leaks_in": leaks_in =>
            "Where it was found, in the fewest words, such as `Android-TV in ap-south-1 and ap-southeast-1`. Never empty.",
        "carried_by": carried_by =>
            "At most 3 functions whose memory in use is `up`, those that hold the most beyond the base first, in the cell with the \
             largest `live_ratio`. Empty if no single function is.",
        "alloc_ratio" in "1" +-: alloc_ratio => "`alloc_ratio` of the row `(all)` of that cell; null where it is not known.",
        "live_ratio" in "1" +-: live_ratio => "`live_ratio` of that row, never null.",
        "slope_difference" in "1/h" +-: slope_difference => "`slope_difference` of that row, never null.",
    )
}

/// How it ended, and what it means.
fn columns_of_words() -> Vec<Column<HeapFindingRow>> {
    columns_of!(HeapFindingRow:
        "cleared_because": cleared_because =>
            "Why it was cleared: `comparison_closed`, `no_longer_found`, or `found_in_another_ring`, whose finding goes on. Null \
             unless the state is `cleared`.",
        "summary": summary => "What was found, where and by how much, in a sentence that can be read alone.",
        "action": action => "What to do.",
    )
}
