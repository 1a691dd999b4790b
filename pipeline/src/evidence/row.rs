//! One function's figures, as a row that still lacks its q-value and verdict.

use std::sync::Arc;

use fleetdiff_schemas::number::{signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, OVERFLOW, UNSYMBOLISED};
use fleetdiff_schemas::rows::{ArmFigures, CellKey, CellRow, ComparisonKey, Interval};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{RowReason, Scope, Support, Verdict};
use serde::{Deserialize, Serialize};

use fleetdiff_statistics::always_valid::ln_p_always_valid;
use fleetdiff_statistics::effect::LnInterval;
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use fleetdiff_statistics::tails::{ln_chi1_tail, t_quantile};
use fleetdiff_statistics::{Arms, Levels, Tests, is_whole_profile};

use super::gap::{Gap, Suspect};
use super::others::FromOthers;
use super::tests::{ShareRows, support_of};

/// Level and power for the columns "how long" and "how small".
const ALPHA: f64 = 1e-4;
const POWER: f64 = 0.8;
/// The level of intervals.
pub(crate) const LEVEL: f64 = 0.95;
/// The largest probability with which the always-valid interval misses the truth at any look.
pub(super) const ALWAYS_VALID_ALPHA: f64 = 0.05;
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
    /// ln of the adjusted ratio; in the row of all functions, of the ratio of samples per request.
    pub theta: f64,
    /// Variance of both; NaN where not tested.
    pub variance: f64,
    /// ln of the cell's normalization factor.
    pub ln_normalization: f64,
    /// Variance of that; 0 where it is taken as known.
    pub normalization_variance: f64,
    /// Whether the data leave several normalization factors.
    pub ambiguous: bool,
    /// ln p that the two-level selection takes; NaN where not tested.
    pub ln_p_row: f64,
    /// ln p for "moved only because shares sum to one"; NaN where not tested.
    pub ln_p_comp: f64,
    /// Whether the 90 % interval lies within five percent, whatever the support.
    pub equivalent: bool,
    /// Whether the plain share moved the other way, and requests do not say that the function did too.
    pub contradicts: bool,
    /// Whether the cell has too few functions for a normalization factor.
    pub unnormalized: bool,
    /// What may have made the change although the code is the same.
    pub suspect: Option<Suspect>,
    /// The pods of the bucket without which the row does not hold; none if each bucket can be spared.
    pub one_pod: Vec<String>,
    /// The verdict of the first lines of the table, which need no other row.
    pub decided: Option<(Verdict, RowReason)>,
    /// Whether the base is history.
    pub of_history: bool,
    /// Whether this is the row of all functions together, whose change is that of the cost per request.
    pub of_all: bool,
    /// The head's pods with the ln p of each, if the function may have outlying pods.
    pub deviating_pods: Vec<(String, f64)>,
    /// What its test takes from the other functions of the cell; `None` where not tested.
    pub from_others: Option<FromOthers>,
    /// Merged ln p of the tests of single head pods, if the method merges those; otherwise NaN.
    pub ln_p_by_pod: f64,
}

impl RowEvidence {
    /// Whether the row can be significant: tested in its share, or, of all functions together, per request.
    pub fn is_decidable(&self) -> bool {
        self.tested || self.of_all && self.row.per_request_ln_p.is_some()
    }

    /// The standard error of the change of its share, if it was tested.
    pub fn share_error(&self) -> Option<f64> {
        let delta = self.row.share_delta?;
        Some((delta.high - delta.low) / 2.0 / t_quantile(LEVEL, self.row.df?))
    }

