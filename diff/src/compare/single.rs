//! One run per side: what stands out between them.
//!
//! The same questions as between many runs (a share after the normalization factor, by more than the minimum effect,
//! controlled over all functions), but the variation between runs is unknown: all there is to know of it is what the functions show together
//! ([`empirical_null`](super::empirical_null)). A function that stands out differs more between these two runs than the others let expect; whether
//! it also differs between the next two, only more runs of each side can show. So none is ever `regressed` or `improved`.

use std::collections::BTreeSet;

use fleetdiff_formats::names::FrameClass;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{Interval, RARE};
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use fleetdiff_statistics::families::{bh, bh_among, selected, weighted, weights};
use fleetdiff_statistics::g::{g_rate, g_share};
use fleetdiff_statistics::minimum_effect::outside_band;
use fleetdiff_statistics::normalization::scales_of_counts;
use fleetdiff_statistics::{FEW_FUNCTIONS, Scales};

use super::empirical_null::{Deviation, EmpiricalNull, Expected, Null};
use super::finding::Finding;
use super::settings::Settings;
use super::within::Within;
use crate::sides::Sides;

/// A function must change by this part of all samples to stand out, unless the variation between runs is given: less comes and goes between runs of
/// one program, as what is done once at the start does.
const TRACE: f64 = 0.005;

/// Adds the test of two single runs to every finding: ratio with 95 % interval, ln p, q and verdict.
///
/// `samples` are those of each side. theta = ln(a/N1) - ln(b/N0) - ln factor; se^2 = 1/a - 1/N1 + 1/b - 1/N0. The
/// statistic is G if the normalization factor is 1, otherwise the likelihood ratio of rates / (1 - pooled share); its reference is that of
/// independent samples together with what the other functions of these runs differ by ([`EmpiricalNull`]). The factor is that of self
/// counts: that on which most of the cost of 20 or more tested functions
/// stands still, otherwise that of [`normalization_of_the_rest`]. If two groups of functions moved apart there are
/// several, and a change must hold against each.
///
/// Returns the scale of the variation between runs of the program's own functions, as a log ratio beyond that of independent samples.
///
/// `within` is what the runs show of how much functions vary within them.
pub(crate) fn test(
    findings: &mut [Finding],
    samples: Sides<u64>,
    within: &Sides<Within<'_>>,
    settings: &Settings,
) -> f64 {
    let (mut factors, mut scale) = (Factors::one(1.0), settings.background.unwrap_or(0.0));
    let floor = if settings.background.is_none() { TRACE } else { 0.0 };
    for kind in CountKind::ALL {
        let mut tested: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|finding| finding.count_kind == kind)
            .filter(|finding| is_tested(finding, samples, settings))
            .collect();
        let mut pairs: Vec<Pair> = tested.iter().map(|finding| Pair::of(finding, samples, within)).collect();
        let mut nulls = Nulls::of(settings);
        if kind == CountKind::SelfCount {
            let column = |of: fn(&Pair) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
            factors = if pairs.len() < FEW_FUNCTIONS {
                nulls.give(&mut pairs, |_| None);
                Factors::one(normalization_of_the_rest(&pairs, samples, settings))
            } else {
                Factors::of(&scales_of_counts(
                    &column(|pair| pair.head),
                    float(samples.head),
                    &column(|pair| pair.base),
                    float(samples.base),
                ))
            };
        }
        nulls.learn(&pairs, &factors);
        nulls.give(&mut pairs, |pair| pair.teaches(&factors));
        if kind == CountKind::SelfCount {
            scale = nulls.scale_of_the_program();
        }
        let parts: Vec<f64> = pairs.iter().map(Pair::part).collect();
        let q_values = |ln_p: &[f64]| bh(&weighted(ln_p, &weights(&parts)));
        let ln_p: Vec<f64> = pairs.iter().map(|pair| factors.ln_p_beyond(pair, settings.min_effect)).collect();
        let compositional: Vec<f64> = pairs.iter().map(|pair| pair.ln_p_beyond(1.0, settings.min_effect)).collect();
        let (q_values, q_compositional) = (q_values(&ln_p), q_values(&compositional));
        for (((finding, pair), (ln_p, q_value)), q_compositional) in
            tested.iter_mut().zip(&pairs).zip(ln_p.iter().zip(q_values)).zip(q_compositional)
        {
            let share_moved = selected(q_compositional, settings.q);
            let moved = share_moved && pair.moved_with_the_rest(factors.deciding, settings.min_effect);
            let is_selected = selected(q_value, settings.q);
            let stands_out = is_selected && pair.change() >= floor;
            (finding.verdict, finding.reason) = match (stands_out, moved) {
                (true, _) => (Verdict::StandsOut, pair.missing()),
                _ if is_selected => (Verdict::Inconclusive, None),
                (false, _) if share_moved && !factors.rivals.is_empty() => {
                    (Verdict::Inconclusive, Some(RowReason::AmbiguousScale))
                }
                (false, true) => (Verdict::Compositional, None),
                (false, false) => (Verdict::Inconclusive, None),
            };
            if is_selected && !stands_out {
                finding.detail = Some(comes_and_goes());
            }
            finding.ratio = pair.ratio(factors.deciding);
            finding.ln_p = Some(*ln_p);
            finding.q_value = Some(q_value);
        }
    }
    scale
}

