//! The steps of one measurement, in order.

use crate::arms::{Arms, Side};
use crate::contrast::Contrast;
use crate::deviance::{Level, Levels};
use crate::fano::ArmHops;
use crate::geometry::{CLASSES, Geometry, class_of};
use crate::layout::{Functions, Layout};
use crate::median::median;
use crate::moderation::{Moderated, Unmoderated, calm, counting_floor};
use crate::pooled::Restless;
use crate::priors::{Dispersion, Witness, group_of, priors};
use crate::spread::spread_of;
use crate::strata::Model;
use crate::test::{ArmDispersion, Hops, Measure, Tests, UNKNOWN};
use crate::thresholds::MIN_IN_ARM;
use crate::variance::{ArmVariances, ClassFunctions, VariancePass};

/// A measurement under way.
pub(super) struct Measuring<'m> {
    contrast: &'m Contrast<'m>,
    measure: &'m Measure<'m>,
    layout: &'m Layout<'m>,
    tests: Tests,
    /// Of admitted functions.
    variances: Arms<ArmVariances>,
    /// Of admitted functions, not yet moderated.
    seen: Arms<Vec<ArmDispersion>>,
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
        let variances = Arms::of(|_| ArmVariances::unknown(functions));
        let seen = Arms::of(|_| vec![UNKNOWN; functions]);
        Self { contrast, measure, layout, tests, variances, seen }
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
        tests.counts = self.layout.arms.as_ref().map(|arm| arm.sums(Functions::of(contrast)));
        let whole = tests.exposure();
        for place in 0..tests.tested.len() {
            let count = tests.count(place);
            let varies = tests.model == Model::Rate || count < whole;
            tests.tested[place] = count >= self.measure.min_count && count > 0.0 && varies;
        }
        if let Some(place) = contrast.untested.and_then(|id| contrast.place(id)) {
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
                    self.seen[side][place] = ArmDispersion { ratio, df: geometry.arms[side].df, phi: f64::NAN };
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
        witnesses.sort_by(|one, other| other.share.total_cmp(&one.share));
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
        let arms = Arms::of(|side| dispersion(self.seen[side][place]).filter(|_| enough(side)));
        arms.head.or(arms.base).map(|_| Witness { share: self.tests.share_of_cost(place), arms })
    }

    fn unmoderated(&self, place: usize) -> Unmoderated<'_> {
        Unmoderated {
            seen: self.seen.as_ref().map(|seen| dispersion(seen[place])),
            prior: group_of(&self.tests.pooled.priors, self.tests.share_of_cost(place)),
        }
    }

    /// Levels of all that can be tested.
    fn conclude(&mut self) {
        let admitted: Vec<usize> = (0..self.tests.tested.len()).filter(|&place| self.tests.tested[place]).collect();
        let expected = Arms::of(|side| admitted.iter().map(|&place| self.expected(place, side)).collect::<Vec<_>>());
        let clumping = Arms::of(|side| self.clumping(side, &admitted, &expected[side]));
        for (i, &place) in admitted.iter().enumerate() {
            let concluded = Arms::of(|side| expected[side][i].conclude(clumping[side][i]));
            for side in Side::BOTH {
                let phi = concluded[side].phi;
                self.tests.dispersion[side][place] = ArmDispersion { phi, ..self.seen[side][place] };
            }
            self.tests.levels[place] = Levels::new(concluded.map(|arm| arm.level), concluded.map(|arm| arm.df));
            self.tests.tested[place] = Side::BOTH.iter().all(|&side| self.seen[side][place].df > 0.0);
        }
        self.tests.tests = self.tests.tested.iter().filter(|&&tested| tested).count();
    }

    fn expected(&self, place: usize, side: Side) -> Expected {
        let level = self.expected_level(place, side);
        let mean = 0.5 * (self.variances.head.share[place] + self.variances.base.share[place]);
        let at = if level.share > 0.0 { level.share } else { mean };
        let calm = self.tests.pooled.calm_of(self.contrast.id(place));
        Expected {
            level,
            moderated: self.unmoderated(place).moderated(side, calm),
            own_df: self.seen[side][place].df,
            floor: counting_floor(level.counting, level.between, at),
        }
    }

    /// Clumping in time of admitted functions; 1 where it is less than what is expected anyway.
    fn clumping(&self, side: Side, admitted: &[usize], expected: &[Expected]) -> Vec<f64> {
        let mut factors = vec![1.0; admitted.len()];
        let hops = match self.measure.hops {
            Hops::Unknown => None,
            Hops::OfContrast => ArmHops::of(self.contrast, self.tests.model, side),
            Hops::Factors(given) => return admitted.iter().map(|&place| given[side][place]).collect(),
        };
        if let Some(hops) = hops {
            let binds = |&i: &usize| {
                let (place, Expected { floor, moderated, .. }) = (admitted[i], &expected[i]);
                hops.at_most(place, self.tests.counts[side][place]) * floor > moderated.phi
            };
            let binding: Vec<usize> = (0..admitted.len()).filter(binds).collect();
            let ids: Vec<u32> = binding.iter().map(|&i| self.contrast.id(admitted[i])).collect();
            for (&i, factor) in binding.iter().zip(hops.factors(&ids)) {
                factors[i] = factor;
            }
        }
        factors
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
