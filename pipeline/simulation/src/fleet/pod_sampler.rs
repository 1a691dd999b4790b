//! The profiles of one pod, each of them at any time and in any order.

use std::sync::Arc;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::profile::{Folded, Profile, ProfileType, Requests, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::builder::Form;
use super::call_tree::FoldRoom;
use super::plan::Plan;
use super::poisson::Sampler;
use super::random::{Generator, LogNormal, Purpose, generator, next_normal};
use super::roster::{Life, Pod};

/// Draws the profiles of one pod. What it keeps is a cache: it changes how fast a profile comes, never what it holds.
#[derive(Debug)]
pub(super) struct PodSampler {
    /// Expected samples of a profile by slot (label, path) in a warm process, before drift and wandering.
    means: Vec<f64>,
    /// By slot, to which power of load a request costs more.
    powers: Vec<f64>,
    prepared: Option<(Conditions, Sampler)>,
    wandering: Wandering,
    since_start: SinceStart,
}

/// Counts of one process from the first period of its life on.
#[derive(Debug, Default)]
struct SinceStart {
    began: Nanos,
    /// Periods that `counts` holds: all before this one.
    next: u64,
    counts: Vec<u64>,
}

/// What the means of a profile depend on besides the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conditions {
    is_cold: bool,
    /// Age in tenths of the time constant with which processes settle, until they have.
    settling: Option<u32>,
    /// The period, where means change from one to the next.
    period: Option<u64>,
}

/// Room for the counts of one profile, to be used again.
#[derive(Debug, Default)]
pub(super) struct CountRoom {
    counts: Vec<u64>,
    fold: FoldRoom,
}

impl PodSampler {
    pub(super) fn new(plan: &Plan, pod: &Pod) -> Self {
        let spread = LogNormal::with_cv(plan.settings.pod_cv);
        let mut rng = generator(pod.key, Purpose::Functions, 0);
        let multipliers: Vec<f64> = plan.tree.names.iter().map(|_| spread.next(&mut rng)).collect();
        let cost = |function: usize| multipliers[function] * plan.hardware[pod.hardware][function];
        let weights: Vec<f64> = plan.tree.paths.iter().map(|path| path.share * path.leaf.map_or(1.0, cost)).collect();
        let labels = if plan.labels.is_empty() { pod.cohort.as_slice() } else { &plan.labels };
        let samples = plan.settings.samples_per_second * plan.settings.period.as_seconds() * pod.size;
        let each = samples / weights.iter().sum::<f64>() / length_float(labels.len());
        let mean = |label: &Cohort| {
            let effect = |leaf: Option<usize>| if pod.is_changed { plan.effect(pod, label, leaf) } else { 1.0 };
            let changed: Vec<f64> =
                plan.tree.paths.iter().zip(&weights).map(|(path, weight)| weight * effect(path.leaf) * each).collect();
            changed
        };
        let power = |label: &Cohort| -> Vec<f64> {
            plan.tree.paths.iter().map(|path| plan.power(pod, label, path.leaf)).collect()
        };
        Self {
            means: labels.iter().flat_map(mean).collect(),
            powers: labels.iter().flat_map(power).collect(),
            prepared: None,
            wandering: Wandering::default(),
            since_start: SinceStart::default(),
        }
    }

    /// The profile of a period, or none where the pod had no process throughout its window or nothing was seen.
    pub(super) fn profile(&mut self, plan: &Plan, pod: &Pod, period: u64, room: &mut CountRoom) -> Option<Profile> {
        let window = plan.window(pod, period);
        let life = pod.life(window).filter(|_| period < plan.periods)?;
        if plan.settings.cumulative {
            self.add_up(plan, pod, life, period);
        }
        self.draw(plan, pod, life, period, &mut room.counts);
        if plan.settings.cumulative {
            room.counts.iter_mut().zip(&self.since_start.counts).for_each(|(count, sum)| *count += sum);
        }
        if room.counts.iter().all(|&count| count == 0) {
            return None;
        }
        Some(Profile {
            identity: Arc::clone(&life.identity),
            profile_type: ProfileType::Cpu,
            temporality: if plan.settings.cumulative { Temporality::Cumulative } else { Temporality::Delta },
            window,
            requests: requests(plan, pod, window, period),
            names: Arc::clone(&plan.tree.names),
            samples: match plan.settings.form {
                Form::Folded if !plan.settings.cumulative => folded(plan, &life.identity.cohort, room),
                _ => Samples::Stacks(stacks(plan, &room.counts)),
            },
        })
    }

