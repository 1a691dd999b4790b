//! What follows from exposures alone: weights of pods, the weight of strata, leverage, degrees of freedom.

/// Classes of tau^2 x the pooled share x the samples of a pod, by which pods are weighted.
pub(super) const CLASSES: [f64; 7] = [0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0];

/// A bucket with less than this of its own weight left has no residual.
const ALONE: f64 = 1e-9;

/// The counts of one arm of a cell.
#[derive(Clone, Debug, Default)]
pub struct ArmData {
    /// Count by stratum, bucket, function.
    pub counts: Vec<Vec<Vec<f64>>>,
    /// Samples, or requests, by stratum, bucket. A bucket without any has no counts there.
    pub exposure: Vec<Vec<f64>>,
    /// Distinct pods by bucket, over the strata that both arms share.
    pub pods: Vec<f64>,
}

/// Both arms in the strata that they share, in which each has exposure.
pub(super) struct Shared {
    pub arms: [ArmData; 2],
}

impl Shared {
    pub fn of(head: &ArmData, base: &ArmData) -> Self {
        let any = |exposure: &[f64]| exposure.iter().sum::<f64>() > 0.0;
        let kept: Vec<usize> =
            (0..head.exposure.len()).filter(|&s| any(&head.exposure[s]) && any(&base.exposure[s])).collect();
        let of = |arm: &ArmData| ArmData {
            counts: kept.iter().map(|&s| arm.counts[s].clone()).collect(),
            exposure: kept.iter().map(|&s| arm.exposure[s].clone()).collect(),
            pods: arm.pods.clone(),
        };
        Self { arms: [of(head), of(base)] }
    }

    pub fn strata(&self) -> usize {
        self.arms[0].exposure.len()
    }

    /// Exposure of an arm in a stratum.
    pub fn in_stratum(&self, arm: usize, s: usize) -> f64 {
        self.arms[arm].exposure[s].iter().sum()
    }

    /// Exposure of a bucket over the strata.
    pub fn in_bucket(&self, arm: usize, b: usize) -> f64 {
        self.arms[arm].exposure.iter().map(|stratum| stratum[b]).sum()
    }

    /// Exposure of an arm.
    pub fn in_arm(&self, arm: usize) -> f64 {
        (0..self.strata()).map(|s| self.in_stratum(arm, s)).sum()
    }

    /// Buckets of an arm with exposure.
    pub fn occupied(&self, arm: usize) -> Vec<usize> {
        (0..self.arms[arm].pods.len()).filter(|&b| self.in_bucket(arm, b) > 0.0).collect()
    }

    /// Pods of an arm.
    pub fn pods(&self, arm: usize) -> f64 {
        self.occupied(arm).into_iter().map(|b| self.arms[arm].pods[b]).sum()
    }

    /// Count of a function in an arm and stratum.
    pub fn count_in_stratum(&self, arm: usize, s: usize, f: usize) -> f64 {
        self.arms[arm].counts[s].iter().map(|bucket| bucket[f]).sum()
    }

    /// Count of a function in an arm.
    pub fn count(&self, arm: usize, f: usize) -> f64 {
        (0..self.strata()).map(|s| self.count_in_stratum(arm, s, f)).sum()
    }
}

/// One arm with the weights of a class.
pub(super) struct ArmGeometry {
    /// Weight of a bucket.
    pub weight: Vec<f64>,
    /// Weighted exposure by stratum.
    pub mass: Vec<f64>,
    /// Part of a stratum's weighted exposure that is the other arm's.
    pub other: Vec<f64>,
    /// Leverage of a bucket.
    pub leverage: Vec<f64>,
    /// Whether a bucket has a residual.
    pub live: Vec<bool>,
    /// By how much the working variance of all buckets exceeds that of those with a residual.
    pub inflation: f64,
    /// Degrees of freedom between buckets; 0 without a residual.
    pub df: f64,
    /// Part of each bucket in the arm's working variance, if every pod of the arm is alone in its strata: then the
    /// residuals are those from the arm's ratio to the pooled share, common to all strata.
    pub common_ratio: Option<Vec<f64>>,
    /// Variance of counting by stratum, for a share of 1.
    pub counting: Vec<f64>,
    /// Variance between pods by two strata, for shares of 1 and a variance of 1.
    pub between: Vec<Vec<f64>>,
}

/// Both arms with the weights of a class.
pub(super) struct Geometry {
    pub arms: [ArmGeometry; 2],
    /// Weight of a stratum.
    pub stratum: Vec<f64>,
    /// Weight of all strata.
    pub total: f64,
}

