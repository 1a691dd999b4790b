//! The test of all functions of one cell: the level of a function in each arm, the arm's variance, moderation, and p
//! against any ratio.

pub use super::deviance::Level;
pub use super::fano::fano;
pub use super::priors::{GroupPrior, Prior};

use super::deviance::deviance;
use super::geometry::{ArmData, ArmGeometry, CLASSES, Geometry, Shared};
use super::one_pod::{Without, without_each};
use super::priors::{self, Dispersion, median};
use super::spread;
use super::tails::{ln_f1_tail, root, t_of_tail};

/// With fewer samples in an arm a function tells nothing of that arm's spread.
const MIN_PRIOR: f64 = 10.0;

/// The denominator of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Samples, of which a function's count is a part.
    Share,
    /// Requests.
    Rate,
}

/// What a test takes from all functions together, which may be held from one look to the next.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Variance between pods of the log share, by arm.
    pub tau2: [f64; 2],
    /// Priors of dispersions, by group of functions; none with few functions.
    pub priors: Vec<GroupPrior>,
    /// The part of the prior that a function earns, by function of the test.
    pub calm: Vec<f64>,
}

/// The result of [`strata_test`]; vectors are by function, pairs by arm. Without shared strata nothing is tested, and
/// all figures are 0 or not a number.
#[derive(Clone, Debug, Default)]
pub struct StrataTest {
    /// How many functions there are.
    pub functions: usize,
    /// Strata that both arms share.
    pub strata: usize,
    /// Whether the function is in the family.
    pub tested: Vec<bool>,
    /// How many are.
    pub tests: usize,
    /// Counts over shared strata.
    pub counts: [Vec<f64>; 2],
    /// Samples or requests over shared strata.
    pub exposure: [f64; 2],
    /// Pods over shared strata.
    pub pods: [f64; 2],
    /// What was measured over all functions, or was held.
    pub held: Held,
    /// Class of the function's weights.
    pub class: Vec<usize>,
    /// The levels with their variances, moderated.
    pub levels: [Vec<Level>; 2],
    /// Observed variance over the working variance, not moderated; not a number in an arm without the function.
    pub raw: [Vec<f64>; 2],
    /// Degrees of freedom between the arm's buckets.
    pub own_df: [Vec<f64>; 2],
    /// Moderated dispersion.
    pub phi: [Vec<f64>; 2],
    /// Welch's degrees of freedom.
    pub df: Vec<f64>,
    /// ln of the ratio of levels; infinite if an arm has none.
    pub theta: Vec<f64>,
    /// Its variance.
    pub variance: Vec<f64>,
    /// Effects without each bucket of an arm that has few.
    without: Vec<Without>,
}

/// The stratified test of every function (`strata_test`).
///
/// Strata in which an arm has no exposure are left out. `untested` is a function that is in no family. `fano` is the
/// variance over the mean of hop counts by arm and function. `held` replaces what would be measured over all functions;
/// its `calm` is by function of this test.
pub fn strata_test(
    head: &ArmData,
    base: &ArmData,
    model: Model,
    min_count: f64,
    untested: Option<usize>,
    fano: Option<&[Vec<f64>; 2]>,
    held: Option<&Held>,
) -> StrataTest {
    let functions = head.counts.iter().chain(&base.counts).flatten().map(Vec::len).next().unwrap_or(0);
    let shared = Shared::of(head, base);
    if shared.strata() == 0 {
        return nothing(functions);
    }
    let cell = Cell::new(shared, model, min_count, untested, functions);
    let tau2 = held.map_or_else(|| cell.tau2(), |held| held.tau2);
    let class: Vec<usize> = (0..functions).map(|f| cell.class(f, tau2)).collect();
    let geometries: Vec<Option<Geometry>> = (0..CLASSES.len())
        .map(|one| class.contains(&one).then(|| Geometry::new(&cell.shared, CLASSES[one] / cell.samples_per_pod())))
        .collect();
    let found: Vec<[ArmLevel; 2]> = (0..functions)
        .map(|f| geometries[class[f]].as_ref().map_or_else(Default::default, |geometry| cell.levels(f, geometry, tau2)))
        .collect();
    let priors = held.map_or_else(|| cell.priors(&found), |held| held.priors.clone());
    let of_function: Vec<Option<[Prior; 2]>> =
        (0..functions).map(|f| priors::of_function(&priors, cell.mean(f))).collect();
    let calm = held.map_or_else(
        || priors::calm(&[0, 1].map(|arm: usize| own(&found, arm)), &of_function, &cell.tested),
        |held| held.calm.clone(),
    );
    let mut test = nothing(functions);
    test.strata = cell.shared.strata();
    test.exposure = [0, 1].map(|arm| cell.shared.in_arm(arm));
    test.pods = cell.pods;
    for f in 0..functions {
        let noise = [0, 1].map(|arm: usize| fano.map_or(1.0, |fano| fano[arm][f].max(1.0)));
        test.put(f, &cell, &found[f], of_function[f], calm[f], noise);
        test.class[f] = class[f];
    }
    test.tests = test.tested.iter().filter(|tested| **tested).count();
    test.without = without_each(&cell.shared, &test.class, cell.samples_per_pod());
    test.held = Held { tau2, priors, calm };
    test
}

