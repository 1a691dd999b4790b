//! The columns of a row: the second half of section 5 of `docs/semantics.md`, and what does not depend on a family of
//! section 7.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{ArmFigures, CellKey, CellRow, ComparisonKey, Interval, RARE};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{RowReason, Scope, Support, Verdict};

use super::counts::{Archive, BASE, HEAD};
use super::evidence::Evidence;
use super::statistics::ENOUGH_FUNCTIONS;
use super::statistics::decide::{
    CellTest, always_valid_half_width, ln_e, ln_p_iid, pods_needed, samples_needed, seconds_to_detect,
    smallest_detectable,
};
use super::statistics::likelihood::g_share;
use super::statistics::tails::t_quantile;
use super::timeline::Open;

/// The limit of equivalence: a ratio within this, either way.
const EQUIVALENT: f64 = 1.05;
/// Level of the always-valid interval.
const ALWAYS_VALID: f64 = 0.95;

/// Which row: everything but its function.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub scope: Scope,
    pub comparison: ComparisonKey,
    pub cell: CellKey,
    pub kind: CountKind,
    pub start_at: Nanos,
    pub end_at: Nanos,
}

/// First and last instant of what a scope holds at the close of a hop.
pub(super) fn range(config: &Config, open: &Open, scope: Scope, hop: Hop) -> (Nanos, Nanos) {
    let first = match scope {
        Scope::Window => hop.plus(1).minus(config.window_hops()),
        Scope::Epoch => open.epoch,
    };
    (config.clock().start_of(first), config.clock().end_of(hop))
}

/// A row, and the figures by which it is decided.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Number of the function; `None` for the rare ones together.
    pub function: Option<usize>,
    pub row: CellRow,
    /// `None` where it was not tested.
    pub tested: Option<Decisive>,
    /// For the row of all functions, where it was tested: ln of the ratio of samples per request.
    pub uniform: Option<f64>,
    /// Names of the head's pods, and ln p of each, if some may be outlying.
    pub deviating: Vec<(String, f64)>,
}

impl Line {
    /// A row that was not tested.
    pub fn of(function: Option<usize>, row: CellRow) -> Self {
        Self { function, row, tested: None, uniform: None, deviating: Vec::new() }
    }
}

/// The numbers of a tested row that decide its verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decisive {
    pub theta_share: f64,
    /// After normalization.
    pub theta: f64,
    pub ln_normalization: f64,
    pub ln_p_row: f64,
    pub ln_p_comp: f64,
    pub ln_e: f64,
    /// Standard error with normalization factor 1.
    se: f64,
    /// The part of the samples that is not the function's, if the normalization factor was estimated from them;
    /// otherwise 1.
    others: f64,
    /// The 90 % interval of `theta` lies within a ratio of 1.05.
    pub equivalent: bool,
}

/// What all rows of a cell and kind share.
struct Quantiles {
    /// Two-sided 95 % of Student's t.
    t95: f64,
    /// Two-sided 90 %.
    t90: f64,
    enough: bool,
}

/// All rows of one cell (or roll-up) and kind, without the decisions of families. A row has a verdict only if it is not
/// tested, or the verdict `equivalent` or `inconclusive` that applies if no family selects it.
pub(super) fn lines(config: &Config, archive: &Archive, about: &About, evidence: &Evidence) -> Vec<Line> {
    let Some(kind) = evidence.kinds.get(&about.kind).filter(|_| evidence.samples[HEAD] > 0) else { return Vec::new() };
    let quantiles = kind.test.as_ref().map(|test| Quantiles {
        t95: t_quantile(0.95, test.share.df_total),
        t90: t_quantile(0.9, test.share.df_total),
        enough: kind.tested() >= ENOUGH_FUNCTIONS,
    });
    let (frequent, rare): (BTreeMap<usize, [u64; 2]>, BTreeMap<usize, [u64; 2]>) = kind
        .counts
        .iter()
        .map(|(function, counts)| (*function, *counts))
        .partition(|(_, counts)| counts[HEAD] + counts[BASE] >= config.min_count);
    let mut lines: Vec<Line> = frequent
        .into_iter()
        .map(|(function, counts)| {
            one_line(config, archive, about, evidence, (function, counts), quantiles.as_ref().zip(kind.place(function)))
        })
        .collect();
    if !rare.is_empty() {
        let counts = rare.values().fold([0, 0], |sum, counts| [sum[HEAD] + counts[HEAD], sum[BASE] + counts[BASE]]);
        let row = CellRow {
            functions: Some(table_count(rare.len())),
            verdict: Verdict::TooRare,
            reason: Some(RowReason::CountNeeded),
            ..untested(about, evidence, RARE, counts)
        };
        lines.push(Line::of(None, row));
    }
    lines
}

