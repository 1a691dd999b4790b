//! Whether two results are the same: integers, keys and verdicts exactly, floats closely.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fleetdiff_schemas::rows::{ArmFigures, CellRow, ComparisonRow, FlagRow, Interval, LedgerRow, RejectedRow, Tables};

/// Largest relative difference of two floats, and largest absolute one near 0.
const CLOSE: f64 = 1e-8;
/// Below this ln p, [`CLOSE_FAR_OUT`] holds.
const FAR_OUT: f64 = -450.0;
/// Largest relative difference of two ln p far out in the tail.
const CLOSE_FAR_OUT: f64 = 1e-6;
/// How many differences are listed.
const REPORTED: usize = 12;

/// How much was compared and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Rows of `cells`.
    pub cells: usize,
    /// Rows of `cells` that were tested.
    pub tested: usize,
    /// Rows of `cells` that are regressed or improved.
    pub selected: usize,
    /// Rows of `flags`.
    pub flags: usize,
    /// Rows of `comparisons`.
    pub comparisons: usize,
    /// Rows of `ledger`.
    pub ledger: usize,
    /// Rows of `rejected`.
    pub rejected: usize,
}

/// Compares `got` with `expected`, row by row and column by column, in any order.
///
/// Sentences and details of rejections are not compared. Floats agree to 1e-8 relative, 1e-8 absolute near 0,
/// ln p below -450 to 1e-6 relative; infinities must be equal.
///
/// # Errors
/// The number of differences and the first of them in words: table, key, column, both values.
pub fn compare(expected: &Tables, got: &Tables) -> Result<Agreement, String> {
    let mut differences = Differences::default();
    differences.table("cells", &expected.cells, &got.cells, key_of_cell, cell);
    differences.table("flags", &expected.flags, &got.flags, key_of_flag, flag);
    differences.table("comparisons", &expected.comparisons, &got.comparisons, key_of_comparison, comparison);
    differences.table(
        "ledger",
        &expected.ledger,
        &got.ledger,
        |row| format!("{} {}", row.hop_at.0, row.profile_type),
        ledger,
    );
    differences.table("rejected", &expected.rejected, &got.rejected, key_of_rejected, rejected);
    if differences.count > 0 {
        return Err(format!("{} differences, the first:\n{}", differences.count, differences.reported.join("\n")));
    }
    Ok(Agreement {
        cells: expected.cells.len(),
        tested: expected.cells.iter().filter(|row| row.ln_p.is_some()).count(),
        selected: expected.cells.iter().filter(|row| row.verdict.is_significant()).count(),
        flags: expected.flags.len(),
        comparisons: expected.comparisons.len(),
        ledger: expected.ledger.len(),
        rejected: expected.rejected.len(),
    })
}

/// The differences so far.
#[derive(Default)]
struct Differences {
    count: usize,
    reported: Vec<String>,
}

/// Two rows with the same key, and where they are.
struct Pair<'a> {
    differences: &'a mut Differences,
    place: String,
}

impl Differences {
    fn tell(&mut self, difference: String) {
        self.count += 1;
        if self.reported.len() < REPORTED {
            self.reported.push(difference);
        }
    }

    fn table<R: Debug>(
        &mut self,
        name: &str,
        expected: &[R],
        got: &[R],
        key: fn(&R) -> String,
        columns: fn(&mut Pair<'_>, &R, &R),
    ) {
        let mut by_key: BTreeMap<String, (Vec<&R>, Vec<&R>)> = BTreeMap::new();
        expected.iter().for_each(|row| by_key.entry(key(row)).or_default().0.push(row));
        got.iter().for_each(|row| by_key.entry(key(row)).or_default().1.push(row));
        for (key, (expected, got)) in by_key {
            let place = format!("{name} [{key}]");
            match (&expected[..], &got[..]) {
                ([expected], [got]) => columns(&mut Pair { differences: self, place }, expected, got),
                ([expected], []) => self.tell(format!("{place}: missing; expected {expected:?}")),
                ([], [got]) => self.tell(format!("{place}: not expected; got {got:?}")),
                (expected, got) => self.tell(format!("{place}: {} rows expected, {} got", expected.len(), got.len())),
            }
        }
    }
}

impl Pair<'_> {
    fn same<T: PartialEq + Debug>(&mut self, column: &str, expected: &T, got: &T) {
        if expected != got {
            self.differences.tell(format!("{}: {column}: expected {expected:?}, got {got:?}", self.place));
        }
    }

    fn near(&mut self, column: &str, expected: Option<f64>, got: Option<f64>) {
        let agree = match (expected, got) {
            (Some(expected), Some(got)) => close(column, expected, got),
            (expected, got) => expected.is_none() && got.is_none(),
        };
        if !agree {
            self.differences.tell(format!("{}: {column}: expected {expected:?}, got {got:?}", self.place));
        }
    }

