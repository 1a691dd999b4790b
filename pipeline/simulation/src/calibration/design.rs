//! One simulated cell: how many pods, how they differ, and by what else than chance.
//!
//! Everything by which pods differ is in both arms, or belongs to the pods of one: nothing of it is a change of the build.

use std::collections::BTreeMap;

use fleetdiff_statistics::{Arms, Contrast, Side};

use super::chance::Multipliers;
use super::model::{
    FUNCTIONS, MANY_FUNCTIONS, Means, Noise, Pair, Pod, SAMPLES, contrast, pods, pods_by_bucket, shares,
};
use crate::fleet::random::{Generator, next_uniform};

/// One simulated cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) pods: Arms<usize>,
    pub(super) functions: usize,
    pub(super) noise: Arms<Noise>,
    pub(super) also: Also,
}

/// What pods differ by, beside the CV of each function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Also {
    /// Nothing.
    Nothing,
    /// A part of the functions differs between pods by CV 90 %.
    Restless(f64),
    /// Each pod has a factor of its own (sd .3 of its logarithm) for the same 30 % of the functions.
    FactorOfThePod,
    /// The first pod of the head has factors of its own (sd 1) in 20 % of its functions.
    DerangedHeadPod,
    /// Three pods share a node, which has a factor of its own (sd .15) for each function; nobody knows which.
    UnnamedNodes,
    /// The newer of two kinds of hardware, with a factor (sd .1) for each function.
    Hardware {
        /// The part of each arm's pods that runs on it.
        newer: Arms<f64>,
        /// Whether it is known which.
        is_labelled: bool,
    },
    /// An hour ends in the window, and in the next hour each function costs something else (sd .1).
    Hours {
        /// The part of each arm's samples that is taken in the next hour.
        next: Arms<f64>,
    },
}

/// ln of the factors of restless functions: CV 95 %.
const RESTLESS_SD: f64 = 0.8;
const POD_FACTOR: (f64, f64) = (0.3, 0.3);
const DERANGED: (f64, f64) = (0.2, 1.0);
const NODE_SIZE: usize = 3;
const NODE_SD: f64 = 0.15;
const HARDWARE_SD: f64 = 0.1;
const HOUR_SD: f64 = 0.1;

impl Cell {
    /// Pods that differ by this CV in each of 300 functions, and otherwise only in their size.
    pub(super) fn of(head: usize, base: usize, cv: f64) -> Self {
        let noise = Noise::of(cv);
        Self {
            pods: Arms { head, base },
            functions: FUNCTIONS,
            noise: Arms { head: noise, base: noise },
            also: Also::Nothing,
        }
    }

    /// 12 v 60 pods.
    pub(super) fn small(cv: f64) -> Self {
        Self::of(12, 60, cv)
    }

    /// 40 v 760 pods of a program with 500 functions.
    pub(super) fn large(cv: f64) -> Self {
        Self { functions: MANY_FUNCTIONS, ..Self::of(40, 760, cv) }
    }

    /// Sets what pods differ by beside that.
    pub(super) fn also(self, also: Also) -> Self {
        Self { also, ..self }
    }

    /// Sets the CV of the head's pods alone.
    pub(super) fn head_cv(mut self, cv: f64) -> Self {
        self.noise.head.cv = cv;
        self
    }

    /// Sets the size of the head's pods alone.
    pub(super) fn head_size(mut self, size: f64) -> Self {
        self.noise.head.size = size;
        self
    }

    /// Sets how much the sizes of all pods differ.
    pub(super) fn sizes(mut self, sd: f64) -> Self {
        (self.noise.head.size_sd, self.noise.base.size_sd) = (sd, sd);
        self
    }

    /// Costs that did not change.
    pub(super) fn unchanged(&self) -> Vec<f64> {
        vec![1.0; self.functions]
    }

