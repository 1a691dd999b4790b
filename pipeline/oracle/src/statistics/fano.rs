//! Clumps in time: how much more the counts of a function vary from hop to hop, within pods, than by chance.

use super::geometry::ArmData;

/// Variance over mean of hop counts given the bucket's total, at least 1, by function (`fano`).
///
/// `pairs` is the sum over buckets and hops of x (x - 1) of a function, `hop_concentration` by stratum and bucket the
/// sum of squares of its hops' totals over the square of its total. All are those of the strata in `arm`.
pub fn fano(pairs: &[f64], arm: &ArmData, hop_concentration: &[Vec<f64>]) -> Vec<f64> {
    let of_function = |(f, pairs): (usize, &f64)| {
        let (mut expected, mut possible) = (0.0, 0.0);
        for (counts, concentration) in arm.counts.iter().zip(hop_concentration) {
            for (bucket, q) in counts.iter().zip(concentration) {
                expected += bucket[f] * (bucket[f] - 1.0) * q;
                possible += bucket[f] * (1.0 - q);
            }
        }
        if possible > 0.0 { (1.0 + (pairs - expected) / possible).max(1.0) } else { 1.0 }
    };
    pairs.iter().enumerate().map(of_function).collect()
}
