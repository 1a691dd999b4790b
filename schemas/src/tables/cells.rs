//! The columns of `cells`: one row per function, cell, comparison and report.

use super::{Column, Columns, Holds, TableRow, columns_of};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::rows::{CellKey, CellRow, ComparisonKey};
use crate::time::Nanos;
use crate::verdict::Scope;

/// The columns of a cell's row, or of a row that contains one.
pub(super) fn columns_of_cell<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    let mut columns = columns_of_identity();
    columns.extend(columns_of_arms());
    columns.extend(columns_of_share_test());
    columns.extend(columns_of_effect());
    columns.extend(columns_of_request_cost());
    columns.extend(columns_of_looks());
    columns.extend(columns_of_pods());
    columns.extend(columns_of_power());
    columns.extend(columns_of_verdict());
    columns
}

/// Which function of which cell of which comparison, and over what time.
fn columns_of_identity<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "scope": scope =>
            "Samples that the row covers: `window` is the last 30 minutes by default, `epoch` is all since the \
             comparison opened or last rolled over (6 hours by default). Rows of `flags` are always `epoch`.",
        "service": comparison.service => "The service, within which builds are compared.",
        "profile_type": comparison.profile_type => "What the profiler observed.",
        "measure": comparison.measure =>
            "What one count stands for; follows from `profile_type`. Counts are raw samples whatever the measure, \
             never bytes or nanoseconds.",
        "count_kind": count_kind =>
            "`self`: the function is the leaf of the stack; `total`: it is anywhere on the stack, counted once. At \
             reports each kind is a family of tests of its own.",
        "base_build": comparison.base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": comparison.head_build => "The canary: the build in question.",
        "region": cell.region => "Region of the cell; `*` where the row covers all regions.",
        "cohort": cell.cohort =>
            "Cohort of the cell, a group of requests or pods; `*` where the row covers all cohorts.",
        "is_roll_up": is_roll_up =>
            "True where the row covers several cells: all of them, those of a region or those of a cohort. A cell whose \
             regions or cohorts are merged by the configuration (`cell`) is a cell, not a roll-up.",
        "provisional_until_at": provisional_until_at =>
            "Known where the arms had no pods of the same age (young: within 10 minutes of their process start by \
             default), so that the difference may be that of a warm-up: when the first young pods are no longer young. A \
             provisional flag is confirmed or cleared once pods of the same age run in both arms. Null in all other \
             rows.",
        "function": function =>
            "Name of the function. `_rare` stands for all functions with fewer samples than `min_count` (30 by \
             default), `_unsymbolised` for frames without a symbol, `_overflow` for those above the limit of the service, `(all)` for all samples of the cell together.",
        "functions" in "functions": functions => "How many functions a `_rare` row stands for; null in all other rows.",
        "window_start_at": window_start_at => "Start of the window or epoch, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// Counts of both arms.
fn columns_of_arms<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "head_count" in "samples": head.count =>
            "Samples of the function in the head, over the strata that both arms share; over all strata if they share \
             none.",
        "head_total" in "samples": head.total => "All samples of the head in the cell, over the same strata.",
        "head_share" in "1": head.share =>
            "`head_count` / `head_total`, 0 to 1; above 1 only in `_rare` rows of kind `total`, whose functions share \
             samples. Null where `head_total` is 0.",
        "head_pods" in "pods": head.pods =>
            "Distinct pods of the head with samples in these strata. Pods are the replicates of the tests and decide \
             `support`.",
        "head_buckets" in "buckets": head.buckets =>
            "Occupied buckets of the head, at most 64. Pods are hashed into buckets, by node where it is known, and \
             dispersion is measured between buckets.",
        "head_requests" in "requests": head.requests =>
            "Requests that the head served, over the same strata. Null where none are known.",
        "base_count" in "samples": base.count =>
            "Samples of the function in the base, over the strata that both arms share; over all strata if they share \
             none.",
        "base_total" in "samples": base.total => "All samples of the base in the cell, over the same strata.",
        "base_share" in "1": base.share =>
            "`base_count` / `base_total`, 0 to 1; above 1 only in `_rare` rows of kind `total`, whose functions share \
             samples. Null where `base_total` is 0.",
        "base_pods" in "pods": base.pods =>
            "Distinct pods of the base with samples in these strata. Pods are the replicates of the tests and decide \
             `support`.",
        "base_buckets" in "buckets": base.buckets => "Occupied buckets of the base, at most 64; see `head_buckets`.",
        "base_requests" in "requests": base.requests =>
            "Requests that the base served, over the same strata. Null where none are known.",
    )
}

