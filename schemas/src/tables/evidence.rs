//! The columns of `evidence`: the counts from which a row of `cells` that is significant or flagged can be recomputed.

use super::cells::{blank_cell, blank_comparison};
use super::{Column, Columns, TableRow, columns_of};
use crate::comparison::Side;
use crate::profile::CountKind;
use crate::rows::{EvidenceRow, SharedFigures};
use crate::time::Nanos;
use crate::verdict::Scope;

impl TableRow for EvidenceRow {
    const TABLE: &'static str = "evidence";
    const SORTED_BY: &'static [&'static str] = &[
        "scope",
        "service",
        "profile_type",
        "measure",
        "count_kind",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "function",
        "window_end_at",
        "stratum",
        "arm",
        "bucket",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<EvidenceRow> = Columns::new(|| {
            let mut columns = columns_of_row();
            columns.extend(columns_of_bucket());
            columns.extend(columns_of_shared_figures());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            scope: Scope::Window,
            comparison: blank_comparison(),
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            is_roll_up: false,
            function: "".into(),
            window_end_at: Nanos(0),
            stratum: 0,
            arm: Side::Head,
            bucket: 0,
            pods: 0,
            samples: 0,
            requests: 0,
            count: 0,
            pairs: 0,
            concentration: 0.0,
            shared: SharedFigures::default(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which row of `cells`.
fn columns_of_row() -> Vec<Column<EvidenceRow>> {
    columns_of!(EvidenceRow:
        "scope": scope => "As in the row of `cells` that this is evidence for.",
        "service": comparison.service => "As in `cells`.",
        "profile_type": comparison.profile_type => "As in `cells`.",
        "measure": comparison.measure => "As in `cells`.",
        "count_kind": count_kind => "As in `cells`.",
        "base_build": comparison.base_build => "As in `cells`.",
        "head_build": comparison.head_build => "As in `cells`.",
        "region": cell.region => "As in `cells`.",
        "cohort": cell.cohort => "As in `cells`.",
        "is_roll_up": is_roll_up => "As in `cells`.",
        "function": function => "As in `cells`.",
        "window_end_at": window_end_at => "As in `cells`. Files are filed by it.",
    )
}

/// What the bucket shows.
fn columns_of_bucket() -> Vec<Column<EvidenceRow>> {
    columns_of!(EvidenceRow:
        "stratum" in "1": stratum =>
            "Number of the stratum within the row, from 0: ascending by time block (against history: hour of the day), \
             hardware and age of pods; in roll-ups by cell first. Only strata that both arms share are there.",
        "arm": arm => "The arm to which the bucket's pods belong.",
        "bucket" in "1": bucket =>
            "Number of the bucket of pods, 0 to 63; the same pods have the same number in every stratum.",
        "pods" in "pods": pods => "Distinct pods of the arm in the bucket, over all strata of the row, at least 1.",
        "samples" in "samples": samples => "All samples of the bucket in the stratum, at least 1.",
        "requests" in "requests": requests => "Requests that the bucket served in the stratum; 0 where none are known.",
        "count" in "samples": count => "Part of `samples` that is of the function; in rows `(all)` the same as `samples`.",
        "pairs" in "samples": pairs =>
            "Sum over the profiles of the bucket of x (x - 1), x the samples of the function in a profile; 0 in rows \
             `(all)`, which do not use it.",
        "concentration" in "1": concentration =>
            "Sum over the profiles of the bucket of the square of their samples, over the square of `samples`: 1 if all \
             came in one profile, 1/60 if evenly in sixty.",
    )
}

/// What the test of the function takes from the other functions of the cell.
fn columns_of_shared_figures() -> Vec<Column<EvidenceRow>> {
    columns_of!(EvidenceRow:
        "pod_variance" in "1": shared.pod_variance =>
            "Variance between the pods of the arm of the logarithm of a share, from the functions of the cell with most \
             samples; the same in all rows of an arm.",
        "prior_df" in "1": shared.prior_df =>
            "Degrees of freedom, 0 to 20, that the other functions of the cell are worth in the function's dispersion; 0 \
             with few functions and in rows `(all)`. The same in all rows of an arm.",
        "prior_dispersion" in "1": shared.prior_dispersion =>
            "The dispersion that the other functions let expect; above 0. The same in all rows of an arm.",
        "calm" in "1": shared.calm =>
            "The part of `prior_df` that the function earns, 0 to 1: less than 1 if it varies far more than the other \
             functions. The same in all rows of a function.",
        "normalization_factor" in "1": shared.normalization_factor =>
            "The normalization factor that decides; `adjusted_ratio` of `cells` is `ratio` divided by it. 1 in rows \
             `(all)`, and with fewer than 20 tested functions, where the cost per request decides too, if it is known.",
        "smallest_factor" in "1": shared.smallest_factor =>
            "The smallest normalization factor that is admissible: the row's p-value is the largest over all of them, \
             which is that of the smallest or of the largest. `normalization_factor` where there is only one.",
        "largest_factor" in "1": shared.largest_factor =>
            "The largest normalization factor that is admissible. `normalization_factor` where there is only one.",
    )
}
