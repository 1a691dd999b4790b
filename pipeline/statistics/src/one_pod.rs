//! Did one pod make the row?
//!
//! With two pods in an arm a variance cannot tell 3.4 and 1.1 from 2.2 and 2.3, so one deranged pod of two gave a false row in a
//! third of runs. Where an arm has fewer than five buckets each is left out in turn: the effect must keep its direction and at
//! least half of its size. Else one pod made it, and it is named. Only rows that are decided are asked.

use crate::arms::{Arms, Side};
use crate::contrast::Contrast;
use crate::geometry::weight_slope;
use crate::layout::{Bucket, Layout, Part, Span};
use crate::strata::Model;
use crate::test::Tests;

/// An arm with so many buckets is not made by one of them.
const MANY: usize = 5;

/// The bucket without which a row does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnePod {
    /// The arm.
    pub side: Side,
    /// The bucket's number: its pod, where each pod has a bucket.
    pub bucket: u16,
}

/// The buckets of a cell, to be left out one by one.
pub struct LeaveOneOut<'c> {
    contrast: &'c Contrast<'c>,
    layout: Layout<'c>,
}

impl<'c> LeaveOneOut<'c> {
    /// The cell that was tested.
    #[must_use]
    pub fn new(contrast: &'c Contrast<'c>, model: Model) -> Self {
        Self { contrast, layout: Layout::new(contrast, model) }
    }

    /// The bucket without which the function at `place` loses its direction or more than half of its effect against the scale, the
    /// one that leaves least of it; none if every bucket can be spared, if both arms have five, or if it is not tested.
    ///
    /// The weights of its class stay, the weighted exposures are those of the buckets that are left. Checked against the reference
    /// program (`cell.json`), exactly.
    #[must_use]
    pub fn one_pod(&self, tests: &Tests, place: usize, ln_scale: f64) -> Option<OnePod> {
        let few = |side: &Side| self.layout.arms[*side].buckets.len() < MANY;
        if !tests.tested[place] || !Side::BOTH.iter().any(few) {
            return None;
        }
        let sums = Arms::of(|side| self.sums(side, usize::from(tests.class[place]), self.contrast.id(place)));
        let theta = tests.levels[place].theta() - ln_scale;
        let mut made: Option<(f64, OnePod)> = None;
        for side in Side::BOTH.into_iter().filter(few) {
            for (index, bucket) in self.layout.arms[side].buckets.iter().enumerate() {
                let left = ratio_without(&sums, side, index, self.layout.strata) - ln_scale;
                let left = if theta > 0.0 { left } else { -left };
                let holds = left >= 0.5 * theta.abs() || theta.is_infinite() && left.is_infinite() && left > 0.0;
                let least = made.is_none_or(|(least, _)| left < least);
                if !holds && least {
                    made = Some((left, OnePod { side, bucket: bucket.number }));
                }
            }
        }
        made.map(|(_, one)| one)
    }

    /// Weighted counts and exposures of an arm by bucket and part.
    fn sums(&self, side: Side, class: usize, function: u32) -> Vec<Vec<WeightedPart>> {
        let slope = weight_slope(class, self.layout.exposure() / self.layout.pods());
        let of_bucket = |bucket: &Bucket<'_>| {
            let weight = bucket.weight(slope);
            let part = |part: &Part<'_>| {
                let mut count = [0.0];
                part.add_to(Span::Only(&[function]), &mut count);
                WeightedPart { stratum: part.stratum, count: weight * count[0], exposure: weight * part.exposure }
            };
            bucket.parts.iter().map(part).collect()
        };
        self.layout.arms[side].buckets.iter().map(of_bucket).collect()
    }
}

/// One bucket in one stratum, times its weight.
struct WeightedPart {
    stratum: usize,
    count: f64,
    exposure: f64,
}

/// Count and exposure of an arm in a stratum.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: f64,
    exposure: f64,
}

/// ln of the ratio of levels without one bucket of one arm; infinite or NaN where an arm has none left.
fn ratio_without(parts: &Arms<Vec<Vec<WeightedPart>>>, side: Side, left_out: usize, strata: usize) -> f64 {
    let sums = Arms::of(|arm| {
        let mut sums = vec![Sum::default(); strata];
        let kept = parts[arm].iter().enumerate().filter(|&(bucket, _)| arm != side || bucket != left_out);
        for part in kept.flat_map(|(_, parts)| parts) {
            sums[part.stratum].count += part.count;
            sums[part.stratum].exposure += part.exposure;
        }
        sums
    });
    let (mut head, mut base) = (0.0, 0.0);
    for (one, other) in sums.head.iter().zip(&sums.base) {
        let both = one.exposure + other.exposure;
        if both > 0.0 {
            head += one.count * other.exposure / both;
            base += other.count * one.exposure / both;
        }
    }
    libm::log(head) - libm::log(base)
}