/// The change of the share and the tests that decide whether it is significant.
fn columns_of_share_test<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "share_delta" in "1" +-: share_delta =>
            "`head_share` - `base_share`, -1 to 1, with a 95 % interval from the variance of both arms. Null where the \
             row was not tested.",
        "strata" in "strata": strata =>
            "Pairs of time block and hardware in which both arms have samples; only these are compared. Against \
             history, hours of the day take the place of time blocks.",
        "g" in "1": g =>
            "Log-likelihood ratio G of the 2x2 table of counts and totals, at least 0. It treats samples as \
             independent and decides nothing. Null where an arm has no samples, in rows `(all)`, and in `_rare` rows \
             whose functions count more samples than there are.",
        "ln_p_iid" in "nats": ln_p_iid =>
            "Natural logarithm of the p-value of `g`, as chi-square with one degree of freedom; at most 0. It decides \
             nothing. Null where `g` is null.",
        "head_dispersion" in "1": head_dispersion =>
            "How many times more the function varies between the head's buckets of pods than counting and \
             `head_pod_variance` explain, moderated over the functions of the cell, and never below what counting \
             alone gives; above 0. Null where the row was not tested.",
        "base_dispersion" in "1": base_dispersion =>
            "The same of the base. Null where the row was not tested.",
        "df" in "degrees of freedom": df =>
            "Degrees of freedom of the test, at least 2: Welch's of both arms, each with those between its buckets and \
             at most 20 of the prior. Null where the row was not tested.",
        "statistic" in "1": statistic =>
            "Test statistic of the change against the normalization factor, at least 0. If nothing changed it follows \
             F with 1 and `df` degrees of freedom. Null where the row was not tested.",
        "ln_p" in "nats": ln_p =>
            "Natural logarithm of the p-value of `ratio`, the change of the plain share; at most 0. It decides nothing \
             but `compositional` and `contradicts_share`. Null where the row was not tested.",
        "ln_p_min_effect" in "nats": ln_p_min_effect =>
            "Natural logarithm of the p-value against a change of at most `min_effect` (0.01 on the log scale by \
             default), after the normalization factor; at most 0. Null where the row was not tested.",
        "young_ln_p" in "nats": young_ln_p =>
            "Where young pods of the head are compared with older ones of the base, and history has young pods of the \
             base: natural logarithm of the p-value against a change of at most `min_effect` from what those showed at \
             the same age; 0 if that change has the other direction. The row must hold against it too. Null in all \
             other rows.",
        "ln_p_row" in "nats": ln_p_row =>
            "Natural logarithm of the p-value that `q_value` is made from: the largest of `adjusted_ln_p`, \
             `ln_p_min_effect` and `young_ln_p`, 0 where admissible normalization factors disagree in direction. Null \
             where the row was not tested.",
        "weight" in "1": weight =>
            "Weight of the function among all functions of the comparison, from its share of cost; 1 on average, the \
             largest at most 6.4 times the smallest. Null where `q_value` is null.",
        "function_ln_p" in "nats": function_ln_p =>
            "Natural logarithm of the p-value that the function changed in no cell: of Simes' test over its cells and \
             the row over all of them; at most 0. Functions are selected by it, divided by `weight`. Null where \
             `q_value` is null.",
        "q_value" in "1": q_value =>
            "Smallest false-discovery rate at which the row is significant, 0 to 1, over all functions and cells of \
             one comparison, count kind and scope: functions by `function_ln_p` and `weight`, then cells within a \
             function by `ln_p_row`. In scope `window` it decides `verdict`: significant if `q_value` <= q (0.05 by \
             default). Null where the row was not tested, and in `flags`.",
    )
}

/// How large the change is.
fn columns_of_effect<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "ratio" in "1" +-: ratio =>
            "Share of the function in the head divided by its share in the base, combined over strata; above 0. Null \
             where the row was not tested or an arm lacks the function.",
        "adjusted_ratio" in "1" +-: adjusted_ratio =>
            "`ratio` divided by the normalization factor of the cell: the effect to read, above 1 is more expensive. \
             With fewer than 20 tested functions there is no such factor, and it is `per_request_ratio` where requests are \
             known. Null where `ratio` is null.",
        "adjusted_ln_p" in "nats": adjusted_ln_p =>
            "Natural logarithm of the p-value of `adjusted_ratio` being 1, the largest over all admissible \
             normalization factors; at most 0. `ln_e` is made from it, or from `young_ln_p` if that gives less. Null \
             where the row was not tested.",
    )
}

/// What a request costs.
fn columns_of_request_cost<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "per_request_ratio" in "1" +-: per_request_ratio =>
            "Samples per request in the head divided by those in the base; above 0. Null where requests are not known \
             for both arms, for fewer than 30 samples, where an arm lacks the function, against history, and, where at least \
             20 functions are tested, in rows over several cells and in `flags`, unless the row is `(all)` or its plain \
             share moved the other way.",
        "per_request_ln_p" in "nats": per_request_ln_p =>
            "Natural logarithm of the p-value of the cost per request, against its own dispersion between pods; at \
             most 0. Null where `per_request_ratio` is null, except where an arm lacks the function.",
        "per_request_q_value" in "1": per_request_q_value =>
            "Smallest false-discovery rate at which the cost per request is significant, 0 to 1; rows `(all)` are one \
             family, functions another. It decides `verdict` in rows `(all)` of scope `window` alone. Null where \
             `per_request_ln_p` is null, and in `flags`.",
    )
}

