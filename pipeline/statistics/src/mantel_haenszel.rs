//! Many two-by-two tables of independent samples: one for each stratum, put together without mixing them.
//!
//! Adding the tables of two strata up can turn a difference round (Simpson). Here every stratum says what it expected of the
//! head, and only deviations are added. These are the textbook figures for independent samples; the test that decides has the
//! same U, and a dispersion between pods on top ([`crate::test`]).
//!
//! What makes them wrong: independence, as always; and a few samples in most strata, for the likelihood ratio only.

#![expect(clippy::as_conversions, reason = "128-bit numerators and counts below 2^53 become floats, rounded once")]

use crate::chi_square::ln_chi_square_tail;
use crate::g::{excess, g_2x2};
use crate::tails::ln_chi1_tail;

/// One stratum: `x1` of `n1` samples in the head, `x0` of `n0` in the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Samples of the function in the head.
    pub x1: u64,
    /// Samples of the head.
    pub n1: u64,
    /// Samples of the function in the base.
    pub x0: u64,
    /// Samples of the base.
    pub n0: u64,
}

/// What all strata say together; strata without an arm add nothing.
#[derive(Clone, Copy, Debug)]
pub struct Strata {
    /// U = sum(x1 - X n1/N): samples that the head has too many.
    pub u: f64,
    /// V = sum n1 n0 X (N-X) / (N^2 (N-1)): the variance of U with all margins given.
    pub v: f64,
    /// Sum of G over strata.
    pub g_sum: f64,
    /// Strata in which some samples but not all are the function's: the degrees of freedom of `g_sum`.
    pub g_strata: f64,
    /// ln p of `g_sum`: is any stratum different?
    pub ln_p_g_sum: f64,
    /// G of the summed tables, strata without an arm included: what mixing the strata would say.
    pub g_pooled: f64,
    /// The figures that need V > 0.
    pub common: Option<Common>,
}

/// One effect for all strata.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Cochran-Mantel-Haenszel chi-square U^2/V.
    pub chi_square: f64,
    /// The same with continuity correction: max(|U| - 1/2, 0)^2/V.
    pub chi_square_corrected: f64,
    /// ln p of `chi_square`.
    pub ln_p: f64,
    /// The Mantel-Haenszel odds ratio sum(x1 (n0-x0)/N) / sum(x0 (n1-x1)/N); infinite if no stratum has the function in its base
    /// and something else in its head.
    pub odds_ratio: f64,
    /// Its likelihood counterpart; none where it is infinite or zero.
    pub likelihood: Option<CommonOdds>,
}

/// The most likely odds ratio that is the same in all strata.
#[derive(Clone, Copy, Debug)]
pub struct CommonOdds {
    /// ln of the odds ratio.
    pub log_odds: f64,
    /// Likelihood ratio against no difference, chi-square with 1 degree of freedom.
    pub likelihood_ratio: f64,
    /// Likelihood ratio of an odds ratio for each stratum against a common one: `g_sum` less `likelihood_ratio`.
    pub heterogeneity: f64,
    /// Its degrees of freedom.
    pub heterogeneity_df: f64,
}

impl Strata {
    /// Puts `tables` together.
    ///
    /// Cochran (1954), Mantel & Haenszel (1959). Checked against mpmath and statsmodels (`stratified.json`) to a relative 1e-10.
    #[must_use]
    pub fn of(tables: &[Table]) -> Self {
        let both: Vec<Margins> = tables.iter().filter(|table| table.n1 > 0 && table.n0 > 0).map(Margins::of).collect();
        let informative: Vec<Margins> = both.iter().copied().filter(|m| m.p > 0.0 && m.p < 1.0).collect();
        let (u, v) = both.iter().fold((0.0, 0.0), |(u, v), m| (u + m.deviation, v + m.variance()));
        let g_sum = informative.iter().map(|m| m.g).sum();
        let g_strata = informative.len() as f64;
        let sum = |part: fn(&Table) -> u64| tables.iter().map(part).sum();
        let g_pooled = g_2x2(sum(|t| t.x1), sum(|t| t.n1), sum(|t| t.x0), sum(|t| t.n0));
        let ln_p_g_sum = if informative.is_empty() { 0.0 } else { ln_chi_square_tail(g_sum, g_strata) };
        let common = (v > 0.0).then(|| Common::of(&both, &informative, u, v));
        Self { u, v, g_sum, g_strata, ln_p_g_sum, g_pooled, common }
    }
}

impl Common {
    fn of(both: &[Margins], informative: &[Margins], u: f64, v: f64) -> Self {
        let (more, less) = both
            .iter()
            .fold((0.0, 0.0), |(more, less), m| (more + m.x1 * (m.n0 - m.x0) / m.n, less + m.x0 * (m.n1 - m.x1) / m.n));
        let corrected = (u.abs() - 0.5).max(0.0);
        Self {
            chi_square: u * u / v,
            chi_square_corrected: corrected * corrected / v,
            ln_p: ln_chi1_tail(u * u / v),
            odds_ratio: if less > 0.0 { more / less } else { f64::INFINITY },
            likelihood: (more > 0.0 && less > 0.0).then(|| CommonOdds::of(informative, libm::log(more / less))),
        }
    }
}

