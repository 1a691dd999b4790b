//! The columns of `comparisons`: one row per evaluation of a comparison in one cell, or over all cells.

use super::cells::{blank_cell, blank_comparison};
use super::{Column, Columns, TableRow, columns_of};
use crate::profile::CountKind;
use crate::rows::ComparisonRow;
use crate::time::Nanos;
use crate::verdict::{BaseKind, ComparisonVerdict};

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
            let mut columns = columns_of_identity();
            columns.extend(columns_of_tests());
            columns.extend(columns_of_verdict());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            comparison: blank_comparison(),
            count_kind: CountKind::SelfCount,
            cell: blank_cell(),
            is_roll_up: false,
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            head_total: 0,
            base_total: 0,
            head_pods: 0,
            base_pods: 0,
            functions_tested: 0,
            normalization_factor: None,
            admissible_factors: Vec::new(),
            head_pod_variance: None,
            base_pod_variance: None,
            flags: 0,
            time_blocks: 0,
            strata_dropped: 0,
            equivalent_share: None,
            verdict: ComparisonVerdict::NotComparable,
            sentence: String::new(),
            action: None,
            aa_check_tests: None,
            aa_check_flags: None,
            warnings: Vec::new(),
            base_kind: BaseKind::Concurrent,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which cell of which comparison, over what time, with how much data.
fn columns_of_identity() -> Vec<Column<ComparisonRow>> {
    columns_of!(ComparisonRow:
        "service": comparison.service => "The service, within which builds are compared.",
        "profile_type": comparison.profile_type => "What the profiler observed.",
        "measure": comparison.measure => "What one count stands for; follows from `profile_type`.",
        "count_kind": count_kind =>
            "`self`: functions are counted at the leaf of the stack; `total`: anywhere on the stack, once.",
        "base_build": comparison.base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": comparison.head_build => "The canary: the build in question.",
        "region": cell.region => "Region of the cell; `*` where the row covers all regions.",
        "cohort": cell.cohort =>
            "Cohort of the cell; `*` where the row covers all cohorts. The row with `*` in region and cohort is the \
             verdict on the whole comparison.",
        "is_roll_up": is_roll_up =>
            "True where the row covers several cells: it is the verdict on the whole comparison.",
        "window_start_at": window_start_at =>
            "Start of the epoch, in event time; against history, start of the window.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
        "head_total" in "samples": head_total =>
            "Samples of the head in the strata of the epoch that both arms share, over all strata if they share none; \
             against history, of the window. The row over several cells has their sum.",
        "base_total" in "samples": base_total =>
            "Samples of the base in the same strata. The row over several cells has their sum.",
        "head_pods" in "pods": head_pods => "Distinct pods of the head with samples in these strata.",
        "base_pods" in "pods": base_pods => "Distinct pods of the base with samples in these strata.",
    )
}

/// The quantities that the tests of the cell are based on.
fn columns_of_tests() -> Vec<Column<ComparisonRow>> {
    columns_of!(ComparisonRow:
        "functions_tested" in "functions": functions_tested =>
            "Functions tested at this look; the row over several cells has their sum.",
        "normalization_factor" in "1": normalization_factor =>
            "Common factor by which most functions of the cell moved, above 0; found on self counts, used for both \
             kinds. Shares sum to 1, so a change of one function moves all others by it. 1 with fewer than 20 tested \
             functions, where requests are known. Null where nothing was tested, and in the row over several cells.",
        "admissible_factors": admissible_factors =>
            "Where two groups of functions moved apart and the data cannot say which one stood still: every \
             normalization factor that is possible, the deciding one first, each with the part of cost that stands \
             still on it. A change is significant only if it holds against all of them. Else empty; never null.",
        "head_pod_variance" in "1": head_pod_variance =>
            "Estimated variance between the head's pods of the natural logarithm of a function's share, at least 0; \
             its root is about the coefficient of variation. Null where `normalization_factor` is null.",
        "base_pod_variance" in "1": base_pod_variance =>
            "The same of the base's pods. An arm that cannot show it takes the other's. Null where \
             `normalization_factor` is null.",
        "flags" in "flags": flags =>
            "Flags of the cell that stand: raised by the live rule and not cleared. The row over several cells has \
             their sum. 0 against history.",
        "time_blocks" in "time blocks": time_blocks =>
            "Time blocks of the epoch in which both arms have samples; in the row over several cells, all time blocks \
             of the epoch. Against history, hours of the day that are compared.",
        "strata_dropped" in "strata": strata_dropped =>
            "Strata in which one arm has no samples; the tests leave them out. The row over several cells has their \
             sum.",
        "equivalent_share" in "1": equivalent_share =>
            "Part of the base's self samples that lies in functions shown to be equivalent with `firm` support, 0 to \
             1. It decides `clean`: at least 0.7, and nothing costs more. Null where nothing can be compared, and \
             in the row over several cells.",
    )
}

/// The verdict that follows from them.
fn columns_of_verdict() -> Vec<Column<ComparisonRow>> {
    columns_of!(ComparisonRow:
        "verdict": verdict =>
            "The first that holds: `not_comparable`; `regressed` if the live rule flags a function of the cell, or all \
             functions together per request, as more expensive; `improved` if all functions together are cheaper per \
             request; `clean` by `equivalent_share`, unless the cost per request moved (p <= 0.05); else \
             `inconclusive`. Over several cells: `regressed` if any cell is, else `improved` if any is, else `clean` \
             if all are.",
        "sentence": sentence => "The verdict in words.",
        "action": action =>
            "What to do, from the incidents that stand and the verdicts of cells: where to roll back, where the head may \
             stay, and how long to wait, or how many pods to add, elsewhere. Null in rows of single cells, against \
             history, and for methods that are not calibrated.",
        "aa_check_tests" in "tests": aa_check_tests =>
            "A/A check: tests of one half of the base's pods against the other half. Null at looks without a report, \
             where a half has too few pods, and against history.",
        "aa_check_flags" in "tests": aa_check_flags =>
            "How many tests of the A/A check were significant, all of them falsely; 0 to `aa_check_tests`. Null where \
             that is null.",
        "warnings": warnings =>
            "Imbalance of the arms within the window: requests per pod that differ by more than a factor of 4/3, age \
             of pods or hardware that differ by more than 2; what divides pods and has no label, such as nodes that some share; and an age or size of \
             pods by which profiles differ: with the last two, flags of the cell are at most tickets. Set at reports, else empty; never null. Against history: its hours and days.",
        "base_kind": base_kind =>
            "`concurrent`: the base runs beside the head; `history`: what was kept of builds that are gone, at the \
             same hours of earlier days. A comparison with history raises no flag and no alert.",
    )
}
