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

use serde::{Deserialize, Serialize};

use crate::arms::{Arms, Side};
use crate::contrast::Contrast;
use crate::deviance::{Level, Levels};
use crate::fano::ArmHops;
use crate::geometry::{CLASSES, Geometry, class_of};
use crate::layout::{Functions, Layout};
use crate::median::median;
use crate::moderation::{Moderated, Unmoderated, calm, counting_floor};
use crate::priors::{Dispersion, GroupPrior, Witness, group_of, priors};
use crate::spread::spread_of;
use crate::strata::Model;
use crate::thresholds::{MIN_COUNT, MIN_IN_ARM};
use crate::variance::{ArmVariances, ClassFunctions, VariancePass};

/// How a cell is tested.
#[derive(Clone, Copy, Debug)]
pub struct Measure<'m> {
    /// What exposure is.
    pub model: Model,
    /// Samples in both arms together from which a function is tested.
    pub min_count: f64,
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
    Held,
    /// These factors, by place of results.
    Factors(&'m Arms<Vec<f64>>),
}

impl Measure<'_> {
    /// Afresh, with the hops that the contrast holds, from 30 samples on.
    #[must_use]
    pub fn afresh(model: Model) -> Self {
        Self { model, min_count: MIN_COUNT, hops: Hops::Held, held: None }
    }
}

/// What the tests of a look take from all functions of the cell together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// tau^2: the variance between the pods of an arm of the logarithm of a share.
    pub spread: Arms<f64>,
    /// Priors by group of functions, the best counted first; none with fewer than 20 functions.
    pub priors: Vec<GroupPrior>,
    /// Functions that do not earn all of the prior's degrees of freedom, ascending. All others do.
    pub restless: Vec<Restless>,
}

