//! The columns of a row: the second half of section 5 of `docs/semantics.md`, and what does not depend on a family of
//! section 7.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, OVERFLOW, is_of_several};
use fleetdiff_schemas::rows::{ArmFigures, CellKey, CellRow, ComparisonKey, Interval, RARE};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{RowReason, Scope, Support, Verdict};

use super::arms::{LEAST_DF, support};
use super::counts::{Archive, BASE, HEAD};
use super::evidence::{CellTest, Evidence};
use super::loads::{Differences, Made};
use super::rates::Rate;
use super::statistics::always_valid::{ln_e, ln_p_always_valid};
use super::statistics::g::{g_share, ln_p_iid};
use super::statistics::levels::StrataTest;
use super::statistics::power::{Design, samples_needed};
use super::statistics::tails::t_of_tail;
use super::timeline::Open;

/// The limit of equivalence: a ratio within this, either way.
const EQUIVALENT: f64 = 1.05;
/// Part of always-valid intervals that leave out the ratio.
const ALWAYS_VALID: f64 = 0.05;

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
    /// Number of the function; `None` for the rare ones together and for all functions.
    pub function: Option<usize>,
    pub row: CellRow,
    /// `None` where its share was not tested.
    pub tested: Option<Decisive>,
    /// For the row of all functions, where it was tested.
    pub all: Option<OfAll>,
    /// Whether its family selects it with a change that is large enough, whatever follows from that.
    pub decided: bool,
    /// Names of the head's pods, and ln p of each, if some may be outlying.
    pub deviating: Vec<(String, f64)>,
    /// The function that has its cost in the other build.
    pub instead: Option<String>,
}

impl Line {
    /// A row that was not tested.
    pub fn of(function: Option<usize>, row: CellRow) -> Self {
        Self { function, row, tested: None, all: None, decided: false, deviating: Vec::new(), instead: None }
    }

    /// ln of the change that decides, where it was tested.
    pub fn theta(&self) -> Option<f64> {
        self.tested.as_ref().map(|tested| tested.theta).or_else(|| Some(self.all?.theta))
    }

    /// What a family takes of it: nothing if it has moved.
    pub fn of_family(&self, of: impl Fn(&Self) -> Option<f64>) -> Option<f64> {
        of(self).filter(|_| self.instead.is_none())
    }

    /// ln of its e-value, where it was tested.
    pub fn ln_e(&self) -> Option<f64> {
        self.tested.as_ref().map(|tested| tested.ln_e).or_else(|| Some(self.all?.ln_e))
    }

    /// Whether it is shown to be within five percent of no change.
    pub fn is_equivalent(&self) -> bool {
        self.row.support == Support::Firm
            && (self.tested.as_ref().is_some_and(|tested| tested.equivalent)
                || self.all.is_some_and(|all| all.equivalent))
    }

    /// Whether nothing but its family speaks against the change.
    pub fn holds(&self) -> bool {
        self.made().is_none()
            && self.tested.as_ref().is_none_or(|tested| !tested.contradicts && tested.one_pod.is_none())
    }

    /// What may have made the change although the code is the same.
    fn made(&self) -> Option<Made> {
        self.tested.as_ref().and_then(|tested| tested.made).or_else(|| self.all?.made)
    }

    /// Where young pods of the head are compared with old ones of the base, the change must also hold against what young pods
    /// of the base once showed, in the same direction.
    fn hold_against_young(&mut self, evidence: &Evidence, function: usize) {
        let Some(kind) = evidence.young.as_ref().and_then(|young| young.kinds.get(&self.row.count_kind)) else {
            return;
        };
        let (Some((place, young)), Some(tested)) = (kind.place(function), &mut self.tested) else { return };
        let same_direction = young.rows.theta[place] * tested.theta > 0.0;
        let ln_p = if same_direction { young.rows.ln_p_row[place] } else { 0.0 };
        tested.ln_p_row = tested.ln_p_row.max(ln_p);
        tested.ln_e = tested.ln_e.min(ln_e(ln_p, young.test.variance[place]));
        self.row.young_ln_p = Some(ln_p);
        self.row.ln_p_row = Some(tested.ln_p_row);
        self.row.ln_e = Some(tested.ln_e);
    }