    /// Draws a window in which function f costs `costs[f]` times as much in the head.
    pub(super) fn draw(&self, costs: &[f64], rng: &mut Generator) -> Drawn {
        let shares = shares(self.functions);
        let mut fleet = Arms::of(|side| pods(self.pods[side], &shares, &self.noise[side], rng));
        self.also.disturb(&mut fleet, rng);
        let costs = Arms { head: costs.to_vec(), base: self.unchanged() };
        let strata = match self.also {
            Also::Hardware { is_labelled: true, .. } => {
                [false, true].map(|newer| stratum(&fleet, |pod| pod.newer == newer, &costs, whole_window(), rng)).into()
            }
            Also::Hours { next } => {
                let tilt = factors(self.functions, HOUR_SD, rng);
                let tilted =
                    costs.as_ref().map(|costs| costs.iter().zip(&tilt).map(|(cost, tilt)| cost * tilt).collect());
                vec![
                    stratum(&fleet, |_| true, &costs, next.map(|part| 1.0 - part), rng),
                    stratum(&fleet, |_| true, &tilted, next, rng),
                ]
            }
            _ => vec![stratum(&fleet, |_| true, &costs, whole_window(), rng)],
        };
        Drawn { functions: self.functions, strata, pods: fleet.as_ref().map(|pods| pods_by_bucket(pods)) }
    }
}

impl Also {
    /// Changes what pods cost.
    fn disturb(self, fleet: &mut Arms<Vec<Pod>>, rng: &mut Generator) {
        let functions = fleet.head.first().map_or(0, |pod| pod.weights.len());
        match self {
            Self::Nothing | Self::Hours { .. } => {}
            Self::Restless(part) => {
                let (which, own) = (some(functions, part, rng), Multipliers::with_sd(RESTLESS_SD));
                both(fleet).for_each(|pod| pod.multiply(&which, || own.next(rng)));
            }
            Self::FactorOfThePod => {
                let (which, own) = (some(functions, POD_FACTOR.0, rng), Multipliers::with_sd(POD_FACTOR.1));
                both(fleet).for_each(|pod| {
                    let factor = own.next(rng);
                    pod.multiply(&which, || factor);
                });
            }
            Self::DerangedHeadPod => {
                let (which, own) = (some(functions, DERANGED.0, rng), Multipliers::with_sd(DERANGED.1));
                fleet.head.iter_mut().take(1).for_each(|pod| pod.multiply(&which, || own.next(rng)));
            }
            Self::UnnamedNodes => {
                for node in fleet.head.chunks_mut(NODE_SIZE).chain(fleet.base.chunks_mut(NODE_SIZE)) {
                    let of_the_node = factors(functions, NODE_SD, rng);
                    node.iter_mut().for_each(|pod| pod.multiply_each(&of_the_node));
                }
            }
            Self::Hardware { newer, .. } => {
                let of_the_newer = factors(functions, HARDWARE_SD, rng);
                for side in Side::BOTH {
                    for pod in &mut fleet[side] {
                        pod.newer = next_uniform(rng) < newer[side];
                        if pod.newer {
                            pod.multiply_each(&of_the_newer);
                        }
                    }
                }
            }
        }
    }
}

impl Pod {
    /// Multiplies the costs of some functions.
    fn multiply(&mut self, which: &[bool], mut by: impl FnMut() -> f64) {
        let chosen = self.weights.iter_mut().zip(which).filter(|(_, which)| **which);
        chosen.for_each(|(weight, _)| *weight *= by());
    }

    /// Multiplies the cost of each function.
    fn multiply_each(&mut self, by: &[f64]) {
        self.weights.iter_mut().zip(by).for_each(|(weight, by)| *weight *= by);
    }
}

fn both(fleet: &mut Arms<Vec<Pod>>) -> impl Iterator<Item = &mut Pod> {
    fleet.head.iter_mut().chain(&mut fleet.base)
}

/// Which functions are among a part of them, each by chance.
fn some(functions: usize, part: f64, rng: &mut Generator) -> Vec<bool> {
    (0..functions).map(|_| next_uniform(rng) < part).collect()
}

