//! Many p-values made one: over pods, or over cells that were tested apart.
//!
//! Fisher's sum sees a few very small p among many, Stouffer's sum sees all of them leaning one way, Berk and Jones look for
//! the number of small ones that is the most surprising. All take ln p; NaN is no member; with no member there is no evidence
//! (ln p = 0).
//!
//! What makes them wrong: p-values that are not independent (pods held against one common estimate, cells that share pods).

#![expect(clippy::as_conversions, reason = "numbers of p-values become floats, and ranks counts")]

use crate::chi_square::ln_chi_square_tail;
use crate::exact::{ln_binomial_mass, ln_binomial_upper};
use crate::special::{ln_erfc, z_two_sided};

/// Berk-Jones looks at the smallest p-values only, half of them and at most so many.
const MOST_RANKS: usize = 50;
/// Below this ln p overlaps between ranks no longer count.
const NO_OVERLAP_BELOW: f64 = -30.0;

/// A combined test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combined {
    /// The statistic: chi-square for Fisher, z for Stouffer, ln of the most surprising rank's own p for Berk-Jones.
    pub statistic: f64,
    /// Its degrees of freedom for Fisher, else how many p-values there were.
    pub df: f64,
    /// ln p of all together.
    pub ln_p: f64,
}

impl Combined {
    const NOTHING: Self = Self { statistic: 0.0, df: 0.0, ln_p: 0.0 };
}

/// Fisher's combination: -2 sum ln p is chi-square with 2 k degrees of freedom.
///
/// Fisher (1932). Assumes independent p. Checked against SciPy and mpmath (`combine.json`) to a relative 1e-10.
#[must_use]
pub fn fisher(ln_p: &[f64]) -> Combined {
    let (sum, count) = ln_p.iter().filter(|p| !p.is_nan()).fold((0.0, 0.0), |(sum, count), p| (sum + p, count + 1.0));
    if count <= 0.0 {
        return Combined::NOTHING;
    }
    Combined { statistic: -2.0 * sum, df: 2.0 * count, ln_p: ln_chi_square_tail(-2.0 * sum, 2.0 * count) }
}

/// Stouffer's combination of one-sided p, with `weights` (> 0, one for each p; all equal if empty).
///
/// z = sum w Phi^-1(1 - p) / sqrt(sum w^2), p = 1 - Phi(z). Stouffer et al. (1949), Liptak (1958). p = 0 and p = 1 together
/// contradict each other with certainty and count as no evidence. Checked against SciPy (`combine.json`) to a relative 1e-10.
#[must_use]
pub fn stouffer(ln_p: &[f64], weights: &[f64]) -> Combined {
    let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
    let members = || ln_p.iter().enumerate().filter(|(_, p)| !p.is_nan());
    let squares: f64 = members().map(|(i, _)| weight(i) * weight(i)).sum();
    let sum: f64 = members().map(|(i, &p)| weight(i) * z_one_sided(p)).sum();
    if squares <= 0.0 || sum.is_nan() {
        return Combined::NOTHING;
    }
    let z = sum / libm::sqrt(squares);
    Combined { statistic: z, df: members().count() as f64, ln_p: ln_normal_upper(z) }
}

/// The z with P(Z > z) = exp(`ln_p`), for `ln_p <= 0`; minus infinity at p = 1.
#[must_use]
pub fn z_one_sided(ln_p: f64) -> f64 {
    let ln_twice = ln_p + std::f64::consts::LN_2;
    if ln_twice <= 0.0 {
        z_two_sided(ln_twice)
    } else {
        -z_two_sided((libm::log(-libm::expm1(ln_p)) + std::f64::consts::LN_2).min(0.0))
    }
}

/// ln P(Z > `z`) of a standard normal Z; finite far beyond the underflow of the probability.
#[must_use]
pub fn ln_normal_upper(z: f64) -> f64 {
    let ln_half_tail = ln_erfc(z.abs() * std::f64::consts::FRAC_1_SQRT_2) - std::f64::consts::LN_2;
    if z >= 0.0 { ln_half_tail } else { libm::log1p(-libm::exp(ln_half_tail)) }
}

