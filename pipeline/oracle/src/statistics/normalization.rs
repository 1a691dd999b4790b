//! The factor by which functions moved because shares sum to 1: where most of the cost stands.

use super::ENOUGH_FUNCTIONS;
use super::levels::StrataTest;

/// No function has more than this part of the say.
const SHARE_CAP: f64 = 0.05;
/// Tukey's constant of the biweight.
const BIWEIGHT: f64 = 4.685;
/// Standard deviation of a change that is none, on the log scale.
const STANDS_STILL: f64 = 0.01;
/// Modes closer than this are one.
const SAME_MODE: f64 = 1e-6;

/// ln of the normalization factors on which a change must hold.
#[derive(Clone, Debug)]
pub struct Scales {
    /// The deciding one first.
    pub ln_scales: Vec<f64>,
    /// Part of cost that stands still on each.
    pub masses: Vec<f64>,
    /// Variance of the deciding one; 0 in reports.
    pub variance: f64,
    /// Whether there are enough functions to say it.
    pub measured: bool,
}

impl Scales {
    /// The scale that decides.
    pub fn deciding(&self) -> f64 {
        self.ln_scales.first().copied().unwrap_or(0.0)
    }
}

/// A place at which much cost stands.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// ln of the ratio.
    pub at: f64,
    /// Part of cost.
    pub mass: f64,
}

/// One function's log ratio.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The log ratio.
    pub theta: f64,
    /// Its standard error.
    pub se: f64,
    /// Part of the samples.
    pub cost: f64,
}

/// All modes of the biweight of log ratios weighted by cost, deepest first (`location`). There is at least one function.
pub fn modes(functions: &[Moved]) -> Vec<Mode> {
    let all: f64 = functions.iter().map(|one| one.cost.min(SHARE_CAP)).sum();
    let weight = |one: &Moved| one.cost.min(SHARE_CAP) / all;
    let width = |one: &Moved| BIWEIGHT * one.se.hypot(STANDS_STILL);
    let inside = |one: &Moved, m: f64| (1.0 - ((one.theta - m) / width(one)).powi(2)).max(0.0);
    let climb = |start: f64| {
        let mut m = start;
        for _ in 0..100 {
            let (mut weights, mut weighted) = (0.0, 0.0);
            for one in functions {
                let w = inside(one, m).powi(2) * weight(one) / width(one).powi(2);
                weights += w;
                weighted += w * one.theta;
            }
            if weights <= 0.0 {
                break;
            }
            let next = weighted / weights;
            let there = (next - m).abs() < 1e-10;
            m = next;
            if there {
                break;
            }
        }
        m
    };
    let mut sorted: Vec<&Moved> = functions.iter().collect();
    sorted.sort_by(|one, other| one.theta.total_cmp(&other.theta));
    let mut starts: Vec<f64> = Vec::new();
    for twentieth in 1..20_u32 {
        let mut below = 0.0;
        let reached = sorted.iter().find(|one| {
            below += weight(one);
            below >= f64::from(twentieth) * 0.05
        });
        let start = reached.or_else(|| sorted.last()).map_or(0.0, |one| one.theta);
        if starts.last() != Some(&start) {
            starts.push(start);
        }
    }
    let mut found: Vec<Mode> = Vec::new();
    for start in starts {
        let at = climb(start);
        if found.iter().all(|mode| (mode.at - at).abs() > SAME_MODE) {
            let mass = functions.iter().map(|one| weight(one) * inside(one, at).powi(3)).sum();
            found.push(Mode { at, mass });
        }
    }
    found.sort_by(|one, other| other.mass.total_cmp(&one.mass));
    found
}

/// The admissible scales of the self counts of a cell (`scales`). `anchor` is the log ratio of the cost of everything
/// per request with its standard error, if it is known. At a look the deciding one has a variance, and that without the
/// function with most weight in it is admissible too, if it is far from it; so it is if there are `few` functions, where these
/// may have factors.
pub fn scales(test: &StrataTest, anchor: Option<(f64, f64)>, at_look: bool, few: bool) -> Scales {
    let in_both = |f: &usize| test.tested[*f] && test.counts[0][*f] > 0.0 && test.counts[1][*f] > 0.0;
    let moved = |f: usize| Moved { theta: test.theta[f], se: test.variance[f].sqrt(), cost: test.cost(f) };
    let functions: Vec<Moved> = (0..test.functions).filter(in_both).map(moved).collect();
    let of_few = few && test.tests < ENOUGH_FUNCTIONS;
    let are_enough = if of_few { functions.len() >= 4 } else { test.tests >= ENOUGH_FUNCTIONS && functions.len() >= 2 };
    if !are_enough {
        return Scales { ln_scales: vec![0.0], masses: vec![1.0], variance: 0.0, measured: false };
    }
    let mut chosen = admissible(&modes(&functions), anchor);
    let mut variance = 0.0;
    if let (Some(deciding), true) = (chosen.first().map(|mode| mode.at), at_look || of_few) {
        let weights: Vec<f64> = functions.iter().map(|one| weight_at(one, deciding)).collect();
        let all: f64 = weights.iter().sum();
        if all > 0.0 {
            let noise = |one: &Moved| one.se.powi(2) + STANDS_STILL.powi(2);
            variance = functions.iter().zip(&weights).map(|(one, weight)| (weight / all).powi(2) * noise(one)).sum();
        }
        let without = modes(&without_one(&functions, deciding));
        chosen.extend(without.first().filter(|mode| (mode.at - deciding).abs() >= 2.0 * STANDS_STILL));
    }
    Scales {
        ln_scales: chosen.iter().map(|mode| mode.at).collect(),
        masses: chosen.iter().map(|mode| mode.mass).collect(),
        variance,
        measured: true,
    }
}

/// The weight of a function in the mean around `m`, up to a factor.
fn weight_at(one: &Moved, m: f64) -> f64 {
    let width = BIWEIGHT * one.se.hypot(STANDS_STILL);
    (1.0 - ((one.theta - m) / width).powi(2)).max(0.0).powi(2) * one.cost.min(SHARE_CAP) / width.powi(2)
}

/// All functions but the last one of those with most weight in the mean around `m`.
fn without_one(functions: &[Moved], m: f64) -> Vec<Moved> {
    let mut most = (0, f64::NEG_INFINITY);
    for (place, one) in functions.iter().enumerate() {
        let weight = weight_at(one, m);
        if weight >= most.1 {
            most = (place, weight);
        }
    }
    functions.iter().enumerate().filter(|(place, _)| *place != most.0).map(|(_, one)| *one).collect()
}

/// Of all modes, deepest first, those that may be the one that stood still; the one that decides first.
pub fn admissible(modes: &[Mode], anchor: Option<(f64, f64)>) -> Vec<Mode> {
    let Some(deepest) = modes.first() else { return Vec::new() };
    let far = |mode: &&Mode| mode.mass >= 0.5 * deepest.mass && (mode.at - deepest.at).abs() >= 2.0 * STANDS_STILL;
    let mut chosen = vec![*deepest];
    chosen.extend(modes.iter().filter(far));
    let (Some((theta, se)), true) = (anchor, chosen.len() > 1) else { return chosen };
    let distance = |mode: &Mode| (mode.at + theta).abs() / se;
    let best = (0..chosen.len()).min_by(|&i, &j| distance(&chosen[i]).total_cmp(&distance(&chosen[j]))).unwrap_or(0);
    let mut kept = vec![chosen.remove(best)];
    kept.extend(chosen.into_iter().filter(|mode| distance(mode) < 2.5));
    kept
}
