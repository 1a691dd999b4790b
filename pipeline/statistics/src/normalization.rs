//! The scale of a cell: by how much all its shares moved because something else did.
//!
//! Shares sum to one, so a function that doubles makes all others look better. The bulk of the cost did not change; the centre of
//! its log ratios, found so that what changed does not count, is what "unchanged" means in this cell. The majority is one of
//! cost and not of the number of functions, and no function has more than a twentieth of the say.
//!
//! Two groups of functions may have moved apart, and shares cannot say which of them stood still: then there are two scales. Where
//! requests are known they say it, since one of the two is the scale on which most functions cost the same per request. Where they
//! are not, a change must hold on every admissible scale, in the same direction.
//!
//! What makes it wrong: a change that hits all functions by one factor is invisible to it; only cost per request shows that.

use serde::{Deserialize, Serialize};

use crate::median::ascending;
use crate::test::Tests;
use crate::thresholds::{FEW_FUNCTIONS, FEWEST_FUNCTIONS, MIN_COUNT, MIN_EFFECT};

/// Tukey's constant: 95 % efficiency under normal errors.
const TUKEY: f64 = 4.685;
/// No function has more than this part of the say.
const MOST_SAY: f64 = 0.05;
/// Modes closer than this are one.
const SAME: f64 = 1e-6;
/// A mode with at least this part of the deepest one's mass may be the one that stood still.
const RIVAL: f64 = 0.5;
/// Modes at least this far apart are two scales.
const FAR: f64 = 2.0 * MIN_EFFECT;
/// Standard errors of the cost per request within which a rival stays admissible.
const RIVAL_ERRORS: f64 = 2.5;
/// Sums are kept in so many parts.
const LANES: usize = 16;

/// A scale on which a part of the cost stands still.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// ln of the ratio of head to base that counts as unchanged.
    pub ln_scale: f64,
    /// The part of the cost that stands still on it, 0..1, no function counting more than a twentieth.
    pub mass: f64,
}

/// The scales of a cell on which its functions may have stood still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scales {
    /// The scale that changes are given against.
    pub deciding: Mode,
    /// Other scales, on which a change must hold too.
    pub rivals: Vec<Mode>,
    /// Variance of the logarithm of the deciding scale; 0 where it is taken as known.
    pub variance: f64,
    /// Whether functions say where unchanged is; with too few of them it is taken to be 1, so that shares alone are compared.
    pub measured: bool,
}

/// The change of the cost per request of a whole cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// ln of the ratio of head to base.
    pub theta: f64,
    /// Its standard error.
    pub se: f64,
}

impl Scales {
    /// Nothing moved.
    pub const UNCHANGED: Self =
        Self { deciding: Mode { ln_scale: 0.0, mass: 1.0 }, rivals: Vec::new(), variance: 0.0, measured: false };

    /// ln of every admissible scale, the deciding one first.
    pub fn ln_scales(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        std::iter::once(&self.deciding).chain(&self.rivals).map(|mode| mode.ln_scale)
    }

    /// Whether the data cannot say which functions stood still.
    #[must_use]
    pub fn ambiguous(&self) -> bool {
        !self.rivals.is_empty()
    }

    /// The scales of a cell from the tests of its self counts, which serve for its total counts too.
    ///
    /// Unchanged with fewer than 20 tested functions. A mode beside the deepest is a rival if it has at least half of its mass and
    /// lies at least .02 away. With an anchor the mode nearest to -theta, in standard errors, decides and the others stay only
    /// within 2.5. Checked against the reference program (`normalization.json`, `cell.json`) to 1e-8.
    #[must_use]
    pub fn of(tests: &Tests, anchor: Option<Anchor>) -> Self {
        Changes::of(tests, FEW_FUNCTIONS, 2).map_or(Self::UNCHANGED, |changes| Self::among(&changes.modes(), anchor))
    }

    /// The same for a look, which may be one at few samples. The error of the deciding scale counts as noise of each row. The
    /// scale without the one function that has most weight in the deciding one is admissible too, if it lies at least .02 away:
    /// no function makes a scale alone.
    ///
    /// NB: the first look of a canary is at twenty seconds. Its scale is off by 1 or 2 %, several times the error of a function that
    /// has a third of the samples with all that it calls; and the function that costs most is known ten times as well as any
    /// other, so that it draws the scale along if it changed. Callers in the demo were flagged beside their cause, as 6 % cheaper too.
    #[must_use]
    pub fn of_look(tests: &Tests, anchor: Option<Anchor>) -> Self {
        Changes::of(tests, FEW_FUNCTIONS, 2).map_or(Self::UNCHANGED, |changes| Self::with_noise(changes, anchor))
    }

    /// The same from as few as four functions that both arms have, for cells in which nothing but shares can say which of them moved: unchanged with
    /// less.
    #[must_use]
    pub fn of_few(tests: &Tests) -> Self {
        Changes::of(tests, FEWEST_FUNCTIONS, FEWEST_FUNCTIONS)
            .map_or(Self::UNCHANGED, |changes| Self::with_noise(changes, None))
    }

