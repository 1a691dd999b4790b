//! The columns of `rings`, one row per function, cell and ring at each report.

use super::cells::blank_cell;
use super::{Column, Columns, Holds, TableRow, columns_of};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::rows::{ArmFigures, InRings, RingRow, RingStep};
use crate::time::Nanos;

impl TableRow for RingRow {
    const TABLE: &'static str = "rings";
    const SORTED_BY: &'static [&'static str] =
        &["service", "profile_type", "measure", "count_kind", "region", "cohort", "function", "window_end_at", "ring"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<RingRow> = Columns::new(|| {
            let mut columns = columns_of_identity();
            columns.extend(columns_of_figures());
            columns.extend(columns_of_steps());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            profile_type: ProfileType::Cpu,
            measure: Measure::Samples,
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            function: "".into(),
            ring: 0,
            build: "".into(),
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            figures: ArmFigures::default(),
            previous: RingStep::default(),
            first: RingStep::default(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which function of which cell in which ring, and over what time.
fn columns_of_identity() -> Vec<Column<RingRow>> {
    columns_of!(RingRow:
        "service": service => "The service.",
        "profile_type": profile_type => "What the profiler observed.",
        "measure": measure => "What one count stands for, as in `cells`.",
        "count_kind": count_kind => "`self` or `total`, as in `cells`.",
        "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
        "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
        "function": function =>
            "Name of the function, or `(all)` for all samples of the cell together per request. A function has rows if it is \
             significant or flagged in some cell between any two rings.",
        "ring" in "1": ring =>
            "The place of the build among those that run side by side, 1 for the one that was there first; in the order in which \
             they are named where `rings` is configured.",
        "build": build => "The build of the ring.",
        "window_start_at": window_start_at => "Start of the window, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// What was counted in the ring.
fn columns_of_figures() -> Vec<Column<RingRow>> {
    columns_of!(RingRow:
        "pods" in "pods": figures.pods =>
            "Pods of the ring with samples in the cell, as the comparison with the ring before it counts them; in the first ring, as \
             the comparison of the second with it does. 0 where the ring has no samples there.",
        "buckets" in "buckets": figures.buckets => "Buckets that these pods are in: the replicates.",
        "total" in "samples": figures.total => "Their samples of all functions.",
        "count" in "samples": figures.count => "Their samples of the function.",
        "share" in "1": figures.share => "`count` / `total`, 0 to 1. Null without samples.",
        "requests" in "requests": figures.requests => "Requests that they served. Null where unknown.",
    )
}

/// The ring against earlier ones.
fn columns_of_steps() -> Vec<Column<RingRow>> {
    columns_of!(RingRow:
        "previous_build": previous.build => "The build of the ring before it. Null in the first ring, or where the two are not compared.",
        "ratio_to_previous" in "1" +-: previous.ratio =>
            "How many times as expensive the function is as in the ring before it: `adjusted_ratio` of `cells` in scope `window`, for \
             `(all)` `per_request_ratio`. Null where it is not tested, or one ring lacks the function.",
        "previous_verdict": previous.verdict =>
            "The verdict on that, as `verdict` in `cells` in scope `window`. Null where there is no such row.",
        "previous_reason": previous.reason => "Its `reason`. Null where `cells` has none, or there is no such row.",
        "first_build": first.build => "The build of the first ring. Null in the first ring, or where the two are not compared.",
        "ratio_to_first" in "1" +-: first.ratio =>
            "The same as `ratio_to_previous`, against the first ring. Null where that is.",
        "first_verdict": first.verdict => "The verdict on that. Null where there is no such row.",
        "first_reason": first.reason => "Its `reason`. Null where `cells` has none, or there is no such row.",
    )
}

/// In which builds of a roll-out a finding stands.
pub(super) fn columns_in_rings<R: Holds<InRings> + TableRow>() -> Vec<Column<R>> {
    columns_of!(InRings:
        "introduced_by": introduced_by =>
            "The build that introduced it: it shows against the build before it in the roll-out. Null where that is not \
             shown, or builds are compared by name.",
        "found_in": found_in =>
            "The builds in whose comparisons it was found, in the order of the roll-out: `head_build`, and later ones that have it too and \
             raise nothing of their own. Never null.",
    )
}