/// The dispersions of an arm by function; none has 0 degrees of freedom.
fn own(found: &[[ArmLevel; 2]], arm: usize) -> Vec<Dispersion> {
    found.iter().map(|arms| arms[arm].dispersion()).collect()
}

/// A test without shared strata.
fn nothing(functions: usize) -> StrataTest {
    let empty = || vec![f64::NAN; functions];
    let level = Level { level: f64::NAN, linear: f64::NAN, quadratic: f64::NAN };
    StrataTest {
        functions,
        tested: vec![false; functions],
        counts: [vec![0.0; functions], vec![0.0; functions]],
        class: vec![0; functions],
        levels: [vec![level; functions], vec![level; functions]],
        raw: [empty(), empty()],
        own_df: [empty(), empty()],
        phi: [empty(), empty()],
        df: empty(),
        theta: empty(),
        variance: empty(),
        held: Held { calm: vec![1.0; functions], ..Held::default() },
        ..StrataTest::default()
    }
}

/// One arm's level of one function before moderation.
#[derive(Clone, Copy, Debug, Default)]
struct ArmLevel {
    level: f64,
    linear: f64,
    quadratic: f64,
    /// Observed variance over the working variance; not a number without a working variance.
    raw: f64,
    df: f64,
}

impl ArmLevel {
    fn dispersion(&self) -> Dispersion {
        let has = self.raw.is_finite() && self.df > 0.0;
        if has { Dispersion { ratio: self.raw, df: self.df } } else { Dispersion { ratio: 0.0, df: 0.0 } }
    }
}

/// A cell before anything is measured over its functions.
struct Cell {
    shared: Shared,
    model: Model,
    /// Counts by arm and function.
    counts: [Vec<f64>; 2],
    pods: [f64; 2],
    /// Exposure of both arms.
    all: f64,
    /// Whether the function has enough samples, and leaves enough.
    tested: Vec<bool>,
}

impl Cell {
    fn new(shared: Shared, model: Model, min_count: f64, untested: Option<usize>, functions: usize) -> Self {
        let counts = [0, 1].map(|arm| (0..functions).map(|f| shared.count(arm, f)).collect::<Vec<f64>>());
        let all = shared.in_arm(0) + shared.in_arm(1);
        let is_tested = |f: usize| {
            let both = counts[0][f] + counts[1][f];
            both >= min_count && (model == Model::Rate || 100.0 * (all - both) >= all) && untested != Some(f)
        };
        let tested = (0..functions).map(is_tested).collect();
        Self { model, pods: [0, 1].map(|arm| shared.pods(arm)), all, tested, counts, shared }
    }

    /// Count per pod.
    fn mean(&self, f: usize) -> f64 {
        (self.counts[0][f] + self.counts[1][f]) / (self.pods[0] + self.pods[1])
    }

    fn pooled_share(&self, f: usize) -> f64 {
        (self.counts[0][f] + self.counts[1][f]) / self.all
    }

    fn samples_per_pod(&self) -> f64 {
        self.all / (self.pods[0] + self.pods[1])
    }

