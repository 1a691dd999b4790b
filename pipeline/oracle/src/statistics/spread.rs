//! The variance between the pods of one arm.

use super::geometry::Shared;
use super::priors::median;

/// The median over the functions in `chosen` of the moment estimate of the variance between pods of the log share, with
/// weights 1 (`tau2_arm`); `None` if the arm cannot show it.
pub(super) fn of_arm(shared: &Shared, arm: usize, chosen: &[usize]) -> Option<f64> {
    let strata = shared.strata();
    let data = &shared.arms[arm];
    let all: Vec<f64> = (0..strata).map(|s| shared.in_stratum(arm, s)).collect();
    let other: Vec<f64> = (0..strata)
        .map(|s| {
            let theirs = shared.in_stratum(1 - arm, s);
            theirs / (all[s] + theirs)
        })
        .collect();
    let leverage = |b: usize| {
        let (mut plain, mut square) = (0.0, 0.0);
        for s in 0..strata {
            let v = other[s] * other[s] * data.exposure[s][b];
            plain += v;
            square += v * data.exposure[s][b] / all[s];
        }
        if plain > 0.0 { square / plain } else { 1.0 }
    };
    let live: Vec<(usize, f64)> = shared
        .occupied(arm)
        .into_iter()
        .map(|b| (b, leverage(b)))
        .filter(|(_, leverage)| 1.0 - leverage > 1e-9)
        .collect();
    if live.is_empty() || chosen.is_empty() {
        return None;
    }
    let df: f64 = live.iter().map(|(_, leverage)| 1.0 - leverage).sum();
    let c = (1.0 - 2.0 / (9.0 * df.max(1.0))).powi(3);
    let estimate = |f: &usize| {
        let share: Vec<f64> = (0..strata).map(|s| shared.count_in_stratum(arm, s, *f) / all[s]).collect();
        let (mut phi, mut slope) = (0.0, 0.0);
        for &(b, leverage) in &live {
            let (mut u, mut v, mut expected) = (0.0, 0.0, 0.0);
            for s in 0..strata {
                let n = data.exposure[s][b];
                u += other[s] * (data.counts[s][b][*f] - n * share[s]);
                v += other[s] * other[s] * n * share[s] * (1.0 - share[s]);
                expected += other[s] * n * share[s];
            }
            if v > 0.0 {
                phi += u * u / v;
                slope += expected * expected / v * (1.0 - leverage) / data.pods[b].max(1.0);
            }
        }
        if slope > 0.0 { (phi / df / c - 1.0) / (slope / df) } else { 0.0 }
    };
    Some(median(&chosen.iter().map(estimate).collect::<Vec<f64>>()).max(0.0))
}
