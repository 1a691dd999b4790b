//! Exact tests of small counts: tails of the hypergeometric and the binomial law, in logarithms.
//!
//! The mass of a table is exp(-G/2) times a factor that Stirling's formula leaves over, so the deviation comes from G, which
//! does not cancel, and nothing is the difference of two large factorials. Tails are summed away from the peak, each mass from
//! the one before it, relative to the first: a p-value of 1e-400000 is an ordinary number.
//!
//! A sum takes some eight standard deviations of steps at most: none for rare functions, a million for totals of 1e12.
//!
//! What makes it wrong: samples of one pod are not independent. [`crate::rare`] says what is done about it.

#![expect(
    clippy::as_conversions,
    reason = "counts below 2^53 become floats; a quotient of 128 bits that is at most a count becomes one"
)]

use crate::g::{g_2x2, g_rate};
use crate::special::ln_add;

/// From here on Stirling's series for the factorial is exact to the last bits.
const STIRLING_FROM: f64 = 16.0;
/// Terms below this part of their sum end it.
const NEGLIGIBLE: f64 = 1e-18;

/// ln Gamma(n + 1) - (n ln n - n) for `n >= 0`: what the power of n leaves of the factorial; 0 at 0.
///
/// 1/2 ln(2 pi n) + 1/(12 n) - 1/(360 n^3) + 1/(1260 n^5) - ... from 16 on (Abramowitz & Stegun 6.1.41), `lgamma` below.
/// Error some 1e-15. Checked through `fisher_exact.csv` and `combine.json`.
#[must_use]
pub(crate) fn ln_factorial_rest(n: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    if n < STIRLING_FROM {
        return libm::lgamma(n + 1.0) - n * libm::log(n) + n;
    }
    let y = 1.0 / (n * n);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / n;
    0.5 * libm::log(std::f64::consts::TAU * n) + series
}

/// A law of a count with one peak, from which it falls ever faster on both sides.
trait Peaked {
    /// The least count possible.
    fn least(&self) -> u64;
    /// The largest count possible.
    fn most(&self) -> u64;
    /// The most likely count.
    fn peak(&self) -> u64;
    /// ln of the mass at a possible count.
    fn ln_mass(&self, count: u64) -> f64;
    /// The mass at `count + 1` over that at `count`.
    fn step(&self, count: u64) -> f64;

    /// ln P(X <= `count`), `count` at most the peak.
    fn ln_below(&self, count: u64) -> f64 {
        self.ln_mass(count) + libm::log(sum_of_steps((self.least()..count).rev().map(|k| 1.0 / self.step(k))))
    }

    /// ln P(X >= `count`), `count` at least the peak.
    fn ln_above(&self, count: u64) -> f64 {
        self.ln_mass(count) + libm::log(sum_of_steps((count..self.most()).map(|k| self.step(k))))
    }

    /// ln P(X <= `count`) of any count.
    fn ln_lower(&self, count: u64) -> f64 {
        if count >= self.most() {
            0.0
        } else if count < self.least() {
            f64::NEG_INFINITY
        } else if count <= self.peak() {
            self.ln_below(count).min(0.0)
        } else {
            ln_rest(self.ln_above(count + 1))
        }
    }

    /// ln of the probability of all counts whose ln mass is at most `ln_mass`.
    fn ln_unlikely(&self, ln_mass: f64) -> f64 {
        let (least, peak, most) = (self.least(), self.peak(), self.most());
        if self.ln_mass(peak) <= ln_mass {
            return 0.0;
        }
        let unlikely = |count: u64| self.ln_mass(count) <= ln_mass;
        let (mut below, mut above) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        if unlikely(least) {
            below = self.ln_below(last_that(least, peak, &unlikely));
        }
        if unlikely(most) {
            let mirrored = last_that(0, most - peak, &|back| unlikely(most - back));
            above = self.ln_above(most - mirrored);
        }
        ln_add(below, above).min(0.0)
    }

    /// Two-sided p of `count` by minimum likelihood; masses within a part `tie` of one another are equal.
    fn two_sided(&self, count: u64, tie: f64) -> TwoSided {
        let ln_mass = self.ln_mass(count);
        let ln_p = self.ln_unlikely(ln_mass + libm::log1p(tie));
        let ln_less_likely = self.ln_unlikely(ln_mass + libm::log1p(-tie));
        TwoSided { ln_p, ln_p_mid: ln_add(ln_p, ln_less_likely) - std::f64::consts::LN_2 }
    }
}

/// 1 + r1 + r1 r2 + ..., until a term no longer counts.
fn sum_of_steps(ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term < NEGLIGIBLE * sum {
            break;
        }
    }
    sum
}

/// ln(1 - exp(`ln_p`)).
fn ln_rest(ln_p: f64) -> f64 {
    libm::log(-libm::expm1(ln_p.min(0.0)))
}

