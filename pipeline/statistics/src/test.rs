//! The test of every function of a cell at a given scale.
//!
//! At scale 1 it asks whether the share changed; at the cell's own scale, whether it changed by more than everything else; at
//! that scale times exp(+-delta), whether by more than is worth a call.

use crate::evalue::LN_P_FLOOR;
use crate::g::{g_rate, g_share};
use crate::moments::Moments;
use crate::special::z_two_sided;
use crate::strata::Model;
use crate::tails::F1Tail;

/// Test results by function; NaN where not tested, except `theta`, which every function has.
#[derive(Clone, Debug)]
pub struct Test {
    /// The scale that "unchanged" means here, a ratio.
    pub normalization: f64,
    /// The statistic before dispersion, chi-square with one degree of freedom under independent samples.
    pub stat: Vec<f64>,
    /// ln p of statistic / dispersion as F(1, df_total).
    pub ln_p_f: Vec<f64>,
    /// ln p of the t test on logs; NaN unless an arm has few pods.
    pub ln_p_log: Vec<f64>,
    /// ln p that counts: the larger of the two with few pods, else `ln_p_f`.
    pub ln_p: Vec<f64>,
    /// ln of the ratio against the scale.
    pub theta: Vec<f64>,
    /// Its standard error; where an arm lacks the function, the one that makes |theta|/se agree with p.
    pub se: Vec<f64>,
}

impl Moments {
    /// Tests every function against `scale` (> 0).
    ///
    /// One stratum: G (scale 1, shares) or the rate likelihood ratio / (1 - pooled share). More: U^2/V with U = sum(x1 - X E1/E),
    /// V the Cochran-Mantel-Haenszel variance (scale 1, shares) or sum X (1 - X/N) E1 E0/E^2; E1 = scale N1, E0 = N0. F =
    /// statistic/phi~, p = P(F(1, df_total) > F); with few pods p = max(p, p_log). Checked against the reference programs
    /// (`ql.json`, `ql_stratified.json`, `decide.json`) to 1e-7 in p.
    #[must_use]
    pub fn normalized(&self, normalization: f64) -> Test {
        let functions = self.a.len();
        let ln_normalization = libm::log(normalization);
        let mut stat = self.statistics(normalization);
        let nan = || vec![f64::NAN; functions];
        let (mut ln_p_f, mut ln_p_log, mut ln_p, mut se) = (nan(), nan(), nan(), self.se.clone());
        let theta: Vec<f64> = self.theta_raw.iter().map(|theta| theta - ln_normalization).collect();
        let (tail, tail_log) = self.tails();
        for f in 0..functions {
            if self.tested[f] {
                ln_p_f[f] = tail.ln_tail(stat[f] / self.phi_tilde[f]);
                ln_p_log[f] = self.ln_p_log(f, ln_normalization, &tail_log);
                ln_p[f] = ln_p_f[f].max(ln_p_log[f]);
            } else {
                stat[f] = f64::NAN;
            }
            if se[f].is_nan() {
                se[f] = implied_se(theta[f], ln_p[f]);
            }
        }
        Test { normalization, stat, ln_p_f, ln_p_log, ln_p, theta, se }
    }

    /// ln p of one tested function at a scale, the same bits as in [`Moments::normalized`].
    pub(super) fn ln_p_of(&self, f: usize, stat: f64, ln_normalization: f64, tails: &(F1Tail, F1Tail)) -> f64 {
        tails.0.ln_tail(stat / self.phi_tilde[f]).max(self.ln_p_log(f, ln_normalization, &tails.1))
    }

    /// The tails of the F test and of the t test on logs.
    pub(super) fn tails(&self) -> (F1Tail, F1Tail) {
        (F1Tail::new(self.df_total), F1Tail::new(self.df_log_total))
    }

    fn ln_p_log(&self, f: usize, ln_normalization: f64, tail: &F1Tail) -> f64 {
        self.log_scale.as_ref().map_or(f64::NAN, |log_scale| {
            let t = (log_scale.difference[f] - ln_normalization) / log_scale.se[f];
            tail.ln_tail(t * t)
        })
    }

    /// The statistic of every function, tested or not.
    fn statistics(&self, normalization: f64) -> Vec<f64> {
        match self.exposures.as_slice() {
            [] => vec![f64::NAN; self.a.len()],
            [_] => (0..self.a.len()).map(|f| self.likelihood_ratio(f, normalization)).collect(),
            _ => self.scores(normalization),
        }
    }

