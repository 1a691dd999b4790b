//! The steps of one measurement, in order.

use std::collections::{BTreeMap, BTreeSet};

use crate::arms::{Arms, Side};
use crate::contrast::Contrast;
use crate::fano::ArmHops;
use crate::geometry::{CLASSES, Geometry, class_of};
use crate::layout::{BLOCK, Lanes, Layout};
use crate::median::median;
use crate::moderation::{Moderated, ModeratedArm, Seen, UnmoderatedBlock, restless};
use crate::number::index_of;
use crate::pooled::Restless;
use crate::priors::{Dispersion, Witness, group_of, in_order, priors};
use crate::spread::spread_of;
use crate::strata::Model;
use crate::test::{ArmDispersion, Hops, Measure, Tests};
use crate::thresholds::{MIN_IN_ARM, is_whole_profile};
use crate::variance::{ArmBlock, ClassFunctions, VariancePass};

/// A measurement under way.
pub(super) struct Measuring<'m> {
    contrast: &'m Contrast<'m>,
    measure: &'m Measure<'m>,
    layout: &'m Layout<'m>,
    tests: Tests,
}

impl<'m> Measuring<'m> {
    /// Of a layout with strata.
    pub fn new(contrast: &'m Contrast<'m>, measure: &'m Measure<'m>, layout: &'m Layout<'m>, tests: Tests) -> Self {
        Self { contrast, measure, layout, tests }
    }

    pub fn run(mut self) -> Tests {
        self.count();
        self.tests.pooled.spread = self.measure.held.map_or_else(|| self.spread(), |held| held.spread);
        let classes = self.classes();
        let mut pass = VariancePass::new(self.layout, self.tests.model, self.tests.pooled.spread);
        let hops = Arms::of(|side| match self.measure.hops {
            Hops::OfContrast => ArmHops::of(self.contrast, self.tests.model, side),
            Hops::Unknown | Hops::Factors(_) => None,
        });
        let (mut clumped, mut moderated): (Arms<Vec<u32>>, _) = (Arms::default(), Moderated::new());
        if let Some(held) = self.measure.held {
            self.tests.pooled.clone_from(held);
            for (geometry, functions) in &classes {
                pass.run(geometry, functions, |lanes, arms| {
                    let block = Block::new((geometry, functions), lanes, arms);
                    self.disperse(&block);
                    self.conclude(&block, &hops, &mut moderated, &mut clumped);
                });
            }
        } else {
            let mut blocks = Vec::new();
            for (geometry, functions) in &classes {
                pass.run(geometry, functions, |lanes, arms| {
                    self.disperse(&Block::new((geometry, functions), lanes, arms));
                    blocks.push(((geometry, functions), lanes.clone(), arms.clone()));
                });
            }
            self.pool();
            for (class, lanes, arms) in &blocks {
                self.conclude(&Block::new(*class, lanes, arms), &hops, &mut moderated, &mut clumped);
            }
        }
        let clumping =
            Arms::of(|side| hops[side].as_ref().map(|hops| hops.factors_of(&mut clumped[side])).unwrap_or_default());
        self.conclude_clumped(&mut pass, &classes, &clumping);
        self.tests.tests = self.tests.tested.iter().filter(|&&tested| tested).count();
        self.tests
    }