    /// The counts of one period.
    fn draw(&mut self, plan: &Plan, pod: &Pod, life: &Life, period: u64, counts: &mut Vec<u64>) {
        let mut rng = generator(pod.key, Purpose::Counts, period);
        counts.clear();
        counts.resize(self.means.len(), 0);
        self.prepare(plan, pod, life, period).draw(&plan.ladder, &mut rng, counts);
    }

    /// Adds up the counts of all periods of this life before this one.
    fn add_up(&mut self, plan: &Plan, pod: &Pod, life: &Life, period: u64) {
        if self.since_start.began != life.lived.start || self.since_start.next > period {
            self.since_start = SinceStart { began: life.lived.start, ..SinceStart::default() };
        }
        self.since_start.counts.resize(self.means.len(), 0);
        let mut of_period = Vec::new();
        for before in self.since_start.next..period {
            if pod.life(plan.window(pod, before)).is_some_and(|other| other.lived == life.lived) {
                self.draw(plan, pod, life, before, &mut of_period);
                self.since_start.counts.iter_mut().zip(&of_period).for_each(|(sum, count)| *sum += count);
            }
        }
        self.since_start.next = period;
    }

    fn prepare(&mut self, plan: &Plan, pod: &Pod, life: &Life, period: u64) -> &Sampler {
        let moment = plan.window(pod, period).midpoint();
        let of_all = plan.settings.drift > 0.0 || plan.settings.sway.is_some() || plan.settings.load.is_some();
        let changing = of_all || plan.settings.hop_cv > 0.0;
        let is_cold = moment < life.lived.start.plus(plan.settings.warm_up);
        let settling = settling_at(plan, moment.since(life.lived.start));
        let conditions = Conditions { is_cold, settling, period: changing.then_some(period) };
        let prepared = match self.prepared.take().filter(|(of, _)| *of == conditions) {
            Some(prepared) => prepared,
            None => (conditions, Sampler::new(&self.means_under(plan, pod, conditions, moment), &plan.ladder)),
        };
        &self.prepared.insert(prepared).1
    }

    fn means_under(&mut self, plan: &Plan, pod: &Pod, conditions: Conditions, moment: Nanos) -> Vec<f64> {
        let costs = self.costs(plan, pod, conditions, moment);
        let of_path = plan.tree.paths.iter().map(|path| path.leaf.map_or(1.0, |leaf| costs[leaf]));
        let mut means: Vec<f64> = self.means.iter().zip(of_path.cycle()).map(|(mean, cost)| mean * cost).collect();
        let ln_load = plan.ln_load(pod, moment);
        if ln_load != 0.0 {
            means.iter_mut().zip(&self.powers).for_each(|(mean, power)| *mean *= libm::exp(ln_load * (1.0 + power)));
        }
        means
    }