    /// The statistic of function `f`, the same bits as in [`Moments::normalized`].
    pub(super) fn statistic(&self, f: usize, normalization: f64) -> f64 {
        if self.strata > 1 { self.score(f, normalization) } else { self.likelihood_ratio(f, normalization) }
    }

    /// The statistic of function `f` with one stratum.
    pub(super) fn likelihood_ratio(&self, f: usize, normalization: f64) -> f64 {
        let (a, b, n1, n0) = (self.a[f], self.b[f], self.n_head, self.n_base);
        match self.model {
            Model::Share if is_one(normalization) => g_share(a, n1, b, n0),
            Model::Share => g_rate(a, normalization * n1, b, n0) / (1.0 - (a + b) / (n1 + n0)),
            Model::Rate => g_rate(a, normalization * n1, b, n0),
        }
    }

    /// U^2/V of every function over several strata; 0 where V is 0.
    pub(super) fn scores(&self, normalization: f64) -> Vec<f64> {
        let mut u = vec![0.0; self.a.len()];
        let mut v = vec![0.0; self.a.len()];
        for ((head, both), term) in self.by_stratum.iter().zip(self.score_terms(normalization)) {
            for (((u, v), &x1), &x) in u.iter_mut().zip(&mut v).zip(head).zip(both) {
                *u += term.deviation(x1, x);
                *v += term.variance(x);
            }
        }
        for (u, &v) in u.iter_mut().zip(&v) {
            *u = chi_square(*u, v);
        }
        u
    }

    /// U^2/V of function `f`, the same bits as in [`Moments::scores`].
    pub(super) fn score(&self, f: usize, normalization: f64) -> f64 {
        let (mut u, mut v) = (0.0, 0.0);
        for ((head, both), term) in self.by_stratum.iter().zip(self.score_terms(normalization)) {
            u += term.deviation(head[f], both[f]);
            v += term.variance(both[f]);
        }
        chi_square(u, v)
    }

    fn score_terms(&self, normalization: f64) -> impl Iterator<Item = ScoreTerm> {
        self.exposures.iter().map(move |&(n1, n0)| {
            let n = n1 + n0;
            let (e1, e) = (normalization * n1, normalization * n1 + n0);
            let (slope, top, rest) = match self.model {
                Model::Share if is_one(normalization) => (n1 * n0 / (n * n * (n - 1.0).max(1.0)), n, 1.0),
                Model::Share => (e1 * n0 / (e * e), 1.0, 1.0 / n),
                Model::Rate => (e1 * n0 / (e * e), 1.0, 0.0),
            };
            ScoreTerm { expected: e1 / e, slope, top, rest }
        })
    }
}

/// What a stratum adds to U and V: x1 - X expected and slope X (top - X rest).
struct ScoreTerm {
    expected: f64,
    slope: f64,
    top: f64,
    rest: f64,
}

impl ScoreTerm {
    #[inline]
    fn deviation(&self, head: f64, both: f64) -> f64 {
        head - both * self.expected
    }

    #[inline]
    fn variance(&self, both: f64) -> f64 {
        self.slope * both * (self.top - both * self.rest)
    }
}

#[inline]
fn chi_square(u: f64, v: f64) -> f64 {
    if v > 0.0 { u * u / v } else { 0.0 }
}

/// The standard error that a test with `ln_p` implies for a log ratio `theta`: |theta| / Phi^-1(1 - p/2), p within 1e-300 and
/// 1 - 1e-9, NaN counting as 1.
#[must_use]
pub(crate) fn implied_se(theta: f64, ln_p: f64) -> f64 {
    let highest = libm::log(1.0 - 1e-9);
    let ln_p = if ln_p.is_nan() { highest } else { ln_p.clamp(LN_P_FLOOR, highest) };
    theta.abs() / z_two_sided(ln_p)
}

/// Scale 1 has a form of its own (hypergeometric variance, G of shares); it is exact by construction, not by rounding.
#[expect(clippy::float_cmp, reason = "1 is assigned, never computed, where it is meant")]
pub(super) fn is_one(normalization: f64) -> bool {
    normalization == 1.0
}
