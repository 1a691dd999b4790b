//! The columns of `load_curves`, one row per minute and arm for functions that cost more under load in a head, at each report.

use super::cells::{blank_cell, blank_comparison};
use super::{Column, Columns, TableRow, columns_of};
use crate::comparison::Side;
use crate::rows::LoadCurveRow;
use crate::time::Nanos;

impl TableRow for LoadCurveRow {
    const TABLE: &'static str = "load_curves";
    const SORTED_BY: &'static [&'static str] = &[
        "service",
        "profile_type",
        "measure",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "function",
        "window_end_at",
        "arm",
        "minute_at",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<LoadCurveRow> = Columns::new(|| {
            let mut columns = columns_of_identity();
            columns.extend(columns_of_minute());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            comparison: blank_comparison(),
            cell: blank_cell(),
            function: "".into(),
            arm: Side::Head,
            minute_at: Nanos(0),
            window_end_at: Nanos(0),
            pods: 0,
            requests: 0,
            count: 0,
            load: 0.0,
            per_request: 0.0,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which function of which arm.
fn columns_of_identity() -> Vec<Column<LoadCurveRow>> {
    columns_of!(LoadCurveRow:
        "service": comparison.service => "The service, within which builds are compared.",
        "profile_type": comparison.profile_type => "What the profiler observed.",
        "measure": comparison.measure => "What one count stands for, as in `cells`.",
        "base_build": comparison.base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": comparison.head_build => "The canary: the build in question.",
        "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
        "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
        "function": function =>
            "A function of which the head scales worse by its self samples (`scales_worse` in `scaling`), or `(all)` for all samples of a cell \
             with such a function.",
        "arm": arm => "`head` or `base`.",
        "minute_at": minute_at => "Start of the minute, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// What happened in the minute.
fn columns_of_minute() -> Vec<Column<LoadCurveRow>> {
    columns_of!(LoadCurveRow:
        "pods" in "pods": pods => "Pods of the arm that served requests in this minute.",
        "requests" in "requests": requests => "Requests that they served.",
        "count" in "samples": count => "Their self samples of the function; for `(all)` all their samples.",
        "load" in "requests": load => "The load: `requests` / `pods`.",
        "per_request" in "samples": per_request => "The cost of a request: `count` / `requests`.",
    )
}
