//! Clumping in time: how much more the samples of a function come together in hops than a pod's load explains.
//!
//! Counts are Poisson at best. A burst of one function in one hop of one pod gives counts that a pod cannot be blamed for and that
//! chance does not explain; with few pods nothing else shows it. Given a bucket's count x over its hops, whose samples have the
//! concentration q = sum_t n_t^2/n^2, the pairs of its samples that share a hop, sum_t x_t (x_t - 1), are expected to be x (x - 1) q;
//! what they are beyond that, over x (1 - q), is the Fano factor less one. Counting noise is never taken below it. It binds for few functions, so buckets are
//! read again only for those whose pairs alone say that it may.
//!
//! What makes it wrong: two functions that always run together in a burst are clumped each, though their shares are not noisier for it.

use std::collections::BTreeMap;

use crate::arms::Side;
use crate::contrast::Contrast;
use crate::layout::Functions;
use crate::number::float;
use crate::strata::{Arm, Model};

/// Functions of a block.
const BLOCK: usize = 256;

/// Variance over mean of the hop counts within buckets, by function, at least 1: of one arm over these strata.
///
/// max(1, 1 + (pairs - sum x (x-1) q)/sum x (1 - q)), sums over strata and buckets. Checked against the reference
/// program (`test.json`) to 1e-8.
#[must_use]
pub fn fano_of_arm<'a, 'b: 'a>(strata: impl Iterator<Item = &'a Arm<'b>> + Clone, functions: usize) -> Vec<f64> {
    clumping(strata, Functions::All(functions))
}

/// One arm's hops in the strata that both arms share.
pub(crate) struct ArmHops<'c, 'a> {
    strata: Vec<&'c Arm<'a>>,
    /// By place: pairs of samples that share a hop.
    pairs: Vec<f64>,
    /// The largest concentration of a bucket.
    most_concentrated: f64,
}

impl<'c, 'a> ArmHops<'c, 'a> {
    /// `None` unless pairs are kept in every stratum.
    pub fn of(contrast: &'c Contrast<'a>, model: Model, side: Side) -> Option<Self> {
        let strata: Vec<&Arm<'a>> = contrast.shared(model).map(|stratum| &stratum[side]).collect();
        if strata.iter().any(|arm| arm.hop_pairs.is_empty()) {
            return None;
        }
        let functions = Functions::of(contrast);
        let mut pairs = Vec::with_capacity(functions.len());
        let mut row = [0.0; BLOCK];
        functions.lanes(BLOCK, |block| {
            let row = &mut row[..block.len];
            row.fill(0.0);
            strata.iter().for_each(|arm| block.span.add(&arm.hop_pairs, row));
            pairs.extend(block.of(row));
        });
        let rows = strata.iter().flat_map(|arm| &arm.rows);
        let most_concentrated = rows.map(|row| row.hop_concentration).fold(0.0, f64::max);
        Some(Self { strata, pairs, most_concentrated })
    }

    /// At least the factor of the function at `place`, with so many samples: without reading its buckets. `None` if it is 1.
    pub fn at_most(&self, place: usize, count: f64) -> Option<f64> {
        let excess = self.pairs[place];
        let most = || {
            let free = count * (1.0 - self.most_concentrated);
            if free > 0.0 { 1.0 + excess / free } else { f64::INFINITY }
        };
        (excess > 0.0).then(most)
    }

    /// The factors of these functions, by id; sorts them.
    pub fn factors_of(&self, functions: &mut [u32]) -> BTreeMap<u32, f64> {
        functions.sort_unstable();
        functions.iter().copied().zip(clumping(self.strata.iter().copied(), Functions::Listed(functions))).collect()
    }
}

fn clumping<'a, 'b: 'a>(strata: impl Iterator<Item = &'a Arm<'b>> + Clone, functions: Functions<'_>) -> Vec<f64> {
    let mut factors = Vec::with_capacity(functions.len());
    let mut row = [0.0; BLOCK];
    functions.lanes(BLOCK, |block| {
        let (span, len, mut factor) = (block.span, block.len, [1.0; BLOCK]);
        let (mut excess, mut free) = ([0.0; BLOCK], [0.0; BLOCK]);
        for arm in strata.clone() {
            span.add(&arm.hop_pairs, &mut excess[..len]);
            for bucket in &arm.rows {
                row.fill(0.0);
                span.add(&bucket.counts, &mut row[..len]);
                let q = bucket.hop_concentration;
                for i in 0..BLOCK {
                    excess[i] -= row[i] * (row[i] - 1.0) * q;
                    free[i] += row[i] * (1.0 - q);
                }
            }
        }
        for (i, factor) in factor.iter_mut().enumerate() {
            *factor = if free[i] > 0.0 { (1.0 + excess[i] / free[i]).max(1.0) } else { 1.0 };
        }
        factors.extend(block.of(&factor));
    });
    factors
}

/// Sum of squared hop totals over the square of the sum: 1 for a single hop, 1 of none.
#[must_use]
pub fn hop_concentration(hop_totals: &[u64]) -> f64 {
    let total: u64 = hop_totals.iter().sum();
    let square = |&n: &u64| float(n) * float(n);
    if total > 0 { hop_totals.iter().map(square).sum::<f64>() / square(&total) } else { 1.0 }
}
