//! Special functions that neither `libm` nor a tail probability can give with enough digits.
//!
//! Everything here is a fixed sequence of IEEE operations on top of `libm`, so that the same input gives the same bits on
//! every machine. Tail probabilities live as logarithms: `p = 1e-4000` is an ordinary number here.

#![expect(clippy::excessive_precision, reason = "constants are printed with the digits of their source")]

/// ln 2 split so that `k * LN2_HIGH` is exact for every binary exponent `k`.
const LN2_HIGH: f64 = 6.931_471_803_691_238_16e-01;
const LN2_LOW: f64 = 1.908_214_929_270_587_70e-10;
/// ln sqrt(pi).
const LN_SQRT_PI: f64 = 0.572_364_942_924_700_1;
/// Where `erfc` hands over to its asymptotic series; the first omitted term is below 1e-17 there.
const ERFC_ASYMPTOTIC_FROM: f64 = 20.0;
/// From here on the asymptotic series of digamma and trigamma are exact to the last bits.
const ASYMPTOTIC_FROM: f64 = 12.0;

/// Natural logarithm of a positive normal number, without branches, so that loops over it vectorise.
///
/// FreeBSD's `e_log.c` (the algorithm behind `libm::log`) with its special cases left out: error below one unit in the last
/// place. Zero, subnormal, negative and non-finite arguments give a meaningless finite or non-finite number; callers that
/// can have them use `libm::log`. Checked against `libm::log`.
#[inline(always)]
#[must_use]
pub fn ln_normal(x: f64) -> f64 {
    let (k, mantissa) = split(x);
    let f = mantissa - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    s * (half_square + ln_remainder(s)) + k * LN2_LOW - half_square + f + k * LN2_HIGH
}

/// ln(`a` / `b`) of positive normal numbers with one division, without branches: the sum of [`ln_normal`]'s series for the
/// quotient of the mantissas, (a-b)/(a+b), and of the exponents.
///
/// Error below two units in the last place, or 2e-16 where the quotient is near 1. Checked against `libm::log`.
#[inline(always)]
#[must_use]
pub(crate) fn ln_ratio(a: f64, b: f64) -> f64 {
    let ((k_a, a), (k_b, b)) = (split(a), split(b));
    let (factor, step) = if a > std::f64::consts::SQRT_2 * b {
        (2.0, 1.0)
    } else if b > std::f64::consts::SQRT_2 * a {
        (0.5, -1.0)
    } else {
        (1.0, 0.0)
    };
    let (b, k) = (b * factor, k_a - k_b + step);
    let s = (a - b) / (a + b);
    (s * ln_remainder(s) + k * LN2_LOW) + 2.0 * s + k * LN2_HIGH
}

/// (k, m) with x = m 2^k and m between the roots of 1/2 and 2.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const HALF_SQRT2_BITS: u64 = 0x3fe6_a09e_0000_0000;
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
    const TWO_POW_52_BITS: u64 = 0x4330_0000_0000_0000;
    const TWO_POW_52_PLUS_BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;
    let shifted = x.to_bits().wrapping_add(ONE_BITS - HALF_SQRT2_BITS);
    let k = f64::from_bits(TWO_POW_52_BITS | (shifted >> 52)) - TWO_POW_52_PLUS_BIAS;
    (k, f64::from_bits((shifted & MANTISSA).wrapping_add(HALF_SQRT2_BITS)))
}

/// (ln((1+s)/(1-s)) - 2s)/s for |s| < .1716: seven terms in s^2 with fitted coefficients.
#[inline(always)]
fn ln_remainder(s: f64) -> f64 {
    let z = s * s;
    let w = z * z;
    let even =
        w * (3.999_999_999_940_941_908e-01 + w * (2.222_219_843_214_978_396e-01 + w * 1.531_383_769_920_937_332e-01));
    let odd = z
        * (6.666_666_666_666_735_130e-01
            + w * (2.857_142_874_366_239_149e-01
                + w * (1.818_357_216_161_805_012e-01 + w * 1.479_819_860_511_658_591e-01)));
    even + odd
}

/// Digamma, the derivative of ln Gamma, for `x > 0`.
///
/// psi(x) = psi(x + 1) - 1/x up to the asymptotic series ln x - 1/(2x) - sum B_2k / (2k x^2k). Abramowitz & Stegun 6.3.5,
/// 6.3.18. Checked against mpmath (`special.csv`) to 1e-11. NaN for `x <= 0`.
#[must_use]
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < ASYMPTOTIC_FROM {
        below += 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32_760.0 - y / 12.0))))));
    libm::log(x) - 0.5 / x - series - below
}

