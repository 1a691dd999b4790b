//! One function's figures, as a row that still lacks its q-value and verdict.

use std::sync::Arc;

use fleetdiff_schemas::number::{signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{ArmFigures, CellKey, CellRow, ComparisonKey, Interval};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{RowReason, Scope, Support, Verdict};
use serde::{Deserialize, Serialize};

use fleetdiff_statistics::always_valid::{Bet, ln_p_always_valid};
use fleetdiff_statistics::effect::{EQUIVALENCE_LEVEL, interval_from_t, is_equivalent};
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use fleetdiff_statistics::tails::{F1Tail, ln_chi1_tail, t_quantile};
use fleetdiff_statistics::{CellRows, FEW_FUNCTIONS, support};

/// Level and power for the columns "how long" and "how small".
const ALPHA: f64 = 1e-4;
const POWER: f64 = 0.8;
/// The largest probability with which the always-valid interval misses the truth at any look.
const ALWAYS_VALID_ALPHA: f64 = 0.05;
/// The change for which "how long" is computed: the limit of equivalence.
pub(crate) const RATIO: f64 = 1.05;

/// A row, and the figures by which it is decided together with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowEvidence {
    /// Stable hash of the function's name.
    pub hash: u64,
    /// The row; q-value, verdict, reason and cause are still to be set.
    pub row: CellRow,
    /// Whether the row is in the family of its cell.
    pub tested: bool,
    /// ln of the ratio of shares.
    pub theta_share: f64,
    /// ln of the adjusted ratio.
    pub theta: f64,
    /// ln of the cell's normalization factor.
    pub ln_normalization: f64,
    /// ln p that the two-level selection takes; NaN where not tested.
    pub ln_p_row: f64,
    /// ln p for "moved only because shares sum to one"; NaN where not tested.
    pub ln_p_comp: f64,
    /// Whether the 90 % interval lies within five percent, whatever the support.
    pub equivalent: bool,
    /// The verdict of the first lines of the table, which need no other row.
    pub decided: Option<(Verdict, RowReason)>,
    /// Whether the base is history.
    pub of_history: bool,
    /// For the row of all functions together: the cost per request.
    pub uniform: Option<Uniform>,
    /// The head's pods with the ln p of each, if the function may have outlying pods.
    pub deviating_pods: Vec<(String, f64)>,
    /// Merged ln p of the tests of single head pods, if the method merges those; otherwise NaN.
    pub ln_p_by_pod: f64,
}

/// The cost of a request, over all functions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uniform {
    /// ln of the ratio of samples per request.
    pub theta: f64,
    /// Whether its 90 % interval lies within five percent, whatever the support.
    pub equivalent: bool,
}

/// What rows of one cell, scope and kind have in common.
#[derive(Clone, Debug)]
pub struct RowFrame {
    /// Window or epoch.
    pub scope: Scope,
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Start of the scope.
    pub window_start_at: Nanos,
    /// End of the hop.
    pub window_end_at: Nanos,
    /// The head's figures, except the function's count.
    pub head: ArmFigures,
    /// The base's.
    pub base: ArmFigures,
    /// Strata that both arms share.
    pub strata: usize,
    /// Whether there are enough pods for a test.
    pub support: Support,
    /// Length of a whole window.
    pub window_seconds: f64,
    /// Where each arm ran, in words, if they share no stratum.
    pub strata_detail: Option<String>,
    /// Which history the base is, in words, if it is history.
    pub history: Option<String>,
}

impl RowFrame {
    /// A row of a function with only its counts.
    pub fn row(&self, hash: u64, function: &Arc<str>, head: u64, base: u64) -> RowEvidence {
        let mut row = CellRow {
            window_start_at: self.window_start_at,
            window_end_at: self.window_end_at,
            head: self.head,
            base: self.base,
            strata: table_count(self.strata),
            support: self.support,
            ..CellRow::untested(
                self.scope,
                self.comparison.clone(),
                self.count_kind,
                self.cell.clone(),
                function.to_string(),
            )
        };
        recount(&mut row, table_count(head), table_count(base));
        let decided = self.decided(function, &row);
        row.detail = self.detail(decided);
        let none = f64::NAN;
        RowEvidence {
            hash,
            row,
            tested: false,
            theta_share: none,
            theta: none,
            ln_normalization: none,
            ln_p_row: none,
            ln_p_comp: none,
            equivalent: false,
            decided,
            of_history: self.history.is_some(),
            uniform: None,
            deviating_pods: Vec::new(),
            ln_p_by_pod: none,
        }
    }

