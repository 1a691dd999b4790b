//! Nothing changed, but arms ran at different hours, on different machines, or across the boundary of a block: is
//! anything significant?
//!
//! [`REVERSED`] is a limitation of the definition, reported without a bound: if a pod takes most of its samples in
//! hours in which the other arm takes few, the residuals of head and base are weighted so differently that one
//! dispersion does not fit both. The reference programs have the same limitation.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::rows_of_cell;

use super::chance::Multipliers;
use super::figure::Figure;
use super::model::{Means, Noise, Pair, Pod, SAMPLES, contrast, pods, zipf};
use super::plain::ln_p_pooled;
use super::quiet::{figures, observed};
use super::row::{Chance, Row};
use crate::fleet::random::next_uniform;

/// Hours that a window of history spans.
const HOURS: usize = 4;
/// Kinds of machine.
const KINDS: usize = 2;
/// How much each function's cost differs from hour to hour, and from machine to machine.
const TILT_CV: f64 = 0.05;
/// The fraction of the head's pods on the newer machine; for the base it is the complement.
const NEWER: f64 = 0.75;

/// How load changes from the first hour to the last, around a mean of 1.
#[derive(Clone, Copy)]
struct Load {
    first: f64,
    last: f64,
}

/// The load of a canary that takes on more and more; the base's load is the reverse.
const RISING: Load = Load { first: 0.6, last: 1.6 };
/// From next to nothing to all.
const REVERSED: Load = Load { first: 0.2, last: 2.0 };

pub(super) fn rows() -> Vec<Row> {
    let stated = || vec![Figure::rate("P(any row called)"), Figure::mean("rows called a run")];
    vec![
        confounded(
            "aa-confounded",
            "40 v 760 pods, CV 10 %, over 4 hours and 2 kinds of machine whose costs differ by 5 %; the head's load rises from .6 to 1.6 as the base's falls, and 3/4 of it run on newer machines, 1/4 of the base",
            figures(0.10),
            RISING,
        ),
        confounded(
            "aa-reversed-load",
            "the same, but the load moves from .2 to 2 and back: a known limit, stated only",
            stated(),
            REVERSED,
        ),
        block_edge(),
    ]
}

/// The head runs at later hours and on newer machines than the base.
fn confounded(name: &'static str, simulates: &'static str, figures: Vec<Figure>, load: Load) -> Row {
    let shares = zipf();
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let noise = Noise::of(0.1);
        let tilts = Tilts::drawn(shares.len(), chance);
        let head = Arm::placed(pods(40, &shares, &noise, &mut chance.rng), NEWER, chance);
        let base = Arm::placed(pods(760, &shares, &noise, &mut chance.rng), 1.0 - NEWER, chance);
        let mut strata = Vec::new();
        for hour in 0..HOURS {
            for kind in 0..KINDS {
                let costs = tilts.of(hour, kind);
                let mut draw =
                    |arm: &Arm, part: f64| Means::of(&arm.by_kind[kind], SAMPLES * part, &costs).draw(&mut chance.rng);
                strata
                    .push(Pair { head: draw(&head, load.part(hour)), base: draw(&base, load.part(HOURS - 1 - hour)) });
            }
        }
        let contrast = contrast(shares.len(), &strata, head.pods_by_bucket(), base.pods_by_bucket());
        observed(&rows_of_cell(&contrast, None, 0.0).adjusted.ln_p, &ln_p_pooled(&strata))
    })
}

impl Load {
    /// The part of a window's samples that is taken in an hour.
    fn part(self, hour: usize) -> f64 {
        let weight = |hour: usize| self.first + (self.last - self.first) * length_float(hour) / length_float(HOURS - 1);
        weight(hour) / (0..HOURS).map(weight).sum::<f64>()
    }
}

/// What functions cost by hour, and by kind of machine.
struct Tilts {
    hours: Vec<Vec<f64>>,
    kinds: Vec<Vec<f64>>,
}

impl Tilts {
    fn drawn(functions: usize, chance: &mut Chance) -> Self {
        let tilt = Multipliers::with_cv(TILT_CV);
        let mut some =
            |count| (0..count).map(|_| (0..functions).map(|_| tilt.next(&mut chance.rng)).collect()).collect();
        Self { hours: some(HOURS), kinds: some(KINDS) }
    }

    fn of(&self, hour: usize, kind: usize) -> Vec<f64> {
        self.hours[hour].iter().zip(&self.kinds[kind]).map(|(hour, kind)| hour * kind).collect()
    }
}

/// The pods of one arm by kind of machine, each on one.
struct Arm {
    by_kind: [Vec<Pod>; KINDS],
}

impl Arm {
    fn placed(pods: Vec<Pod>, newer: f64, chance: &mut Chance) -> Self {
        let (first, second) = pods.into_iter().partition(|_| next_uniform(&mut chance.rng) >= newer);
        Self { by_kind: [first, second] }
    }

    fn pods_by_bucket(&self) -> BTreeMap<u16, u32> {
        let mut pods = BTreeMap::new();
        self.by_kind.iter().flatten().for_each(|pod| *pods.entry(pod.bucket).or_default() += 1);
        pods
    }
}

/// The window holds the end of one block and the beginning of another: the same pods in both.
fn block_edge() -> Row {
    let shares = zipf();
    let simulates = "6 cells of 5 v 30 pods, CV 50 %, in a window of 20 minutes of one block and 10 of the next";
    Row::new("aa-block-edge", simulates, figures(0.10), move |chance: &mut Chance| {
        let unchanged = vec![1.0; shares.len()];
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..6 {
            let mut arm = |count| pods(count, &shares, &Noise::of(0.5), &mut chance.rng);
            let (head, base) = (arm(5), arm(30));
            let mut draw = |pods: &[Pod], part: f64| Means::of(pods, SAMPLES * part, &unchanged).draw(&mut chance.rng);
            let strata = [2.0 / 3.0, 1.0 / 3.0].map(|part| Pair { head: draw(&head, part), base: draw(&base, part) });
            let contrast = contrast(shares.len(), &strata, strata[0].head.pods.clone(), strata[0].base.pods.clone());
            ours.extend(rows_of_cell(&contrast, None, 0.0).adjusted.ln_p);
            plain.extend(ln_p_pooled(&strata));
        }
        observed(&ours, &plain)
    })
}
