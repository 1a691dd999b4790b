//! How much a pod counts: weights of buckets, and everything else that follows from exposures alone.
//!
//! The count of a small function is noise of sampling, which a pod with more samples has less of; the count of a large one is
//! mostly the pod's own habit, of which every pod has one. So small functions count samples and large ones count pods. How far
//! a function is on that way is kappa, the variance between pods over the variance of sampling; functions are put in seven
//! classes of it, so that weights exist for each class and bucket and never for each function. Leverage, degrees of freedom and
//! the two parts of the working variance follow from weights and exposures, once for each class of a cell at a look.
//!
//! | symbol | what |
//! |---|---|
//! | w_b = 1/(1 + (kappa/n-) n_b/k_b) | weight of a bucket, n- = samples per pod |
//! | M_s = sum_b w_b n_sb | weighted exposure of the arm in a stratum |
//! | h_s = M_other/(M_head + M_base) | weight of the arm's stratum (Mantel & Haenszel) |
//! | v_b = sum_s h^2 w n | working variance of a bucket |
//! | lev_b = sum_s h^2 (w n)^2/M / v_b | part of a bucket's residual that the arm's own level takes away |
//! | 1/df = sum_bc g_b g_c rho_bc^2 | Satterthwaite, g the buckets' parts of the working variance (Bell & McCaffrey 2002) |

use crate::arms::{Arms, Side};
use crate::layout::{ArmLayout, Bucket, Layout};

/// Number of classes.
pub(crate) const CLASSES: usize = 7;
/// kappa of each class.
const KAPPA: [f64; CLASSES] = [0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0];
/// From this kappa on a function is in the next class: halfway between the classes in logarithm.
const CLASS_FROM: [f64; CLASSES - 1] = [0.125, 0.5, 2.0, 8.0, 32.0, 128.0];
/// A bucket whose own level takes away all but this part of its residual says nothing.
const ALONE: f64 = 1e-9;

/// The class of a function with this kappa = tau^2 x pooled share x samples per pod.
pub(crate) fn class_of(kappa: f64) -> usize {
    CLASS_FROM.iter().take_while(|&&from| kappa >= from).count()
}

/// kappa/n- of a class, given samples per pod: how fast the weight of a bucket falls with samples per pod.
pub(crate) fn weight_slope(class: usize, per_pod: f64) -> f64 {
    KAPPA[class] / per_pod
}

impl Bucket<'_> {
    /// w = 1/(1 + slope n_b/k_b).
    pub fn weight(&self, slope: f64) -> f64 {
        1.0 / (1.0 + slope * self.exposure / self.pods)
    }
}

/// Weights of one class, and what follows from them.
pub(crate) struct Geometry {
    /// Of each arm.
    pub arms: Arms<ArmGeometry>,
    /// M_head + M_base by stratum.
    pub both: Vec<f64>,
    /// W = sum_s M_head M_base / (M_head + M_base).
    pub information: f64,
}

/// One arm's part of [`Geometry`].
pub(crate) struct ArmGeometry {
    /// w by bucket.
    pub weights: Vec<f64>,
    /// M by stratum.
    pub totals: Vec<f64>,
    /// h by stratum.
    pub strata: Vec<f64>,
    /// From which level residuals are taken.
    pub residuals: Residuals,
    /// By which a bucket's squared residual is multiplied: 1/(1 - leverage), times the working variance of all buckets over that of
    /// those that say something; 0 for the others.
    pub corrections: Vec<f64>,
    /// Satterthwaite degrees of freedom of the sum of squares; 0 if there is nothing to sum.
    pub df: f64,
    /// h^2 sum_b w^2 n by stratum: what counting contributes.
    pub counting: Vec<f64>,
    /// sum_b (h w n)_s (h w n)_t / k_b by stratum and stratum: what pods contribute.
    pub between: Vec<f64>,
}

/// From which level of an arm the residuals of its buckets are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residuals {
    /// From the arm's own level in each stratum.
    OfStratum,
    /// From the arm's level common to all strata, times the pooled share of each: every bucket is alone in its stratum.
    OfAllStrata,
}

impl Geometry {
    /// The tables of class `class`, given samples per pod.
    pub fn new(layout: &Layout<'_>, class: usize, per_pod: f64) -> Self {
        let slope = weight_slope(class, per_pod);
        let weights = layout.arms.as_ref().map(|arm| arm.weights(slope));
        let totals = Arms::of(|side| layout.arms[side].weighted(&weights[side], layout.strata));
        let both: Vec<f64> = totals.head.iter().zip(&totals.base).map(|(head, base)| head + base).collect();
        let information = totals.head.iter().zip(&totals.base).zip(&both).map(|((m1, m0), m)| m1 * m0 / m).sum();
        let arms = Arms::of(|side: Side| {
            let strata = totals[side.other()].iter().zip(&both).map(|(other, both)| other / both).collect();
            ArmGeometry::new(&layout.arms[side], weights[side].clone(), totals[side].clone(), strata)
        });
        Self { arms, both, information }
    }
}