    /// Counts, and who may be tested as far as they say.
    fn count(&mut self) {
        let (tests, contrast) = (&mut self.tests, self.contrast);
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

    /// The admitted functions by class, with its tables.
    fn classes(&mut self) -> Vec<(Geometry, ClassFunctions)> {
        let (pods, spread) = (self.tests.size.map(|arm| arm.pods), self.tests.pooled.spread);
        let tau2 = (spread.head / pods.head + spread.base / pods.base) / (1.0 / pods.head + 1.0 / pods.base);
        let per_pod = self.layout.exposure() / self.layout.pods();
        let empty = |class| ClassFunctions { class, ..ClassFunctions::default() };
        let mut classes: [ClassFunctions; CLASSES] = std::array::from_fn(empty);
        for place in (0..self.tests.tested.len()).filter(|&place| self.tests.tested[place]) {
            let share = self.tests.share_of_cost(place);
            let class = class_of(tau2 * share * per_pod);
            self.tests.class[place] = u8::try_from(class).unwrap_or(u8::MAX);
            classes[class].push(self.contrast.id(place), place, share);
        }
        let occupied = classes.into_iter().filter(|functions| !functions.ids.is_empty());
        occupied.map(|functions| (Geometry::new(self.layout, functions.class, per_pod), functions)).collect()
    }

    /// Keeps what a block shows of its functions.
    fn disperse(&mut self, block: &Block<'_>) {
        for side in Side::BOTH {
            let (ratio, df) = (&block.arms[side].ratio, block.df()[side]);
            for (place, _, lane) in block.functions() {
                self.tests.dispersion[side][place] = ArmDispersion { ratio: ratio[lane], df, phi: f64::NAN };
            }
        }
    }

    /// What functions expect of each other.
    fn pool(&mut self) {
        let admitted: Vec<usize> = self.tests.family().collect();
        let mut witnesses: Vec<Witness> = admitted.iter().filter_map(|&place| self.witness(place)).collect();
        in_order(&mut witnesses);
        self.tests.pooled.priors = priors(&witnesses);
        let seen: Vec<Seen<'_>> = admitted.iter().map(|&place| self.seen(place)).collect();
        let found = restless(&seen).into_iter();
        let mut restless: Vec<Restless> =
            found.map(|(i, calm)| Restless { function: self.contrast.id(admitted[i]), calm }).collect();
        restless.sort_unstable_by_key(|restless| restless.function);
        self.tests.pooled.restless = restless;
    }

    fn witness(&self, place: usize) -> Option<Witness> {
        let enough = |side: Side| self.tests.counts[side][place] >= MIN_IN_ARM;
        let arms = Arms::of(|side| dispersion(self.tests.dispersion[side][place]).filter(|_| enough(side)));
        arms.head.or(arms.base).map(|_| Witness { share: self.tests.share_of_cost(place), arms })
    }

    fn seen(&self, place: usize) -> Seen<'_> {
        Seen {
            arms: self.tests.dispersion.as_ref().map(|seen| dispersion(seen[place])),
            prior: group_of(&self.tests.pooled.priors, self.tests.share_of_cost(place)),
        }
    }

    /// The levels of a block; those of functions whose clumping in time may be more than what is expected anyway are not the last,
    /// and their ids are added to `clumped`.
    fn conclude(
        &mut self,
        block: &Block<'_>,
        hops: &Arms<Option<ArmHops<'_, '_>>>,
        moderated: &mut Moderated,
        clumped: &mut Arms<Vec<u32>>,
    ) {
        let given = match self.measure.hops {
            Hops::Factors(given) => Some(given),
            Hops::Unknown | Hops::OfContrast => None,
        };
        self.conclude_block(block, |side, place| given.map_or(1.0, |given| given[side][place]), moderated);
        for side in Side::BOTH {
            let Some(hops) = &hops[side] else { continue };
            let ModeratedArm { floor, drawn, .. } = &moderated.arms[side];
            for (place, id, lane) in block.functions() {
                let most = hops.at_most(place, self.tests.counts[side][place]);
                if most.is_some_and(|most| most * floor[lane] > drawn[lane]) {
                    clumped[side].push(id);
                }
            }
        }
    }

    /// Concludes anew the functions that clump in time by these factors, by id.
    fn conclude_clumped(
        &mut self,
        pass: &mut VariancePass<'_>,
        classes: &[(Geometry, ClassFunctions)],
        factors: &Arms<BTreeMap<u32, f64>>,
    ) {
        let ids: BTreeSet<u32> = factors.both().into_iter().flat_map(BTreeMap::keys).copied().collect();
        let mut moderated = Moderated::new();
        let places: Vec<usize> = ids.into_iter().filter_map(|id| self.contrast.place(index_of(id))).collect();
        for (geometry, ClassFunctions { class, .. }) in classes {
            let mut functions = ClassFunctions { class: *class, ..ClassFunctions::default() };
            let own = places.iter().filter(|&&place| usize::from(self.tests.class[place]) == *class);
            own.for_each(|&place| functions.push(self.contrast.id(place), place, self.tests.share_of_cost(place)));
            pass.run(geometry, &functions, |lanes, arms| {
                let block = Block::new((geometry, &functions), lanes, arms);
                let clumping = |side: Side, place| factors[side].get(&self.contrast.id(place)).copied().unwrap_or(1.0);
                self.conclude_block(&block, clumping, &mut moderated);
            });
        }
    }

