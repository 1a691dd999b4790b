//! Tail probabilities as logarithms and the few special functions of the reference, each in its plainest form.

use std::cell::Cell;
use std::f64::consts::PI;

use fleetdiff_schemas::number::length_float;
use statrs::function::gamma::ln_gamma;

/// ln P(chi-square with one degree of freedom > `g`), `g >= 0`.
pub fn ln_chi1_tail(g: f64) -> f64 {
    ln_erfc((g / 2.0).sqrt())
}

/// ln erfc(`x`) for `x >= 0`: below 2 one less the all-positive series of erf, above it the continued fraction.
pub fn ln_erfc(x: f64) -> f64 {
    if x < 2.0 {
        let mut term = x;
        let mut sum = x;
        let mut n = 0.0;
        while term > sum * 1e-17 {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        return (-(2.0 / PI.sqrt()) * (-x * x).exp() * sum).ln_1p();
    }
    let mut fraction = x;
    // More terms are used close to 2, where they matter more; twice as many change no digit.
    for k in (1..=if x < 4.0 { 150_u32 } else { 60 }).rev() {
        fraction = x + f64::from(k) / 2.0 / fraction;
    }
    -x * x - PI.sqrt().ln() - fraction.ln()
}

/// ln P(F(1, `d`) > `f`), equally the two-sided tail of a Student t with `d` degrees of freedom at `t^2 = f`.
pub fn ln_f1_tail(f: f64, d: f64) -> f64 {
    ln_f_tail(f, 1.0, d)
}

/// ln P(F(`upper`, `lower`) > `f`).
///
/// The incomplete beta function I_x(lower/2, upper/2) at x = lower/(lower + upper f), by its continued fraction on the
/// side where that converges.
pub fn ln_f_tail(f: f64, upper: f64, lower: f64) -> f64 {
    if f <= 0.0 {
        return 0.0;
    }
    if f.is_infinite() {
        return f64::NEG_INFINITY;
    }
    let (a, b) = (lower / 2.0, upper / 2.0);
    let f = upper * f;
    let (x, rest) = (lower / (lower + f), f / (lower + f));
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) - a * (f / lower).ln_1p() + b * rest.ln();
    if x < (a + 1.0) / (a + b + 2.0) {
        front + beta_fraction(a, b, x).ln() - a.ln()
    } else {
        (-(front + beta_fraction(b, a, rest).ln() - b.ln()).exp()).ln_1p()
    }
}

/// The continued fraction of the incomplete beta function, by the modified Lentz method (Numerical Recipes, `betacf`).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for step in 1..100_000_u32 {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            h *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// ln P(chi-square with twice `half` degrees of freedom > `x`): a sum of Poisson masses.
pub fn ln_chi_square_tail(x: f64, half: usize) -> f64 {
    let ln_mass = |k: usize| if k == 0 { 0.0 } else { length_float(k) * (x / 2.0).ln() } - ln_factorial(k);
    (ln_sum((0..half).map(ln_mass)) - x / 2.0).min(0.0)
}

/// ln of the probability that at most `count` of `trials` fall to a side with odds `this` to `other`, mass by mass.
pub fn ln_binomial_lower(count: usize, trials: usize, this: f64, other: f64) -> f64 {
    let power = |k: usize, weight: f64| if k == 0 { 0.0 } else { length_float(k) * (weight / (this + other)).ln() };
    let ln_choose = |k: usize| ln_factorial(trials) - ln_factorial(k) - ln_factorial(trials - k);
    ln_sum((0..=count).map(|k| ln_choose(k) + power(k, this) + power(trials - k, other))).min(0.0)
}

fn ln_factorial(n: usize) -> f64 {
    ln_gamma(length_float(n) + 1.0)
}

/// ln of a sum whose terms are given as logarithms.
fn ln_sum(logarithms: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = logarithms.collect();
    let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + all.iter().map(|one| (one - largest).exp()).sum::<f64>().ln()
}

/// The `t` with P(|T| <= t) = `level` for a Student t with `d` degrees of freedom, or [`t_of_tail`] of its complement.
pub fn t_quantile(level: f64, d: f64) -> f64 {
    t_of_tail((1.0 - level).ln(), d)
}