/// The always-valid figures, which hold at every look.
fn columns_of_looks<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "ln_e" in "nats": ln_e =>
            "Natural logarithm of the e-value of the row now, negative or positive: evidence that stays valid however \
             often one looks; in rows `(all)` of the cost per request. In scope `epoch` the live rule decides by it. \
             Null where the row was not tested.",
        "always_valid_ln_p" in "nats": always_valid_ln_p =>
            "Natural logarithm of a p-value that holds however often one looks: minus the largest `ln_e` of the row at \
             the looks of the epoch, where that is at least ln(.158/q) (in rows `(all)`: at least 0), else 0. Null in \
             scope `window`, in rows over several cells, and where the row was not tested.",
        "always_valid_ratio" in "1" +-: always_valid_ratio =>
            "`adjusted_ratio` with an interval that holds however often one looks, from 0 to infinity where little is \
             known. Null where `adjusted_ratio` or `always_valid_ln_p` is null.",
    )
}

/// What the test of single pods says.
fn columns_of_pods<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "rare_ln_p" in "nats": rare_ln_p =>
            "For a function below `min_count` samples whose family of tests finds it significant: natural logarithm of \
             the larger p-value of two tests, of its counts and of the pods that show it; at most 0. Null in all other \
             rows. Such rows have `reason` `rare` and raise no flag.",
        "outlier_ln_p" in "nats": outlier_ln_p =>
            "Natural logarithm of the p-value that some pods of the head differ from the pods of the base; at most 0. \
             Null in scope `epoch`, without `firm` support, for fewer than 30 samples, in rows over several cells, and \
             against history.",
        "outlier_q_value" in "1": outlier_q_value =>
            "Smallest false-discovery rate at which some pods are outlying, 0 to 1; a family of its own. It decides \
             the verdict `some_pods_outlying` where the row itself is not significant. Null where `outlier_ln_p` is \
             null.",
        "outlying_pods": outlying_pods =>
            "Names of the outlying pods of the head, or with `reason` `one_pod` of those of either arm without which \
             the row does not hold; ascending. Empty unless `verdict` is `some_pods_outlying`; never null.",
    )
}

/// What could have been detected.
fn columns_of_power<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "minimum_detectable_ratio" in "1": minimum_detectable_ratio =>
            "Smallest ratio above 1 that these pods and samples show with probability 0.8 in a test at level 0.0001. \
             Null where the row was not tested, and against history.",
        "seconds_to_significance" in "s": seconds_to_significance =>
            "Seconds of samples, at the rate seen, until a ratio of 1.05 shows with probability 0.8 in a test at level \
             0.0001. Infinite where pods differ so much that no time is enough. Null where the row was not tested, and \
             against history.",
        "pods_needed" in "pods": pods_needed =>
            "Where `seconds_to_significance` is infinite: the fewest further pods of the head with which a ratio of \
             1.05 shows within one window. Null elsewhere, and where a million pods are too few.",
        "samples_needed_iid" in "samples": samples_needed_iid =>
            "1 / (share x 0.05^2): samples of an arm from which a change of 5 % would show if samples were \
             independent. Not calibrated, for comparison only. Null where the row was not tested, and against \
             history.",
    )
}

/// The verdict that follows.
fn columns_of_verdict<R: Holds<CellRow> + TableRow>() -> Vec<Column<R>> {
    columns_of!(CellRow:
        "verdict": verdict =>
            "The first line of the verdict table that holds. `regressed` and `improved` mean significant: by `q_value` \
             in scope `window` (rows `(all)`: by `per_request_q_value`), by the live rule in scope `epoch`. \
             `equivalent` means that the 90 % interval of the change lies within 5 % with `firm` support. `moved` means \
             that in the other build another function has this cost: it was moved, renamed or inlined, and together they \
             did not change.",
        "support": support =>
            "What the number of pods can carry: `firm` from 5 pods in each arm, `tentative` with 2 to 4 in the smaller \
             arm. With fewer, or fewer than 2 degrees of freedom, the row is `untestable`: it shows figures and tests \
             nothing.",
        "reason": reason =>
            "Why the row has its verdict; of an inconclusive row what it needs: `needs_time`, `needs_pods` or, at less \
             than one sample per pod and second, `low_load`. Null where the verdict says all.",
        "cause": cause =>
            "The function whose change moved this row: for `compositional` rows, and for a caller that moves because a \
             function that it calls does; for `moved` rows the function that has its cost in the other build. Null where \
             none is known.",
        "detail": detail =>
            "More in words: where each arm ran if they share no stratum, which history is the base, or between which \
             functions work moved. Null where there is no more to say.",
    )
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