    /// The variance between the pods of each arm; an arm that cannot show it takes the other's.
    fn tau2(&self) -> [f64; 2] {
        let of_arm = |arm: usize| {
            let with: Vec<usize> =
                (0..self.tested.len()).filter(|&f| self.tested[f] && self.counts[arm][f] >= MIN_PRIOR).collect();
            if with.is_empty() {
                return None;
            }
            let typical = median(&with.iter().map(|&f| self.mean(f)).collect::<Vec<f64>>());
            let chosen: Vec<usize> = with.into_iter().filter(|&f| self.mean(f) >= typical).collect();
            spread::of_arm(&self.shared, arm, &chosen)
        };
        let (head, base) = (of_arm(0), of_arm(1));
        [head.or(base).unwrap_or(0.0), base.or(head).unwrap_or(0.0)]
    }

    /// The class of a function's weights.
    fn class(&self, f: usize, tau2: [f64; 2]) -> usize {
        let [head, base] = self.pods;
        let tau2 = (tau2[0] / head + tau2[1] / base) / (1.0 / head + 1.0 / base);
        let kappa = tau2 * self.pooled_share(f) * self.samples_per_pod();
        if kappa < 0.125 {
            return 0;
        }
        let distance = |class: &usize| (kappa.ln() - CLASSES[*class].ln()).abs();
        (1..CLASSES.len()).min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap_or(0)
    }

    /// Levels and variances of a function with the weights of its class.
    fn levels(&self, f: usize, geometry: &Geometry, tau2: [f64; 2]) -> [ArmLevel; 2] {
        let strata = self.shared.strata();
        let weighted = [0, 1].map(|arm: usize| {
            let in_stratum = |s: usize| -> f64 {
                let counts = &self.shared.arms[arm].counts[s];
                counts.iter().zip(&geometry.arms[arm].weight).map(|(x, w)| w * x[f]).sum()
            };
            (0..strata).map(in_stratum).collect::<Vec<f64>>()
        });
        let pooled: Vec<f64> = (0..strata).map(|s| (weighted[0][s] + weighted[1][s]) / geometry.mass(s)).collect();
        let mean = pooled.iter().zip(&geometry.stratum).map(|(p, h)| p * h).sum::<f64>() / geometry.total;
        let mean = if mean > 0.0 { mean } else { 1e-300 };
        let total2 = geometry.total * geometry.total;
        [0, 1].map(|arm: usize| {
            let of_arm = &geometry.arms[arm];
            let level = (0..strata).map(|s| of_arm.other[s] * weighted[arm][s]).sum::<f64>() / geometry.total;
            let (mut counting, mut between) = (0.0, 0.0);
            for s in 0..strata {
                counting += of_arm.counting[s] * pooled[s];
                for t in 0..strata {
                    between += pooled[s] * of_arm.between[s][t] * pooled[t];
                }
            }
            let rest = if self.model == Model::Share { 1.0 - self.pooled_share(f) } else { 1.0 };
            let linear = rest * counting / mean / total2;
            let quadratic = tau2[arm] * between / (mean * mean) / total2;
            let working = linear * level + quadratic * level * level;
            let observed = match &of_arm.common_ratio {
                Some(parts) => self.variance_from_common_ratio(arm, f, geometry, &weighted[arm], &pooled, parts),
                None => self.variance(arm, f, of_arm, &weighted[arm]),
            };
            let raw = if working > 0.0 { observed / total2 / working } else { f64::NAN };
            ArmLevel { level, linear, quadratic, raw, df: of_arm.df }
        })
    }

    /// The observed variance of an arm's weighted sum (`residual_variance`): residuals of a bucket are summed over
    /// strata before they are squared. `weighted` is the weighted count by stratum.
    fn variance(&self, arm: usize, f: usize, of_arm: &ArmGeometry, weighted: &[f64]) -> f64 {
        let data = &self.shared.arms[arm];
        let square = |b: usize| {
            let residual = |s: usize| {
                let expected = data.exposure[s][b] * (weighted[s] / of_arm.mass[s]);
                of_arm.other[s] * of_arm.weight[b] * (data.counts[s][b][f] - expected)
            };
            let u: f64 = (0..weighted.len()).map(residual).sum();
            u * u / (1.0 - of_arm.leverage[b])
        };
        (0..data.pods.len()).filter(|&b| of_arm.live[b]).map(square).sum::<f64>() * of_arm.inflation
    }

