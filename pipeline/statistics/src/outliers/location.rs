//! By how much most functions of one pod are off: a location that a few odd ones do not move.

use crate::median::{median, ordered};

/// Tukey's constant: 95 % efficiency under normal errors.
const TUKEY: f64 = 4.685;
/// Sums are kept in so many parts.
const LANES: usize = 32;

/// The scale (a ratio, 1 = nothing moved) from log ratios `theta` with variances `v`.
///
/// Precision-weighted Tukey biweight location, started at the weighted median with weights 1/(v + median v), iterated until it
/// moves by less than 1e-12. 1 with no functions. Assumes that more than half of the precision did not change. Checked against
/// the reference program (`outliers.json`) to 1e-7.
#[must_use]
pub(super) fn biweight(theta: &[f64], v: &[f64]) -> f64 {
    if theta.is_empty() {
        return 1.0;
    }
    let mut centre = weighted_median(theta, v);
    let cutoffs: Vec<f64> = v.iter().map(|&v| 1.0 / (v.sqrt() * TUKEY)).collect();
    let precisions: Vec<f64> = v.iter().map(|&v| 1.0 / v).collect();
    let arch = pulp::Arch::new();
    for _ in 0..50 {
        let (weight, weighted) =
            arch.dispatch(BiweightSums { theta, cutoffs: &cutoffs, precisions: &precisions, centre });
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

/// (sum of weights, sum of weights times theta) around `centre`, in [`LANES`] interleaved lanes: a fixed order that vectorises.
struct BiweightSums<'a> {
    theta: &'a [f64],
    cutoffs: &'a [f64],
    precisions: &'a [f64],
    centre: f64,
}

impl pulp::NullaryFnOnce for BiweightSums<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn call(self) -> (f64, f64) {
        let mut weights = [0.0; LANES];
        let mut weighted = [0.0; LANES];
        let mut add = |lane: usize, theta: f64, cutoff: f64, precision: f64| {
            let u = (theta - self.centre) * cutoff;
            let inside = (1.0 - u * u).max(0.0);
            let weight = inside * inside * precision;
            weights[lane] += weight;
            weighted[lane] += weight * theta;
        };
        let (theta, theta_rest) = self.theta.as_chunks::<LANES>();
        let (cutoffs, cutoffs_rest) = self.cutoffs.as_chunks::<LANES>();
        let (precisions, precisions_rest) = self.precisions.as_chunks::<LANES>();
        for ((theta, cutoffs), precisions) in theta.iter().zip(cutoffs).zip(precisions) {
            for (lane, ((&theta, &cutoff), &precision)) in theta.iter().zip(cutoffs).zip(precisions).enumerate() {
                add(lane, theta, cutoff, precision);
            }
        }
        for (lane, ((&theta, &cutoff), &precision)) in
            theta_rest.iter().zip(cutoffs_rest).zip(precisions_rest).enumerate()
        {
            add(lane, theta, cutoff, precision);
        }
        (sum_of_lanes(weights), sum_of_lanes(weighted))
    }
}

#[inline(always)]
fn sum_of_lanes(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        let (low, high) = lanes.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
        width /= 2;
    }
    lanes[0]
}

/// The smallest theta up to which at least half of the weight 1/(v + median v) lies. Halves what is left until one is found.
fn weighted_median(theta: &[f64], v: &[f64]) -> f64 {
    let typical = median(v);
    let key = |theta: f64| ordered(theta.to_bits().cast_signed());
    let mut all: Vec<(i64, f64)> = theta.iter().zip(v).map(|(&theta, &v)| (key(theta), 1.0 / (v + typical))).collect();
    let half = 0.5 * all.iter().map(|&(_, weight)| weight).sum::<f64>();
    let (mut left, mut below) = (all.as_mut_slice(), 0.0);
    while left.len() > 1 {
        let (lower, _, _) = left.select_nth_unstable_by_key(left.len() / 2, |&(key, _)| key);
        let (middle, weight) = (lower.len(), lower.iter().map(|&(_, weight)| weight).sum::<f64>());
        let (lower, upper) = left.split_at_mut(middle);
        if below + weight >= half {
            left = lower;
        } else {
            below += weight;
            left = upper;
        }
    }
    left.first().map_or(0.0, |&(key, _)| f64::from_bits(ordered(key).cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn close(x: f64, y: f64, tolerance: f64) -> bool {
        (x - y).abs() <= tolerance * (1.0 + x.abs().min(y.abs()))
    }

    proptest! {
        /// Law: the location moves with its data, and not with one function however far off.
        #[test]
        fn moves_with_its_data(theta in vec(-0.2..0.2_f64, 25..60), v in vec(1e-5..1e-2_f64, 60), shift in -1.0..1.0_f64) {
            let v = &v[..theta.len()];
            let moved: Vec<f64> = theta.iter().map(|theta| theta + shift).collect();
            prop_assert!(close(biweight(&moved, v) / biweight(&theta, v), shift.exp(), 1e-6));
            let same = vec![0.1; theta.len()];
            let mut one_off = same.clone();
            one_off[0] = 5.0;
            prop_assert!(close(biweight(&one_off, v), biweight(&same, v), 1e-9));
        }
    }
}
