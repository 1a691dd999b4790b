//! The columns of `waiting`, one row per function and cell of a comparison at each report.

use super::cells::blank_cell;
use super::{Column, Columns, TableRow, columns_of};
use crate::profile::CountKind;
use crate::rows::{LevelFace, WaitingRow};
use crate::time::Nanos;
use crate::verdict::{LevelReason, Support, TimeMeasure, TimePer};

impl TableRow for WaitingRow {
    const TABLE: &'static str = "waiting";
    const SORTED_BY: &'static [&'static str] = &[
        "service",
        "base_build",
        "head_build",
        "measure",
        "count_kind",
        "region",
        "cohort",
        "thread",
        "function",
        "window_end_at",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<WaitingRow> = Columns::new(|| {
            let mut columns = columns_of_identity();
            columns.extend(columns_of_time());
            columns.extend(columns_of_legs());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            base_build: "".into(),
            head_build: "".into(),
            measure: TimeMeasure::OffCpu,
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            function: "".into(),
            thread: None,
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            per: TimePer::Request,
            time: LevelFace::unknown(LevelReason::FewPods),
            cpu_head: None,
            cpu_base: None,
            off_cpu_head: None,
            off_cpu_base: None,
            samples_head: 0,
            samples_base: 0,
            support: Support::Untestable,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which time of which function.
fn columns_of_identity() -> Vec<Column<WaitingRow>> {
    columns_of!(WaitingRow:
        "service": service => "The service, within which builds are compared.",
        "base_build": base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": head_build => "The canary: the build in question.",
        "measure": measure =>
            "Which time: `cpu_and_off_cpu`, the sum of both for each function, over all threads; `off_cpu` or `wall`, by thread where \
             threads are known; `mutex` or `block`, the delay by contention, attributed to the holder or to the waiter.",
        "count_kind": count_kind =>
            "`self`: time of the function itself; `total`: also of those below it in the call tree. Rows `(all)` have the first kind that is counted.",
        "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
        "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
        "function": function =>
            "Name of the function; `(all)` for all time of the cell, or of the thread. A function, or a thread, is listed only if its \
             `direction` is `up` or `down`.",
        "thread": thread =>
            "Name of the thread, numbers of its pool replaced by `*`. Null for all threads together, and where threads are not known.",
        "window_start_at": window_start_at => "Start of the window, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// How much it is, and whether that changed.
fn columns_of_time() -> Vec<Column<WaitingRow>> {
    columns_of!(WaitingRow:
        "per": per =>
            "What the time is divided by: `request` where requests of both arms are known, else `profile`, which compares pods by how \
             long their profiles are.",
        "head" in "ns": time.head =>
            "Time per request, or per profile, in the head: the mean over buckets of pods, weighted over kinds of machine. Null where \
             `reason` names anything but `imprecise`.",
        "base" in "ns": time.base => "The same in the base; null where `head` is.",
        "ratio" in "1" +-: time.change =>
            "Head over base within each kind of machine; infinite if the base has none. Null where `head` is.",
        "ln_p" in "nats": time.ln_p =>
            "Natural logarithm of the p-value of no change, pods being the replicates. Null where `head` is.",
        "q_value" in "1": time.q_value =>
            "Smallest false-discovery rate at which the change is significant, 0 to 1. The family is all functions of the cell, \
             `measure` and `count_kind`; for threads, all of the cell and `measure`; for `(all)` of a cell, all cells of the `measure`. \
             Null where `ln_p` is.",
        "tests" in "rows": time.tests => "Tests of that family, for which `q_value` is corrected. Null where it is.",
        "direction": time.direction =>
            "`up` or `down` if the change is significant and larger than 5 %, `flat` if its 90 % interval lies within 5 %, \
             else `unknown`.",
        "reason": time.reason => "Why the direction is `unknown`; null otherwise.",
    )
}

/// What it is made of, and what it rests on.
fn columns_of_legs() -> Vec<Column<WaitingRow>> {
    columns_of!(WaitingRow:
        "cpu_head" in "ns": cpu_head =>
            "Part of `head` on a processor, each sample its sampling period. Null unless `measure` is `cpu_and_off_cpu` and `head` is known.",
        "cpu_base" in "ns": cpu_base => "Part of `base` on a processor; null where `cpu_head` is.",
        "off_cpu_head" in "ns": off_cpu_head => "Part of `head` off a processor; null where `cpu_head` is.",
        "off_cpu_base" in "ns": off_cpu_base => "Part of `base` off a processor; null where `cpu_head` is.",
        "samples_head" in "samples": samples_head =>
            "Samples of the head behind the row; for `mutex` and `block` the contentions.",
        "samples_base" in "samples": samples_base => "The same of the base.",
        "support": support =>
            "`firm`: 5 buckets of pods in each arm; `tentative`: 2 to 4 in the smaller; `untestable`: fewer.",
    )
}