impl Geometry {
    /// `slope` is the class's tau^2 times the pooled share (`geometry`).
    pub fn new(shared: &Shared, slope: f64) -> Self {
        let strata = shared.strata();
        let weights = [0, 1].map(|arm| weights(shared, arm, slope));
        let mass = [0, 1].map(|arm: usize| {
            let in_stratum =
                |s: usize| -> f64 { shared.arms[arm].exposure[s].iter().zip(&weights[arm]).map(|(n, w)| w * n).sum() };
            (0..strata).map(in_stratum).collect::<Vec<f64>>()
        });
        let stratum: Vec<f64> = (0..strata).map(|s| mass[0][s] * mass[1][s] / (mass[0][s] + mass[1][s])).collect();
        let arms = [0, 1].map(|arm: usize| {
            let other = (0..strata).map(|s| mass[1 - arm][s] / (mass[0][s] + mass[1][s])).collect();
            ArmGeometry::new(shared, arm, weights[arm].clone(), mass[arm].clone(), other)
        });
        Self { arms, total: stratum.iter().sum(), stratum }
    }

    /// Weighted exposure of both arms in a stratum.
    pub fn mass(&self, s: usize) -> f64 {
        self.arms[0].mass[s] + self.arms[1].mass[s]
    }
}

/// Weights of an arm's buckets: those with many samples a pod count pods, those with few count samples.
pub(super) fn weights(shared: &Shared, arm: usize, slope: f64) -> Vec<f64> {
    let pods = &shared.arms[arm].pods;
    (0..pods.len()).map(|b| 1.0 / (1.0 + slope * shared.in_bucket(arm, b) / pods[b].max(1.0))).collect()
}

impl ArmGeometry {
    fn new(shared: &Shared, arm: usize, weight: Vec<f64>, mass: Vec<f64>, other: Vec<f64>) -> Self {
        let (exposure, pods) = (&shared.arms[arm].exposure, &shared.arms[arm].pods);
        let (strata, buckets) = (mass.len(), pods.len());
        let m = |s: usize, b: usize| weight[b] * exposure[s][b];
        let working = |b: usize| (0..strata).map(|s| other[s] * other[s] * m(s, b)).sum::<f64>();
        let working: Vec<f64> = (0..buckets).map(working).collect();
        let overlap =
            |b: usize, c: usize| (0..strata).map(|s| other[s] * other[s] * m(s, b) * m(s, c) / mass[s]).sum::<f64>();
        let leverage: Vec<f64> =
            (0..buckets).map(|b| if working[b] > 0.0 { overlap(b, b) / working[b] } else { 1.0 }).collect();
        let occupied = shared.occupied(arm);
        let live: Vec<bool> = (0..buckets).map(|b| occupied.contains(&b) && 1.0 - leverage[b] > ALONE).collect();
        let with_residual: f64 = (0..buckets).filter(|&b| live[b]).map(|b| working[b]).sum();
        let all: f64 = occupied.iter().map(|&b| working[b]).sum();
        // Satterthwaite's degrees of freedom of the sum of squares, under the working model.
        let mut square = 0.0;
        for b in (0..buckets).filter(|&b| live[b]) {
            for c in (0..buckets).filter(|&c| live[c]) {
                let rho2 = if b == c {
                    1.0
                } else {
                    overlap(b, c).powi(2) / (working[b] * working[c] * (1.0 - leverage[b]) * (1.0 - leverage[c]))
                };
                square += working[b] / with_residual * (working[c] / with_residual) * rho2;
            }
        }
        let between = |s: usize, t: usize| {
            let of_bucket = |b: usize| other[s] * m(s, b) * other[t] * m(t, b) / pods[b].max(1.0);
            (0..buckets).map(of_bucket).sum::<f64>()
        };
        let counting = |s: usize| (0..buckets).map(|b| weight[b] * m(s, b)).sum::<f64>() * other[s] * other[s];
        let mut made = Self {
            inflation: if with_residual > 0.0 { all / with_residual } else { 1.0 },
            df: if with_residual > 0.0 { 1.0 / square } else { 0.0 },
            common_ratio: None,
            counting: (0..strata).map(counting).collect(),
            between: (0..strata).map(|s| (0..strata).map(|t| between(s, t)).collect()).collect(),
            weight,
            mass,
            other,
            leverage,
            live,
        };
        if made.df == 0.0 && occupied.len() >= 2 {
            made.use_common_ratio(working.iter().map(|v| v / all).collect());
        }
        made
    }

    /// Degrees of freedom of residuals from a ratio common to the strata (`common_ratio_variance`); `parts` are those of
    /// the buckets in the working variance.
    fn use_common_ratio(&mut self, parts: Vec<f64>) {
        let term = |y: &f64| y * y / (1.0 - y);
        let plain: f64 = parts.iter().map(|y| y * y).sum();
        let products = parts.iter().map(term).sum::<f64>().powi(2);
        let squares: f64 = parts.iter().map(|y| term(y).powi(2)).sum();
        self.df = 1.0 / (plain + products - squares);
        self.common_ratio = Some(parts);
    }
}