/// A factor for each function.
fn factors(functions: usize, sd: f64, rng: &mut Generator) -> Vec<f64> {
    let factor = Multipliers::with_sd(sd);
    (0..functions).map(|_| factor.next(rng)).collect()
}

const fn whole_window() -> Arms<f64> {
    Arms { head: 1.0, base: 1.0 }
}

/// The counts of those pods, in a part of the window.
fn stratum(
    fleet: &Arms<Vec<Pod>>,
    of: impl Fn(&Pod) -> bool,
    costs: &Arms<Vec<f64>>,
    part: Arms<f64>,
    rng: &mut Generator,
) -> Pair {
    Arms::of(|side| {
        let pods = fleet[side].iter().filter(|pod| of(pod));
        Means::of(pods, SAMPLES * part[side], &costs[side]).draw(rng)
    })
}

/// A window of a simulated cell.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    functions: usize,
    /// One or two.
    pub(super) strata: Vec<Pair>,
    /// Pods by bucket.
    pods: Arms<BTreeMap<u16, u32>>,
}

impl Drawn {
    /// The input of the tests.
    pub(super) fn contrast(&self) -> Contrast<'_> {
        contrast(self.functions, &self.strata, self.pods.clone())
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::number::length_float;

    use super::*;
    use crate::calibration::chance::generator_of;

    /// The mean over functions of the variance between pods of ln of a function's multiplier.
    fn spread(pods: &[Pod], of: impl Fn(usize) -> bool) -> f64 {
        let shares = shares(FUNCTIONS);
        let variances = (0..FUNCTIONS).filter(|&function| of(function)).map(|function| {
            let logs: Vec<f64> = pods.iter().map(|pod| (pod.weights[function] / shares[function]).ln()).collect();
            let count = length_float(logs.len());
            let mean = logs.iter().sum::<f64>() / count;
            logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (count - 1.0)
        });
        let all: Vec<f64> = variances.collect();
        all.iter().sum::<f64>() / length_float(all.len())
    }

    fn disturbed(also: Also) -> Arms<Vec<Pod>> {
        let (_, mut rng) = generator_of(7, "disturbed", 0);
        let shares = shares(FUNCTIONS);
        let mut fleet = Arms::of(|_| pods(90, &shares, &Noise::of(0.1), &mut rng));
        also.disturb(&mut fleet, &mut rng);
        fleet
    }

    #[test]
    fn shares_are_four_heavy_ones_and_a_tail() {
        let shares = shares(FUNCTIONS);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((shares[0] - 0.18).abs() < 1e-12 && (shares[super::super::model::ONE_PERCENT] - 0.01).abs() < 0.001);
    }

    #[test]
    fn pods_differ_by_what_is_stated() {
        let own = libm::log1p(0.01);
        let near = |seen: f64, expected: f64| assert!((seen / expected - 1.0).abs() < 0.1, "{seen}, not {expected}");
        near(spread(&disturbed(Also::Nothing).head, |_| true), own);
        near(spread(&disturbed(Also::FactorOfThePod).head, |_| true), own + 0.3 * 0.09);
        near(spread(&disturbed(Also::UnnamedNodes).base, |_| true), own + 0.0225);
        near(spread(&disturbed(Also::Restless(1.0)).base, |_| true), own + 0.64);
        let newer = Arms { head: 0.5, base: 0.0 };
        let fleet = disturbed(Also::Hardware { newer, is_labelled: false });
        near(spread(&fleet.base, |_| true), own);
        assert!(spread(&fleet.head, |_| true) > own + 0.002, "two kinds");
        let deranged = disturbed(Also::DerangedHeadPod);
        near(spread(&deranged.head[1..], |_| true), own);
        near(spread(&deranged.base, |_| true), own);
        assert!(spread(&deranged.head[..9], |_| true) > own + 0.01, "one of nine");
    }
}
