//! The tail of a chi-square law with any number of degrees of freedom, as a logarithm.
//!
//! One degree of freedom has its own form ([`crate::tails::ln_chi1_tail`]); sums of G over strata and of ln p over
//! pods have many.

use crate::exact::ln_factorial_rest;

/// ln P(chi-square with `df` degrees of freedom > `x`), `df > 0` and not necessarily whole; 0 for `x <= 0`.
///
/// ln Q(a, y), a = df/2, y = x/2: one minus the series of the lower incomplete gamma function below a + 1 (DLMF 8.11.4), its
/// continued fraction above (DLMF 8.9.2, by Lentz). The prefactor y^a e^-y / Gamma(a + 1) is taken around its peak, so that it
/// keeps its digits for many degrees of freedom. Checked against mpmath (`combine.json`) to a relative 1e-10,
/// x up to 4605.
#[must_use]
pub fn ln_chi_square_tail(x: f64, df: f64) -> f64 {
    if x.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 0.0;
    }
    if x.is_infinite() {
        return f64::NEG_INFINITY;
    }
    let (a, y) = (0.5 * df, 0.5 * x);
    let ln_kernel = a * libm::log(y / a) - (y - a) - ln_factorial_rest(a);
    if y < a + 1.0 {
        libm::log1p(-(libm::exp(ln_kernel) * lower_series(a, y)).min(1.0))
    } else {
        (ln_kernel + libm::log(a) + libm::log(upper_fraction(a, y))).min(0.0)
    }
}

/// 1 + y/(a+1) + y^2/((a+1)(a+2)) + ...: all terms are positive.
fn lower_series(a: f64, y: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 1.0);
    while term > 1e-17 * sum {
        term *= y / (a + n);
        sum += term;
        n += 1.0;
    }
    sum
}

/// 1/(y + 1 - a - 1 (1-a)/(y + 3 - a - ...)) by the modified Lentz method.
fn upper_fraction(a: f64, y: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let floor = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut b = y + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / floor(b);
    let mut h = d;
    let mut n = 1.0;
    while n < 1e6 {
        let term = -n * (n - a);
        b += 2.0;
        d = 1.0 / floor(b + term * d);
        c = floor(b + term / c);
        let change = d * c;
        h *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
        n += 1.0;
    }
    h
}
