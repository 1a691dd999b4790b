//! The tests of every function of a cell.
//!
//! Pods are the replicates, each arm has its own variance, and pods are weighted by what they tell. First what each arm's pods
//! spread ([`crate::spread`]), then the level and the variance of every function with the weights of its class
//! ([`crate::geometry`], [`crate::variance`]), then what functions expect of each other ([`crate::priors`]) and what each variance
//! becomes for it ([`crate::moderation`]). What is left of a function are its [`Levels`], from which its p against any ratio, its
//! interval and its screen follow.
//!
//! What a look takes from all functions together is a value, [`Pooled`]: it can be measured afresh or handed in, while rows are
//! tested at each look.

mod measuring;

use crate::arms::Arms;
use crate::contrast::Contrast;
use crate::deviance::{Level, Levels};
use crate::layout::{Functions, Layout};
use crate::pooled::Pooled;
use crate::strata::Model;
use crate::test::measuring::Measuring;
use crate::thresholds::MIN_COUNT;

/// How a cell is tested.
#[derive(Clone, Copy, Debug)]
pub struct Measure<'m> {
    /// What exposure is.
    pub model: Model,
    /// Samples in both arms together from which a function is tested.
    pub min_count: f64,
    /// Samples of both arms by place of results, in the strata that they share, if they are summed already.
    pub counts: Option<&'m Arms<Vec<f64>>>,
    /// What is known of clumping in time.
    pub hops: Hops<'m>,
    /// What was measured of all functions together at an earlier look; `None` to measure it afresh.
    pub held: Option<&'m Pooled>,
}

/// What is known of clumping in time, see [`crate::fano`].
#[derive(Clone, Copy, Debug)]
pub enum Hops<'m> {
    /// Nothing; counting noise is Poisson's.
    Unknown,
    /// What the contrast holds of hops; nothing if a stratum does not.
    OfContrast,
    /// These factors, by place of results.
    Factors(&'m Arms<Vec<f64>>),
}

impl Measure<'_> {
    /// Afresh, with the hops that the contrast holds, from 30 samples on.
    #[must_use]
    pub fn afresh(model: Model) -> Self {
        Self { model, min_count: MIN_COUNT, counts: None, hops: Hops::OfContrast, held: None }
    }
}

/// One arm of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArmSize {
    /// Exposure over all strata.
    pub exposure: f64,
    /// Distinct pods.
    pub pods: f64,
    /// Occupied buckets.
    pub buckets: usize,
}

/// What one arm shows of one function, beside its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmDispersion {
    /// Seen over expected variance; NaN where the arm has none of the function.
    pub ratio: f64,
    /// Degrees of freedom of what was seen.
    pub df: f64,
    /// By which the expected variance is multiplied in [`Levels`].
    pub phi: f64,
}

/// The tests of a cell; vectors are by function, or by place in [`Contrast::only`].
#[derive(Clone, Debug)]
pub struct Tests {
    /// What exposure is.
    pub model: Model,
    /// Strata with both arms.
    pub strata: usize,
    /// Strata left out.
    pub strata_dropped: usize,
    /// Both arms in the strata that they share.
    pub size: Arms<ArmSize>,
    /// Counts over these strata.
    pub counts: Arms<Vec<f64>>,
    /// Whether the function is in the cell's family.
    pub tested: Vec<bool>,
    /// Number of `tested` functions.
    pub tests: usize,
    /// Class of weights, 0 to 6: from counting samples to counting pods.
    pub class: Vec<u8>,
    /// What each arm shows; NaN where not tested.
    pub dispersion: Arms<Vec<ArmDispersion>>,
    /// What tests need; NaN where not tested.
    pub levels: Vec<Levels>,
    /// What these tests took from all functions together.
    pub pooled: Pooled,
    /// In which order sums over functions are taken; empty if as they stand.
    order: Vec<u32>,
}

const UNKNOWN: ArmDispersion = ArmDispersion { ratio: f64::NAN, df: f64::NAN, phi: f64::NAN };
const NO_LEVEL: Level = Level { share: f64::NAN, counting: f64::NAN, between: f64::NAN };
const NO_LEVELS: Levels = Levels { arms: Arms { head: NO_LEVEL, base: NO_LEVEL }, df: f64::NAN };

impl Tests {
    /// Tests every function of `contrast`: those with at least `min_count` samples in both arms together, at least a hundredth of the
    /// cell's samples outside of it, a variance in each arm, and unless it is [`Contrast::untested`].
    ///
    /// Assumes that pods are independent of each other, also across the strata they take part in. Checked against the reference
    /// program (`test.json`) to 1e-8.
    #[must_use]
    pub fn measure(contrast: &Contrast<'_>, measure: &Measure<'_>) -> Self {
        let layout = Layout::new(contrast, measure.model);
        let functions = Functions::of(contrast);
        let summed = || layout.arms.as_ref().map(|arm| arm.sums(functions));
        let counts = measure.counts.filter(|_| layout.strata > 0).cloned().unwrap_or_else(summed);
        let tests = Self::nothing(contrast, measure.model, &layout, counts);
        if layout.strata == 0 { tests } else { Measuring::new(contrast, measure, &layout, tests).run() }
    }

    fn nothing(contrast: &Contrast<'_>, model: Model, layout: &Layout<'_>, counts: Arms<Vec<f64>>) -> Self {
        let functions = contrast.measured();
        Self {
            model,
            strata: layout.strata,
            strata_dropped: contrast.dropped(model),
            size: layout.arms.as_ref().map(|arm| ArmSize {
                exposure: arm.exposure(),
                pods: arm.pods,
                buckets: arm.buckets.len(),
            }),
            counts,
            tested: vec![false; functions],
            tests: 0,
            class: vec![0; functions],
            dispersion: Arms { head: vec![UNKNOWN; functions], base: vec![UNKNOWN; functions] },
            levels: vec![NO_LEVELS; functions],
            pooled: Pooled::default(),
            order: contrast.order.clone(),
        }
    }

    /// Exposure of both arms.
    #[must_use]
    pub fn exposure(&self) -> f64 {
        self.size.head.exposure + self.size.base.exposure
    }

    /// Samples of a function in both arms.
    #[must_use]
    pub fn count(&self, place: usize) -> f64 {
        self.counts.head[place] + self.counts.base[place]
    }

    /// The part of the exposure of both arms that a function is: for shares, of cost.
    #[must_use]
    pub fn share_of_cost(&self, place: usize) -> f64 {
        self.count(place) / self.exposure()
    }

    /// The tested functions, in the order in which sums are taken.
    pub(crate) fn family(&self) -> impl Iterator<Item = usize> {
        let ordered = self.order.iter().filter_map(|&place| usize::try_from(place).ok());
        let standing = if self.order.is_empty() { 0..self.tested.len() } else { 0..0 };
        ordered.chain(standing).filter(|&place| self.tested[place])
    }

    /// The same cell with only these places, in this order. No test changes by a bit: what functions share is kept.
    #[must_use]
    pub fn only(&self, places: &[usize]) -> Self {
        let floats = |all: &Vec<f64>| places.iter().map(|&place| all[place]).collect::<Vec<_>>();
        Self {
            counts: self.counts.as_ref().map(floats),
            tested: places.iter().map(|&place| self.tested[place]).collect(),
            class: places.iter().map(|&place| self.class[place]).collect(),
            dispersion: self.dispersion.as_ref().map(|all| places.iter().map(|&place| all[place]).collect()),
            levels: places.iter().map(|&place| self.levels[place]).collect(),
            pooled: self.pooled.clone(),
            order: Vec::new(),
            ..*self
        }
    }
}
