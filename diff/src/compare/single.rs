//! One run per side: samples are treated as independent of each other.
//!
//! The same questions as between many runs (a share after the normalization factor, by more than the minimum effect,
//! controlled over all functions), but the reference is the chi-square distribution of independent samples. Little is
//! known about the variation between runs: only what most functions show together ([`background`]). A significant
//! function differs between these two runs; whether it also differs between the next two, only a second run of each
//! side can show.

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{Interval, RARE};
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use fleetdiff_statistics::families::{bh, bh_among, selected};
use fleetdiff_statistics::g::{g_rate, g_share};
use fleetdiff_statistics::minimum_effect::outside_band;
use fleetdiff_statistics::normalization::scales_of_counts;
use fleetdiff_statistics::special::normal_quantile;
use fleetdiff_statistics::tails::ln_chi1_tail;
use fleetdiff_statistics::{FEW_FUNCTIONS, Scales};

use super::background;
use super::finding::Finding;
use super::settings::Settings;
use crate::sides::Sides;

/// Adds the test of independent samples to every finding: ratio with 95 % interval, ln p, q and verdict.
///
/// `samples` are those of each side. theta = ln(a/N1) - ln(b/N0) - ln factor; se^2 = 1/a - 1/N1 + 1/b - 1/N0. The
/// statistic is G if the normalization factor is 1, otherwise the likelihood ratio of rates / (1 - pooled share), over
/// 1 + tau^2 / se^2. The factor is that of self counts: that on which most of the cost of 20 or more tested functions
/// stands still, otherwise that of [`normalization_of_the_rest`]. If two groups of functions moved apart there are
/// several, and a change must hold against each. tau is the background, 0 below 20 functions. Assumes that samples are independent
/// except for tau.
///
/// Returns tau, the standard deviation of log ratios beyond that of independent samples.
pub(crate) fn test(findings: &mut [Finding], samples: Sides<u64>, settings: &Settings) -> f64 {
    let (mut factors, mut tau2) = (Factors::one(1.0), settings.background.map_or(0.0, |tau| tau * tau));
    for kind in CountKind::ALL {
        let mut tested: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|finding| finding.count_kind == kind)
            .filter(|finding| is_tested(finding, samples, settings))
            .collect();
        let mut pairs: Vec<Pair> = tested.iter().map(|finding| Pair::of(finding, samples)).collect();
        if kind == CountKind::SelfCount {
            let column = |of: fn(&Pair) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
            factors = if pairs.len() < FEW_FUNCTIONS {
                Factors::one(normalization_of_the_rest(&pairs, samples, settings))
            } else {
                Factors::of(&scales_of_counts(
                    &column(|pair| pair.head),
                    float(samples.head),
                    &column(|pair| pair.base),
                    float(samples.base),
                ))
            };
            if settings.background.is_none() && pairs.len() >= FEW_FUNCTIONS {
                let on_both = pairs.iter().filter(|pair| pair.head > 0.0 && pair.base > 0.0);
                tau2 = background::variance(
                    &on_both
                        .map(|pair| (pair.theta() - libm::log(factors.deciding), pair.variance()))
                        .collect::<Vec<_>>(),
                );
            }
        }
        pairs.iter_mut().for_each(|pair| pair.tau2 = tau2);
        let ln_p: Vec<f64> = pairs.iter().map(|pair| factors.ln_p_beyond(pair, settings.min_effect)).collect();
        let compositional: Vec<f64> = pairs.iter().map(|pair| pair.ln_p_beyond(1.0, settings.min_effect)).collect();
        let (q_values, q_compositional) = (bh(&ln_p), bh(&compositional));
        for (((finding, pair), (ln_p, q_value)), q_compositional) in
            tested.iter_mut().zip(&pairs).zip(ln_p.iter().zip(q_values)).zip(q_compositional)
        {
            let share_moved = selected(q_compositional, settings.q);
            let moved = share_moved && pair.moved_with_the_rest(factors.deciding, settings.min_effect);
            let significant = selected(q_value, settings.q);
            let (verdict, reason) = if share_moved && !significant && !factors.rivals.is_empty() {
                (Verdict::Inconclusive, Some(RowReason::AmbiguousScale))
            } else {
                pair.verdict(factors.deciding, significant, moved)
            };
            finding.ratio = pair.ratio(factors.deciding);
            finding.ln_p = Some(*ln_p);
            finding.q_value = Some(q_value);
            (finding.verdict, finding.reason) = (verdict, reason);
        }
    }
    libm::sqrt(tau2)
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
        let pair = Pair::of(finding, samples);
        let ln_p = pair.ln_p(1.0);
        let significant = ln_p < libm::log(1e-4);
        (finding.verdict, finding.reason) = pair.verdict(1.0, significant, false);
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
    /// Variance of theta beyond that of independent samples.
    tau2: f64,
}

impl Pair {
    fn of(finding: &Finding, samples: Sides<u64>) -> Self {
        Self {
            head: float(finding.amount().head),
            base: float(finding.amount().base),
            all_head: float(samples.head),
            all_base: float(samples.base),
            tau2: 0.0,
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
        ln_chi1_tail(statistic / (1.0 + self.tau2 / self.variance()))
    }

    /// Variance of theta, if samples are independent; infinite if a side lacks the function.
    fn variance(&self) -> f64 {
        1.0 / self.head - 1.0 / self.all_head + 1.0 / self.base - 1.0 / self.all_base
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

    fn verdict(
        &self,
        normalization: f64,
        significant: bool,
        moved_with_the_rest: bool,
    ) -> (Verdict, Option<RowReason>) {
        let grew = self.theta() > libm::log(normalization);
        match (significant, moved_with_the_rest) {
            (true, _) if grew => (Verdict::Regressed, (self.base <= 0.0).then_some(RowReason::OnlyInHead)),
            (true, _) => (Verdict::Improved, (self.head <= 0.0).then_some(RowReason::OnlyInBase)),
            (false, true) => (Verdict::Compositional, None),
            (false, false) => (Verdict::Inconclusive, None),
        }
    }

    /// The adjusted ratio with its interval; none if a side lacks the function. With an estimated normalization factor
    /// the error is larger, since the factor moves against the function.
    fn ratio(&self, normalization: f64) -> Option<Interval> {
        if self.head <= 0.0 || self.base <= 0.0 {
            return None;
        }
        let half = normal_quantile(0.975) * libm::sqrt(self.variance() + self.tau2) / (1.0 - self.part());
        let theta = self.theta() - libm::log(normalization);
        Some(Interval { value: libm::exp(theta), low: libm::exp(theta - half), high: libm::exp(theta + half) })
    }
}