    /// Nothing was tested although there are enough pods: too few degrees of freedom.
    pub(super) fn lacks_degrees_of_freedom(&mut self, frame: &RowFrame) {
        self.row.support = Support::Untestable;
        self.decided = Some((Verdict::Untestable, RowReason::FewPods));
        self.row.detail = frame.detail(self.decided);
    }
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
    /// Whether it covers several cells.
    pub is_roll_up: bool,
    /// Start of the scope.
    pub window_start_at: Nanos,
    /// End of the hop.
    pub window_end_at: Nanos,
    /// When the first young pods are no longer young, if pods of different ages are compared.
    pub provisional_until_at: Option<Nanos>,
    /// The head's figures, except the function's count.
    pub head: ArmFigures,
    /// The base's.
    pub base: ArmFigures,
    /// Strata that both arms share.
    pub strata: usize,
    /// Whether there are enough pods for a test.
    pub support: Support,
    /// How the arms' pods differ in load and age.
    pub gap: Gap,
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
            is_roll_up: self.is_roll_up,
            provisional_until_at: self.provisional_until_at,
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
            variance: none,
            ln_normalization: none,
            normalization_variance: none,
            ambiguous: false,
            ln_p_row: none,
            ln_p_comp: none,
            equivalent: false,
            contradicts: false,
            unnormalized: false,
            suspect: None,
            one_pod: Vec::new(),
            decided,
            of_history: self.history.is_some(),
            of_all: false,
            deviating_pods: Vec::new(),
            from_others: None,
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
        let (count, all) = (row.head.count + row.base.count, row.head.total + row.base.total);
        let whole = is_whole_profile(signed_float(count), signed_float(all));
        match self.not_testable(row) {
            Some(decided @ (Verdict::NotComparable, _)) => Some(decided),
            _ if &**function == UNSYMBOLISED => Some((Verdict::NotComparable, RowReason::Unsymbolised)),
            _ if &**function == OVERFLOW => Some((Verdict::NotComparable, RowReason::Overflow)),
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

/// Adds the tests of shares at a place of results, which was tested, to a row.
pub fn add_tests(evidence: &mut RowEvidence, frame: &RowFrame, shares: &ShareRows<'_>, place: usize) {
    let (rows, tests) = (&shares.rows, &shares.rows.tests);
    let (levels, ln_scale) = (&tests.levels[place], rows.scales.deciding.ln_scale);
    evidence.tested = true;
    evidence.from_others = Some(shares.taken_from_others(place));
    evidence.theta_share = levels.theta();
    evidence.theta = rows.theta[place];
    evidence.variance = levels.variance();
    evidence.ln_normalization = ln_scale;
    evidence.normalization_variance = rows.scales.variance;
    evidence.ambiguous = rows.scales.ambiguous();
    evidence.ln_p_row = rows.ln_p_row[place];
    evidence.ln_p_comp = rows.ln_p_comp[place];
    evidence.contradicts = rows.contradicts[place];
    evidence.unnormalized = !rows.scales.measured;
    evidence.suspect = frame.gap.may_have_made(evidence.theta, evidence.variance);
    evidence.equivalent = levels.is_equivalent(ln_scale);
    let row = &mut evidence.row;
    row.support = support_of(row.head.pods, row.base.pods, levels.df);
    row.head_dispersion = known(tests.dispersion.head[place].phi);
    row.base_dispersion = known(tests.dispersion.base[place].phi);
    row.df = known(levels.df);
    row.statistic = known(rows.against_scales(place).statistic(libm::exp(ln_scale)));
    row.ln_p = known(rows.ln_p_share[place]);
    row.ln_p_min_effect = known(rows.ln_p_min_effect[place]);
    row.ln_p_row = known(rows.ln_p_row[place]);
    row.adjusted_ln_p = known(rows.ln_p[place]);
    row.ln_e = known(rows.ln_e[place]);
    let critical = levels.tests().critical(libm::log1p(-LEVEL));
    if row.head.count > 0 && row.base.count > 0 {
        let interval = levels.tests().within(critical);
        row.ratio = Some(as_ratio(levels.theta(), interval));
        let is_known = rows.scales.variance <= 0.0;
        let adjusted = if is_known { interval } else { rows.against_scales(place).within(critical) }.against(ln_scale);
        row.adjusted_ratio = Some(as_ratio(rows.theta[place], adjusted));
    }
    row.share_delta = share_delta(row, levels, critical);
    // History is not sampled in the same way as the window, so neither a number of pods nor a time follows from it.
    if frame.history.is_none() {
        add_power(row, tests, frame);
    }
}

/// The change of the merged share, `critical` standard errors each way; its variance is that of both levels.
fn share_delta(row: &CellRow, levels: &Levels, critical: f64) -> Option<Interval> {
    let value = row.head.share? - row.base.share?;
    let variance: f64 =
        levels.arms.both().into_iter().map(|arm| (arm.counting + arm.between * arm.share) * arm.share).sum();
    let half = critical * libm::sqrt(variance);
    Some(Interval { value, low: value - half, high: value + half })
}

/// Adds the always-valid figures to a tested row; `largest` is ln of its largest e-value in this epoch.
pub fn add_always_valid(evidence: &mut RowEvidence, shares: &ShareRows<'_>, largest: f64, place: usize) {
    let rows = &shares.rows;
    let row = &mut evidence.row;
    row.always_valid_ln_p = Some(ln_p_always_valid(largest));
    let bounds = rows.against_scales(place).always_valid_interval(ALWAYS_VALID_ALPHA);
    let bounds = bounds.against(rows.scales.deciding.ln_scale);
    let known = row.adjusted_ratio.is_some() && !bounds.low.is_nan();
    row.always_valid_ratio = known.then(|| as_ratio(rows.theta[place], bounds));
}

fn add_power(row: &mut CellRow, tests: &Tests, frame: &RowFrame) {
    let samples = signed_float(row.head.total + row.base.total);
    let pods = tests.size.map(|arm| arm.pods);
    let samples_per_pod = samples / (pods.head + pods.base);
    let design = Design {
        z: detection_z(ALPHA, POWER),
        pods: Arms { head: pods.head, base: pods.base },
        share: signed_float(row.head.count + row.base.count) / samples,
        tau2: tests.pooled.spread,
    };
    row.minimum_detectable_ratio = Some(libm::exp(design.mde(samples_per_pod)));
    let rate = samples_per_pod / frame.seconds();
    let needed = design.seconds_to_detect(rate, RATIO);
    row.seconds_to_significance = Some(needed);
    if needed.is_infinite() {
        row.pods_needed = design.pods_needed(rate, RATIO, frame.window_seconds).map(i64::from);
    }
    row.samples_needed_iid = Some(samples_by_rule(design.share, RATIO - 1.0));
}

/// A ratio with its interval, from logarithms.
pub(super) fn as_ratio(theta: f64, interval: LnInterval) -> Interval {
    Interval { value: libm::exp(theta), low: libm::exp(interval.low), high: libm::exp(interval.high) }
}

pub(super) fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn ratio(part: i64, whole: i64) -> f64 {
    signed_float(part) / signed_float(whole)
}

fn natural(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
