//! The columns of `stacks`, one row per stack of the cell of a comparison that changed most at each report.

use super::cells::{blank_cell, blank_comparison};
use super::{Column, Columns, TableRow, columns_of};
use crate::rows::StackRow;
use crate::time::Nanos;

impl TableRow for StackRow {
    const TABLE: &'static str = "stacks";
    const SORTED_BY: &'static [&'static str] = &[
        "service",
        "profile_type",
        "measure",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "window_end_at",
        "stack",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<StackRow> = Columns::new(|| {
            columns_of!(StackRow:
                "service": comparison.service => "The service, within which builds are compared.",
                "profile_type": comparison.profile_type => "What the profiler observed.",
                "measure": comparison.measure => "What one count stands for, as in `cells`.",
                "base_build": comparison.base_build =>
                    "The baseline: the build that the head is compared with, or several builds joined by commas.",
                "head_build": comparison.head_build => "The canary: the build in question.",
                "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
                "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
                "window_start_at": window_start_at => "Start of the epoch, in event time: samples since then are counted.",
                "window_end_at": window_end_at =>
                    "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
                "stack": stack =>
                    "Names of functions, root first. Stacks below a call path with less than 0.1 % of the samples of both arms are one row: \
                     the callers that they share, then `(rare stacks)`.",
                "head_samples" in "samples": head_samples =>
                    "Samples of the head whose stack is this one, over all its pods, without normalization.",
                "base_samples" in "samples": base_samples => "The same of the base.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            comparison: blank_comparison(),
            cell: blank_cell(),
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            stack: Vec::new(),
            head_samples: 0,
            base_samples: 0,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}