/// The `t` with P(|T| > t) = exp(`ln_p`) for a Student t with `d` degrees of freedom, on the scale of ln t.
pub fn t_of_tail(ln_p: f64, d: f64) -> f64 {
    thread_local! {
        /// What was found last, of which the columns of a row ask several times.
        static LAST: Cell<[f64; 3]> = const { Cell::new([f64::NAN; 3]) };
    }
    let [of_p, of_d, t] = LAST.get();
    if of_p.to_bits() == ln_p.to_bits() && of_d.to_bits() == d.to_bits() {
        return t;
    }
    let t = root(-10.0, 60.0, |ln_t| ln_p - ln_f1_tail((2.0 * ln_t).exp(), d)).exp();
    LAST.set([ln_p, d, t]);
    t
}

/// The normal quantile `z >= 0` with P(|Z| > z) = exp(`ln_p`).
///
/// Newton's method from sqrt(-2 ln p), which lies to the right of the root of a concave falling function, so that it
/// descends to the root.
pub fn z_two_sided(ln_p: f64) -> f64 {
    let mut z = (-2.0 * ln_p).max(0.0).sqrt();
    for _ in 0..100 {
        let value = ln_chi1_tail(z * z);
        let slope = -((2.0 / PI).sqrt().ln() - z * z / 2.0 - value).exp();
        let step = (value - ln_p) / slope;
        z = (z - step).max(0.0);
        // Each step squares the error that is left.
        if step.abs() <= 1e-9 * z {
            break;
        }
    }
    z
}

/// The second derivative of ln gamma, by its recurrence up to 20 and its asymptotic series from there.
pub fn trigamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < 20.0 {
        sum += 1.0 / (shifted * shifted);
        shifted += 1.0;
    }
    let r = 1.0 / (shifted * shifted);
    let series = 1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * (5.0 / 66.0))));
    sum + 1.0 / shifted + r / 2.0 + r / shifted * series
}

/// The fourth derivative of ln gamma, in the same way.
pub fn pentagamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < 20.0 {
        sum += 6.0 / shifted.powi(4);
        shifted += 1.0;
    }
    let r = 1.0 / (shifted * shifted);
    let series = 2.0 - r * (1.0 - r * (4.0 / 3.0 - r * (3.0 - r * 10.0)));
    sum + r / shifted * (2.0 + 3.0 / shifted + r * series)
}

/// The `y` with trigamma(y) = `x`; the two outer branches are those of the reference.
pub fn trigamma_inverse(x: f64) -> f64 {
    if x > 1e7 {
        1.0 / x.sqrt()
    } else if x < 1e-6 {
        1.0 / x
    } else {
        bisect(-10.0, 16.0, |ln_y| trigamma(ln_y.exp()) > x).exp()
    }
}

/// The point between `low` and `high` where `left_of` turns from true to false.
pub(super) fn bisect(mut low: f64, mut high: f64, left_of: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = low.midpoint(high);
        if middle <= low || middle >= high {
            break;
        }
        if left_of(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// The root of a rising function between `low`, where it is negative, and `high`: a few halvings, then regula falsi in its Illinois form.
pub(super) fn root(low: f64, high: f64, value: impl Fn(f64) -> f64) -> f64 {
    /// Halvings, after which the function is nearly a line.
    const HALVINGS: usize = 10;
    // Where the function is negative and where not, with its values there.
    let (mut below, mut above) = ((low, f64::NEG_INFINITY), (high, f64::INFINITY));
    let (mut at, mut was_below) = (low, None);
    for step in 0..200 {
        let line = (below.0 * above.1 - above.0 * below.1) / (above.1 - below.1);
        let between = line > below.0.min(above.0) && line < below.0.max(above.0);
        let next = if step < HALVINGS || !between { below.0.midpoint(above.0) } else { line };
        if (next - at).abs() <= 1e-14 * (1.0 + at.abs()) {
            return next;
        }
        let here = value(next);
        let is_below = here < 0.0;
        // An end that stays twice counts half, so that the other one moves past the root too.
        let part = if step > HALVINGS && was_below == Some(is_below) { 0.5 } else { 1.0 };
        if is_below {
            (below, above.1) = ((next, here), part * above.1);
        } else {
            (above, below.1) = ((next, here), part * below.1);
        }
        (at, was_below) = (next, Some(is_below));
    }
    at
}