/// Trigamma, the second derivative of ln Gamma, for `x > 0`.
///
/// psi1(x) = psi1(x + 1) + 1/x^2 up to the asymptotic series. Abramowitz & Stegun 6.4.6, 6.4.12. Checked against mpmath
/// (`special.csv`) to 1e-11. NaN for `x <= 0`.
#[must_use]
pub fn trigamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < ASYMPTOTIC_FROM {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 1.0 / 6.0
        - y * (1.0 / 30.0
            - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * (5.0 / 66.0 - y * (691.0 / 2730.0 - y * (7.0 / 6.0))))));
    below + 1.0 / x + 0.5 * y + series * y / x
}

/// Tetragamma, the derivative of trigamma, for `x > 0`; it only steers the Newton steps of [`trigamma_inverse`].
fn tetragamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < ASYMPTOTIC_FROM {
        below += 2.0 / (x * x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 0.5 - y * (1.0 / 6.0 - y * (1.0 / 6.0 - y * (0.3 - y * (5.0 / 6.0 - y * (691.0 / 210.0)))));
    -below - y - y / x - series * y * y
}

/// Pentagamma, the third derivative of digamma, for `x > 0`.
///
/// psi3(x) = psi3(x + 1) + 6/x^4 up to the asymptotic series. Abramowitz & Stegun 6.4.6, 6.4.14. NaN for `x <= 0`.
#[must_use]
pub(crate) fn pentagamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < ASYMPTOTIC_FROM {
        below += 6.0 / (x * x * x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 2.0 - y * (1.0 - y * (4.0 / 3.0 - y * (3.0 - y * (10.0 - y * (691.0 / 15.0 - y * 280.0)))));
    below + y / x * (2.0 + 3.0 / x + y * series)
}

/// The `y > 0` with trigamma(y) = `x`, for `x > 0`.
///
/// Newton on 1/psi1, which is convex and nearly linear, started at 0.5 + 1/x; 1/sqrt(x) above 1e7 and 1/x below 1e-6. Smyth
/// (2004), section 6.2; limma `trigammaInverse`. Checked against mpmath (`special.csv`) to 1e-11.
#[must_use]
pub fn trigamma_inverse(x: f64) -> f64 {
    if x > 1e7 {
        return 1.0 / libm::sqrt(x);
    }
    if x < 1e-6 {
        return 1.0 / x;
    }
    let mut y = 0.5 + 1.0 / x;
    for _ in 0..50 {
        let at = trigamma(y);
        let step = at * (1.0 - at / x) / tetragamma(y);
        y += step;
        if -step / y < 1e-12 {
            break;
        }
    }
    y
}

/// ln Gamma(a + 1/2) - ln Gamma(a) for `a > 0`, without the cancellation of two large logarithms.
///
/// 1/2 ln a + sum (2^(1-2k) - 2) B_2k / (2k (2k-1) a^(2k-1)), reached by Gamma(a+1) = a Gamma(a). Checked through
/// `f1_tail.csv`.
#[must_use]
pub(crate) fn ln_gamma_half_step(a: f64) -> f64 {
    let (mut a, mut below) = (a, 1.0);
    while a < 16.0 {
        below *= a / (a + 0.5);
        a += 1.0;
    }
    let y = 1.0 / (a * a);
    let series = -1.0 / 8.0
        + y * (1.0 / 192.0
            + y * (-1.0 / 640.0 + y * (17.0 / 14_336.0 + y * (-31.0 / 18_432.0 + y * (691.0 / 180_224.0)))));
    libm::log(libm::sqrt(a) * below) + series / a
}

/// ln erfc(x) for any `x`; finite far beyond the underflow of erfc at x = 26.5.
///
/// ln(1 - erf x) below 1/2, ln of `libm::erfc` up to x = 20, then -x^2 - ln(x sqrt(pi)) + ln(1 - y + 3y^2 - 15y^3 + 105y^4 -
/// 945y^5 + 10395y^6) with y = 1/(2x^2) (Abramowitz & Stegun 7.1.23). Checked against mpmath (`special.csv`, `g_2x2.csv`) to
/// a relative 1e-11.
#[must_use]
pub fn ln_erfc(x: f64) -> f64 {
    if x < 0.5 {
        return libm::log1p(-libm::erf(x));
    }
    if x < ERFC_ASYMPTOTIC_FROM {
        return libm::log(libm::erfc(x));
    }
    let square = x * x;
    let y = 0.5 / square;
    let correction = -y * (1.0 - y * (3.0 - y * (15.0 - y * (105.0 - y * (945.0 - y * 10_395.0)))));
    -square - libm::log(x) - LN_SQRT_PI + libm::log1p(correction)
}

/// The `x >= 0` with ln erfc(x) = `ln_p`, for `ln_p <= 0`.
///
/// Newton on ln erfc, which is concave and falls: after one step it approaches from the right and cannot overshoot. Relative
/// error some 1e-15 over the whole range, also for `ln_p` just below 0 and at -1e6. NaN for `ln_p > 0`.
#[must_use]
pub(crate) fn ln_erfc_inverse(ln_p: f64) -> f64 {
    if ln_p.is_nan() || ln_p > 0.0 {
        return f64::NAN;
    }
    if ln_p.is_infinite() {
        return f64::INFINITY;
    }
    let half_sqrt_pi = 0.886_226_925_452_758;
    let mut x = if ln_p > -1.0 {
        -libm::expm1(ln_p) * half_sqrt_pi
    } else {
        let guess = -ln_p - LN_SQRT_PI - 0.5 * libm::log(-ln_p);
        libm::sqrt(guess.max(0.1))
    };
    for _ in 0..60 {
        let at = ln_erfc(x);
        let slope = libm::exp(-x * x - at) / half_sqrt_pi;
        let step = (at - ln_p) / slope;
        x = (x + step).max(0.0);
        if step.abs() <= 4e-16 * x {
            break;
        }
    }
    x
}

/// The `z >= 0` with P(|Z| > z) = exp(`ln_p`) for a standard normal Z: Phi^-1(1 - p/2).
///
/// Takes the logarithm so that p below 1e-308 keeps its digits. Checked through `evalue_mixture.csv` and `cell.json`.
#[must_use]
pub fn z_two_sided(ln_p: f64) -> f64 {
    std::f64::consts::SQRT_2 * ln_erfc_inverse(ln_p)
}

/// The standard normal quantile of `p` in (0, 1); minus infinity at 0, infinity at 1, NaN outside.
///
/// Both halves come from [`z_two_sided`] of the smaller tail. Checked against mpmath (`special.csv`) to 1e-11.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p < 0.5 { -z_two_sided(libm::log(2.0 * p)) } else { z_two_sided(libm::log(2.0 * (1.0 - p))) }
}

/// ln(exp(`a`) + exp(`b`)) without overflow; minus infinity stands for a zero term.
#[must_use]
pub fn ln_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a >= b { (a, b) } else { (b, a) };
    if high.is_infinite() && high < 0.0 { high } else { high + libm::log1p(libm::exp(low - high)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Law: pentagamma is the slope of the slope of trigamma, 6/x^4 between neighbours.
        #[test]
        fn pentagamma_between_neighbours(x in 0.01..200.0_f64) {
            let step = 1e-3 * x;
            let slopes = (trigamma(x + step) - 2.0 * trigamma(x) + trigamma(x - step)) / (step * step);
            prop_assert!((pentagamma(x) / slopes - 1.0).abs() < 1e-4, "{x}: {} {slopes}", pentagamma(x));
            prop_assert!((pentagamma(x) - pentagamma(x + 1.0) - 6.0 / x.powi(4)).abs() < 1e-12 * pentagamma(x));
        }

        /// Law: one division says what the logarithm of the quotient says, near 1 to the last bits.
        #[test]
        fn ln_ratio_is_the_logarithm(a in 0.5..1e9_f64, b in 0.5..1e9_f64, near in -0.01..0.01_f64) {
            for (a, b) in [(a, b), (b, a), (a, a * (1.0 + near)), (a, a * std::f64::consts::SQRT_2)] {
                let off = (a - b) / b;
                let exact = if off.abs() < 0.5 { libm::log1p(off) } else { libm::log(a / b) };
                prop_assert!((ln_ratio(a, b) - exact).abs() <= 1e-15 * exact.abs() + 3e-16, "{a} {b}: {} {exact}", ln_ratio(a, b));
            }
        }
    }
}