/// The combination of Berk and Jones: how surprising is the most surprising number of small p-values?
///
/// With p sorted, P_i = P(Binomial(k, p_(i)) >= i) is the p-value of "the i smallest are this small"; the statistic is
/// min ln P_i over the smaller half (at most 50 ranks). Its p is exact: the masses of first crossing any of the bounds, summed
/// over ranks; below 1e-13 their number times the smallest, which is then the same. Berk & Jones (1979); Moscovich, Nadler &
/// Spiegelman (2016). Assumes independent p. Checked by simulation and against k = 2, 3 by hand (`tests/published/combine.rs`).
#[must_use]
pub fn berk_jones(ln_p: &[f64]) -> Combined {
    let mut sorted: Vec<f64> = ln_p.iter().copied().filter(|p| !p.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let ranks = count.div_ceil(2).min(MOST_RANKS);
    let own = |(i, &ln_p): (usize, &f64)| ln_rank(i + 1, count, ln_p);
    let least = sorted.iter().take(ranks).enumerate().map(own).fold(0.0, f64::min);
    if count == 0 {
        return Combined::NOTHING;
    }
    let ln_all = if least < NO_OVERLAP_BELOW {
        least + libm::log(ranks as f64)
    } else {
        libm::log(crossing(least, ranks, count))
    };
    Combined { statistic: least, df: count as f64, ln_p: ln_all.clamp(least, 0.0) }
}

/// ln P(the `rank`-th smallest of `count` uniform numbers is at most exp(`ln_p`)).
fn ln_rank(rank: usize, count: usize, ln_p: f64) -> f64 {
    if ln_p >= 0.0 {
        return 0.0;
    }
    let p = libm::exp(ln_p);
    if p > f64::MIN_POSITIVE {
        return ln_binomial_upper(rank as u64, count as u64, p, -libm::expm1(ln_p));
    }
    // p is below every float: only the first term of the sum counts
    let ln_choose = ln_binomial_mass(rank as u64, count as u64, 0.5, 0.5) + count as f64 * std::f64::consts::LN_2;
    ln_choose + rank as f64 * ln_p
}

/// P(for some i up to `ranks` the i-th smallest of `count` uniform numbers lies below the bound at which its own p is
/// exp(`ln_own`)).
///
/// Walks up the bounds and keeps the law of how many numbers lie below, those that have crossed taken out: every term is
/// positive, so a small result has all its digits.
fn crossing(ln_own: f64, ranks: usize, count: usize) -> f64 {
    let (mut below, mut crossed, mut bound) = (vec![1.0], 0.0, 0.0);
    for rank in 1..=ranks {
        let next = bound_of_rank(rank, count, ln_own);
        let step = (next - bound) / (1.0 - bound);
        let mut moved = vec![0.0; rank];
        for (k, &mass) in below.iter().enumerate() {
            let left = (count - k) as u64;
            for (more, slot) in moved[k..].iter_mut().enumerate() {
                *slot += mass * binomial_mass(more as u64, left, step);
            }
            crossed += mass * binomial_upper((rank - k) as u64, left, step);
        }
        (below, bound) = (moved, next);
    }
    crossed
}

fn binomial_mass(count: u64, trials: u64, p: f64) -> f64 {
    if p > 0.0 && p < 1.0 {
        libm::exp(ln_binomial_mass(count, trials, p, 1.0 - p))
    } else {
        f64::from(u8::from(count == 0))
    }
}

fn binomial_upper(count: u64, trials: u64, p: f64) -> f64 {
    if p > 0.0 && p < 1.0 {
        libm::exp(ln_binomial_upper(count, trials, p, 1.0 - p))
    } else {
        f64::from(u8::from(count == 0))
    }
}

/// The p at which [`ln_rank`] is `ln_own`, by bisection on its logarithm.
fn bound_of_rank(rank: usize, count: usize, ln_own: f64) -> f64 {
    let (mut low, mut high) = (ln_own - libm::log(count as f64), 0.0);
    while high - low > 1e-14 * low.abs() {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if ln_rank(rank, count, middle) < ln_own { low = middle } else { high = middle }
    }
    libm::exp(high)
}
