//! Where each arm's share of a function lies, and how far its pods scatter around it.
//!
//! One pass over the buckets of a class of functions, a block of functions at a time: weighted sums first, then the squares of
//! what is left of each bucket. A bucket's residuals are summed over its strata before they are squared, since a pod that
//! crosses strata is one replicate. Beside the variance that is seen stands the one that is expected, A p + B p^2: A is what
//! counting contributes, B what pods do; the ratio of seen to expected is what functions are compared by. Inner loops run over whole
//! blocks of plain arrays and are compiled for the widest vectors of the machine at hand; the same operations in the same order
//! give the same bits with any.
//!
//! | symbol | what |
//! |---|---|
//! | p = sum_s h sum_b w x / W | level of the arm (Mantel & Haenszel with weighted pods) |
//! | u_b = sum_s h w (x - n p_s) | residual of a bucket, p_s the arm's weighted share in the stratum |
//! | V = sum_b u_b^2/(1 - lev_b) / W^2 | variance of p that is seen (CR2) |
//! | A = (1 - p-) sum_s h^2 (sum_b w^2 n) p-_s / (p-_W W^2) | counting; without (1 - p-) where requests are the exposure |
//! | B = tau^2 sum_st p-_s C_st p-_t / (p-_W^2 W^2) | pods; p-_s pooled weighted share of the stratum, p-_W its mean |

use crate::arms::{Arms, Side};
use crate::geometry::{ArmGeometry, Geometry, Residuals};
use crate::layout::{ArmLayout, BLOCK, Functions, Lanes, Layout, Row, Span, ZERO};
use crate::strata::Model;

/// The functions of one class.
#[derive(Default)]
pub(crate) struct ClassFunctions {
    /// Which class.
    pub class: usize,
    /// Their ids, ascending.
    pub ids: Vec<u32>,
    /// Their places in results.
    pub places: Vec<usize>,
    /// Their shares of cost over both arms.
    pub shares: Vec<f64>,
}

impl ClassFunctions {
    /// Adds a function, whose id and place are above those of all before.
    pub fn push(&mut self, id: u32, place: usize, share: f64) {
        self.ids.push(id);
        self.places.push(place);
        self.shares.push(share);
    }
}

/// Measures the levels and variances of functions, class by class.
pub(crate) struct VariancePass<'c> {
    layout: &'c Layout<'c>,
    model: Model,
    tau2: Arms<f64>,
    work: Work,
}

/// Scratch space of a block.
struct Work {
    /// Counts by part.
    counts: Arms<Vec<Row>>,
    /// sum_b w x by stratum, then the level from which residuals are taken.
    levels: Arms<Vec<Row>>,
    /// Pooled weighted share by stratum.
    pooled: Vec<Row>,
}

/// One arm of a block of functions, by lane. Lanes without a function of the block say nothing.
#[derive(Clone)]
pub(crate) struct ArmBlock {
    /// p.
    pub share: Row,
    /// A: what counting contributes to the expected variance, over p.
    pub counting: Row,
    /// B: what pods contribute, over p^2.
    pub between: Row,
    /// V over the expected variance; NaN where the arm has none of the function.
    pub ratio: Row,
}

impl ArmBlock {
    const ZERO: Self = Self { share: ZERO, counting: ZERO, between: ZERO, ratio: ZERO };
}

impl<'c> VariancePass<'c> {
    pub fn new(layout: &'c Layout<'c>, model: Model, tau2: Arms<f64>) -> Self {
        let parts = |arm: &ArmLayout<'_>| arm.buckets.iter().map(|bucket| bucket.parts.len()).sum();
        let zero = || vec![ZERO; layout.strata];
        let work = Work {
            counts: layout.arms.as_ref().map(|arm| vec![ZERO; parts(arm)]),
            levels: Arms { head: zero(), base: zero() },
            pooled: zero(),
        };
        Self { layout, model, tau2, work }
    }

    /// Of the functions of one class, with its tables: calls `visit` with each block and what it shows.
    pub fn run<'f>(
        &mut self,
        geometry: &Geometry,
        functions: &'f ClassFunctions,
        mut visit: impl FnMut(&Lanes<'f>, &Arms<ArmBlock>),
    ) {
        let arch = pulp::Arch::new();
        let (mut unshared, mut out) = ([1.0; BLOCK], Arms { head: ArmBlock::ZERO, base: ArmBlock::ZERO });
        Functions::Listed(&functions.ids).lanes(BLOCK, |block| {
            self.read(block.span, block.len);
            if self.model == Model::Share {
                let shares = &functions.shares[block.range.clone()];
                block.each().zip(shares).for_each(|(lane, share)| unshared[lane] = 1.0 - share);
            }
            arch.dispatch(VarianceBlock { pass: self, geometry, unshared: &unshared, out: &mut out });
            visit(block, &out);
        });
    }

