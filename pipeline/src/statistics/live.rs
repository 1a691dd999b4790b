//! The cheap evaluation between reports: only rows that could be raised are computed to the end.
//!
//! e-BH at level q never calls a row whose e-value is below 1/q, and ln e <= z^2/2. So a row needs at least z = sqrt(2 ln(1/q)),
//! which is one critical F a cell, since the degrees of freedom are the cell's. Statistics are bounded from above by twice
//! Pearson's form before any logarithm is taken. What is left, a few rows, gets exactly what a report would give it.

use crate::statistics::effect::{EQUIVALENCE_LEVEL, is_equivalent};
use crate::statistics::evalue::ln_e_against_scale;
use crate::statistics::moments::Moments;
use crate::statistics::rows::rows_of;
use crate::statistics::special::ln_erfc;
use crate::statistics::strata::{Contrast, Model};
use crate::statistics::tails::{F1Tail, t_quantile};
use crate::statistics::test::implied_se;
use crate::statistics::{DELTA, FEW_FUNCTIONS, MIN_COUNT};

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
    pub scale: f64,
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
/// A candidate's `ln_p` and `ln_e` are those of [`crate::statistics::rows_of_cell`] to the last bit; with fewer than 20 tested
/// functions they come from `ln_p_row`, and every tested function is a candidate.
#[must_use]
pub fn live_rows(contrast: &Contrast<'_>, self_scale: Option<f64>, e_floor: f64) -> LiveRows {
    live_rows_of(Moments::measure(contrast, Model::Share, MIN_COUNT), self_scale, e_floor, DELTA)
}

/// [`live_rows`] from moments that were measured before, with the `delta` of the small families.
#[must_use]
pub fn live_rows_of(moments: Moments, self_scale: Option<f64>, e_floor: f64, delta: f64) -> LiveRows {
    if moments.tests < FEW_FUNCTIONS {
        return few_functions(moments, self_scale, delta);
    }
    let scale = self_scale.unwrap_or_else(|| moments.scale());
    let ln_scale = libm::log(scale);
    let theta: Vec<f64> = moments.theta_raw.iter().map(|theta| theta - ln_scale).collect();
    let equivalent = equivalent(&moments, &theta);
    let candidates = moments.candidates(scale, e_floor, &theta);
    LiveRows { scale, theta, equivalent, candidates, moments }
}

/// With fewer than 20 tested functions everything is computed.
fn few_functions(moments: Moments, self_scale: Option<f64>, delta: f64) -> LiveRows {
    let rows = rows_of(moments, self_scale, delta);
    let equivalent = equivalent(&rows.moments, &rows.adjusted.theta);
    let row = |function: usize| LiveRow {
        function,
        theta: rows.adjusted.theta[function],
        se: rows.share.se[function],
        ln_p: rows.ln_p_row[function],
        ln_e: rows.ln_e[function],
    };
    let candidates = (0..rows.moments.a.len()).filter(|&f| rows.moments.tested[f]).map(row).collect();
    LiveRows { scale: rows.scale, theta: rows.adjusted.theta, equivalent, candidates, moments: rows.moments }
}

/// Who is shown unchanged.
fn equivalent(moments: &Moments, theta: &[f64]) -> Vec<bool> {
    if moments.tests == 0 {
        return vec![false; theta.len()];
    }
    let t = t_quantile(EQUIVALENCE_LEVEL, moments.df_total);
    theta.iter().zip(&moments.se).zip(&moments.tested).map(|((&theta, &se), &tested)| tested && is_equivalent(theta, se, t)).collect()
}

impl Moments {
    /// The rows whose e-value can be at least `e_floor`.
    fn candidates(&self, scale: f64, e_floor: f64, theta: &[f64]) -> Vec<LiveRow> {
        let tails = self.tails();
        let ln_scale = libm::log(scale);
        let needed = tails.0.critical(ln_erfc(libm::sqrt(libm::log(e_floor).max(0.0)))) * (1.0 - 1e-9);
        let mut rows = Vec::new();
        let mut consider = |f: usize, stat: f64| {
            if stat >= needed * self.phi_tilde[f] {
                let ln_p = self.ln_p_of(f, stat, ln_scale, &tails);
                let se = self.share_se(f, &tails);
                rows.push(LiveRow { function: f, theta: theta[f], se, ln_p, ln_e: ln_e_against_scale(ln_p, se, self.part(f)) });
            }
        };
        if self.strata > 1 {
            let scores = self.scores(scale);
            (0..scores.len()).filter(|&f| self.tested[f]).for_each(|f| consider(f, scores[f]));
        } else {
            let bounds = self.statistic_bounds(scale);
            for f in (0..bounds.len()).filter(|&f| self.tested[f] && bounds[f] >= needed * self.phi_tilde[f]) {
                consider(f, self.likelihood_ratio(f, scale));
            }
        }
        rows
    }

    /// Above every statistic of a cell with one stratum: o ln(o/e) <= o (o - e)/e makes G at most twice Pearson's statistic.
    fn statistic_bounds(&self, scale: f64) -> Vec<f64> {
        let (n1, n0) = (self.n_head, self.n_base);
        let (e1, e) = (scale * n1, scale * n1 + n0);
        let (p, variance, inverse_n) = (e1 / e, e1 * n0 / (e * e), 1.0 / (n1 + n0));
        let bound = |(&a, &b): (&f64, &f64)| {
            let both = a + b;
            let deviation = a - both * p;
            2.0 * (1.0 + 1e-9) * deviation * deviation / (both * variance * (1.0 - both * inverse_n))
        };
        self.a.iter().zip(&self.b).map(bound).collect()
    }

    /// The standard error of the share test for one function.
    fn share_se(&self, f: usize, tails: &(F1Tail, F1Tail)) -> f64 {
        if !self.se[f].is_nan() {
            return self.se[f];
        }
        let stat = if self.strata > 1 { self.score(f, 1.0) } else { self.likelihood_ratio(f, 1.0) };
        implied_se(self.theta_raw[f], self.ln_p_of(f, stat, 0.0, tails))
    }
}
