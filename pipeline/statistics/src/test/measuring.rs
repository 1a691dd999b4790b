//! The steps of one measurement, in order.

use std::collections::BTreeMap;

use crate::arms::{Arms, Side};
use crate::contrast::Contrast;
use crate::deviance::{Level, Levels};
use crate::fano::ArmHops;
use crate::geometry::{CLASSES, Geometry, class_of};
use crate::layout::{Functions, Layout};
use crate::median::median;
use crate::moderation::{Moderated, Unmoderated, calm, counting_floor};
use crate::number::index_of;
use crate::pooled::Restless;
use crate::priors::{Dispersion, Witness, group_of, priors};
use crate::spread::spread_of;
use crate::strata::Model;
use crate::test::{ArmDispersion, Hops, Measure, Tests};
use crate::thresholds::{MIN_IN_ARM, is_whole_profile};
use crate::variance::{ArmVariances, ClassFunctions, VariancePass};

/// A measurement under way.
pub(super) struct Measuring<'m> {
    contrast: &'m Contrast<'m>,
    measure: &'m Measure<'m>,
    layout: &'m Layout<'m>,
    tests: Tests,
    /// Of admitted functions.
    variances: Arms<ArmVariances>,
}

/// What is expected of one function in one arm.
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

impl<'m> Measuring<'m> {
    /// Of a layout with strata.
    pub fn new(contrast: &'m Contrast<'m>, measure: &'m Measure<'m>, layout: &'m Layout<'m>, tests: Tests) -> Self {
        let functions = tests.tested.len();
        let variances = Arms::of(|_| ArmVariances::new(functions));
        Self { contrast, measure, layout, tests, variances }
    }

    pub fn run(mut self) -> Tests {
        self.count();
        self.tests.pooled.spread = self.measure.held.map_or_else(|| self.spread(), |held| held.spread);
        self.scatter();
        match self.measure.held {
            Some(held) => self.tests.pooled.clone_from(held),
            None => self.pool(),
        }
        self.conclude();
        self.tests
    }

    /// Counts, and who may be tested as far as they say.
    fn count(&mut self) {
        let (tests, contrast) = (&mut self.tests, self.contrast);
        let summed = || self.layout.arms.as_ref().map(|arm| arm.sums(Functions::of(contrast)));
        tests.counts = self.measure.counts.cloned().unwrap_or_else(summed);
        let whole = tests.exposure();
        for place in 0..tests.tested.len() {
            let count = tests.count(place);
            let varies = tests.model == Model::Rate || !is_whole_profile(count, whole);
            tests.tested[place] = count >= self.measure.min_count && count > 0.0 && varies;
        }
        for place in contrast.untested.into_iter().flatten().filter_map(|id| contrast.place(id)) {
            tests.tested[place] = false;
        }
    }

    /// tau^2 of each arm, from the better counted half of the functions that it has enough of; an arm that cannot show it takes the
    /// other's.
    fn spread(&self) -> Arms<f64> {
        let own = Arms::of(|side| {
            let enough = |&place: &usize| self.tests.tested[place] && self.tests.counts[side][place] >= MIN_IN_ARM;
            let counted: Vec<usize> = (0..self.tests.tested.len()).filter(enough).collect();
            let middle = median(&counted.iter().map(|&place| self.tests.count(place)).collect::<Vec<_>>());
            let best = counted.iter().filter(|&&place| self.tests.count(place) >= middle);
            let ids: Vec<u32> = best.map(|&place| self.contrast.id(place)).collect();
            spread_of(&self.layout.arms[side], &self.layout.arms[side.other()].totals, &ids)
        });
        let or = |own: f64, other: f64| if own.is_nan() { other } else { own };
        Arms::of(|side| or(or(own[side], own[side.other()]), 0.0))
    }

    /// Levels and variances of admitted functions, class by class, and seen over expected variance.
    fn scatter(&mut self) {
        let (pods, spread) = (self.tests.size.map(|arm| arm.pods), self.tests.pooled.spread);
        let tau2 = (spread.head / pods.head + spread.base / pods.base) / (1.0 / pods.head + 1.0 / pods.base);
        let per_pod = self.layout.exposure() / self.layout.pods();
        let mut classes: [ClassFunctions; CLASSES] = Default::default();
        for place in (0..self.tests.tested.len()).filter(|&place| self.tests.tested[place]) {
            let class = class_of(tau2 * self.tests.share_of_cost(place) * per_pod);
            self.tests.class[place] = class;
            classes[class].ids.push(self.contrast.id(place));
            classes[class].places.push(place);
        }
        let mut pass = VariancePass::new(self.layout, spread);
        for (class, functions) in classes.iter().enumerate().filter(|(_, functions)| !functions.ids.is_empty()) {
            let geometry = Geometry::new(self.layout, class, per_pod);
            pass.run(&geometry, functions, &mut self.variances);
            for side in Side::BOTH {
                for &place in &functions.places {
                    let ratio = self.ratio(place, side);
                    self.tests.dispersion[side][place] =
                        ArmDispersion { ratio, df: geometry.arms[side].df, phi: f64::NAN };
                }
            }
        }
    }

    /// Seen over expected variance; NaN where the arm has none.
    fn ratio(&self, place: usize, side: Side) -> f64 {
        let level = self.expected_level(place, side);
        let expected = level.counting * level.share + level.between * level.share * level.share;
        if expected > 0.0 { self.variances[side].seen[place] / expected } else { f64::NAN }
    }

    /// The level of an arm, with the variance that is expected.
    fn expected_level(&self, place: usize, side: Side) -> Level {
        let arm = &self.variances[side];
        let counting = self.tests.unshared(place) * arm.counting[place];
        Level { share: arm.share[place], counting, between: arm.between[place] }
    }