    /// The scales with the error of the deciding one, and with that without the weightiest function.
    fn with_noise(changes: Changes, anchor: Option<Anchor>) -> Self {
        let mut scales = Self::among(&changes.modes(), anchor);
        let at = scales.deciding.ln_scale;
        let variance = changes.variance(at);
        let without = changes.without_the_weightiest(at).modes().first().copied();
        scales.rivals.extend(without.filter(|mode| (mode.ln_scale - at).abs() >= FAR));
        Self { variance, ..scales }
    }

    /// The scales among modes, the deepest first; unchanged without any.
    #[must_use]
    pub fn among(modes: &[Mode], anchor: Option<Anchor>) -> Self {
        let Some((&deepest, others)) = modes.split_first() else { return Self::UNCHANGED };
        let is_rival =
            |mode: &&Mode| mode.mass >= RIVAL * deepest.mass && (mode.ln_scale - deepest.ln_scale).abs() >= FAR;
        let mut admissible = vec![deepest];
        admissible.extend(others.iter().filter(is_rival));
        let mut decides = 0;
        if let Some(anchor) = anchor.filter(|_| admissible.len() > 1) {
            let errors = |mode: &Mode| (mode.ln_scale + anchor.theta).abs() / anchor.se;
            for (place, mode) in admissible.iter().enumerate() {
                if errors(mode) < errors(&admissible[decides]) {
                    decides = place;
                }
            }
            let nearest = admissible.remove(decides);
            admissible.retain(|mode| errors(mode) < RIVAL_ERRORS);
            return Self { deciding: nearest, rivals: admissible, variance: 0.0, measured: true };
        }
        let deciding = admissible.remove(decides);
        Self { deciding, rivals: admissible, variance: 0.0, measured: true }
    }
}

/// The scales from counts alone, without pods: variances 1/a + 1/b, functions with at least 30 samples that both arms have.
///
/// [`Scales::of`] for two profiles of one pod each, however few functions there are; `a` of `n_a` samples in the head, `b` of `n_b`
/// in the base.
#[must_use]
pub fn scales_of_counts(a: &[f64], n_a: f64, b: &[f64], n_b: f64) -> Scales {
    let shared = a.iter().zip(b).filter(|&(&a, &b)| a + b >= MIN_COUNT && a > 0.0 && b > 0.0);
    let changes = shared.map(|(&a, &b)| Change {
        theta: (libm::log(a) - libm::log(n_a)) - (libm::log(b) - libm::log(n_b)),
        variance: 1.0 / a + 1.0 / b,
        cost: (a + b) / (n_a + n_b),
    });
    Scales::among(&Changes::new(changes).modes(), None)
}

/// What one function says about the scale.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// ln of its ratio of head to base.
    pub theta: f64,
    /// The variance of that.
    pub variance: f64,
    /// Its share of cost.
    pub cost: f64,
}

/// What all functions say about the scale, as columns.
pub struct Changes {
    theta: Vec<f64>,
    /// 1/(4.685 sd).
    cutoffs: Vec<f64>,
    /// Part of the say.
    say: Vec<f64>,
    /// Say over (4.685 sd)^2.
    precisions: Vec<f64>,
}

impl Changes {
    /// What the tested functions that both arms have say, if so many are tested and so many of these are in both arms.
    fn of(tests: &Tests, least: usize, least_in_both: usize) -> Option<Self> {
        let both = |&place: &usize| tests.counts.head[place] > 0.0 && tests.counts.base[place] > 0.0;
        let places: Vec<usize> = tests.family().filter(both).collect();
        let change = |&place: &usize| Change {
            theta: tests.levels[place].theta(),
            variance: tests.levels[place].variance(),
            cost: tests.share_of_cost(place),
        };
        let are_enough = tests.tests >= least && places.len() >= least_in_both;
        are_enough.then(|| Self::new(places.iter().map(change)))
    }

    /// The columns of these functions.
    #[must_use]
    pub fn new(changes: impl Iterator<Item = Change>) -> Self {
        let mut columns = Self { theta: Vec::new(), cutoffs: Vec::new(), say: Vec::new(), precisions: Vec::new() };
        for change in changes {
            columns.theta.push(change.theta);
            columns.cutoffs.push(1.0 / (TUKEY * libm::sqrt(change.variance + MIN_EFFECT * MIN_EFFECT)));
            columns.say.push(change.cost.min(MOST_SAY));
        }
        let all: f64 = columns.say.iter().sum();
        columns.say.iter_mut().for_each(|say| *say /= all);
        columns.precisions = columns.say.iter().zip(&columns.cutoffs).map(|(say, cut)| say * cut * cut).collect();
        columns
    }

