//! G of a table of counts, the log-likelihood ratio of independent samples: a column that decides nothing.

use super::tails::ln_chi1_tail;

/// G of `a` in `na` against `b` in `nb`; 0 if the function has no samples or all of them, or an arm is empty.
pub fn g_share(a: f64, na: f64, b: f64, nb: f64) -> f64 {
    let (t, n) = (a + b, na + nb);
    if t <= 0.0 || t >= n || na <= 0.0 || nb <= 0.0 {
        return 0.0;
    }
    // All four cells of the table are this far from their expectation.
    let off = real(whole(a) * whole(nb) - whole(b) * whole(na)) / n;
    let terms = [(na * t, off), (na * (n - t), -off), (nb * t, -off), (nb * (n - t), off)];
    2.0 * terms.iter().map(|&(product, off)| distance(product / n, off)).sum::<f64>()
}

/// ln p of the 2x2 table of `g` if samples were independent.
pub fn ln_p_iid(g: f64) -> f64 {
    ln_chi1_tail(g)
}

/// o ln(o/e) - (o - e) for o = e + `off`, without the cancellation of that form where o is close to e.
fn distance(e: f64, off: f64) -> f64 {
    let r = off / e;
    if r <= -1.0 {
        return e;
    }
    if r.abs() > 0.1 {
        return e * ((1.0 + r) * r.ln_1p() - r);
    }
    let mut power = r;
    let mut sum = 0.0;
    for k in 2..30_u32 {
        power *= -r;
        sum -= power / (f64::from(k) * f64::from(k - 1));
    }
    e * sum
}

/// A count as an integer: products of counts of 10^12 do not fit a float.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "counts are whole numbers below 2^53")]
fn whole(count: f64) -> i128 {
    count as i128
}

/// An integer as the nearest float.
#[expect(clippy::as_conversions, reason = "rounding to the nearest float is meant")]
fn real(count: i128) -> f64 {
    count as f64
}