/// A function that is restless beyond what the prior allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restless {
    /// Its id in the contrast.
    pub function: u32,
    /// The part of the prior's degrees of freedom that it earns, below 1.
    pub calm: f64,
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
    pub class: Vec<usize>,
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
    /// Tests every function of `contrast`: those with at least `min_count` samples in both arms together, not all samples of the
    /// cell, a variance in each arm, and unless it is [`Contrast::untested`].
    ///
    /// Assumes that pods are independent of each other, also across the strata they take part in. Checked against the reference
    /// program (`test.json`) to 1e-8.
    #[must_use]
    pub fn measure(contrast: &Contrast<'_>, measure: &Measure<'_>) -> Self {
        let layout = Layout::new(contrast, measure.model);
        let mut tests = Self::nothing(contrast, measure.model, &layout);
        if layout.strata == 0 {
            return tests;
        }
        tests.counts = layout.arms.as_ref().map(|arm| arm.sums(Functions::of(contrast)));
        tests.admit(measure.min_count, contrast.untested.and_then(|id| tests.place_of(contrast, id)));
        tests.pooled.spread = match measure.held {
            Some(held) => held.spread,
            None => tests.spread(contrast, &layout),
        };
        let (variances, class_df) = tests.variances(contrast, &layout);
        let seen = tests.seen(&variances, &class_df);
        tests.pool(contrast, &seen, measure.held);
        tests.conclude(contrast, &variances, &seen, measure.hops);
        tests
    }

    fn nothing(contrast: &Contrast<'_>, model: Model, layout: &Layout<'_>) -> Self {
        let functions = contrast.measured();
        let zero = || vec![0.0; functions];
        Self {
            model,
            strata: layout.strata,
            strata_dropped: contrast.dropped(model),
            size: layout.arms.as_ref().map(|arm| ArmSize {
                exposure: arm.exposure(),
                pods: arm.pods,
                buckets: arm.buckets.len(),
            }),
            counts: Arms { head: zero(), base: zero() },
            tested: vec![false; functions],
            tests: 0,
            class: vec![0; functions],
            dispersion: Arms { head: vec![UNKNOWN; functions], base: vec![UNKNOWN; functions] },
            levels: vec![NO_LEVELS; functions],
            pooled: Pooled::default(),
            order: contrast.order.clone(),
        }
    }

    fn place_of(&self, contrast: &Contrast<'_>, id: usize) -> Option<usize> {
        match &contrast.only {
            None => Some(id).filter(|&id| id < self.tested.len()),
            Some(only) => only.binary_search(&u32::try_from(id).ok()?).ok(),
        }
    }

    /// Who may be tested, as far as counts say.
    fn admit(&mut self, min_count: f64, untested: Option<usize>) {
        let whole = self.exposure();
        for place in 0..self.tested.len() {
            let count = self.count(place);
            self.tested[place] = count >= min_count && count > 0.0 && (self.model == Model::Rate || count < whole);
        }
        if let Some(tested) = untested.and_then(|place| self.tested.get_mut(place)) {
            *tested = false;
        }
    }

    /// tau^2 of each arm; an arm that cannot show it takes the other's.
    fn spread(&self, contrast: &Contrast<'_>, layout: &Layout<'_>) -> Arms<f64> {
        let own = Arms::of(|side| {
            let counted: Vec<usize> = (0..self.tested.len())
                .filter(|&place| self.tested[place] && self.counts[side][place] >= MIN_IN_ARM)
                .collect();
            let middle = median(&counted.iter().map(|&place| self.count(place)).collect::<Vec<_>>());
            let best = counted.iter().filter(|&&place| self.count(place) >= middle);
            let ids: Vec<u32> = best.map(|&place| contrast.id(place)).collect();
            spread_of(&layout.arms[side], &layout.arms[side.other()].totals, &ids)
        });
        let or = |own: f64, other: f64| if own.is_nan() { other } else { own };
        Arms::of(|side| or(or(own[side], own[side.other()]), 0.0))
    }

    /// Levels and variances of admitted functions, and the degrees of freedom of each class.
    fn variances(
        &mut self,
        contrast: &Contrast<'_>,
        layout: &Layout<'_>,
    ) -> (Arms<ArmVariances>, [Arms<f64>; CLASSES]) {
        let pods = self.size.map(|arm| arm.pods);
        let spread = self.pooled.spread;
        let tau2 = (spread.head / pods.head + spread.base / pods.base) / (1.0 / pods.head + 1.0 / pods.base);
        let per_pod = layout.exposure() / layout.pods();
        let mut classes: [ClassFunctions; CLASSES] = Default::default();
        for place in (0..self.tested.len()).filter(|&place| self.tested[place]) {
            let class = class_of(tau2 * self.share_of_cost(place) * per_pod);
            self.class[place] = class;
            classes[class].ids.push(contrast.id(place));
            classes[class].places.push(place);
        }
        let mut variances = Arms::of(|_| ArmVariances::unknown(self.tested.len()));
        let mut class_df = [Arms { head: 0.0, base: 0.0 }; CLASSES];
        for (class, functions) in classes.iter().enumerate().filter(|(_, functions)| !functions.ids.is_empty()) {
            let geometry = Geometry::new(layout, class, per_pod);
            class_df[class] = geometry.arms.as_ref().map(|arm| arm.df);
            VariancePass::new(layout, &geometry, spread).run(functions, &mut variances);
        }
        (variances, class_df)
    }

    /// Seen over expected variance of admitted functions.
    fn seen(&self, variances: &Arms<ArmVariances>, class_df: &[Arms<f64>; CLASSES]) -> Arms<Vec<ArmDispersion>> {
        Arms::of(|side| {
            let arm = &variances[side];
            let seen = |place: usize| {
                let p = arm.share[place];
                let expected = self.unshared(place) * arm.counting[place] * p + arm.between[place] * p * p;
                let ratio = if expected > 0.0 { arm.seen[place] / expected } else { f64::NAN };
                ArmDispersion { ratio, df: class_df[self.class[place]][side], phi: f64::NAN }
            };
            (0..self.tested.len()).map(|place| if self.tested[place] { seen(place) } else { UNKNOWN }).collect()
        })
    }

    /// What functions expect of each other, measured or held.
    fn pool(&mut self, contrast: &Contrast<'_>, seen: &Arms<Vec<ArmDispersion>>, held: Option<&Pooled>) {
        if let Some(held) = held {
            self.pooled.clone_from(held);
            return;
        }
        let admitted: Vec<usize> = self.family().collect();
        let mut witnesses: Vec<Witness> = admitted.iter().filter_map(|&place| self.witness(place, seen)).collect();
        witnesses.sort_by(|one, other| other.share.total_cmp(&one.share));
        self.pooled.priors = priors(&witnesses);
        let restlessness: Vec<f64> =
            admitted.iter().map(|&place| self.unmoderated(place, seen).ln_p_of_restlessness()).collect();
        let restless = calm(&restlessness).into_iter().zip(&admitted).filter(|(calm, _)| *calm < 1.0);
        self.pooled.restless = restless.map(|(calm, &place)| Restless { function: contrast.id(place), calm }).collect();
        self.pooled.restless.sort_unstable_by_key(|restless| restless.function);
    }

    fn witness(&self, place: usize, seen: &Arms<Vec<ArmDispersion>>) -> Option<Witness> {
        let arms = Arms::of(|side| dispersion(seen[side][place]).filter(|_| self.counts[side][place] >= MIN_IN_ARM));
        arms.head.or(arms.base).map(|_| Witness { share: self.share_of_cost(place), arms })
    }

    fn unmoderated(&self, place: usize, seen: &Arms<Vec<ArmDispersion>>) -> Unmoderated<'_> {
        Unmoderated {
            seen: seen.as_ref().map(|seen| dispersion(seen[place])),
            prior: group_of(&self.pooled.priors, self.share_of_cost(place)),
        }
    }

    /// Levels of all that can be tested.
    fn conclude(
        &mut self,
        contrast: &Contrast<'_>,
        variances: &Arms<ArmVariances>,
        seen: &Arms<Vec<ArmDispersion>>,
        hops: Hops<'_>,
    ) {
        let admitted: Vec<usize> = (0..self.tested.len()).filter(|&place| self.tested[place]).collect();
        let expected = Arms::of(|side| {
            let of = |&place: &usize| self.expected(contrast, variances, seen, (place, side));
            admitted.iter().map(of).collect::<Vec<_>>()
        });
        let clumping = Arms::of(|side| self.clumping(contrast, hops, (side, &admitted), &expected[side]));
        for (i, &place) in admitted.iter().enumerate() {
            let concluded = Arms::of(|side| expected[side][i].conclude(clumping[side][i]));
            for side in Side::BOTH {
                self.dispersion[side][place] = ArmDispersion { phi: concluded[side].phi, ..seen[side][place] };
            }
            self.levels[place] = Levels::new(concluded.map(|arm| arm.level), concluded.map(|arm| arm.df));
            self.tested[place] = Side::BOTH.iter().all(|&side| seen[side][place].df > 0.0);
        }
        self.tests = self.tested.iter().filter(|&&tested| tested).count();
    }

    /// What is expected of an admitted function in one arm.
    fn expected(
        &self,
        contrast: &Contrast<'_>,
        variances: &Arms<ArmVariances>,
        seen: &Arms<Vec<ArmDispersion>>,
        (place, side): (usize, Side),
    ) -> Expected {
        let share = variances.as_ref().map(|arm| arm.share[place]);
        let counting = self.unshared(place) * variances[side].counting[place];
        let level = Level { share: share[side], counting, between: variances[side].between[place] };
        let at = if share[side] > 0.0 { share[side] } else { 0.5 * (share.head + share.base) };
        let calm = self.pooled.calm_of(contrast.id(place));
        Expected {
            level,
            moderated: self.unmoderated(place, seen).moderated(side, calm),
            own_df: seen[side][place].df,
            floor: counting_floor(level.counting, level.between, at),
        }
    }

    /// Clumping in time of admitted functions; 1 where it is less than what is expected anyway.
    fn clumping(
        &self,
        contrast: &Contrast<'_>,
        hops: Hops<'_>,
        (side, admitted): (Side, &[usize]),
        expected: &[Expected],
    ) -> Vec<f64> {
        let mut factors = vec![1.0; admitted.len()];
        let held = match hops {
            Hops::Unknown => None,
            Hops::Held => ArmHops::of(contrast, self.model, side),
            Hops::Factors(given) => return admitted.iter().map(|&place| given[side][place]).collect(),
        };
        if let Some(held) = held {
            let binds = |&i: &usize| {
                let place = admitted[i];
                held.at_most(place, self.counts[side][place]) * expected[i].floor > expected[i].moderated.phi
            };
            let binding: Vec<usize> = (0..admitted.len()).filter(binds).collect();
            let ids: Vec<u32> = binding.iter().map(|&i| contrast.id(admitted[i])).collect();
            for (&i, factor) in binding.iter().zip(held.factors(&ids)) {
                factors[i] = factor;
            }
        }
        factors
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

    /// 1 - p-: how far samples of one function leave others fewer; 1 where requests are the exposure.
    fn unshared(&self, place: usize) -> f64 {
        match self.model {
            Model::Share => 1.0 - self.share_of_cost(place),
            Model::Rate => 1.0,
        }
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

/// What is expected of one function in one arm.
#[derive(Clone, Copy)]
struct Expected {
    /// Its level, with the variance that is expected.
    level: Level,
    /// By how much more it varies.
    moderated: Moderated,
    /// Degrees of freedom of what was seen.
    own_df: f64,
    /// Counting noise over the expected variance.
    floor: f64,
}

/// One function in one arm.
#[derive(Clone, Copy)]
struct Concluded {
    level: Level,
    phi: f64,
    df: f64,
}

impl Expected {
    /// Never below counting noise, times its clumping in time.
    fn conclude(&self, clumping: f64) -> Concluded {
        let phi = self.moderated.phi.max(self.floor * clumping);
        let Level { share, counting, between } = self.level;
        Concluded {
            level: Level { share, counting: phi * counting, between: phi * between },
            phi,
            df: if self.moderated.df > 0.0 { self.moderated.df } else { self.own_df },
        }
    }
}

impl Pooled {
    /// The part of the prior's degrees of freedom that a function earns.
    fn calm_of(&self, function: u32) -> f64 {
        let found = self.restless.binary_search_by_key(&function, |restless| restless.function);
        found.map_or(1.0, |index| self.restless[index].calm)
    }
}

/// What was seen, unless the arm cannot show it.
fn dispersion(seen: ArmDispersion) -> Option<Dispersion> {
    (seen.df > 0.0 && !seen.ratio.is_nan()).then_some(Dispersion { ratio: seen.ratio, df: seen.df })
}
