//! Tail probabilities as natural logarithms, and the quantiles that belong to them.
//!
//! A test of one function ends here: a statistic becomes ln p. With 64 buckets an arm the second degree of freedom is at most
//! some 150, but nothing below depends on that.

use crate::special::{ln_erfc, ln_gamma_half_step};

/// ln sqrt(pi).
const LN_SQRT_PI: f64 = 0.572_364_942_924_700_1;
/// Newton's steps below this part of the root leave an error of its square.
pub(super) const DECIDED: f64 = 1e-9;
/// Below this F the central probability is summed, above it the tail's continued fraction converges fast.
const SERIES_BELOW: f64 = 3.0;

/// ln P(chi-square with one degree of freedom > `g`) = ln erfc(sqrt(g/2)), for `g >= 0`.
///
/// Checked against mpmath (`g_2x2.csv`) to a relative 1e-11, up to G = 1e6.
#[must_use]
pub fn ln_chi1_tail(g: f64) -> f64 {
    ln_erfc(libm::sqrt(0.5 * g))
}

/// The tail of F(1, d2), equally of a squared Student t with d2 degrees of freedom; d2 is fixed and its constants are kept.
///
/// One cell tests all its functions with the same d2, so the constants are found once a cell.
#[derive(Clone, Copy, Debug)]
pub struct F1Tail {
    d2: f64,
    /// -ln B(d2/2, 1/2).
    ln_inverse_beta: f64,
}

impl F1Tail {
    /// The tail for `d2 > 0`, which need not be whole. With `d2 <= 0` or NaN every probability is NaN.
    #[must_use]
    pub fn new(d2: f64) -> Self {
        let d2 = if d2 > 0.0 { d2 } else { f64::NAN };
        let ln_inverse_beta = if d2.is_nan() { f64::NAN } else { ln_gamma_half_step(0.5 * d2) - LN_SQRT_PI };
        Self { d2, ln_inverse_beta }
    }

    /// The second degree of freedom.
    #[must_use]
    pub fn d2(&self) -> f64 {
        self.d2
    }

    /// ln P(F(1, d2) > `f`) for `f >= 0`; 0 at `f <= 0`.
    ///
    /// The regularised incomplete beta function I_x(d2/2, 1/2) at x = d2/(d2 + f): its continued fraction above f = 3
    /// (Abramowitz & Stegun 26.5.8, evaluated by Lentz), one minus the hypergeometric series of I_(1-x)(1/2, d2/2) below
    /// (DLMF 8.17.8). Checked against mpmath (`f1_tail.csv`), d2 from 1 to 1e6 and f to 5000, to a relative 1e-9.
    #[must_use]
    pub fn ln_tail(&self, f: f64) -> f64 {
        if f.is_nan() || self.d2.is_nan() {
            return f64::NAN;
        }
        if f <= 0.0 {
            return 0.0;
        }
        if f.is_infinite() {
            return f64::NEG_INFINITY;
        }
        let a = 0.5 * self.d2;
        let ln_x = -libm::log1p(f / self.d2);
        let ln_y = libm::log(f / self.d2) + ln_x;
        let ln_kernel = a * ln_x + 0.5 * ln_y + self.ln_inverse_beta;
        if f < SERIES_BELOW {
            libm::log1p(-(2.0 * libm::exp(ln_kernel) * central_series(a, f / (self.d2 + f))).min(1.0))
        } else {
            let x = self.d2 / (self.d2 + f);
            ln_kernel - libm::log(a) + libm::log(tail_fraction(a, x))
        }
    }

    /// The `f` with ln P(F(1, d2) > f) = `ln_p`, for `ln_p <= 0`: the critical value of a cell.
    ///
    /// Newton on ln p against ln f inside a bracket, so that it holds for any tail. Relative error some 1e-13.
    #[must_use]
    pub fn critical(&self, ln_p: f64) -> f64 {
        if ln_p.is_nan() || ln_p > 0.0 || self.d2.is_nan() {
            return f64::NAN;
        }
        if ln_p >= 0.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut f = self.near(ln_p);
        for _ in 0..2000 {
            if f.is_infinite() {
                return f;
            }
            let at = self.ln_tail(f);
            if at > ln_p {
                low = f;
            } else {
                high = f;
            }
            let next = f * libm::exp((at - ln_p) / self.log_slope(f, at));
            if next > low && next < high {
                let moved = (next - f).abs();
                f = next;
                if moved <= DECIDED * f {
                    break;
                }
            } else {
                let half = if high.is_infinite() { 4.0 * low } else { 0.5 * (low + high) };
                if half <= low || half >= high {
                    break;
                }
                f = half;
            }
        }
        f
    }

