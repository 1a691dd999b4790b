//! Statistics and effect of one function from its counts by stratum.

/// The denominator of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Samples, of which a function's count is a part.
    Share,
    /// Requests.
    Rate,
}

/// The counts, or exposures, of head and base by stratum.
type Arms<'a> = (&'a [f64], &'a [f64]);

/// The statistic of a function, and the variance of its score (1 with one stratum, where there is no score).
#[expect(clippy::float_cmp, reason = "scale 1 is the caller's word for no scale, not the outcome of a computation")]
pub(super) fn statistic(model: Model, (x1, x0): Arms<'_>, (n1, n0): Arms<'_>, normalization: f64) -> (f64, f64) {
    if n1.len() == 1 {
        let (x, n) = (x1[0] + x0[0], n1[0] + n0[0]);
        let g = match model {
            Model::Share if normalization == 1.0 => g_share(x1[0], n1[0], x0[0], n0[0]),
            Model::Share => g_rate(x1[0], normalization * n1[0], x0[0], n0[0]) / (1.0 - x / n),
            Model::Rate => g_rate(x1[0], normalization * n1[0], x0[0], n0[0]),
        };
        return (g, 1.0);
    }
    let (mut u, mut v) = (0.0, 0.0);
    for s in 0..n1.len() {
        let (x, n) = (x1[s] + x0[s], n1[s] + n0[s]);
        let (e1, e0) = (normalization * n1[s], n0[s]);
        u += x1[s] - x * (e1 / (e1 + e0));
        let rate = e1 * e0 / ((e1 + e0) * (e1 + e0)) * x;
        v += match model {
            Model::Share if normalization == 1.0 => n1[s] * n0[s] / (n * n * (n - 1.0).max(1.0)) * x * (n - x),
            Model::Share => rate * (1.0 - x / n),
            Model::Rate => rate,
        };
    }
    (if v > 0.0 { u * u / v } else { 0.0 }, v)
}

/// ln of the Mantel-Haenszel ratio, and its Greenland-Robins variance for dispersion 1. An arm without the function
/// counts half a sample (and its variance is not used).
pub(super) fn mantel_haenszel(model: Model, (x1, x0): Arms<'_>, (n1, n0): Arms<'_>) -> (f64, f64) {
    let (mut r, mut q, mut w, mut p) = (0.0, 0.0, 0.0, 0.0);
    for s in 0..n1.len() {
        let n = n1[s] + n0[s];
        r += x1[s] * (n0[s] / n);
        q += x0[s] * (n1[s] / n);
        w += n1[s] * n0[s] / n;
        // A count of a share cannot be larger than its total; one of a rate can.
        let bounded = if model == Model::Share { x1[s] * x0[s] * n } else { 0.0 };
        p += (n1[s] * n0[s] * (x1[s] + x0[s]) - bounded) / (n * n);
    }
    let of_head = if x1.iter().any(|x| *x > 0.0) { r / w } else { 0.5 / n1.iter().sum::<f64>() };
    let of_base = if x0.iter().any(|x| *x > 0.0) { q / w } else { 0.5 / n0.iter().sum::<f64>() };
    (of_head.ln() - of_base.ln(), p / (r * q))
}

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

/// Twice the log-likelihood ratio of two Poisson counts with exposures `ea` and `eb`.
fn g_rate(a: f64, ea: f64, b: f64, eb: f64) -> f64 {
    let t = a + b;
    if t <= 0.0 {
        return 0.0;
    }
    let off = (a * eb - b * ea) / (ea + eb);
    2.0 * (distance(t * ea / (ea + eb), off) + distance(t * eb / (ea + eb), -off))
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