    /// Whether the base is history; and where the arms ran, if they cannot be compared for that reason.
    pub(super) fn detail(&self, decided: Option<(Verdict, RowReason)>) -> Option<String> {
        let strata_detail = self
            .strata_detail
            .as_ref()
            .filter(|_| matches!(decided, Some((_, RowReason::NoBase | RowReason::NoCommonStratum))));
        let words: Vec<&str> = self.history.iter().chain(strata_detail).map(String::as_str).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Lines 1 to 3 of the verdict table.
    fn decided(&self, function: &Arc<str>, row: &CellRow) -> Option<(Verdict, RowReason)> {
        let whole = row.head.count + row.base.count == row.head.total + row.base.total;
        match self.not_testable(row) {
            Some(decided @ (Verdict::NotComparable, _)) => Some(decided),
            _ if &**function == UNSYMBOLISED => Some((Verdict::NotComparable, RowReason::Unsymbolised)),
            _ if whole => Some((Verdict::Untestable, RowReason::WholeProfile)),
            other => other,
        }
    }

    /// The reason why no row of the cell can be tested, if there is one.
    pub(super) fn not_testable(&self, row: &CellRow) -> Option<(Verdict, RowReason)> {
        if row.base.total == 0 {
            Some((Verdict::NotComparable, RowReason::NoBase))
        } else if self.strata == 0 {
            Some((Verdict::NotComparable, RowReason::NoCommonStratum))
        } else if self.support == Support::Untestable {
            Some((Verdict::Untestable, RowReason::FewPods))
        } else {
            None
        }
    }

    /// Seconds of the scope.
    fn seconds(&self) -> f64 {
        self.window_end_at.since(self.window_start_at).as_seconds()
    }
}

/// Replaces the counts of a row, and the figures that depend only on counts.
pub fn recount(row: &mut CellRow, head: i64, base: i64) {
    let arm = |figures: ArmFigures, count: i64| {
        let share = (figures.total > 0).then(|| ratio(count, figures.total));
        ArmFigures { count, share, ..figures }
    };
    (row.head, row.base) = (arm(row.head, head), arm(row.base, base));
    // A row of several functions may count a sample more than once.
    let possible = |arm: &ArmFigures| arm.total > 0 && arm.count <= arm.total;
    row.g = (possible(&row.head) && possible(&row.base))
        .then(|| g_2x2(natural(head), natural(row.head.total), natural(base), natural(row.base.total)));
    row.ln_p_iid = row.g.map(ln_chi1_tail);
}

/// Adds the results of the cell's tests of function `f` to a row.
pub fn add_tests(evidence: &mut RowEvidence, frame: &RowFrame, rows: &CellRows, quantiles: &Quantiles, f: usize) {
    let moments = &rows.moments;
    if !moments.tested[f] {
        return;
    }
    let row = &mut evidence.row;
    let known = |value: f64| (!value.is_nan()).then_some(value);
    evidence.tested = true;
    evidence.theta_share = rows.share.theta[f];
    evidence.theta = rows.adjusted.theta[f];
    evidence.ln_normalization = libm::log(rows.normalization);
    evidence.ln_p_row = rows.ln_p_row[f];
    evidence.ln_p_comp = rows.ln_p_comp[f];
    row.dispersion = known(moments.phi_tilde[f]);
    row.df = known(moments.df_total);
    row.statistic = known(rows.adjusted.stat[f] / moments.phi_tilde[f]);
    row.ln_p = known(rows.share.ln_p[f]);
    row.ln_p_min_effect = known(rows.ln_p_min_effect[f]);
    row.adjusted_ln_p = known(rows.adjusted.ln_p[f]);
    row.ln_e = known(rows.ln_e[f]);
    if row.head.count > 0 && row.base.count > 0 {
        let interval = |theta: f64, se: f64| {
            let bounds = interval_from_t(theta, se, quantiles.t95);
            Interval { value: libm::exp(theta), low: bounds.low, high: bounds.high }
        };
        row.ratio = Some(interval(rows.share.theta[f], rows.share.se[f]));
        row.adjusted_ratio = Some(interval(rows.adjusted.theta[f], rows.adjusted.se[f]));
        evidence.equivalent = is_equivalent(rows.adjusted.theta[f], rows.share.se[f], quantiles.t90);
    }
    if let (Some(p1), Some(p0)) = (row.head.share, row.base.share) {
        let (n1, n0) = (signed_float(row.head.total), signed_float(row.base.total));
        let half = quantiles.t95 * libm::sqrt(moments.phi_tilde[f] * (p1 * (1.0 - p1) / n1 + p0 * (1.0 - p0) / n0));
        row.share_delta = Some(Interval { value: p1 - p0, low: p1 - p0 - half, high: p1 - p0 + half });
    }
    // History is not sampled in the same way as the window, so neither a number of pods nor a time follows from it.
    if frame.history.is_none() {
        add_power(row, moments, frame, quantiles.detection_z);
    }
}

/// Adds the always-valid figures to a row; `largest` is ln of its largest e-value in this epoch.
pub fn add_always_valid(evidence: &mut RowEvidence, rows: &CellRows, quantiles: &Quantiles, largest: f64, f: usize) {
    let row = &mut evidence.row;
    let Some(ln_e) = row.ln_e else { return };
    row.always_valid_ln_p = Some(ln_p_always_valid(largest));
    let part = if rows.moments.tests < FEW_FUNCTIONS { 0.0 } else { rows.moments.part(f) };
    let bet = Bet { theta: rows.adjusted.theta[f], se: rows.share.se[f], tail: quantiles.tail, part };
    let bounds = bet.ratio_interval(ln_e, ALWAYS_VALID_ALPHA);
    let known = row.adjusted_ratio.is_some() && !bounds.low.is_nan();
    row.always_valid_ratio =
        known.then(|| Interval { value: libm::exp(bet.theta), low: bounds.low, high: bounds.high });
}

fn add_power(row: &mut CellRow, moments: &fleetdiff_statistics::Moments, frame: &RowFrame, z: f64) {
    let seconds = frame.seconds();
    let samples = signed_float(row.head.total + row.base.total);
    let samples_per_pod = samples / (moments.k_head + moments.k_base);
    let design = Design {
        z,
        head_pods: moments.k_head,
        base_pods: moments.k_base,
        share: signed_float(row.head.count + row.base.count) / samples,
        tau2: moments.tau2,
    };
    row.minimum_detectable_ratio = Some(libm::exp(design.mde(samples_per_pod)));
    let rate = samples_per_pod / seconds;
    let needed = design.seconds_to_detect(rate, RATIO);
    row.seconds_to_significance = Some(needed);
    if needed.is_infinite() {
        row.pods_needed = design.pods_needed(rate, RATIO, frame.window_seconds).map(i64::from);
    }
    row.samples_needed_iid = Some(samples_by_rule(design.share, RATIO - 1.0));
}

/// Tails and quantiles that all rows of a cell share.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    /// For 95 % intervals.
    pub t95: f64,
    /// For the 90 % interval of equivalence.
    pub t90: f64,
    /// The tail of the test.
    tail: F1Tail,
    /// For "how long" and "how small".
    detection_z: f64,
}

impl Quantiles {
    /// The quantiles for this number of degrees of freedom.
    pub fn of(df: f64) -> Self {
        Self {
            t95: t_quantile(0.95, df),
            t90: t_quantile(EQUIVALENCE_LEVEL, df),
            tail: F1Tail::new(df),
            detection_z: detection_z(ALPHA, POWER),
        }
    }
}

/// The support that the pods of two arms give, as tables name it.
pub fn support_of(moments: &fleetdiff_statistics::Moments) -> Support {
    match support(moments.k_head, moments.k_base, moments.df) {
        fleetdiff_statistics::Support::Firm => Support::Firm,
        fleetdiff_statistics::Support::Tentative => Support::Tentative,
        fleetdiff_statistics::Support::Untestable => Support::Untestable,
    }
}

fn ratio(part: i64, whole: i64) -> f64 {
    signed_float(part) / signed_float(whole)
}

fn natural(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
