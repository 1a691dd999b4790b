//! What the functions of a cell have in common: the prior of their dispersion, and the normalization factor.

use fleetdiff_schemas::number::length_float;
use statrs::function::gamma::digamma;

use super::ENOUGH_FUNCTIONS;
use super::tails::{trigamma, trigamma_inverse};

/// The prior counts for no more degrees of freedom than this.
const PRIOR_CAP: f64 = 20.0;

/// What functions have in common.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Variance between pods on the log scale.
    pub tau2: f64,
    /// Prior degrees of freedom, not capped.
    pub d0: f64,
    /// Prior dispersion.
    pub s02: f64,
}

impl Default for Prior {
    fn default() -> Self {
        Self { tau2: 0.0, d0: 0.0, s02: 1.0 }
    }
}

/// Moderated dispersion, degrees of freedom and prior (`moderate`).
pub(super) fn moderate(phi: &[f64], mu: &[f64], ok: &[bool], df: f64) -> (Vec<f64>, f64, Prior) {
    let chosen =
        |values: &[f64]| -> Vec<f64> { values.iter().zip(ok).filter(|(_, ok)| **ok).map(|(v, _)| *v).collect() };
    let (m, ph) = (chosen(mu), chosen(phi));
    if m.len() < ENOUGH_FUNCTIONS || df <= 0.0 {
        return (phi.iter().map(|phi| phi.max(1.0)).collect(), df, Prior::default());
    }
    let typical = median(&m);
    let c = (1.0 - 2.0 / (9.0 * df)).powi(3);
    let slopes: Vec<f64> =
        m.iter().zip(&ph).filter(|(m, _)| **m >= typical).map(|(m, ph)| (ph / c - 1.0) / m).collect();
    let tau2 = median(&slopes).max(0.0);
    let mut s: Vec<f64> = m.iter().zip(&ph).map(|(m, ph)| ph / (1.0 + tau2 * m)).collect();
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
    (moderated.collect(), df + prior_df, Prior { tau2, d0, s02 })
}

/// The median; for an even number of values the mean of the middle two. There must be at least one value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// Robust location of log ratios `l` with variances `v`, as a factor (`scale_tukey_from`); 1 if there are none.
pub fn normalization_from(l: &[f64], v: &[f64]) -> f64 {
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