impl CommonOdds {
    /// Newton on sum(x1 - n1 q1) = 0 from `start`, in steps of at most 1; q1, q0 are the shares of a stratum with its own margin
    /// and the odds ratio in question.
    ///
    /// At the root the likelihood ratio is 2 sum(n1 KL(q1, p) + n0 KL(q0, p)): a sum without cancellation.
    fn of(strata: &[Margins], start: f64) -> Self {
        let mut log_odds = start;
        for _ in 0..100 {
            let (mut score, mut information) = (0.0, 0.0);
            for m in strata {
                let moved = m.moved(log_odds);
                let (q1, q0) = (m.p + moved, m.p - moved * m.n1 / m.n0);
                score += m.deviation - m.n1 * moved;
                information += 1.0 / (1.0 / (m.n1 * q1 * (1.0 - q1)) + 1.0 / (m.n0 * q0 * (1.0 - q0)));
            }
            let step = (score / information).clamp(-1.0, 1.0);
            log_odds += step;
            if step.abs() < 1e-15 * (1.0 + log_odds.abs()) {
                break;
            }
        }
        let moved = || strata.iter().map(|m| (m, m.moved(log_odds)));
        Self {
            log_odds,
            likelihood_ratio: moved().map(|(m, moved)| m.divergence(moved)).sum(),
            heterogeneity: moved().map(|(m, moved)| m.residual(moved)).sum(),
            heterogeneity_df: strata.len() as f64 - 1.0,
        }
    }
}

/// A stratum that has both arms, as floats, with what does not cancel.
#[derive(Clone, Copy)]
struct Margins {
    x1: f64,
    n1: f64,
    x0: f64,
    n0: f64,
    n: f64,
    /// Share over both arms.
    p: f64,
    /// x1 - X n1/N, exact up to its last bit.
    deviation: f64,
    g: f64,
}

impl Margins {
    fn of(table: &Table) -> Self {
        let &Table { x1, n1, x0, n0 } = table;
        let (n, both) = (n1 as f64 + n0 as f64, x1 as f64 + x0 as f64);
        let numerator = i128::from(x1) * i128::from(n0) - i128::from(x0) * i128::from(n1);
        Self {
            x1: x1 as f64,
            n1: n1 as f64,
            x0: x0 as f64,
            n0: n0 as f64,
            n,
            p: both / n,
            deviation: numerator as f64 / n,
            g: g_2x2(x1, n1, x0, n0),
        }
    }

    fn variance(&self) -> f64 {
        let both = self.x1 + self.x0;
        if self.n > 1.0 { self.n1 * self.n0 * both * (self.n - both) / (self.n * self.n * (self.n - 1.0)) } else { 0.0 }
    }

    /// By how much the head's share lies above p if the odds ratio is exp(`log_odds`): with k = n1/n0 and e = exp(log odds) - 1
    /// the root of k e d^2 - B d + p (1-p) e = 0 that goes to 0 with e, B = k p + (1-p) + (1+e)(k (1-p) + p).
    fn moved(&self, log_odds: f64) -> f64 {
        let (k, e, p) = (self.n1 / self.n0, libm::expm1(log_odds), self.p);
        let b = k * p + (1.0 - p) + (1.0 + e) * (k * (1.0 - p) + p);
        let constant = p * (1.0 - p) * e;
        2.0 * constant / (b + libm::sqrt((b * b - 4.0 * k * e * constant).max(0.0)))
    }

    /// The samples of the function and of the rest expected in head and base if the head's share is p + `moved`.
    fn expected(&self, moved: f64) -> [f64; 4] {
        let (q1, q0) = (self.p + moved, self.p - moved * self.n1 / self.n0);
        [self.n1 * q1, self.n1 * (1.0 - q1), self.n0 * q0, self.n0 * (1.0 - q0)]
    }

    /// Twice the divergence of those expectations from no difference.
    fn divergence(&self, moved: f64) -> f64 {
        let off = self.n1 * moved;
        let (now, none) = (self.expected(moved), self.expected(0.0));
        2.0 * now
            .iter()
            .zip(none)
            .zip([off, -off, -off, off])
            .map(|((&now, none), off)| excess(now, none, off))
            .sum::<f64>()
    }

    /// Twice the divergence of what was seen from those expectations.
    fn residual(&self, moved: f64) -> f64 {
        let off = self.deviation - self.n1 * moved;
        let seen = [self.x1, self.n1 - self.x1, self.x0, self.n0 - self.x0];
        let expected = self.expected(moved);
        2.0 * seen
            .iter()
            .zip(expected)
            .zip([off, -off, -off, off])
            .map(|((&seen, expected), off)| excess(seen, expected, off))
            .sum::<f64>()
    }
}