    /// The same with residuals from the arm's ratio to the pooled share, common to all strata
    /// (`common_ratio_variance`).
    fn variance_from_common_ratio(
        &self,
        arm: usize,
        f: usize,
        geometry: &Geometry,
        weighted: &[f64],
        pooled: &[f64],
        parts: &[f64],
    ) -> f64 {
        let (of_arm, data) = (&geometry.arms[arm], &self.shared.arms[arm]);
        let strata = 0..weighted.len();
        let seen: f64 = strata.clone().map(|s| of_arm.other[s] * weighted[s]).sum();
        let expected: f64 = strata.clone().map(|s| geometry.stratum[s] * pooled[s]).sum();
        let ratio = if expected > 0.0 { seen / expected } else { 0.0 };
        let square = |(b, part): (usize, &f64)| {
            let residual = |s: usize| {
                let expected = ratio * data.exposure[s][b] * pooled[s];
                of_arm.other[s] * of_arm.weight[b] * (data.counts[s][b][f] - expected)
            };
            let u: f64 = strata.clone().map(residual).sum();
            u * u / (1.0 - part)
        };
        self.shared.occupied(arm).into_iter().zip(parts).map(square).sum()
    }

    /// The priors that the functions with enough samples show.
    fn priors(&self, found: &[[ArmLevel; 2]]) -> Vec<GroupPrior> {
        let seen = [0, 1].map(|arm: usize| {
            let one = |f: usize| {
                let dispersion = found[f][arm].dispersion();
                (self.tested[f] && self.counts[arm][f] >= MIN_PRIOR && dispersion.df > 0.0).then_some(dispersion)
            };
            (0..found.len()).map(one).collect::<Vec<_>>()
        });
        let mean: Vec<f64> = (0..found.len()).map(|f| self.mean(f)).collect();
        priors::measure(&mean, &seen)
    }
}

impl StrataTest {
    /// Moderates a function and puts its figures in their places. `noise` is its variance of counting over Poisson's.
    fn put(
        &mut self,
        f: usize,
        cell: &Cell,
        found: &[ArmLevel; 2],
        priors: Option<[Prior; 2]>,
        calm: f64,
        noise: [f64; 2],
    ) {
        let own = [0, 1].map(|arm: usize| found[arm].dispersion());
        let middle = ((found[0].level + found[1].level) / 2.0).max(1e-300);
        let (mut at_middle, mut dfs) = ([0.0; 2], [0.0; 2]);
        for arm in [0, 1] {
            let one = &found[arm];
            let moderated = priors::moderate(own[arm], own[1 - arm], priors, arm, calm);
            let level = if one.level > 0.0 { one.level } else { (found[0].level + found[1].level) / 2.0 };
            let counting = noise[arm] / (1.0 + one.quadratic * level / one.linear.max(1e-300));
            let phi = moderated.ratio.max(counting);
            self.counts[arm][f] = cell.counts[arm][f];
            self.raw[arm][f] = one.raw;
            self.own_df[arm][f] = one.df;
            self.phi[arm][f] = phi;
            self.levels[arm][f] = Level { level: one.level, linear: phi * one.linear, quadratic: phi * one.quadratic };
            at_middle[arm] = phi * one.linear / middle + phi * one.quadratic;
            dfs[arm] = if moderated.df > 0.0 { moderated.df } else { one.df };
        }
        let both = at_middle[0] + at_middle[1];
        let [head, base] = [0, 1].map(|arm: usize| at_middle[arm] * at_middle[arm] / dfs[arm].max(1e-9));
        self.variance[f] = both;
        self.df[f] = both * both / (head + base);
        self.tested[f] = cell.tested[f] && found.iter().all(|one| one.df > 0.0);
        if self.tested[f] {
            self.theta[f] = found[0].level.ln() - found[1].level.ln();
        }
    }

    /// Part of all samples of both arms.
    pub fn cost(&self, f: usize) -> f64 {
        (self.counts[0][f] + self.counts[1][f]) / (self.exposure[0] + self.exposure[1])
    }

    /// The priors of a function's dispersion, of head and base; worth nothing where there are none.
    pub fn prior(&self, f: usize) -> [Prior; 2] {
        let mean = (self.counts[0][f] + self.counts[1][f]) / (self.pods[0] + self.pods[1]);
        priors::of_function(&self.held.priors, mean).unwrap_or([Prior { df: 0.0, dispersion: 1.0 }; 2])
    }