    /// A first guess of the critical value: z^2 of the normal tail's leading terms, spread as t is wider than normal
    /// (Wallace 1959).
    fn near(&self, ln_p: f64) -> f64 {
        let twice = -2.0 * ln_p;
        let z2 = if twice > 3.0 {
            twice - libm::log(std::f64::consts::FRAC_PI_2 * (twice - libm::log(twice)))
        } else {
            0.39 * twice * twice
        };
        let spread = libm::expm1(z2 / (self.d2 + 0.5)) * self.d2;
        if spread < 1e300 { spread.max(f64::MIN_POSITIVE) } else { 1e300 }
    }

    /// -d ln P(F > f) / d ln f, from the density f^(-1/2) d2^(-1/2) (1 + f/d2)^(-(d2+1)/2) / B(d2/2, 1/2).
    fn log_slope(&self, f: f64, ln_tail: f64) -> f64 {
        let ln_density =
            self.ln_inverse_beta + 0.5 * libm::log(f / self.d2) - 0.5 * (self.d2 + 1.0) * libm::log1p(f / self.d2);
        libm::exp(ln_density - ln_tail)
    }
}

/// The `t` with P(|T| <= t) = `level` for a Student t with `df` degrees of freedom: 2.086 for .95 and 20.
///
/// `level` is in (0, 1). The square root of the critical value of F(1, df). Checked against mpmath (`tests/published/numbers.rs`) to 1e-12.
#[must_use]
pub fn t_quantile(level: f64, df: f64) -> f64 {
    libm::sqrt(F1Tail::new(df).critical(libm::log1p(-level)))
}

/// sum over n of (a + 1/2)_n / (3/2)_n y^n: all terms are positive, so nothing cancels.
fn central_series(a: f64, y: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum && n < 1e5 {
        term *= y * (a + 0.5 + n) / (1.5 + n);
        sum += term;
        n += 1.0;
    }
    sum
}

/// ln P(F(d1, d2) > `f`) for `d1`, `d2` > 0, which need not be whole; 0 at `f <= 0`.
///
/// ln I_x(d2/2, d1/2) at x = d2/(d2 + d1 f): ln of the prefactor and of the continued fraction, or one minus that of the other
/// side below the mean. Checked against the reference program through `test.json`, for d1 = 1 against [`F1Tail`] to 1e-10.
#[must_use]
pub fn ln_f_tail(f: f64, d1: f64, d2: f64) -> f64 {
    FTail::new(d1, d2).ln_tail(f)
}

/// The tail of F(d1, d2) with its constants: see [`ln_f_tail`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FTail {
    d1: f64,
    d2: f64,
    /// -ln B(d2/2, d1/2).
    ln_inverse_beta: f64,
}

impl FTail {
    pub fn new(d1: f64, d2: f64) -> Self {
        let (a, b) = (0.5 * d2, 0.5 * d1);
        let known = d1 > 0.0 && d2 > 0.0;
        let ln_inverse_beta = if known { libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) } else { f64::NAN };
        Self { d1, d2, ln_inverse_beta }
    }

    /// Whether these are its degrees of freedom.
    pub fn is_of(&self, d1: f64, d2: f64) -> bool {
        self.d1.to_bits() == d1.to_bits() && self.d2.to_bits() == d2.to_bits()
    }

    pub fn ln_tail(&self, f: f64) -> f64 {
        let Self { d1, d2, ln_inverse_beta } = *self;
        if f.is_nan() || ln_inverse_beta.is_nan() {
            return f64::NAN;
        }
        if f <= 0.0 {
            return 0.0;
        }
        let (a, b) = (0.5 * d2, 0.5 * d1);
        let ratio = d1 * f / d2;
        let ln_x = -libm::log1p(ratio);
        let ln_kernel = a * ln_x + b * (libm::log(ratio) + ln_x) + ln_inverse_beta;
        let x = 1.0 / (1.0 + ratio);
        if x <= (a + 1.0) / (a + b + 2.0) {
            ln_kernel - libm::log(a) + libm::log(beta_fraction(a, b, x))
        } else {
            libm::log1p(-libm::exp(ln_kernel) / b * beta_fraction(b, a, ratio * x))
        }
    }
}

/// The continued fraction of I_x(a, 1/2).
fn tail_fraction(a: f64, x: f64) -> f64 {
    beta_fraction(a, 0.5, x)
}

/// The continued fraction of I_x(a, b) by the modified Lentz method.
#[inline]
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let floor = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / floor(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    let mut m = 1.0;
    while m < 1e5 {
        let twice = a + 2.0 * m;
        let even = m * (b - m) * x / ((twice - 1.0) * twice);
        d = 1.0 / floor(1.0 + even * d);
        c = floor(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0));
        d = 1.0 / floor(1.0 + odd * d);
        c = floor(1.0 + odd / c);
        let change = d * c;
        h *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
        m += 1.0;
    }
    h
}