impl ArmLayout<'_> {
    fn weights(&self, slope: f64) -> Vec<f64> {
        self.buckets.iter().map(|bucket| bucket.weight(slope)).collect()
    }

    fn weighted(&self, weights: &[f64], strata: usize) -> Vec<f64> {
        let mut totals = vec![0.0; strata];
        for (bucket, weight) in self.buckets.iter().zip(weights) {
            bucket.parts.iter().for_each(|part| totals[part.stratum] += weight * part.exposure);
        }
        totals
    }
}

impl ArmGeometry {
    fn new(arm: &ArmLayout<'_>, weights: Vec<f64>, totals: Vec<f64>, strata: Vec<f64>) -> Self {
        let working = Working::new(arm, &weights, &totals, &strata);
        let live: Vec<bool> = working.leverages.iter().map(|leverage| 1.0 - leverage > ALONE).collect();
        let (residuals, corrections, df) = if live.contains(&true) {
            let (corrections, df) = working.of_stratum(&live);
            (Residuals::OfStratum, corrections, df)
        } else if arm.buckets.len() >= 2 {
            let (corrections, df) = working.of_all_strata();
            (Residuals::OfAllStrata, corrections, df)
        } else {
            (Residuals::OfStratum, vec![0.0; arm.buckets.len()], 0.0)
        };
        let (mut counting, mut between) = (vec![0.0; totals.len()], vec![0.0; totals.len() * totals.len()]);
        for (bucket, weight) in arm.buckets.iter().zip(&weights) {
            for part in &bucket.parts {
                let (s, h) = (part.stratum, strata[part.stratum]);
                counting[s] += h * h * (weight * weight * part.exposure);
                for other in &bucket.parts {
                    let own = h * weight * part.exposure;
                    between[s * totals.len() + other.stratum] +=
                        own / bucket.pods * (strata[other.stratum] * weight * other.exposure);
                }
            }
        }
        Self { weights, totals, strata, residuals, corrections, df, counting, between }
    }
}

/// The working variance of an arm's buckets.
struct Working {
    /// v by bucket.
    variances: Vec<f64>,
    /// Leverage by bucket.
    leverages: Vec<f64>,
    /// h w n / sqrt(M) by bucket, then stratum; 0 where the bucket is not.
    overlaps: Vec<Vec<f64>>,
}

impl Working {
    fn new(arm: &ArmLayout<'_>, weights: &[f64], totals: &[f64], strata: &[f64]) -> Self {
        let (mut variances, mut leverages, mut overlaps) = (Vec::new(), Vec::new(), Vec::new());
        for (bucket, weight) in arm.buckets.iter().zip(weights) {
            let (mut variance, mut taken, mut overlap) = (0.0, 0.0, vec![0.0; totals.len()]);
            for part in &bucket.parts {
                let (h, total, m) = (strata[part.stratum], totals[part.stratum], weight * part.exposure);
                variance += h * h * m;
                taken += h * h / total * m * m;
                overlap[part.stratum] = h * m / libm::sqrt(total);
            }
            variances.push(variance);
            leverages.push(if variance > 0.0 { taken / variance } else { 1.0 });
            overlaps.push(overlap);
        }
        Self { variances, leverages, overlaps }
    }

    /// Corrections and degrees of freedom of residuals from the arm's level in each stratum.
    fn of_stratum(&self, live: &[bool]) -> (Vec<f64>, f64) {
        let all: f64 = self.variances.iter().sum();
        let used: f64 = self.variances.iter().zip(live).filter(|(_, live)| **live).map(|(v, _)| v).sum();
        let inflation = all / used;
        let correction = |(leverage, live): (&f64, &bool)| if *live { inflation / (1.0 - leverage) } else { 0.0 };
        let corrections = self.leverages.iter().zip(live).map(correction).collect();
        let mut sum = 0.0;
        for b in (0..live.len()).filter(|&b| live[b]) {
            let part = self.variances[b] / used;
            sum += part * part;
            for c in (0..b).filter(|&c| live[c]) {
                let shared: f64 = self.overlaps[b].iter().zip(&self.overlaps[c]).map(|(b, c)| b * c).sum();
                let own = self.variances[b] * self.variances[c];
                let left = (1.0 - self.leverages[b]) * (1.0 - self.leverages[c]);
                sum += 2.0 * part * (self.variances[c] / used) * (shared * shared / (own * left));
            }
        }
        (corrections, 1.0 / sum)
    }

    /// Corrections and degrees of freedom of residuals from the arm's level common to all strata.
    fn of_all_strata(&self) -> (Vec<f64>, f64) {
        let all: f64 = self.variances.iter().sum();
        let parts = || self.variances.iter().map(|variance| variance / all);
        let (mut squares, mut cross, mut own) = (0.0, 0.0, 0.0);
        for part in parts() {
            let taken = part * (part / (1.0 - part));
            squares += part * part;
            cross += taken;
            own += taken * taken;
        }
        (parts().map(|part| 1.0 / (1.0 - part)).collect(), 1.0 / (squares + cross * cross - own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class is the nearest in logarithm.
    #[test]
    fn classes_are_the_nearest() {
        for (kappa, class) in
            [(0.0, 0), (0.12, 0), (0.13, 1), (0.49, 1), (0.51, 2), (2.1, 3), (31.0, 4), (127.0, 5), (1e9, 6)]
        {
            assert_eq!(class_of(kappa), class, "{kappa}");
        }
    }
}