fn one_line(
    config: &Config,
    archive: &Archive,
    about: &About,
    evidence: &Evidence,
    (function, counts): (usize, [u64; 2]),
    test: Option<(&Quantiles, (usize, &CellTest))>,
) -> Line {
    let row = untested(about, evidence, &archive.names[function], counts);
    let Some((quantiles, (place, test))) = test else {
        return Line::of(Some(function), CellRow { reason: reason(&row, false), ..row });
    };
    let (share, adjusted) = (&test.share, &test.adjusted);
    let [(n1, p1), (n0, p0)] = [&row.head, &row.base].map(|arm| (signed_float(arm.total), arm.share.unwrap_or(0.0)));
    let phi = share.phi_tilde[place];
    let half = quantiles.t95 * (phi * (p1 * (1.0 - p1) / n1 + p0 * (1.0 - p0) / n0)).sqrt();
    let in_both = counts[HEAD] > 0 && counts[BASE] > 0;
    let ratio = |theta: f64, se: f64| in_both.then(|| around(theta, quantiles.t95 * se));
    let (k1, k0) = (signed_float(row.head.pods), signed_float(row.base.pods));
    let samples_per_pod = (n1 + n0) / (k1 + k0);
    let of_both = float(counts[HEAD] + counts[BASE]) / (n1 + n0);
    let rate = samples_per_pod / seconds(about);
    let deciding = if quantiles.enough { adjusted.ln_p[place] } else { test.ln_p_row[place] };
    let (theta, se) = (adjusted.theta[place], adjusted.se[place]);
    // With an estimated normalization factor, what one function gains the factor loses.
    let coupled = if quantiles.enough { 1.0 - of_both } else { 1.0 };
    let decisive = Decisive {
        theta_share: share.theta[place],
        theta,
        ln_normalization: test.normalization.ln(),
        ln_p_row: test.ln_p_row[place],
        ln_p_comp: test.ln_p_comp[place],
        ln_e: ln_e(deciding, share.se[place], coupled),
        se: share.se[place],
        others: coupled,
        equivalent: in_both && is_equivalent(theta, quantiles.t90 * se),
    };
    let delta = p1 - p0;
    let needed = seconds_to_detect(k1, k0, rate, of_both, share.prior.tau2);
    let window = signed_float(config.clock().length_of(config.window_hops()).0) / 1e9;
    let mut row = CellRow {
        share_delta: Some(Interval { value: delta, low: delta - half, high: delta + half }),
        dispersion: Some(phi),
        df: Some(share.df_total),
        statistic: Some(adjusted.stat[place] / phi),
        ln_p: Some(share.ln_p[place]),
        ln_p_min_effect: Some(test.ln_p_min_effect[place]),
        ratio: ratio(share.theta[place], share.se[place]),
        adjusted_ratio: ratio(theta, se / coupled),
        adjusted_ln_p: Some(adjusted.ln_p[place]),
        ln_e: Some(decisive.ln_e),
        minimum_detectable_ratio: Some(smallest_detectable(k1, k0, samples_per_pod, of_both, share.prior.tau2).exp()),
        seconds_to_significance: Some(needed),
        pods_needed: if needed.is_infinite() {
            pods_needed((k1, k0), rate, of_both, share.prior.tau2, window)
        } else {
            None
        },
        samples_needed_iid: Some(samples_needed(of_both)),
        ..row
    };
    (row.verdict, row.reason) = match evidence.support == Support::Firm && decisive.equivalent {
        true => (Verdict::Equivalent, None),
        false => (Verdict::Inconclusive, reason(&row, true)),
    };
    Line { tested: Some(decisive), ..Line::of(Some(function), row) }
}