    /// Without a normalization factor the cost per request decides, if the share moved in the same direction.
    fn decide_per_request(&mut self, config: &Config, differ: Differences, rate: &Rate) {
        let Some(tested) = &mut self.tested else { return };
        let row = &mut self.row;
        let found = rate.functions.iter().position(|function| Some(*function) == self.function);
        let found = found.filter(|place| rate.test.tested[*place]);
        let (mut ln_p, mut ln_p_band) = (0.0, 0.0);
        (tested.equivalent, tested.per_request) = (false, true);
        if let Some(place) = found {
            let test = &rate.test;
            let enough = test.df[place] >= LEAST_DF;
            let agrees = test.theta[place] * tested.theta > 0.0;
            (tested.theta, tested.variance) = (test.theta[place], test.variance[place]);
            tested.equivalent = enough && is_equivalent(test, place, 0.0);
            tested.made = differ.of_share(tested.theta, tested.variance);
            let both = test.counts.iter().all(|counts| counts[place] > 0.0);
            row.adjusted_ratio = both.then(|| around(test, place, 0.05_f64.ln(), (0.0, 0.0)));
            let always = ln_p_always_valid(tested.variance, ALWAYS_VALID);
            tested.always_valid = tested.always_valid.map(|_| around(test, place, always, (0.0, 0.0)));
            ln_p_band = test.ln_p_min_effect(place, 1.0, config.min_effect, 0.0);
            ln_p = if agrees && enough { test.ln_p(place, 1.0) } else { 0.0 };
        }
        row.adjusted_ln_p = row.adjusted_ln_p.map(|own| own.max(ln_p));
        row.ln_p_min_effect = row.ln_p_min_effect.map(|own| own.max(ln_p_band));
        tested.ln_p_row = tested.ln_p_row.max(ln_p).max(ln_p_band);
        tested.ln_e = tested.ln_e.min(ln_e(ln_p, tested.variance));
        (row.ln_p_row, row.ln_e) = (Some(tested.ln_p_row), Some(tested.ln_e));
        let is_equivalent = self.is_equivalent();
        self.row.verdict = if is_equivalent { Verdict::Equivalent } else { Verdict::Inconclusive };
        self.row.reason = if is_equivalent { None } else { reason(&self.row, true) };
    }

    /// Draws the conclusion from the selection of a tested row: section 7, lines 7 to 12. A change that is too small does
    /// not decide it.
    pub fn select(&mut self, min_effect: f64) {
        if self.theta().is_none_or(|theta| theta.abs() < min_effect) {
            return;
        }
        self.decided = true;
        match &self.tested {
            Some(tested) if tested.contradicts => {
                (self.row.verdict, self.row.reason) = (Verdict::Inconclusive, Some(RowReason::ContradictsShare));
            }
            _ if self.made().is_some() => {
                (self.row.verdict, self.row.reason) = (Verdict::Inconclusive, self.made().map(Made::of_row));
            }
            Some(Decisive { one_pod: Some(pods), .. }) => {
                (self.row.verdict, self.row.reason) = (Verdict::SomePodsOutlying, Some(RowReason::OnePod));
                self.row.outlying_pods.clone_from(pods);
            }
            _ => self.call(),
        }
    }

    fn call(&mut self) {
        let Some(theta) = self.theta() else { return };
        let row = &mut self.row;
        if theta > 0.0 {
            (row.verdict, row.reason) = (Verdict::Regressed, (row.base.count == 0).then_some(RowReason::OnlyInHead));
        } else if theta < 0.0 {
            (row.verdict, row.reason) = (Verdict::Improved, (row.head.count == 0).then_some(RowReason::OnlyInBase));
        }
    }

    /// In the other build this function has its cost: whatever else is known, it is no finding.
    pub fn moves(&mut self, instead: &str) {
        if self.tested.is_some() {
            self.decided = true;
            (self.row.verdict, self.row.reason) = (Verdict::Moved, only_in(&self.row));
            self.row.cause = Some(instead.to_owned());
        }
    }
}

/// That only one build has a function.
pub(super) fn only_in(row: &CellRow) -> Option<RowReason> {
    match [row.head.count, row.base.count] {
        [_, 0] => Some(RowReason::OnlyInHead),
        [0, _] => Some(RowReason::OnlyInBase),
        _ => None,
    }
}

/// The numbers of a tested row that decide its verdict.
#[derive(Clone, Debug)]
pub(super) struct Decisive {
    pub theta_share: f64,
    /// After normalization.
    pub theta: f64,
    pub ln_normalization: f64,
    /// Variance of that.
    pub normalization_variance: f64,
    /// There are several factors on which a change must hold.
    pub ambiguous: bool,
    pub ln_p_row: f64,
    pub ln_p_comp: f64,
    pub ln_e: f64,
    /// Variance of `theta`.
    pub variance: f64,
    /// There is no factor, and `theta` is the change per request.
    pub per_request: bool,
    /// The 90 % interval of `theta` lies within a ratio of 1.05.
    pub equivalent: bool,
    /// The share moved the other way, or there is no factor: cost per request is asked.
    pub asks_requests: bool,
    /// The same, and no cost per request agrees with `theta`.
    pub contradicts: bool,
    /// What the arms differ in that may have made the change.
    pub made: Option<Made>,
    /// The pods of the bucket that makes the change alone.
    pub one_pod: Option<Vec<String>>,
    /// In an epoch, where both arms have the function: the ratio with its always-valid interval.
    always_valid: Option<Interval>,
}