/// Why a function does not stand out that changed by less than [`TRACE`].
fn comes_and_goes() -> String {
    format!("changed by less than {:.1} % of all samples, which comes and goes from run to run", 100.0 * TRACE)
}

/// With two to four runs a side, rows of runtimes, libraries and kernels that do not stand out between the sums of both sides, as if each were one run,
/// are not significant; with two, neither are rows that changed by less than [`TRACE`].
///
/// So few runs show how much a function varies only together with all others, as if all varied in much the same way. The program's own functions do; what
/// schedules, collects, imports and waits beside them varies much more, and now and then by a multiple.
pub(crate) fn demand_standing_out(
    findings: &mut [Finding],
    samples: Sides<u64>,
    runs: Sides<usize>,
    settings: &Settings,
) {
    let mut summed = findings.to_vec();
    test(&mut summed, samples, &Sides::default(), settings);
    let least = if runs.base.min(runs.head) <= 2 { TRACE } else { 0.0 };
    let is_of_surroundings = |finding: &Finding| Expected::place_of(FrameClass::of(&finding.function)) > 0;
    for (finding, summed) in findings.iter_mut().zip(summed).filter(|(finding, _)| finding.verdict.is_significant()) {
        let why = if is_of_surroundings(finding) && summed.verdict != Verdict::StandsOut {
            "differs no more than other functions of these few runs let expect".to_owned()
        } else if finding.moved() < least {
            comes_and_goes()
        } else {
            continue;
        };
        finding.verdict = Verdict::Inconclusive;
        (finding.reason, finding.cause, finding.detail) = (None, None, Some(why));
    }
}

/// What functions differ by between runs if nothing changed: the program's own, and those of runtimes, libraries and the kernel.
struct Nulls {
    /// None if the variation is given.
    learned: Option<[EmpiricalNull; 2]>,
    given: f64,
}

impl Nulls {
    fn of(settings: &Settings) -> Self {
        let learned = Expected::ALL.map(|expected| EmpiricalNull::expected(&expected));
        Self { learned: settings.background.is_none().then_some(learned), given: settings.background.unwrap_or(0.0) }
    }

    /// Learns from functions that both sides have, at most half of all samples each. Of functions with equal counts, as callers that call
    /// nothing else have, one counts.
    fn learn(&mut self, pairs: &[Pair], factors: &Factors) {
        let Some(learned) = &mut self.learned else { return };
        let mut seen = BTreeSet::new();
        for pair in pairs {
            let Some(deviation) = pair.teaches(factors) else { continue };
            if seen.insert((pair.head.to_bits(), pair.base.to_bits(), pair.group)) {
                learned[pair.group].learn(deviation);
            }
        }
    }

    /// Gives each function the null of all that was learned but from it: `taught` is what it taught.
    fn give(&self, pairs: &mut [Pair], taught: impl Fn(&Pair) -> Option<Deviation>) {
        for pair in pairs {
            pair.null = match &self.learned {
                Some(learned) => learned[pair.group].without(taught(pair)),
                None => Null::of_scale(self.given),
            };
        }
    }