    fn read(&mut self, span: Span<'_>, len: usize) {
        for side in Side::BOTH {
            let parts = self.layout.arms[side].buckets.iter().flat_map(|bucket| &bucket.parts);
            for (part, row) in parts.zip(&mut self.work.counts[side]) {
                row.fill(0.0);
                part.add_to(span, &mut row[..len]);
            }
        }
    }
}

/// One block, compiled for each width of vectors.
struct VarianceBlock<'b, 'c> {
    pass: &'b mut VariancePass<'c>,
    geometry: &'b Geometry,
    unshared: &'b Row,
    out: &'b mut Arms<ArmBlock>,
}

impl pulp::NullaryFnOnce for VarianceBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { pass: VariancePass { layout, tau2, work, .. }, geometry, unshared, out } = self;
        let Work { counts, levels, pooled } = work;
        add_weighted(&layout.arms.head, &geometry.arms.head, &counts.head, &mut levels.head);
        add_weighted(&layout.arms.base, &geometry.arms.base, &counts.base, &mut levels.base);
        for (s, pooled) in pooled.iter_mut().enumerate() {
            let (inverse, sums) = (1.0 / geometry.both[s], levels.head[s].iter().zip(&levels.base[s]));
            for (pooled, (head, base)) in pooled.iter_mut().zip(sums) {
                *pooled = (head + base) * inverse;
            }
        }
        let mean = mean_share(geometry, pooled);
        let both = BothArms { pooled, mean: &mean, unshared, information: geometry.information };
        // NB: no closure, which would be compiled for the narrowest vectors
        both.arm((&layout.arms.head, &geometry.arms.head), &counts.head, (&mut levels.head, tau2.head), &mut out.head);
        both.arm((&layout.arms.base, &geometry.arms.base), &counts.base, (&mut levels.base, tau2.base), &mut out.base);
    }
}

/// What a block shows over both arms.
struct BothArms<'b> {
    /// p-_s.
    pooled: &'b [Row],
    /// p-_W.
    mean: &'b Row,
    /// 1 - p-: how far samples of one function leave others fewer; 1 where requests are the exposure.
    unshared: &'b Row,
    /// W.
    information: f64,
}

impl BothArms<'_> {
    /// One arm; `levels` are its weighted sums by stratum.
    #[inline(always)]
    fn arm(
        &self,
        (arm, geometry): (&ArmLayout<'_>, &ArmGeometry),
        counts: &[Row],
        (levels, tau2): (&mut [Row], f64),
        out: &mut ArmBlock,
    ) {
        let inverse_square = 1.0 / (self.information * self.information);
        level(geometry, levels, self.information, &mut out.share);
        residual_levels(geometry, levels, self.pooled, (&out.share, self.mean));
        squares((arm, geometry), counts, levels, inverse_square, &mut out.ratio);
        working(geometry, self, (tau2, inverse_square), out);
        let ArmBlock { share, counting, between, ratio } = out;
        for i in 0..BLOCK {
            counting[i] *= self.unshared[i];
            let expected = counting[i] * share[i] + between[i] * share[i] * share[i];
            ratio[i] = if expected > 0.0 { ratio[i] / expected } else { f64::NAN };
        }
    }
}

/// sum_b w x by stratum.
#[inline(always)]
fn add_weighted(arm: &ArmLayout<'_>, geometry: &ArmGeometry, counts: &[Row], out: &mut [Row]) {
    out.fill(ZERO);
    let mut rows = counts.iter();
    for (bucket, &weight) in arm.buckets.iter().zip(&geometry.weights) {
        for (part, row) in bucket.parts.iter().zip(&mut rows) {
            let out = &mut out[part.stratum];
            for i in 0..BLOCK {
                out[i] += weight * row[i];
            }
        }
    }
}

