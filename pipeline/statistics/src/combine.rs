//! Many p-values made one: over pods, or over cells that were tested apart.
//!
//! Fisher's sum sees a few very small p among many, Stouffer's sum sees all of them leaning one way. Both take ln p; NaN is no
//! member; with no member there is no evidence (ln p = 0).
//!
//! What makes them wrong: p-values that are not independent (pods held against one common estimate, cells that share pods).

use crate::chi_square::ln_chi_square_tail;
use crate::number::length;
use crate::special::{ln_erfc, z_two_sided};

/// A combined test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combined {
    /// The statistic: chi-square for Fisher, z for Stouffer.
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
    Combined { statistic: z, df: length(members().count()), ln_p: ln_normal_upper(z) }
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