    /// What functions expect of each other.
    fn pool(&mut self) {
        let admitted: Vec<usize> = self.tests.family().collect();
        let mut witnesses: Vec<Witness> = admitted.iter().filter_map(|&place| self.witness(place)).collect();
        witnesses.sort_by(Witness::in_order);
        self.tests.pooled.priors = priors(&witnesses);
        let restlessness: Vec<f64> =
            admitted.iter().map(|&place| self.unmoderated(place).ln_p_of_restlessness()).collect();
        let restless = calm(&restlessness).into_iter().zip(&admitted).filter(|(calm, _)| *calm < 1.0);
        let mut restless: Vec<Restless> =
            restless.map(|(calm, &place)| Restless { function: self.contrast.id(place), calm }).collect();
        restless.sort_unstable_by_key(|restless| restless.function);
        self.tests.pooled.restless = restless;
    }

    fn witness(&self, place: usize) -> Option<Witness> {
        let enough = |side: Side| self.tests.counts[side][place] >= MIN_IN_ARM;
        let arms = Arms::of(|side| dispersion(self.tests.dispersion[side][place]).filter(|_| enough(side)));
        arms.head.or(arms.base).map(|_| Witness { share: self.tests.share_of_cost(place), arms })
    }

    fn unmoderated(&self, place: usize) -> Unmoderated<'_> {
        Unmoderated {
            seen: self.tests.dispersion.as_ref().map(|seen| dispersion(seen[place])),
            prior: group_of(&self.tests.pooled.priors, self.tests.share_of_cost(place)),
        }
    }

    /// Levels of all that can be tested.
    fn conclude(&mut self) {
        let hops = Arms::of(|side| match self.measure.hops {
            Hops::OfContrast => ArmHops::of(self.contrast, self.tests.model, side),
            Hops::Unknown | Hops::Factors(_) => None,
        });
        let restless = std::mem::take(&mut self.tests.pooled.restless);
        let mut clumped: Arms<Vec<u32>> = Arms::default();
        let mut next = restless.iter().peekable();
        for place in 0..self.tests.tested.len() {
            if !self.tests.tested[place] {
                continue;
            }
            let id = self.contrast.id(place);
            while next.next_if(|restless| restless.function < id).is_some() {}
            let calm = next.peek().filter(|restless| restless.function == id).map_or(1.0, |restless| restless.calm);
            let expected = self.expected(place, calm);
            for side in Side::BOTH {
                let binds = |hops: &ArmHops<'_, '_>| {
                    let most = hops.at_most(place, self.tests.counts[side][place]);
                    most * expected[side].floor > expected[side].moderated.phi
                };
                if hops[side].as_ref().is_some_and(binds) {
                    clumped[side].push(id);
                }
            }
            let factors = match self.measure.hops {
                Hops::Factors(given) => Arms::of(|side| given[side][place]),
                Hops::Unknown | Hops::OfContrast => Arms { head: 1.0, base: 1.0 },
            };
            self.settle(place, &expected, factors);
        }
        self.tests.pooled.restless = restless;
        self.settle_clumped(&hops, &clumped);
        for place in 0..self.tests.tested.len() {
            let shows = |side: Side| self.tests.dispersion[side][place].df > 0.0;
            self.tests.tested[place] = self.tests.tested[place] && Side::BOTH.into_iter().all(shows);
        }
        self.tests.tests = self.tests.tested.iter().filter(|&&tested| tested).count();
    }

    /// Settles anew the functions whose clumping in time may be more than what is expected anyway.
    fn settle_clumped(&mut self, hops: &Arms<Option<ArmHops<'_, '_>>>, clumped: &Arms<Vec<u32>>) {
        let mut factors: BTreeMap<u32, Arms<f64>> = BTreeMap::new();
        for side in Side::BOTH {
            let found = hops[side].as_ref().map(|hops| hops.factors(&clumped[side])).unwrap_or_default();
            for (&id, factor) in clumped[side].iter().zip(found) {
                factors.entry(id).or_insert(Arms { head: 1.0, base: 1.0 })[side] = factor;
            }
        }
        for (id, factors) in factors {
            if let Some(place) = self.contrast.place(index_of(id)) {
                let expected = self.expected(place, self.tests.pooled.calm_of(id));
                self.settle(place, &expected, factors);
            }
        }
    }

    /// Keeps what is known of a function.
    fn settle(&mut self, place: usize, expected: &Arms<Expected>, clumping: Arms<f64>) {
        let concluded = Arms::of(|side| expected[side].conclude(clumping[side]));
        for side in Side::BOTH {
            self.tests.dispersion[side][place].phi = concluded[side].phi;
        }
        self.tests.levels[place] = Levels::new(concluded.map(|arm| arm.level), concluded.map(|arm| arm.df));
    }

    /// What is expected of a function in each arm; `calm` in 0..=1.
    fn expected(&self, place: usize, calm: f64) -> Arms<Expected> {
        let unmoderated = self.unmoderated(place);
        let mean = 0.5 * (self.variances.head.share[place] + self.variances.base.share[place]);
        Arms::of(|side| {
            let level = self.expected_level(place, side);
            let at = if level.share > 0.0 { level.share } else { mean };
            Expected {
                level,
                moderated: unmoderated.moderated(side, calm),
                own_df: self.tests.dispersion[side][place].df,
                floor: counting_floor(level.counting, level.between, at),
            }
        })
    }
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

/// What was seen, unless the arm cannot show it.
fn dispersion(seen: ArmDispersion) -> Option<Dispersion> {
    (seen.df > 0.0 && !seen.ratio.is_nan()).then_some(Dispersion { ratio: seen.ratio, df: seen.df })
}
