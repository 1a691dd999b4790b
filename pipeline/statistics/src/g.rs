//! G, the log-likelihood ratio of a two-by-two table, and its Poisson sister for rates.
//!
//! Idea: with d the deviation of a cell from its expectation e, G = 2 sum (e + d) ln(1 + d/e), and the four d are equal up to
//! sign. Subtracting d from each term changes nothing in the sum and leaves e h(d/e) with h(r) = (1+r) ln(1+r) - r >= 0: no
//! cancellation is left, and d itself is exact, since its numerator is an integer of 128 bits.
//!
//! What makes G wrong is not arithmetic: its chi-square law holds for independent samples. Samples of one pod are not.

#![expect(clippy::as_conversions, reason = "128-bit numerators and counts below 2^53 become floats here, rounded once")]

/// G of the table `a` of `n_a` against `b` of `n_b`, twice the log-likelihood ratio of two shares against a common one.
///
/// G = 2 sum over the four cells of o ln(o/e). Unit: nats times two, at least 0; 0 where the function is in no sample or in
/// all of them, or an arm is empty. Assumes `a <= n_a`, `b <= n_b` and totals below 2^62. Checked against mpmath with 50
/// digits (`g_2x2.csv`) to a relative 1e-12, with totals up to 1e12.
#[must_use]
pub fn g_2x2(a: u64, n_a: u64, b: u64, n_b: u64) -> f64 {
    let (wide_a, wide_na, wide_b, wide_nb) = (i128::from(a), i128::from(n_a), i128::from(b), i128::from(n_b));
    let (both, total) = (wide_a + wide_b, wide_na + wide_nb);
    if n_a == 0 || n_b == 0 || both == 0 || both == total {
        return 0.0;
    }
    let total_f = total as f64;
    let deviation = (wide_a * wide_nb - wide_b * wide_na) as f64 / total_f;
    let share = |part: i128, arm: i128| part as f64 * (arm as f64 / total_f);
    let rest = total - both;
    2.0 * (excess(a as f64, share(both, wide_na), deviation)
        + excess((n_a - a) as f64, share(rest, wide_na), -deviation)
        + excess(b as f64, share(both, wide_nb), -deviation)
        + excess((n_b - b) as f64, share(rest, wide_nb), deviation))
}

/// G of counts that are held as floats; whole numbers below 2^53 take the exact path of [`g_2x2`].
///
/// For weighted values after division by their unit, which need not be whole.
#[must_use]
pub fn g_share(a: f64, n_a: f64, b: f64, n_b: f64) -> f64 {
    let whole = |v: f64| (0.0..9_007_199_254_740_992.0).contains(&v) && v.fract() == 0.0;
    if whole(a) && whole(n_a) && whole(b) && whole(n_b) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative and below 2^53"
        )]
        return g_2x2(a as u64, n_a as u64, b as u64, n_b as u64);
    }
    let (both, total) = (a + b, n_a + n_b);
    if !(both > 0.0 && both < total && n_a > 0.0 && n_b > 0.0) {
        return 0.0;
    }
    let deviation = (a * n_b - b * n_a) / total;
    let rest = total - both;
    2.0 * (excess(a, both * n_a / total, deviation)
        + excess(n_a - a, rest * n_a / total, -deviation)
        + excess(b, both * n_b / total, -deviation)
        + excess(n_b - b, rest * n_b / total, deviation))
}

/// Twice the log-likelihood ratio of two Poisson counts `a` and `b` with exposures `e_a` and `e_b` (requests, or scale times
/// samples).
///
/// 2 (a ln(a/(t p)) + b ln(b/(t (1-p)))), t = a + b, p = e_a/(e_a + e_b); 0 where the function is in no sample. Checked through
/// `fisher_exact_large.csv`, and against [`crate::Levels::deviance`] without spread between pods.
#[must_use]
pub fn g_rate(a: f64, e_a: f64, b: f64, e_b: f64) -> f64 {
    let both = a + b;
    if !(both > 0.0 && e_a > 0.0 && e_b > 0.0) {
        return 0.0;
    }
    let exposure = e_a + e_b;
    let deviation = (a * e_b - b * e_a) / exposure;
    2.0 * (excess(a, both * (e_a / exposure), deviation) + excess(b, both * (e_b / exposure), -deviation))
}

/// observed ln(observed/expected) - deviation, which is at least 0; `deviation` = observed - expected, known more exactly than
/// that difference.
pub(super) fn excess(observed: f64, expected: f64, deviation: f64) -> f64 {
    let ratio = deviation / expected;
    if ratio.abs() < 0.5 {
        expected * entropy_near_zero(ratio)
    } else if observed > 0.0 {
        observed * libm::log(observed / expected) - deviation
    } else {
        expected
    }
}

/// (1+r) ln(1+r) - r for |r| < 1/2, by s = r/(2+r): 2 (s^2 + (1+s)(s^3/3 + s^5/5 + ...)) / (1-s).
fn entropy_near_zero(r: f64) -> f64 {
    let s = r / (2.0 + r);
    let z = s * s;
    let (mut power, mut sum, mut k) = (s * z, 0.0, 3.0);
    while power.abs() > 1e-18 * z {
        sum += power / k;
        power *= z;
        k += 2.0;
    }
    2.0 * (z + (1.0 + s) * sum) / (1.0 - s)
}