    fn interval(&mut self, column: &str, expected: Option<Interval>, got: Option<Interval>) {
        self.near(&format!("{column}.value"), expected.map(|i| i.value), got.map(|i| i.value));
        self.near(&format!("{column}.low"), expected.map(|i| i.low), got.map(|i| i.low));
        self.near(&format!("{column}.high"), expected.map(|i| i.high), got.map(|i| i.high));
    }

    fn arm(&mut self, name: &str, expected: &ArmFigures, got: &ArmFigures) {
        self.same(&format!("{name}.count"), &expected.count, &got.count);
        self.same(&format!("{name}.total"), &expected.total, &got.total);
        self.near(&format!("{name}.share"), expected.share, got.share);
        self.same(&format!("{name}.pods"), &expected.pods, &got.pods);
        self.same(&format!("{name}.buckets"), &expected.buckets, &got.buckets);
        self.same(&format!("{name}.requests"), &expected.requests, &got.requests);
    }
}

fn close(column: &str, expected: f64, got: f64) -> bool {
    if expected.is_nan() || got.is_nan() || expected.is_infinite() || got.is_infinite() {
        return expected.total_cmp(&got).is_eq();
    }
    let relative = if column.contains("ln_p") && expected < FAR_OUT { CLOSE_FAR_OUT } else { CLOSE };
    (expected - got).abs() <= (relative * expected.abs().max(got.abs())).max(CLOSE)
}

fn key_of_cell(row: &CellRow) -> String {
    let key = &row.comparison;
    format!(
        "{} {} {} {} {}..{} {}/{} {} {}",
        row.window_end_at.0,
        row.scope,
        key.service,
        key.profile_type.name(),
        key.base_build,
        key.head_build,
        row.cell.region,
        row.cell.cohort,
        row.count_kind.name(),
        row.function
    )
}

fn key_of_flag(row: &FlagRow) -> String {
    format!("hop {} {} {}", row.sequence.0, row.state, key_of_cell(&row.row))
}

fn key_of_comparison(row: &ComparisonRow) -> String {
    let key = &row.comparison;
    format!(
        "{} {} {} {}..{} {}/{} {}",
        row.window_end_at.0,
        key.service,
        key.profile_type.name(),
        key.base_build,
        key.head_build,
        row.cell.region,
        row.cell.cohort,
        row.count_kind.name()
    )
}

fn key_of_rejected(row: &RejectedRow) -> String {
    let position = &row.position;
    let file = position.file.as_deref().unwrap_or_default();
    format!("{} partition {} offset {} {file} part {}", position.source, position.partition, position.offset, row.part)
}

fn cell(pair: &mut Pair<'_>, expected: &CellRow, got: &CellRow) {
    pair.same("measure", &expected.comparison.measure, &got.comparison.measure);
    pair.same("functions", &expected.functions, &got.functions);
    pair.same("window_start_at", &expected.window_start_at, &got.window_start_at);
    pair.arm("head", &expected.head, &got.head);
    pair.arm("base", &expected.base, &got.base);
    pair.interval("share_delta", expected.share_delta, got.share_delta);
    pair.same("strata", &expected.strata, &got.strata);
    pair.near("g", expected.g, got.g);
    pair.near("ln_p_iid", expected.ln_p_iid, got.ln_p_iid);
    pair.near("dispersion", expected.dispersion, got.dispersion);
    pair.near("df", expected.df, got.df);
    pair.near("statistic", expected.statistic, got.statistic);
    pair.near("ln_p", expected.ln_p, got.ln_p);
    pair.near("ln_p_min_effect", expected.ln_p_min_effect, got.ln_p_min_effect);
    pair.near("q_value", expected.q_value, got.q_value);
    pair.interval("ratio", expected.ratio, got.ratio);
    pair.interval("adjusted_ratio", expected.adjusted_ratio, got.adjusted_ratio);
    pair.near("adjusted_ln_p", expected.adjusted_ln_p, got.adjusted_ln_p);
    pair.interval("per_request_ratio", expected.per_request_ratio, got.per_request_ratio);
    pair.near("per_request_ln_p", expected.per_request_ln_p, got.per_request_ln_p);
    pair.near("per_request_q_value", expected.per_request_q_value, got.per_request_q_value);
    pair.near("ln_e", expected.ln_e, got.ln_e);
    pair.near("always_valid_ln_p", expected.always_valid_ln_p, got.always_valid_ln_p);
    pair.interval("always_valid_ratio", expected.always_valid_ratio, got.always_valid_ratio);
    pair.near("rare_ln_p", expected.rare_ln_p, got.rare_ln_p);
    pair.near("outlier_ln_p", expected.outlier_ln_p, got.outlier_ln_p);
    pair.near("outlier_q_value", expected.outlier_q_value, got.outlier_q_value);
    pair.same("outlying_pods", &expected.outlying_pods, &got.outlying_pods);
    pair.near("minimum_detectable_ratio", expected.minimum_detectable_ratio, got.minimum_detectable_ratio);
    pair.near("seconds_to_significance", expected.seconds_to_significance, got.seconds_to_significance);
    pair.same("pods_needed", &expected.pods_needed, &got.pods_needed);
    pair.near("samples_needed_iid", expected.samples_needed_iid, got.samples_needed_iid);
    pair.same("verdict", &expected.verdict, &got.verdict);
    pair.same("support", &expected.support, &got.support);
    pair.same("reason", &expected.reason, &got.reason);
    pair.same("cause", &expected.cause, &got.cause);
    pair.same("detail", &expected.detail, &got.detail);
}