/// An interval of a ratio from its logarithm.
pub(super) fn around(theta: f64, half: f64) -> Interval {
    Interval { value: theta.exp(), low: (theta - half).exp(), high: (theta + half).exp() }
}

/// Whether an interval of a log ratio lies within 1.05.
pub(super) fn is_equivalent(theta: f64, half: f64) -> bool {
    theta.abs() + half <= EQUIVALENT.ln()
}

/// Adds the always-valid figures to a row of an epoch; `largest` is ln of its largest e-value in it.
pub(super) fn add_always_valid(line: &mut Line, largest: f64) {
    let (Some(tested), Some(df)) = (line.tested, line.row.df) else { return };
    line.row.always_valid_ln_p = Some(-largest);
    let half = always_valid_half_width(tested.se, df, tested.others, ALWAYS_VALID);
    let distance = tested.theta.abs();
    // The interval of a row with a large e-value does not contain a ratio of 1; that of any other row does.
    let half =
        if tested.ln_e >= -(1.0 - ALWAYS_VALID).ln() { half.min(distance) } else { half.max(distance * (1.0 + 1e-9)) };
    line.row.always_valid_ratio = line.row.adjusted_ratio.map(|_| around(tested.theta, half));
}

/// G of a row's counts and its tail if samples were independent, given that both arms have samples and no count is
/// larger than its total.
pub(super) fn g_of(head: &ArmFigures, base: &ArmFigures) -> (Option<f64>, Option<f64>) {
    let possible = [head, base].iter().all(|arm| arm.total > 0 && arm.count <= arm.total);
    let g = possible.then(|| {
        g_share(signed_float(head.count), signed_float(head.total), signed_float(base.count), signed_float(base.total))
    });
    (g, g.map(ln_p_iid))
}

/// The row of a function that is not tested, with the verdict that it has for that.
pub(super) fn untested(about: &About, evidence: &Evidence, function: &str, counts: [u64; 2]) -> CellRow {
    let figures = |arm: usize| {
        let total = evidence.arms[arm].total;
        let share = (total > 0).then(|| float(counts[arm]) / signed_float(total));
        ArmFigures { count: table_count(counts[arm]), share, ..evidence.arms[arm] }
    };
    let (head, base) = (figures(HEAD), figures(BASE));
    let (g, of_g) = g_of(&head, &base);
    let whole = head.count + base.count == head.total + base.total;
    let verdict = match () {
        () if evidence.samples[BASE] == 0 || evidence.strata == 0 || function == UNSYMBOLISED => Verdict::NotComparable,
        () if whole || evidence.support == Support::Untestable => Verdict::Untestable,
        () => Verdict::Inconclusive,
    };
    CellRow {
        window_start_at: about.start_at,
        window_end_at: about.end_at,
        head,
        base,
        strata: table_count(evidence.strata),
        g,
        ln_p_iid: of_g,
        verdict,
        support: evidence.support,
        ..CellRow::untested(about.scope, about.comparison.clone(), about.kind, about.cell.clone(), function.to_owned())
    }
}

/// The reason for the verdict of a row that no family selects.
pub(super) fn reason(row: &CellRow, tested: bool) -> Option<RowReason> {
    let samples = row.head.total + row.base.total;
    let rate = signed_float(samples)
        / signed_float(row.head.pods + row.base.pods)
        / seconds_of(row.window_start_at, row.window_end_at);
    Some(match row.verdict {
        Verdict::NotComparable if row.base.total == 0 => RowReason::NoBase,
        Verdict::NotComparable if row.strata == 0 => RowReason::NoCommonStratum,
        Verdict::NotComparable => RowReason::Unsymbolised,
        Verdict::Untestable if row.head.count + row.base.count == samples => RowReason::WholeProfile,
        Verdict::Untestable => RowReason::FewPods,
        _ if tested && row.seconds_to_significance == Some(f64::INFINITY) => RowReason::NeedsPods,
        _ if rate < 1.0 => RowReason::LowLoad,
        _ => RowReason::NeedsTime,
    })
}

fn seconds(about: &About) -> f64 {
    seconds_of(about.start_at, about.end_at)
}

fn seconds_of(start: Nanos, end: Nanos) -> f64 {
    signed_float(end.since(start).0) / 1e9
}
