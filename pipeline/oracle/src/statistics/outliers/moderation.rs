//! What functions have in common in the test of outlying pods: the prior of their dispersion, and the factor by which most moved.

use fleetdiff_schemas::number::length_float;
use statrs::function::gamma::digamma;

use crate::statistics::ENOUGH_FUNCTIONS;
use crate::statistics::priors::median;
use crate::statistics::tails::{trigamma, trigamma_inverse};

/// The prior counts for no more degrees of freedom than this.
const PRIOR_CAP: f64 = 20.0;

/// Moderated dispersions and their degrees of freedom (`moderate`).
pub(super) fn moderate(phi: &[f64], mu: &[f64], df: f64) -> (Vec<f64>, f64) {
    if mu.len() < ENOUGH_FUNCTIONS || df <= 0.0 {
        return (phi.iter().map(|phi| phi.max(1.0)).collect(), df);
    }
    let typical = median(mu);
    let c = (1.0 - 2.0 / (9.0 * df)).powi(3);
    let slopes: Vec<f64> =
        mu.iter().zip(phi).filter(|(m, _)| **m >= typical).map(|(m, ph)| (ph / c - 1.0) / m).collect();
    let tau2 = median(&slopes).max(0.0);
    let mut s: Vec<f64> = mu.iter().zip(phi).map(|(m, ph)| ph / (1.0 + tau2 * m)).collect();
    let middle = median(&s);
    let floor = 1e-5 * if middle > 0.0 { middle } else { 1.0 };
    s.iter_mut().for_each(|s| *s = s.max(floor));
    let e: Vec<f64> = s.iter().map(|s| s.ln() - digamma(df / 2.0) + (df / 2.0).ln()).collect();
    let count = length_float(e.len());
    let mean = e.iter().sum::<f64>() / count;
    let variance = e.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / (count - 1.0) - trigamma(df / 2.0);
    let (d0, s02) = if variance > 0.0 {
        let d0 = 2.0 * trigamma_inverse(variance);
        (d0, (mean + digamma(d0 / 2.0) - (d0 / 2.0).ln()).exp())
    } else {
        (f64::INFINITY, mean.exp())
    };
    let prior_df = d0.min(PRIOR_CAP);
    let moderated = phi.iter().zip(mu).map(|(phi, mu)| {
        let trend = 1.0 + tau2 * mu;
        (trend * (prior_df * s02 + df * phi / trend) / (prior_df + df)).max(1.0)
    });
    (moderated.collect(), df + prior_df)
}

/// Robust location of log ratios `l` with variances `v`, as a factor (`scale_tukey_from`); 1 if there are none.
pub(super) fn normalization_from(l: &[f64], v: &[f64]) -> f64 {
    if l.is_empty() {
        return 1.0;
    }
    let typical = median(v);
    let mut order: Vec<usize> = (0..l.len()).collect();
    order.sort_by(|&i, &j| l[i].total_cmp(&l[j]));
    let mut running = 0.0;
    let cumulated: Vec<f64> = order
        .iter()
        .map(|&i| {
            running += 1.0 / (v[i] + typical);
            running
        })
        .collect();
    let start = cumulated.iter().position(|sum| *sum >= running / 2.0).unwrap_or(0);
    let mut m = l[order[start]];
    for _ in 0..50 {
        let (mut weights, mut weighted) = (0.0, 0.0);
        for (l, v) in l.iter().zip(v) {
            let u = (l - m) / v.sqrt() / 4.685;
            if u.abs() < 1.0 {
                let w = (1.0 - u * u) * (1.0 - u * u) / v;
                weights += w;
                weighted += w * l;
            }
        }
        if weights <= 0.0 {
            break;
        }
        let next = weighted / weights;
        let decided = (next - m).abs() < 1e-12;
        m = next;
        if decided {
            break;
        }
    }
    m.exp()
}
