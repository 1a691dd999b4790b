//! The columns of `cells`: one function in one cell of one comparison, at each report.

use super::{Column, Columns, Holds, TableRow, columns_of};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::rows::{CellKey, CellRow, ComparisonKey};
use crate::time::Nanos;
use crate::verdict::Scope;

/// The columns of a cell's row, or of a row that holds one.
pub(super) fn columns_of_cell<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    let mut columns = columns_of!(CellRow:
        "scope": scope,
        "service": comparison.service,
        "profile_type": comparison.profile_type,
        "measure": comparison.measure,
        "count_kind": count_kind,
        "base_build": comparison.base_build,
        "head_build": comparison.head_build,
        "region": cell.region,
        "cohort": cell.cohort,
        "function": function,
        "functions": functions,
        "window_start_at": window_start_at,
        "window_end_at": window_end_at,
        "head_count": head.count,
        "head_total": head.total,
        "head_share": head.share,
        "head_pods": head.pods,
        "head_buckets": head.buckets,
        "head_requests": head.requests,
        "base_count": base.count,
        "base_total": base.total,
        "base_share": base.share,
        "base_pods": base.pods,
        "base_buckets": base.buckets,
        "base_requests": base.requests,
    );
    columns.extend(columns_of!(CellRow:
        "share_delta" +-: share_delta,
        "strata": strata,
        "g": g,
        "ln_p_iid": ln_p_iid,
        "dispersion": dispersion,
        "df": df,
        "f": f,
        "ln_p": ln_p,
        "ln_p_delta": ln_p_delta,
        "q_value": q_value,
        "ratio" +-: ratio,
        "adjusted_ratio" +-: adjusted_ratio,
        "adjusted_ln_p": adjusted_ln_p,
        "per_request_ratio" +-: per_request_ratio,
        "per_request_ln_p": per_request_ln_p,
        "per_request_q_value": per_request_q_value,
        "ln_e": ln_e,
        "always_valid_ln_p": always_valid_ln_p,
        "always_valid_ratio" +-: always_valid_ratio,
        "rare_ln_p": rare_ln_p,
        "outlier_ln_p": outlier_ln_p,
        "outlier_q_value": outlier_q_value,
        "outlying_pods": outlying_pods,
        "minimum_detectable_ratio": minimum_detectable_ratio,
        "seconds_to_significance": seconds_to_significance,
        "pods_needed": pods_needed,
        "samples_needed_iid": samples_needed_iid,
        "verdict": verdict,
        "support": support,
        "reason": reason,
        "cause": cause,
        "detail": detail,
    ));
    columns
}

impl TableRow for CellRow {
    const TABLE: &'static str = "cells";
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
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<CellRow> = Columns::new(columns_of_cell);
        &COLUMNS
    }

    fn blank() -> Self {
        Self::untested(Scope::Window, blank_comparison(), CountKind::SelfCount, blank_cell(), String::new())
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// A comparison to write columns into.
pub(super) fn blank_comparison() -> ComparisonKey {
    ComparisonKey {
        service: "".into(),
        profile_type: ProfileType::Cpu,
        measure: Measure::Samples,
        base_build: "".into(),
        head_build: "".into(),
    }
}

/// A cell to write columns into.
pub(super) fn blank_cell() -> CellKey {
    CellKey { region: "".into(), cohort: "".into() }
}
