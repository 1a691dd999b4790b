//! The cheap evaluation between reports: only rows that could be raised are computed to the end.
//!
//! e-BH at level q never calls a row whose e-value is below 1/q, and whatever the error of a row, ln e <= (z^2 - 1 - ln z^2)/2,
//! which is what a bet on the best of all spreads would give. So a row needs at least the z at which that is ln(1/q), 3.05 for
//! q = .05, which is one critical F a cell, since the degrees of freedom are the cell's. Statistics are bounded from above by
//! Pearson's form before any logarithm is taken. What is left, a few rows, gets exactly what a report would give it.

use crate::effect::{EQUIVALENCE_LEVEL, is_equivalent};
use crate::evalue::ln_e_normalized;
use crate::moments::Moments;
use crate::rows::rows_of;
use crate::special::ln_erfc;
use crate::tails::{F1Tail, t_quantile};
use crate::test::{implied_se, is_one};
use crate::thresholds::FEW_FUNCTIONS;

/// A row whose e-value may reach the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRow {
    /// The function's id in the contrast.
    pub function: usize,
    /// ln of the ratio against the scale.
    pub theta: f64,
    /// Standard error of the log ratio, as the e-value takes it.
    pub se: f64,
    /// ln p from which the e-value is made.
    pub ln_p: f64,
    /// ln of the e-value.
    pub ln_e: f64,
}

/// One cell at one look.
#[derive(Clone, Debug)]
pub struct LiveRows {
    /// By how much all shares moved.
    pub normalization: f64,
    /// ln of the ratio against the scale, by function.
    pub theta: Vec<f64>,
    /// Whether the function is shown to be unchanged: 90 % interval within +-ln 1.05; false where not tested or in one arm only.
    pub equivalent: Vec<bool>,
    /// The rows that pass the screen, ascending by function; every row with e >= the floor is among them.
    pub candidates: Vec<LiveRow>,
    /// What does not depend on the scale; `tests` is what joins the family.
    pub moments: Moments,
}

/// The live evaluation of a cell: rows whose e-value can be at least `e_floor` (1/q, 20), and who is shown unchanged.
///
/// A candidate's `ln_p` and `ln_e` are those of [`crate::rows_of_cell`] to the last bit; with fewer than 20 tested
/// functions they come from `ln_p_row`, and every tested function is a candidate.
///
/// `delta` is that of the small families; `moments` are of shares.
#[must_use]
pub fn live_rows_of(moments: Moments, self_normalization: Option<f64>, e_floor: f64, min_effect: f64) -> LiveRows {
    if moments.tests < FEW_FUNCTIONS {
        return few_functions(moments, self_normalization, min_effect);
    }
    let normalization = self_normalization.unwrap_or_else(|| moments.normalization());
    let ln_normalization = libm::log(normalization);
    let theta: Vec<f64> = moments.theta_raw.iter().map(|theta| theta - ln_normalization).collect();
    let equivalent = equivalent(&moments, &theta);
    let candidates = moments.candidates(normalization, e_floor, &theta);
    LiveRows { normalization, theta, equivalent, candidates, moments }
}

/// With fewer than 20 tested functions everything is computed.
fn few_functions(moments: Moments, self_normalization: Option<f64>, min_effect: f64) -> LiveRows {
    let rows = rows_of(moments, self_normalization, min_effect);
    let equivalent = equivalent(&rows.moments, &rows.adjusted.theta);
    let row = |function: usize| LiveRow {
        function,
        theta: rows.adjusted.theta[function],
        se: rows.share.se[function],
        ln_p: rows.ln_p_row[function],
        ln_e: rows.ln_e[function],
    };
    let candidates = (0..rows.moments.a.len()).filter(|&f| rows.moments.tested[f]).map(row).collect();
    LiveRows {
        normalization: rows.normalization,
        theta: rows.adjusted.theta,
        equivalent,
        candidates,
        moments: rows.moments,
    }
}

/// Who is shown unchanged.
fn equivalent(moments: &Moments, theta: &[f64]) -> Vec<bool> {
    if moments.tests == 0 {
        return vec![false; theta.len()];
    }
    let t = t_quantile(EQUIVALENCE_LEVEL, moments.df_total);
    theta
        .iter()
        .zip(&moments.se)
        .zip(&moments.tested)
        .map(|((&theta, &se), &tested)| tested && is_equivalent(theta, se, t))
        .collect()
}

impl Moments {
    /// The rows whose e-value can be at least `e_floor`.
    fn candidates(&self, normalization: f64, e_floor: f64, theta: &[f64]) -> Vec<LiveRow> {
        let (tails, ln_normalization) = (self.tails(), libm::log(normalization));
        let row = |(f, stat)| {
            let ln_p = self.ln_p_of(f, stat, ln_normalization, &tails);
            let se = self.share_se(f, &tails);
            LiveRow { function: f, theta: theta[f], se, ln_p, ln_e: ln_e_normalized(ln_p, se, self.part(f)) }
        };
        self.reaching(normalization, ln_erfc(libm::sqrt(0.5 * least_z2(e_floor)))).map(row).collect()
    }