fn flag(pair: &mut Pair<'_>, expected: &FlagRow, got: &FlagRow) {
    cell(pair, &expected.row, &got.row);
    pair.same("flag_id", &expected.flag_id, &got.flag_id);
    pair.same("raised_at", &expected.raised_at, &got.raised_at);
    pair.same("severity", &expected.severity, &got.severity);
    pair.same("cleared_because", &expected.cleared_because, &got.cleared_because);
    pair.same("explains", &expected.explains, &got.explains);
}

fn comparison(pair: &mut Pair<'_>, expected: &ComparisonRow, got: &ComparisonRow) {
    pair.same("measure", &expected.comparison.measure, &got.comparison.measure);
    pair.same("window_start_at", &expected.window_start_at, &got.window_start_at);
    pair.same("head_total", &expected.head_total, &got.head_total);
    pair.same("base_total", &expected.base_total, &got.base_total);
    pair.same("head_pods", &expected.head_pods, &got.head_pods);
    pair.same("base_pods", &expected.base_pods, &got.base_pods);
    pair.same("functions_tested", &expected.functions_tested, &got.functions_tested);
    pair.near("normalization_factor", expected.normalization_factor, got.normalization_factor);
    pair.near("pod_variance", expected.pod_variance, got.pod_variance);
    pair.near("prior_df", expected.prior_df, got.prior_df);
    pair.near("prior_dispersion", expected.prior_dispersion, got.prior_dispersion);
    pair.same("flags", &expected.flags, &got.flags);
    pair.same("time_blocks", &expected.time_blocks, &got.time_blocks);
    pair.same("strata_dropped", &expected.strata_dropped, &got.strata_dropped);
    pair.near("equivalent_share", expected.equivalent_share, got.equivalent_share);
    pair.same("verdict", &expected.verdict, &got.verdict);
    pair.same("aa_check_tests", &expected.aa_check_tests, &got.aa_check_tests);
    pair.same("aa_check_flags", &expected.aa_check_flags, &got.aa_check_flags);
    pair.same("warnings", &expected.warnings, &got.warnings);
    pair.same("base_kind", &expected.base_kind, &got.base_kind);
}

fn ledger(pair: &mut Pair<'_>, expected: &LedgerRow, got: &LedgerRow) {
    pair.same("records_consumed", &expected.records_consumed, &got.records_consumed);
    pair.same("records_decoded", &expected.records_decoded, &got.records_decoded);
    pair.same("records_rejected", &expected.records_rejected, &got.records_rejected);
    pair.same("samples_received", &expected.samples_received, &got.samples_received);
    pair.same("samples_counted", &expected.samples_counted, &got.samples_counted);
    pair.same("samples_late_counted", &expected.samples_late_counted, &got.samples_late_counted);
    pair.same("samples_warm_up", &expected.samples_warm_up, &got.samples_warm_up);
    pair.same("samples_late_dropped", &expected.samples_late_dropped, &got.samples_late_dropped);
    pair.same("samples_duplicate", &expected.samples_duplicate, &got.samples_duplicate);
    pair.same("samples_superseded", &expected.samples_superseded, &got.samples_superseded);
    pair.same("samples_drain", &expected.samples_drain, &got.samples_drain);
    pair.same("samples_carried_over", &expected.samples_carried_over, &got.samples_carried_over);
    pair.same("samples_rejected", &expected.samples_rejected, &got.samples_rejected);
}

fn rejected(pair: &mut Pair<'_>, expected: &RejectedRow, got: &RejectedRow) {
    pair.same("hop_at", &expected.hop_at, &got.hop_at);
    pair.same("reason", &expected.rejection.reason, &got.rejection.reason);
    pair.same("profile_type", &expected.rejection.profile_type, &got.rejection.profile_type);
    pair.same("samples", &expected.rejection.samples, &got.rejection.samples);
    pair.same("at", &expected.rejection.at, &got.rejection.at);
}