    /// By function, the cost under these conditions relative to a warm process at the start.
    fn costs(&mut self, plan: &Plan, pod: &Pod, conditions: Conditions, moment: Nanos) -> Vec<f64> {
        let mut costs = if conditions.is_cold { plan.cold.clone() } else { vec![1.0; plan.tree.names.len()] };
        if let (Some(tenths), Some((ln_more, _))) = (conditions.settling, plan.settings.settling) {
            let left = libm::exp(ln_more * libm::exp(-(f64::from(tenths) + 0.5) / 10.0));
            costs.iter_mut().zip(&plan.settles).filter(|(_, settles)| **settles).for_each(|(cost, _)| *cost *= left);
        }
        let Some(period) = conditions.period else { return costs };
        let passed = plan.part_passed(moment);
        let noise = LogNormal::with_cv(plan.settings.hop_cv);
        let wandering = self.wandering.at(plan, pod, period);
        for ((cost, drift), state) in costs.iter_mut().zip(&plan.drift).zip(wandering) {
            *cost *= libm::exp(drift * passed) * noise.at(*state);
        }
        costs.iter_mut().zip(plan.sway.costs(pod.build(), period)).for_each(|(cost, sway)| *cost *= sway);
        costs
    }
}

/// The age of a process in tenths of the time constant with which it settles, until seven time constants have passed.
fn settling_at(plan: &Plan, age: Nanos) -> Option<u32> {
    let (_, over) = plan.settings.settling?;
    let tenths = u32::try_from(age.0.saturating_mul(10) / over.0.max(1)).ok()?;
    (tenths < 70).then_some(tenths)
}

/// Where the costs of a pod's functions have wandered to: for each a stationary autoregressive process of order 1 with
/// standard normal values, one step a period.
#[derive(Debug, Default)]
struct Wandering {
    /// Steps made so far; 0 before the first.
    steps: u64,
    states: Vec<f64>,
}

impl Wandering {
    fn at(&mut self, plan: &Plan, pod: &Pod, period: u64) -> &[f64] {
        if self.steps > period + 1 {
            *self = Self::default();
        }
        self.states.resize(plan.tree.names.len(), 0.0);
        if plan.settings.hop_cv == 0.0 {
            return &self.states;
        }
        while self.steps <= period {
            let kept = if self.steps == 0 { 0.0 } else { plan.settings.hop_correlation };
            let fresh = libm::sqrt(1.0 - kept * kept);
            let mut rng = generator(pod.key, Purpose::HopNoise, self.steps);
            self.states.iter_mut().for_each(|state| *state = kept * *state + fresh * next_normal(&mut rng));
            self.steps += 1;
        }
        &self.states
    }
}

fn requests(plan: &Plan, pod: &Pod, window: TimeRange, period: u64) -> Option<Requests> {
    let rate = plan.settings.requests_per_second;
    let mean = rate * plan.settings.period.as_seconds() * pod.size * libm::exp(plan.ln_load(pod, window.midpoint()));
    let mut rng: Generator = generator(pod.key, Purpose::Requests, period);
    (rate > 0.0).then(|| Requests { count: plan.ladder.draw(mean, &mut rng), window })
}

fn stacks(plan: &Plan, counts: &[u64]) -> Vec<Stack> {
    let paths = plan.tree.paths.len();
    let mut stacks = Vec::new();
    for (label, counts) in counts.chunks(paths).enumerate() {
        let seen = plan.tree.paths.iter().zip(counts).filter(|(_, count)| **count > 0);
        stacks.extend(seen.map(|(path, &count)| Stack {
            frames: path.frames.clone(),
            count,
            cohort: plan.labels.get(label).cloned(),
            value: 0,
        }));
    }
    stacks
}

fn folded(plan: &Plan, own_cohort: &Cohort, room: &mut CountRoom) -> Samples {
    let (mut content, mut cohorts) = (0u128, Vec::new());
    for (label, counts) in room.counts.chunks(plan.tree.paths.len()).enumerate() {
        for (hash, &count) in plan.hashes[label].iter().zip(counts) {
            content = content.wrapping_add(hash.wrapping_mul(u128::from(count)));
        }
        let (samples, functions) = plan.tree.fold(counts, &mut room.fold);
        let cohort = plan.labels.get(label).unwrap_or(own_cohort).clone();
        if samples > 0 {
            cohorts.push(Folded { cohort, samples, functions });
        }
    }
    Samples::Folded { content, cohorts }
}