/// The numbers of a row of all functions that decide its verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfAll {
    /// ln of the ratio of samples per request.
    pub theta: f64,
    pub ln_e: f64,
    pub equivalent: bool,
    /// What the arms differ in that may have made the change.
    pub made: Option<Made>,
}

/// All rows of one cell (or roll-up) and kind, without the decisions of families. A row has a verdict only if it is not
/// tested, or the verdict `equivalent` or `inconclusive` that applies if no family selects it. `rate` are the costs per
/// request of this kind, where they are known.
pub(super) fn lines(
    config: &Config,
    archive: &Archive,
    about: &About,
    evidence: &Evidence,
    rate: Option<&Rate>,
) -> Vec<Line> {
    let Some(kind) = evidence.kinds.get(&about.kind).filter(|_| evidence.samples[HEAD] > 0) else { return Vec::new() };
    let (frequent, rare): (BTreeMap<usize, [u64; 2]>, BTreeMap<usize, [u64; 2]>) = kind
        .counts
        .iter()
        .map(|(function, counts)| (*function, *counts))
        .partition(|(_, counts)| counts[HEAD] + counts[BASE] >= config.min_count);
    let mut lines: Vec<Line> = frequent
        .into_iter()
        .map(|(function, counts)| match kind.place(function) {
            Some((place, test)) => {
                let row = tested_row(config, archive, about, evidence, (function, counts), (place, test));
                let mut line = one_line(archive, evidence.differ, row, (function, place), test, rate);
                if let Some(rate) = rate.filter(|_| !test.scales.measured) {
                    line.decide_per_request(config, evidence.differ, rate);
                }
                line.hold_against_young(evidence, function);
                line
            }
            None => {
                let row = untested(about, evidence, &archive.names[function], counts);
                // There are enough pods, but too few degrees of freedom, or no variance in an arm.
                let row = match row.verdict == Verdict::Inconclusive {
                    true => CellRow { verdict: Verdict::Untestable, support: Support::Untestable, ..row },
                    false => row,
                };
                Line::of(Some(function), CellRow { reason: reason(&row, false), ..row })
            }
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

/// A tested row with its verdict, as far as no family decides it.
fn one_line(
    archive: &Archive,
    differ: Differences,
    mut row: CellRow,
    (function, place): (usize, usize),
    found: &CellTest,
    rate: Option<&Rate>,
) -> Line {
    let CellTest { test, scales, rows, pods, .. } = found;
    let (theta, ln_scale, variance) = (rows.theta[place], scales.deciding(), test.variance[place]);
    let names = |(arm, bucket): (usize, usize)| {
        let mut names: Vec<String> =
            pods[arm][bucket].iter().map(|pod| archive.pods[*pod].as_str().to_owned()).collect();
        names.sort();
        names
    };
    let decisive = Decisive {
        theta_share: test.theta[place],
        theta,
        ln_normalization: ln_scale,
        normalization_variance: scales.variance,
        ambiguous: scales.ln_scales.len() > 1,
        ln_p_row: rows.ln_p_row[place],
        ln_p_comp: rows.ln_p_comp[place],
        ln_e: rows.ln_e[place],
        variance,
        per_request: false,
        equivalent: is_equivalent(test, place, ln_scale),
        asks_requests: rows.contradicts[place] || !scales.measured,
        contradicts: rows.contradicts[place] && !rate.is_some_and(|rate| rate.agrees(function, theta)),
        made: differ.of_share(theta, variance),
        one_pod: test.one_bucket(place, ln_scale).map(names),
        always_valid: (row.scope == Scope::Epoch && row.adjusted_ratio.is_some()).then(|| {
            around(
                test,
                place,
                ln_p_always_valid(variance + scales.variance, ALWAYS_VALID),
                (ln_scale, scales.variance),
            )
        }),
    };
    let mut line = Line { tested: Some(decisive), ..Line::of(Some(function), row.clone()) };
    row.verdict = if line.is_equivalent() { Verdict::Equivalent } else { Verdict::Inconclusive };
    row.reason = if line.is_equivalent() { None } else { reason(&row, true) };
    line.row = row;
    line
}

/// The columns of a tested row.
fn tested_row(
    config: &Config,
    archive: &Archive,
    about: &About,
    evidence: &Evidence,
    (function, counts): (usize, [u64; 2]),
    (place, found): (usize, &CellTest),
) -> CellRow {
    let row = untested(about, evidence, &archive.names[function], counts);
    let CellTest { test, scales, rows, .. } = found;
    let [(n1, p1), (n0, p0)] = [&row.head, &row.base].map(|arm| (signed_float(arm.total), arm.share.unwrap_or(0.0)));
    let half = t_of_tail(0.05_f64.ln(), test.df[place]) * test.delta_variance(place).sqrt();
    let in_both = counts[HEAD] > 0 && counts[BASE] > 0;
    let ratio = in_both.then(|| around(test, place, 0.05_f64.ln(), (0.0, 0.0)));
    let adjusted = in_both.then(|| around(test, place, 0.05_f64.ln(), (scales.deciding(), scales.variance)));
    let pods = [row.head.pods, row.base.pods].map(signed_float);
    let samples_per_pod = (n1 + n0) / (pods[HEAD] + pods[BASE]);
    let share = float(counts[HEAD] + counts[BASE]) / (n1 + n0);
    let design = Design { pods, tau2: test.held.tau2, share };
    let rate = samples_per_pod / seconds(about);
    let needed = design.seconds_to_detect(rate);
    let window = signed_float(config.clock().length_of(config.window_hops()).0) / 1e9;
    let delta = p1 - p0;
    CellRow {
        share_delta: Some(Interval { value: delta, low: delta - half, high: delta + half }),
        head_dispersion: Some(test.phi[HEAD][place]),
        base_dispersion: Some(test.phi[BASE][place]),
        df: Some(test.df[place]),
        statistic: Some(test.statistic(place, scales.deciding().exp(), scales.variance)),
        ln_p: Some(rows.ln_p_share[place]),
        ln_p_min_effect: Some(rows.ln_p_min_effect[place]),
        ln_p_row: Some(rows.ln_p_row[place]),
        ratio,
        adjusted_ratio: adjusted,
        adjusted_ln_p: Some(rows.ln_p[place]),
        ln_e: Some(rows.ln_e[place]),
        minimum_detectable_ratio: Some(design.smallest_detectable(samples_per_pod).exp()),
        seconds_to_significance: Some(needed),
        pods_needed: if needed.is_infinite() { design.pods_needed(rate, window) } else { None },
        samples_needed_iid: Some(samples_needed(share)),
        support: support([row.head.pods, row.base.pods], test.df[place]),
        ..row
    }
}

/// A ratio over a scale, given by its logarithm and the variance of that, with the interval of all ratios whose p is above exp(`ln_p`).
pub(super) fn around(test: &StrataTest, place: usize, ln_p: f64, (ln_scale, variance): (f64, f64)) -> Interval {
    let (low, high) = test.interval(place, ln_p, variance);
    let over = |theta: f64| (theta - ln_scale).exp();
    Interval { value: over(test.theta[place]), low: over(low), high: over(high) }
}

/// Whether the 90 % interval of a log ratio lies within 1.05 around a scale.
pub(super) fn is_equivalent(test: &StrataTest, place: usize, ln_scale: f64) -> bool {
    let limit = EQUIVALENT.ln();
    (test.theta[place] - ln_scale).abs() <= limit
        && [-limit, limit].iter().all(|end| test.ln_p(place, (ln_scale + end).exp()) <= 0.1_f64.ln())
}

/// Adds the always-valid figures to a row of an epoch; `largest` is ln of its largest e-value in it.
pub(super) fn add_always_valid(line: &mut Line, largest: f64) {
    if line.ln_e().is_some() {
        line.row.always_valid_ln_p = Some(-largest);
    }
    line.row.always_valid_ratio = line.tested.as_ref().and_then(|tested| tested.always_valid);
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
    let whole = is_whole(&head, &base);
    let verdict = match () {
        () if evidence.samples[BASE] == 0 || evidence.strata == 0 || is_of_several(function) => Verdict::NotComparable,
        () if whole || evidence.support == Support::Untestable => Verdict::Untestable,
        () => Verdict::Inconclusive,
    };
    CellRow {
        window_start_at: about.start_at,
        window_end_at: about.end_at,
        head,
        base,
        strata: table_count(evidence.strata),
        provisional_until_at: evidence.provisional_until_at,
        g,
        ln_p_iid: of_g,
        verdict,
        support: evidence.support,
        ..CellRow::untested(about.scope, about.comparison.clone(), about.kind, about.cell.clone(), function.to_owned())
    }
}

/// Whether less than a hundredth of all samples is outside of a function.
fn is_whole(head: &ArmFigures, base: &ArmFigures) -> bool {
    let samples = signed_float(head.total + base.total);
    100.0 * (samples - signed_float(head.count + base.count)) < samples
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
        Verdict::NotComparable if row.function == OVERFLOW => RowReason::Overflow,
        Verdict::NotComparable => RowReason::Unsymbolised,
        Verdict::Untestable if is_whole(&row.head, &row.base) => RowReason::WholeProfile,
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