    /// Every local optimum of the cost-weighted Tukey biweight, the deepest first, climbed to from the weighted quantiles .05 to
    /// .95.
    ///
    /// Checked against the reference program (`normalization.json`) to 1e-8.
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        let mut modes: Vec<Mode> = Vec::new();
        for start in self.starts() {
            let ln_scale = self.climb(start);
            if modes.iter().all(|mode| (mode.ln_scale - ln_scale).abs() > SAME) {
                modes.push(Mode {
                    ln_scale,
                    mass: pulp::Arch::new().dispatch(MassPass { changes: self, centre: ln_scale }),
                });
            }
        }
        modes.sort_by(|one, other| other.mass.total_cmp(&one.mass));
        modes
    }

    /// The weighted quantiles .05, .10 ... .95, ascending, each once.
    fn starts(&self) -> Vec<f64> {
        let order = ascending(self.theta.iter().copied().enumerate());
        let (mut below, mut starts, mut step) = (0.0, Vec::new(), 0.0);
        for &i in &order {
            below += self.say[i];
            let before = step;
            while step < 19.0 && below >= 0.05 + step * 0.05 {
                step += 1.0;
            }
            if step > before {
                starts.push(self.theta[i]);
            }
        }
        starts.dedup_by(|one, other| one.total_cmp(other).is_eq());
        starts
    }

    fn climb(&self, start: f64) -> f64 {
        let mut at = start;
        for _ in 0..100 {
            let [weights, weighted] = pulp::Arch::new().dispatch(WeightPass { changes: self, centre: at });
            if weights <= 0.0 {
                return at;
            }
            let next = weighted / weights;
            let moved = (next - at).abs();
            at = next;
            if moved < 1e-10 {
                break;
            }
        }
        at
    }

    /// Weights in the mean around a centre.
    fn weights(&self, centre: f64) -> Vec<f64> {
        let weight = |place: usize| weight((self.theta[place] - centre) * self.cutoffs[place], self.precisions[place]);
        (0..self.theta.len()).map(weight).collect()
    }

    /// The variance of a mode: of a mean with the weights that it has, of functions that vary by v + .01^2.
    fn variance(&self, mode: f64) -> f64 {
        let weights = self.weights(mode);
        let all: f64 = weights.iter().sum();
        let noise = |(weight, cutoff): (&f64, &f64)| (weight / (all * TUKEY * cutoff)).powi(2);
        if all > 0.0 { weights.iter().zip(&self.cutoffs).map(noise).sum() } else { 0.0 }
    }

    /// All functions but that with most weight in the mean around a centre; of equal ones the last.
    fn without_the_weightiest(mut self, centre: f64) -> Self {
        let weights = self.weights(centre);
        let weightiest = (0..weights.len()).max_by(|&one, &other| weights[one].total_cmp(&weights[other]));
        if let Some(place) = weightiest {
            let Self { theta, cutoffs, say, precisions } = &mut self;
            let rest = 1.0 - say[place];
            for column in [&mut *theta, &mut *cutoffs, &mut *say, &mut *precisions] {
                column.remove(place);
            }
            // What is left is all of the say.
            [say, precisions].into_iter().flatten().for_each(|part| *part /= rest);
        }
        self
    }
}

/// The part of a function at this distance from the centre, over its cutoff, that is inside: 1 - u^2, at least 0.
#[inline(always)]
fn inside(u: f64) -> f64 {
    (1.0 - u * u).max(0.0)
}

/// Tukey's weight at this distance.
#[inline(always)]
fn weight(u: f64, precision: f64) -> f64 {
    let inside = inside(u);
    inside * inside * precision
}

/// The sums of weights and of weights times theta around a centre: one pass over the functions, in interleaved lanes, a fixed order
/// that vectorises.
struct WeightPass<'a> {
    changes: &'a Changes,
    centre: f64,
}

impl pulp::NullaryFnOnce for WeightPass<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn call(self) -> [f64; 2] {
        let Changes { theta, cutoffs, precisions, .. } = self.changes;
        let (mut weights, mut weighted) = ([0.0; LANES], [0.0; LANES]);
        let (theta, theta_left) = theta.as_chunks::<LANES>();
        let (cutoffs, cutoffs_left) = cutoffs.as_chunks::<LANES>();
        let (precisions, precisions_left) = precisions.as_chunks::<LANES>();
        for ((theta, cutoffs), precisions) in theta.iter().zip(cutoffs).zip(precisions) {
            for lane in 0..LANES {
                let weight = weight((theta[lane] - self.centre) * cutoffs[lane], precisions[lane]);
                weights[lane] += weight;
                weighted[lane] += weight * theta[lane];
            }
        }
        let left = theta_left.iter().zip(cutoffs_left).zip(precisions_left);
        for (lane, ((&theta, &cutoff), &precision)) in left.enumerate() {
            let weight = weight((theta - self.centre) * cutoff, precision);
            weights[lane] += weight;
            weighted[lane] += weight * theta;
        }
        [weights.iter().sum(), weighted.iter().sum()]
    }
}

/// The say within a mode, 1 - rho, in the same order.
struct MassPass<'a> {
    changes: &'a Changes,
    centre: f64,
}

impl pulp::NullaryFnOnce for MassPass<'_> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let Changes { theta, cutoffs, say, .. } = self.changes;
        let mut mass = [0.0; LANES];
        for (place, ((&theta, &cutoff), &say)) in theta.iter().zip(cutoffs).zip(say).enumerate() {
            let inside = inside((theta - self.centre) * cutoff);
            mass[place % LANES] += say * (inside * inside) * inside;
        }
        mass.iter().sum()
    }
}