    /// Takes functions with fewer than `df` degrees of freedom out of the family.
    pub fn leave_out_below_df(&mut self, df: f64) {
        for f in 0..self.functions {
            self.tested[f] &= self.df[f] >= df;
        }
        self.tests = self.tested.iter().filter(|tested| **tested).count();
    }

    /// The statistic of head = `ratio` x base.
    pub fn deviance(&self, f: usize, ratio: f64) -> f64 {
        deviance(&self.levels[0][f], &self.levels[1][f], ratio)
    }

    /// The statistic of head = `ratio` x base, where ln `ratio` is known with a variance.
    pub fn statistic(&self, f: usize, ratio: f64, variance: f64) -> f64 {
        let part = if variance > 0.0 { self.variance[f] / (self.variance[f] + variance) } else { 1.0 };
        self.deviance(f, ratio) * part
    }

    /// ln of the two-sided p of head = `ratio` x base (`p_at`); not a number where not tested.
    pub fn ln_p(&self, f: usize, ratio: f64) -> f64 {
        self.ln_p_against(f, ratio, 0.0)
    }

    /// The same where ln `ratio` is known with a variance.
    pub fn ln_p_against(&self, f: usize, ratio: f64, variance: f64) -> f64 {
        if self.tested[f] { ln_f1_tail(self.statistic(f, ratio, variance), self.df[f].max(1e-9)) } else { f64::NAN }
    }

    /// ln p of a change by at most `min_effect` on the log scale around `ratio`, limited to 0 (`p_delta`).
    pub fn ln_p_min_effect(&self, f: usize, ratio: f64, min_effect: f64, variance: f64) -> f64 {
        if !self.tested[f] {
            return f64::NAN;
        }
        let (up, down) = [min_effect, -min_effect].map(|end| self.ln_p_against(f, ratio * end.exp(), variance)).into();
        let theta = self.theta[f] - ratio.ln();
        let (near, far) = if theta > 0.0 { (up, down) } else { (down, up) };
        if theta.abs() > min_effect {
            // ln(near/2 + far/2), where both may be too small for exp.
            let larger = near.max(far);
            if larger.is_infinite() {
                larger
            } else {
                larger + (((near - larger).exp() + (far - larger).exp()) / 2.0).ln()
            }
        } else {
            ((far.exp() - near.exp()) / 2.0).ln_1p().min(0.0)
        }
    }

    /// All theta whose p is above exp(`ln_p`), (`interval`); an end is infinite if an arm has none.
    /// `variance` is that of the factor which is then taken off.
    pub fn interval(&self, f: usize, ln_p: f64, variance: f64) -> (f64, f64) {
        let limit = t_of_tail(ln_p, self.df[f].max(1e-9)).powi(2);
        let (no_head, no_base) = (self.levels[0][f].level == 0.0, self.levels[1][f].level == 0.0);
        let end = |sign: f64, is_open: bool| {
            let (inside, outside) = if no_head || no_base {
                (-sign * 40.0, sign * 40.0)
            } else {
                (self.theta[f], self.theta[f] + sign * 40.0)
            };
            if is_open || self.statistic(f, outside.exp(), variance) < limit {
                return sign * f64::INFINITY;
            }
            root(inside, outside, |theta| self.statistic(f, theta.exp(), variance).sqrt() - limit.sqrt())
        };
        (end(-1.0, no_head), end(1.0, no_base))
    }

    /// The variance of the difference of levels, each at its own.
    pub fn delta_variance(&self, f: usize) -> f64 {
        self.levels.iter().map(|levels| levels[f].variance()).sum()
    }

    /// The arm and the bucket without which a tested function loses its direction or more than half of its change
    /// against exp(`ln_scale`): of several, the one that leaves least of it. Only an arm with few buckets has one.
    pub fn one_bucket(&self, f: usize, ln_scale: f64) -> Option<(usize, usize)> {
        if !self.tested[f] {
            return None;
        }
        let least = |one: &&Without, other: &&Without| {
            one.left(self.theta[f], f, ln_scale).total_cmp(&other.left(self.theta[f], f, ln_scale))
        };
        let made = self.without.iter().filter(|without| without.is_made_by_it(self.theta[f], f, ln_scale));
        made.min_by(least).map(|without| (without.arm, without.bucket))
    }
}