    /// Keeps the levels of a block whose samples clump in time by these factors.
    fn conclude_block(&mut self, block: &Block<'_>, clumping: impl Fn(Side, usize) -> f64, moderated: &mut Moderated) {
        let mut unmoderated = UnmoderatedBlock {
            seen: block.arms,
            df: block.df(),
            priors: &self.tests.pooled.priors,
            shares: [0.0; BLOCK],
            calm: [1.0; BLOCK],
            clumping: Arms::of(|_| [1.0; BLOCK]),
        };
        for (lane, share) in block.lanes.each().zip(block.shares) {
            unmoderated.shares[lane] = *share;
        }
        for (place, _, lane) in block.functions() {
            for side in Side::BOTH {
                unmoderated.clumping[side][lane] = clumping(side, place);
            }
        }
        for (lane, calm) in self.restless(block) {
            unmoderated.calm[lane] = calm;
        }
        unmoderated.moderate(moderated);
        let shows = block.df().both().into_iter().all(|&df| df > 0.0);
        for (place, _, lane) in block.functions() {
            self.tests.tested[place] = shows;
            self.tests.levels[place] = moderated.levels(block.arms, lane);
            for side in Side::BOTH {
                self.tests.dispersion[side][place].phi = moderated.arms[side].phi[lane];
            }
        }
    }

    /// The lanes of a block that do not earn all of the prior's degrees of freedom, and how much they do.
    fn restless<'b>(&'b self, block: &'b Block<'_>) -> impl Iterator<Item = (usize, f64)> + 'b {
        let restless = &self.tests.pooled.restless;
        let first = block.ids.first().copied().unwrap_or_default();
        let from = restless.partition_point(|restless| restless.function < first);
        let mut restless = restless[from..].iter().peekable();
        block.functions().filter_map(move |(_, id, lane)| {
            while restless.next_if(|restless| restless.function < id).is_some() {}
            restless.next_if(|restless| restless.function == id).map(|restless| (lane, restless.calm))
        })
    }
}

/// A block of functions of one class.
struct Block<'b> {
    geometry: &'b Geometry,
    ids: &'b [u32],
    places: &'b [usize],
    shares: &'b [f64],
    lanes: &'b Lanes<'b>,
    arms: &'b Arms<ArmBlock>,
}

impl<'b> Block<'b> {
    fn new(
        (geometry, functions): (&'b Geometry, &'b ClassFunctions),
        lanes: &'b Lanes<'b>,
        arms: &'b Arms<ArmBlock>,
    ) -> Self {
        let [ids, places, shares] = [(); 3].map(|()| lanes.range.clone());
        let (ids, places, shares) = (&functions.ids[ids], &functions.places[places], &functions.shares[shares]);
        Self { geometry, ids, places, shares, lanes, arms }
    }

    /// Place of results, id and lane of each function.
    fn functions(&self) -> impl Iterator<Item = (usize, u32, usize)> + use<'b> {
        let ids_and_places = self.places.iter().copied().zip(self.ids.iter().copied());
        ids_and_places.zip(self.lanes.each()).map(|((place, id), lane)| (place, id, lane))
    }

    /// Degrees of freedom of what each arm shows.
    fn df(&self) -> Arms<f64> {
        self.geometry.arms.as_ref().map(|arm| arm.df)
    }
}

/// What was seen, unless the arm cannot show it.
fn dispersion(seen: ArmDispersion) -> Option<Dispersion> {
    (seen.df > 0.0 && !seen.ratio.is_nan()).then_some(Dispersion { ratio: seen.ratio, df: seen.df })
}
