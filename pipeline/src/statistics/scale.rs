//! The scale of a cell: by how much all its shares moved because something else did.
//!
//! Shares sum to one, so a function that doubles makes all others look better. The bulk of the functions did not change; the
//! centre of their log ratios, found so that the changed ones do not count, is what "unchanged" means in this cell. A change
//! that hits all functions alike is invisible to it: only costs per request show that.

use crate::statistics::MIN_COUNT;
use crate::statistics::dispersion::median;

/// Tukey's constant: 95 % efficiency under normal errors.
const TUKEY: f64 = 4.685;

/// The scale (a ratio, 1 = nothing moved) from log ratios `theta` with variances `v`.
///
/// Precision-weighted Tukey biweight location, started at the weighted median with weights 1/(v + median v), iterated until it
/// moves by less than 1e-12. 1 with no functions. Assumes that more than half of the precision did not change. Checked against
/// the reference program (`scale.json`, `decide.json`) to 1e-9.
#[must_use]
pub fn biweight(theta: &[f64], v: &[f64]) -> f64 {
    if theta.is_empty() {
        return 1.0;
    }
    let mut centre = weighted_median(theta, v);
    let cutoffs: Vec<f64> = v.iter().map(|&v| 1.0 / (libm::sqrt(v) * TUKEY)).collect();
    let precisions: Vec<f64> = v.iter().map(|&v| 1.0 / v).collect();
    for _ in 0..50 {
        let (weight, weighted) = biweight_sums(theta, &cutoffs, &precisions, centre);
        if weight <= 0.0 {
            break;
        }
        let next = weighted / weight;
        let moved = (next - centre).abs();
        centre = next;
        if moved < 1e-12 {
            break;
        }
    }
    libm::exp(centre)
}

/// The scale from counts alone, without dispersion: variances 1/a + 1/b, functions with at least 30 samples that both arms have.
///
/// The form for counts without buckets. Checked against the reference program (`scale.json`) to 1e-9.
#[must_use]
pub fn biweight_of_counts(a: &[f64], n_a: f64, b: &[f64], n_b: f64) -> f64 {
    let shared = || a.iter().zip(b).filter(|&(&a, &b)| a + b >= MIN_COUNT && a > 0.0 && b > 0.0);
    let (ln_na, ln_nb) = (libm::log(n_a), libm::log(n_b));
    let theta: Vec<f64> = shared().map(|(&a, &b)| (libm::log(a) - ln_na) - (libm::log(b) - ln_nb)).collect();
    let v: Vec<f64> = shared().map(|(&a, &b)| 1.0 / a + 1.0 / b).collect();
    biweight(&theta, &v)
}

/// (sum of weights, sum of weights times theta) around `centre`, in four interleaved lanes: a fixed order that vectorises.
fn biweight_sums(theta: &[f64], cutoffs: &[f64], precisions: &[f64], centre: f64) -> (f64, f64) {
    let mut weights = [0.0; 4];
    let mut weighted = [0.0; 4];
    let chunks = theta.chunks(4).zip(cutoffs.chunks(4)).zip(precisions.chunks(4));
    for ((theta, cutoffs), precisions) in chunks {
        for (lane, ((&theta, &cutoff), &precision)) in theta.iter().zip(cutoffs).zip(precisions).enumerate() {
            let u = (theta - centre) * cutoff;
            let inside = (1.0 - u * u).max(0.0);
            let weight = inside * inside * precision;
            weights[lane] += weight;
            weighted[lane] += weight * theta;
        }
    }
    ((weights[0] + weights[1]) + (weights[2] + weights[3]), (weighted[0] + weighted[1]) + (weighted[2] + weighted[3]))
}

/// The smallest theta up to which at least half of the weight 1/(v + median v) lies.
fn weighted_median(theta: &[f64], v: &[f64]) -> f64 {
    let typical = median(&mut v.to_vec());
    let mut order: Vec<(f64, f64)> = theta.iter().zip(v).map(|(&theta, &v)| (theta, 1.0 / (v + typical))).collect();
    order.sort_by(|x, y| x.0.total_cmp(&y.0));
    let total: f64 = order.iter().map(|&(_, weight)| weight).sum();
    let mut below = 0.0;
    for &(theta, weight) in &order {
        below += weight;
        if below >= 0.5 * total {
            return theta;
        }
    }
    order.last().map_or(0.0, |&(theta, _)| theta)
}