    fn scale_of_the_program(&self) -> f64 {
        self.learned.as_ref().map_or(self.given, |[program, _]| program.scale())
    }
}

/// The normalization factors on which a change must hold.
struct Factors {
    /// That by which ratios are divided.
    deciding: f64,
    rivals: Vec<f64>,
}

impl Factors {
    fn one(deciding: f64) -> Self {
        Self { deciding, rivals: Vec::new() }
    }

    fn of(scales: &Scales) -> Self {
        let mut factors = scales.ln_scales().map(libm::exp);
        Self { deciding: factors.next().unwrap_or(1.0), rivals: factors.collect() }
    }

    /// ln p of a change by more than the minimum effect against every factor; 0 unless it has one direction.
    fn ln_p_beyond(&self, pair: &Pair, min_effect: f64) -> f64 {
        let above = |factor: &f64| pair.theta() > libm::log(*factor);
        if self.rivals.iter().any(|rival| above(rival) != above(&self.deciding)) {
            return 0.0;
        }
        let all = std::iter::once(&self.deciding).chain(&self.rivals);
        all.map(|&factor| pair.ln_p_beyond(factor, min_effect)).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The normalization factor of a few functions, too few for a robust one: the change of the total share of all that are
/// not significant.
///
/// As long as the function with the smallest p is significant among those that are left, it is removed from the samples
/// of both sides; the factor is then the change of the share of what is left. Counts are those of leaves, which add up.
fn normalization_of_the_rest(pairs: &[Pair], samples: Sides<u64>, settings: &Settings) -> f64 {
    let (all_head, all_base) = (float(samples.head), float(samples.base));
    let (mut head, mut base, mut normalization) = (all_head, all_base, 1.0);
    let mut left: Vec<&Pair> = pairs.iter().collect();
    while left.len() > 1 {
        let ln_p: Vec<f64> = left.iter().map(|pair| pair.ln_p_beyond(normalization, settings.min_effect)).collect();
        let first = ln_p.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((place, ln_p)) =
            first.filter(|(_, ln_p)| bh_among(&[**ln_p], left.len()).first().is_some_and(|q| selected(*q, settings.q)))
        else {
            break;
        };
        debug_assert!(!ln_p.is_nan());
        let significant = left.remove(place);
        (head, base) = (head - significant.head, base - significant.base);
        if head <= 0.0 || base <= 0.0 {
            break;
        }
        normalization = (head / all_head) / (base / all_base);
    }
    normalization
}

/// Decides by the rule of the article's first program: p of G below 1e-4, whatever the count, for each function
/// separately. Not calibrated: if nothing changed, functions that vary between runs are significant, and so are those
/// that moved because shares sum to one.
pub(crate) fn test_as_the_article(findings: &mut [Finding], samples: Sides<u64>) {
    for finding in findings.iter_mut().filter(|finding| &*finding.function != RARE) {
        let pair = Pair::of(finding, samples, &Sides::default());
        let ln_p = pair.ln_p(1.0);
        let significant = ln_p < libm::log(1e-4);
        (finding.verdict, finding.reason) = match significant {
            true if pair.theta() > 0.0 => (Verdict::Regressed, pair.missing()),
            true => (Verdict::Improved, pair.missing()),
            false => (Verdict::Inconclusive, None),
        };
        (finding.ratio, finding.ln_p, finding.q_value) = (pair.ratio(1.0), Some(ln_p), None);
        (finding.cause, finding.detail) = (None, None);
    }
}

fn is_tested(finding: &Finding, samples: Sides<u64>, settings: &Settings) -> bool {
    let both = finding.amount().base + finding.amount().head;
    let named = ![RARE, UNSYMBOLISED].contains(&&*finding.function);
    named && both >= settings.min_count && both > 0 && both < samples.base + samples.head
}

/// The counts of one function and of all samples.
struct Pair {
    head: f64,
    base: f64,
    all_head: f64,
    all_base: f64,
    /// Which of [`Expected::ALL`] it is one of.
    group: usize,
    /// By what the variance of the counts of each side is more than that of independent samples.
    inflation: Sides<f64>,
    /// What theta may be beyond independent samples.
    null: Null,
}

impl Pair {
    fn of(finding: &Finding, samples: Sides<u64>, within: &Sides<Within<'_>>) -> Self {
        let inflation = |side: &Within<'_>| side.inflation(finding.count_kind, &finding.function);
        Self {
            head: float(finding.amount().head),
            base: float(finding.amount().base),
            all_head: float(samples.head),
            all_base: float(samples.base),
            group: Expected::place_of(FrameClass::of(&finding.function)),
            inflation: Sides { base: inflation(&within.base), head: inflation(&within.head) },
            null: Null::of_scale(0.0),
        }
    }

    /// ln of the ratio of shares; infinite if a side lacks the function.
    fn theta(&self) -> f64 {
        (libm::log(self.head) - libm::log(self.all_head)) - (libm::log(self.base) - libm::log(self.all_base))
    }

    /// The part of all samples that the function is.
    fn part(&self) -> f64 {
        (self.head + self.base) / (self.all_head + self.all_base)
    }

    fn ln_p(&self, normalization: f64) -> f64 {
        #[expect(clippy::float_cmp, reason = "the scale of shares is 1 exactly")]
        let statistic = if normalization == 1.0 {
            g_share(self.head, self.all_head, self.base, self.all_base)
        } else {
            g_rate(self.head, normalization * self.all_head, self.base, self.all_base) / (1.0 - self.part())
        };
        let more = self.variance() / self.variance_by(Sides { base: 1.0, head: 1.0 });
        self.null.ln_p(statistic / more, self.variance())
    }

    /// Variance of theta, as far as samples show it.
    fn variance(&self) -> f64 {
        self.variance_by(self.inflation)
    }

    /// That of independent samples, times this; of a side that lacks the function, as if it had half a sample.
    fn variance_by(&self, inflation: Sides<f64>) -> f64 {
        let of = |count: f64, all: f64| 1.0 / count.max(0.5) - 1.0 / all;
        let base = inflation.base * of(self.base, self.all_base);
        (inflation.head * of(self.head, self.all_head) + base).max(f64::MIN_POSITIVE)
    }

    /// ln p of a change by more than the minimum effect, after a normalization factor.
    fn ln_p_beyond(&self, normalization: f64, min_effect: f64) -> f64 {
        let at = |factor: f64| self.ln_p(normalization * libm::exp(factor));
        self.ln_p(normalization).max(outside_band(
            self.theta() - libm::log(normalization),
            min_effect,
            at(min_effect),
            at(-min_effect),
        ))
    }

    /// Whether the share moved in the direction of the normalization factor, and is smaller after normalization.
    fn moved_with_the_rest(&self, normalization: f64, min_effect: f64) -> bool {
        let (theta, normalization) = (self.theta(), libm::log(normalization));
        normalization.abs() >= min_effect && theta * normalization > 0.0 && (theta - normalization).abs() < theta.abs()
    }

    /// The side that lacks the function.
    fn missing(&self) -> Option<RowReason> {
        match (self.head <= 0.0, self.base <= 0.0) {
            (_, true) => Some(RowReason::OnlyInHead),
            (true, _) => Some(RowReason::OnlyInBase),
            _ => None,
        }
    }

    /// By how much of all samples it changed.
    fn change(&self) -> f64 {
        (self.head / self.all_head - self.base / self.all_base).abs()
    }

    /// What the function shows of the variation between runs.
    fn teaches(&self, factors: &Factors) -> Option<Deviation> {
        let beyond = self.theta() - libm::log(factors.deciding);
        (self.missing().is_none() && self.part() <= 0.5).then(|| Deviation { beyond, variance: self.variance() })
    }

    /// The adjusted ratio with its interval; none if a side lacks the function. With an estimated normalization factor
    /// the error is larger, since the factor moves against the function.
    fn ratio(&self, normalization: f64) -> Option<Interval> {
        if self.head <= 0.0 || self.base <= 0.0 {
            return None;
        }
        let half = self.null.half_of_interval(self.variance()) / (1.0 - self.part());
        let theta = self.theta() - libm::log(normalization);
        Some(Interval { value: libm::exp(theta), low: libm::exp(theta - half), high: libm::exp(theta + half) })
    }
}