/// The last in `first..end` that `holds`, which holds for `first` and, where it ends, ends once.
fn last_that(first: u64, end: u64, holds: &impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (first, end);
    while no - yes > 1 {
        let middle = u64::midpoint(yes, no);
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

/// A two-sided p-value by minimum likelihood, as logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSided {
    /// ln of the probability of everything at most as likely as what was seen.
    pub ln_p: f64,
    /// The same with half the weight of what is exactly as likely: less conservative where counts are small.
    pub ln_p_mid: f64,
}

/// Of `drawn` out of `head + base`, how many fall to the head.
struct Hypergeometric {
    head: u64,
    base: u64,
    drawn: u64,
}

impl Peaked for Hypergeometric {
    fn least(&self) -> u64 {
        self.drawn.saturating_sub(self.base)
    }

    fn most(&self) -> u64 {
        self.head.min(self.drawn)
    }

    fn peak(&self) -> u64 {
        let (head, base, drawn) = (u128::from(self.head), u128::from(self.base), u128::from(self.drawn));
        let peak = (head + 1) * (drawn + 1) / (head + base + 2);
        u64::try_from(peak).unwrap_or(u64::MAX).clamp(self.least(), self.most())
    }

    fn ln_mass(&self, count: u64) -> f64 {
        let rest = |n: u64| ln_factorial_rest(n as f64);
        let (other, all) = (self.drawn - count, self.head + self.base);
        let margins = rest(self.head) + rest(self.base) + rest(self.drawn) + rest(all - self.drawn) - rest(all);
        let cells = rest(count) + rest(self.head - count) + rest(other) + rest(self.base - other);
        margins - cells - 0.5 * g_2x2(count, self.head, other, self.base)
    }

    fn step(&self, count: u64) -> f64 {
        let other = self.drawn - count;
        let up = (self.head - count) as f64 * other as f64;
        up / ((count + 1) as f64 * (self.base - other + 1) as f64)
    }
}

/// Of `trials`, how many fall to one of two sides whose weights are `this` and `other`, both more than 0.
struct Binomial {
    trials: u64,
    this: f64,
    other: f64,
}

impl Peaked for Binomial {
    fn least(&self) -> u64 {
        0
    }

    fn most(&self) -> u64 {
        self.trials
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of trials")]
    fn peak(&self) -> u64 {
        let peak = (self.trials as f64 + 1.0) * (self.this / (self.this + self.other));
        (peak as u64).min(self.trials)
    }

    fn ln_mass(&self, count: u64) -> f64 {
        let (this, other) = (count as f64, (self.trials - count) as f64);
        let rest = ln_factorial_rest(self.trials as f64) - ln_factorial_rest(this) - ln_factorial_rest(other);
        rest - 0.5 * g_rate(this, self.this, other, self.other)
    }

    fn step(&self, count: u64) -> f64 {
        (self.trials - count) as f64 / (count + 1) as f64 * (self.this / self.other)
    }
}

/// Fisher's exact test of `a` of `n_a` (head) against `b` of `n_b` (base), two-sided; `None` if a part is larger than its whole.
///
/// The hypergeometric law of `a` given all margins: the sum of all masses at most that of the table, where masses within a part
/// `tie` of one another are equal. Assumes independent samples, and that both margins are given, which makes it conservative.
/// Checked with a tie of 1e-7 against SciPy (`fisher_exact.csv`) to a relative 1e-9, against exact fractions for totals up to 1e12
/// and p down to 1e-4000 (`fisher_exact_large.csv`).
#[must_use]
pub fn hypergeometric_two_sided(a: u64, n_a: u64, b: u64, n_b: u64, tie: f64) -> Option<TwoSided> {
    let law = Hypergeometric { head: n_a, base: n_b, drawn: a.checked_add(b)? };
    (a <= n_a && b <= n_b).then(|| law.two_sided(a, tie))
}

/// The two-sided exact test of `a` against `b` events with exposures `e_a` and `e_b`: binomial given their sum. `None` unless
/// both exposures are more than 0.
///
/// Masses within a part `tie` of one another are equal. Assumes independent events. Checked against SciPy (`rare.json`) to 1e-8.
#[must_use]
pub fn binomial_two_sided(a: u64, e_a: f64, b: u64, e_b: f64, tie: f64) -> Option<TwoSided> {
    (e_a > 0.0 && e_b > 0.0).then(|| Binomial { trials: a + b, this: e_a, other: e_b }.two_sided(a, tie))
}

/// ln P(X <= `count`) of `trials` that succeed with probability `p` in (0, 1); 1 - p is given as `rest`, since it may be small.
#[must_use]
pub fn ln_binomial_lower(count: u64, trials: u64, p: f64, rest: f64) -> f64 {
    Binomial { trials, this: p, other: rest }.ln_lower(count)
}