/// p-_W: the mean of the pooled shares of strata, weighted by M_head M_base/M; at least 1e-300.
#[inline(always)]
fn mean_share(geometry: &Geometry, pooled: &[Row]) -> Row {
    let (mut mean, m1, m0) = (ZERO, &geometry.arms.head.totals, &geometry.arms.base.totals);
    for (s, pooled) in pooled.iter().enumerate() {
        let weight = m1[s] * m0[s] / geometry.both[s];
        for i in 0..BLOCK {
            mean[i] += weight * pooled[i];
        }
    }
    for mean in &mut mean {
        *mean = if *mean > 0.0 { *mean / geometry.information } else { 1e-300 };
    }
    mean
}

/// p = sum_s h sum_b w x / W.
#[inline(always)]
fn level(geometry: &ArmGeometry, sums: &[Row], information: f64, share: &mut Row) {
    share.fill(0.0);
    for (sums, h) in sums.iter().zip(&geometry.strata) {
        for i in 0..BLOCK {
            share[i] += h * sums[i];
        }
    }
    share.iter_mut().for_each(|share| *share /= information);
}

/// Turns sums by stratum into the levels from which residuals are taken; `share` is the arm's p, `mean` the pooled p-_W.
#[inline(always)]
fn residual_levels(geometry: &ArmGeometry, levels: &mut [Row], pooled: &[Row], (share, mean): (&Row, &Row)) {
    for ((level, pooled), total) in levels.iter_mut().zip(pooled).zip(&geometry.totals) {
        match geometry.residuals {
            Residuals::OfStratum => level.iter_mut().for_each(|level| *level /= total),
            Residuals::OfAllStrata => {
                for i in 0..BLOCK {
                    level[i] = share[i] / mean[i] * pooled[i];
                }
            }
        }
    }
}

/// V = sum_b u_b^2 correction_b / W^2.
#[inline(always)]
fn squares(
    (arm, geometry): (&ArmLayout<'_>, &ArmGeometry),
    counts: &[Row],
    levels: &[Row],
    inverse_square: f64,
    seen: &mut Row,
) {
    let mut residual = ZERO;
    seen.fill(0.0);
    let mut rows = counts.iter();
    for ((bucket, &weight), &correction) in arm.buckets.iter().zip(&geometry.weights).zip(&geometry.corrections) {
        if let ([part], Some(row)) = (bucket.parts.as_slice(), rows.as_slice().first()) {
            let (n, level, h) = (part.exposure, &levels[part.stratum], geometry.strata[part.stratum] * weight);
            let factor = h * h * correction * inverse_square;
            for i in 0..BLOCK {
                let deviation = row[i] - n * level[i];
                seen[i] += factor * (deviation * deviation);
            }
            rows.next();
            continue;
        }
        residual.fill(0.0);
        for (part, row) in bucket.parts.iter().zip(&mut rows) {
            let (n, level, h) = (part.exposure, &levels[part.stratum], geometry.strata[part.stratum] * weight);
            for i in 0..BLOCK {
                residual[i] += h * (row[i] - n * level[i]);
            }
        }
        let factor = correction * inverse_square;
        for i in 0..BLOCK {
            seen[i] += factor * (residual[i] * residual[i]);
        }
    }
}

/// Lanes whose sums over pairs of strata stay in registers.
const PAIRED: usize = 16;

/// A over (1 - p-), and B.
#[inline(always)]
fn working(geometry: &ArmGeometry, both: &BothArms<'_>, (tau2, inverse_square): (f64, f64), out: &mut ArmBlock) {
    let (BothArms { pooled, mean, .. }, ArmBlock { counting, between, .. }) = (both, out);
    counting.fill(0.0);
    for (share, factor) in pooled.iter().zip(&geometry.counting) {
        for i in 0..BLOCK {
            counting[i] += factor * share[i];
        }
    }
    for (place, between) in between.as_chunks_mut::<PAIRED>().0.iter_mut().enumerate() {
        let mut sums = [0.0; PAIRED];
        for (share, factors) in pooled.iter().zip(geometry.between.chunks(pooled.len().max(1))) {
            let share = &share.as_chunks::<PAIRED>().0[place];
            for (other, factor) in pooled.iter().zip(factors) {
                let other = &other.as_chunks::<PAIRED>().0[place];
                for i in 0..PAIRED {
                    sums[i] += factor * (share[i] * other[i]);
                }
            }
        }
        *between = sums;
    }
    for i in 0..BLOCK {
        counting[i] = counting[i] / mean[i] * inverse_square;
        between[i] = tau2 * between[i] / mean[i] / mean[i] * inverse_square;
    }
}
