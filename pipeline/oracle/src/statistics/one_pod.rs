//! The effect with each bucket of a small arm left out in turn.

use super::geometry::{CLASSES, Shared, weights};

/// An arm with so many buckets is not made by one of them.
const FEW: usize = 5;

/// All effects without one bucket.
#[derive(Clone, Debug)]
pub(super) struct Without {
    pub arm: usize,
    pub bucket: usize,
    /// ln of the ratio of levels that is left, by function; not a number if nothing is.
    theta: Vec<f64>,
}

impl Without {
    /// What is left of a change of `theta` against the scale, in its direction; least if nothing is.
    pub fn left(&self, theta: f64, f: usize, ln_scale: f64) -> f64 {
        let left = (self.theta[f] - ln_scale) * (theta - ln_scale).signum();
        if left.is_nan() { f64::NEG_INFINITY } else { left }
    }

    /// Whether the change does not hold without the bucket: it loses its direction, or more than half of its size.
    pub fn is_made_by_it(&self, theta: f64, f: usize, ln_scale: f64) -> bool {
        let whole = (theta - ln_scale).abs();
        let left = self.left(theta, f, ln_scale);
        let holds = if whole.is_infinite() { left == f64::INFINITY } else { whole == 0.0 || left >= whole / 2.0 };
        !holds
    }
}

/// The effects without each bucket of the arms that have few (`one_pod`): weights of the class stay, the weights of
/// strata follow from what is left. `samples_per_pod` is that of the whole cell.
pub(super) fn without_each(shared: &Shared, class: &[usize], samples_per_pod: f64) -> Vec<Without> {
    let weights: Vec<[Vec<f64>; 2]> =
        CLASSES.iter().map(|kappa| [0, 1].map(|arm| weights(shared, arm, kappa / samples_per_pod))).collect();
    let mut found = Vec::new();
    for arm in [0, 1] {
        let occupied = shared.occupied(arm);
        if occupied.len() >= FEW {
            continue;
        }
        for bucket in occupied {
            let theta = (0..class.len()).map(|f| theta_without(shared, &weights[class[f]], f, arm, bucket)).collect();
            found.push(Without { arm, bucket, theta });
        }
    }
    found
}

fn theta_without(shared: &Shared, weights: &[Vec<f64>; 2], f: usize, without: usize, bucket: usize) -> f64 {
    let (mut head, mut base) = (0.0, 0.0);
    for s in 0..shared.strata() {
        let [(x1, m1), (x0, m0)] = [0, 1].map(|arm: usize| {
            let (mut count, mut mass) = (0.0, 0.0);
            for (b, weight) in weights[arm].iter().enumerate() {
                if (arm, b) != (without, bucket) {
                    count += weight * shared.arms[arm].counts[s][b][f];
                    mass += weight * shared.arms[arm].exposure[s][b];
                }
            }
            (count, mass)
        });
        if m1 + m0 > 0.0 {
            head += x1 * m0 / (m1 + m0);
            base += x0 * m1 / (m1 + m0);
        }
    }
    head.ln() - base.ln()
}