    /// The tested functions whose F test at a scale may have a p of at most exp(`ln_p`), with their statistics, ascending; all
    /// others have a larger one.
    pub(super) fn reaching(&self, normalization: f64, ln_p: f64) -> impl Iterator<Item = (usize, f64)> {
        let needed = self.tails().0.critical(ln_p) * (1.0 - 1e-9);
        let reaches = move |f: usize, stat: f64| self.tested[f] && stat >= needed * self.phi_tilde[f];
        let bounds = if self.strata > 1 { self.scores(normalization) } else { self.statistic_bounds(normalization) };
        let near = bounds.into_iter().enumerate().filter(move |&(f, bound)| reaches(f, bound));
        let exact = near
            .map(move |(f, bound)| (f, if self.strata > 1 { bound } else { self.likelihood_ratio(f, normalization) }));
        exact.filter(move |&(f, stat)| reaches(f, stat))
    }

    /// Above every statistic of a cell with one stratum.
    fn statistic_bounds(&self, normalization: f64) -> Vec<f64> {
        let (n1, n0) = (self.n_head, self.n_base);
        let (e1, e) = (normalization * n1, normalization * n1 + n0);
        let bounds = StatisticBounds {
            a: &self.a,
            b: &self.b,
            head: e1 / e,
            base: n0 / e,
            inverse_n: 1.0 / (n1 + n0),
            only_two: !is_one(normalization),
        };
        pulp::Arch::new().dispatch(bounds)
    }

    /// The standard error of the share test for one function.
    fn share_se(&self, f: usize, tails: &(F1Tail, F1Tail)) -> f64 {
        if !self.se[f].is_nan() {
            return self.se[f];
        }
        implied_se(self.theta_raw[f], self.ln_p_of(f, self.statistic(f, 1.0), 0.0, tails))
    }
}

/// The smallest z^2 with which an e-value can reach `e_floor`: of z^2 - 1 - ln z^2 = 2 ln(`e_floor`), approached from below.
fn least_z2(e_floor: f64) -> f64 {
    let twice = 2.0 * libm::log(e_floor);
    if twice > 0.0 { (0..40).fold(1.0 + twice, |z2, _| 1.0 + twice + libm::log(z2)) } else { 0.0 }
}

/// Bounds of G from Pearson's X^2 = sum of (o - e)^2/e, compiled for each width of vectors.
///
/// With x = (o - e)/e, G/2 is the sum of e ((1 + x) ln(1 + x) - x). A term with x > 0 is below e x^2/2, one with x = -y below
/// e y^2/2 (1 + y/3 + 2 y^2/3), the series of which ends at y = 1 with 2. The y of the deficient one of two cells is at hand;
/// with shares at scale 1 there are four cells, and 2 it is.
struct StatisticBounds<'a> {
    a: &'a [f64],
    b: &'a [f64],
    /// The part of a function's samples that is expected in the head, and in the base.
    head: f64,
    base: f64,
    inverse_n: f64,
    only_two: bool,
}

impl pulp::NullaryFnOnce for StatisticBounds<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn call(self) -> Vec<f64> {
        let (per_head, per_base, per_both) = (1.0 / self.head, 1.0 / self.base, 1.0 / (self.head * self.base));
        let mut bounds = self.a.to_vec();
        for (bound, &b) in bounds.iter_mut().zip(self.b) {
            let both = *bound + b;
            let (deviation, inverse) = (*bound - both * self.head, 1.0 / both);
            let y = (deviation * per_base).max(-deviation * per_head) * inverse;
            let above = if self.only_two { 1.0 + y * (1.0 / 3.0 + 2.0 / 3.0 * y) } else { 2.0 };
            *bound = (1.0 + 1e-9) * above * deviation * deviation * inverse * per_both / (1.0 - both * self.inverse_n);
        }
        bounds
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evalue::ln_e_mixture;
    use crate::g::g_rate;

    proptest! {
        /// Law: no error makes the e-value of a smaller z reach the floor, and some bet comes near it at that z.
        #[test]
        fn no_smaller_z_reaches_the_floor(ln_v in -20.0..10.0_f64, part in 0.0..1.0_f64, floor in 1.01..1e6_f64) {
            let least = least_z2(floor);
            prop_assert!((least - 1.0 - least.ln() - 2.0 * floor.ln()).abs() < 1e-9);
            prop_assert!(ln_e_mixture(part * least, ln_v.exp()) <= floor.ln() + 1e-9);
        }

        /// Law: the bound is above G, and below twice Pearson's statistic.
        #[test]
        fn bounds_hold(a in 0u32..2000, b in 0u32..2000, n1 in 5000u32..100_000, n0 in 5000u32..100_000, normalization in 0.3..3.0_f64) {
            let (a, b, n1, n0) = (f64::from(a), f64::from(b.max(1)), f64::from(n1), f64::from(n0));
            let (e1, e) = (normalization * n1, normalization * n1 + n0);
            let bound = |only_two| {
                let inverse_n = 1.0 / (n1 + n0);
                let bounds = StatisticBounds { a: &[a], b: &[b], head: e1 / e, base: n0 / e, inverse_n, only_two };
                pulp::Arch::new().dispatch(bounds)[0]
            };
            let (exact, bound, twice) = (g_rate(a, e1, b, n0) / (1.0 - (a + b) / (n1 + n0)), bound(true), bound(false));
            prop_assert!(exact <= bound && bound <= twice * (1.0 + 1e-9), "{exact} {bound} {twice}");
        }
    }
}
