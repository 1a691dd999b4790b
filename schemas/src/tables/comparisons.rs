//! The columns of `comparisons`: one comparison in one cell, or over all cells, at each evaluation.

use super::cells::{blank_cell, blank_comparison};
use super::{Column, Columns, TableRow, columns_of};
use crate::profile::CountKind;
use crate::rows::ComparisonRow;
use crate::time::Nanos;
use crate::verdict::{Baseline, ComparisonVerdict};

impl TableRow for ComparisonRow {
    const TABLE: &'static str = "comparisons";
    const SORTED_BY: &'static [&'static str] = &[
        "service",
        "profile_type",
        "measure",
        "count_kind",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "window_end_at",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<ComparisonRow> = Columns::new(|| {
            columns_of!(ComparisonRow:
                "service": comparison.service,
                "profile_type": comparison.profile_type,
                "measure": comparison.measure,
                "count_kind": count_kind,
                "base_build": comparison.base_build,
                "head_build": comparison.head_build,
                "region": cell.region,
                "cohort": cell.cohort,
                "window_start_at": window_start_at,
                "window_end_at": window_end_at,
                "head_total": head_total,
                "base_total": base_total,
                "head_pods": head_pods,
                "base_pods": base_pods,
                "functions_tested": functions_tested,
                "scale": scale,
                "tau2": tau2,
                "d0": d0,
                "s02": s02,
                "flags": flags,
                "time_blocks": time_blocks,
                "strata_dropped": strata_dropped,
                "equivalent_share": equivalent_share,
                "verdict": verdict,
                "sentence": sentence,
                "self_check_tests": self_check_tests,
                "self_check_flags": self_check_flags,
                "warnings": warnings,
                "baseline": baseline,
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            comparison: blank_comparison(),
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            head_total: 0,
            base_total: 0,
            head_pods: 0,
            base_pods: 0,
            functions_tested: 0,
            scale: None,
            tau2: None,
            d0: None,
            s02: None,
            flags: 0,
            time_blocks: 0,
            strata_dropped: 0,
            equivalent_share: None,
            verdict: ComparisonVerdict::NotComparable,
            sentence: String::new(),
            self_check_tests: None,
            self_check_flags: None,
            warnings: Vec::new(),
            baseline: Baseline::Concurrent,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}
