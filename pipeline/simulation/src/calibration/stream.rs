//! A fleet that counts on, hop by hop.
//!
//! If pods keep their costs, the counts of a bucket in a hop are Poisson numbers with means that never change, and
//! tables are prepared once. If the costs of every pod wander, means are computed at every hop from every pod.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::{Arms, Contrast, Side};

use super::chance::{Normal, poisson};
use super::model::{Means, Noise, Pair, Pod, Row, Table, contrast, pods, pods_by_bucket};
use crate::fleet::poisson::{Ladder, Sampler};
use crate::fleet::random::Generator;

/// Samples that the median pod gives in a hop: 10 s at 100 a second.
pub(super) const SAMPLES_A_HOP: f64 = 1_000.0;

static LADDER: LazyLock<Ladder> = LazyLock::new(Ladder::new);

/// How the costs of each function of each pod wander: stationary, autoregressive of order one, one step per hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wander {
    /// Coefficient of variation at any moment.
    pub(super) cv: f64,
    /// Correlation from one hop to the next, 0 to 1.
    pub(super) correlation: f64,
}

/// What a fleet is like, and for how long it is watched.
#[derive(Clone, Debug)]
pub(super) struct Design {
    pub(super) cells: usize,
    /// Pods in each cell.
    pub(super) pods: Arms<usize>,
    pub(super) shares: Vec<f64>,
    pub(super) noise: Arms<Noise>,
    pub(super) wander: Option<Wander>,
    /// What a function costs in the head, in which cells.
    pub(super) changed: Option<Changed>,
    pub(super) hops: u64,
    /// A time block begins at this hop: the hour of the day changes.
    pub(super) edge: Option<u64>,
}

/// The truth.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    pub(super) function: usize,
    pub(super) cells: Vec<usize>,
    pub(super) factor: f64,
}

/// The fleet of a run.
pub(super) struct Stream {
    cells: Vec<CellStream>,
    edge: Option<u64>,
    hop: u64,
}

struct CellStream {
    functions: usize,
    arms: Arms<ArmStream>,
    /// The blocks so far, one stratum each.
    blocks: Vec<Pair>,
}

impl Stream {
    /// A stream in which nothing has been counted.
    pub(super) fn new(design: &Design, rng: &mut Generator) -> Self {
        let unchanged = vec![1.0; design.shares.len()];
        let cell = |cell: usize, rng: &mut Generator| {
            let mut costs = Arms { head: unchanged.clone(), base: unchanged.clone() };
            if let Some(changed) = design.changed.as_ref().filter(|changed| changed.cells.contains(&cell)) {
                costs.head[changed.function] = changed.factor;
            }
            let arms = Arms::of(|side| ArmStream::new(design, side, &costs[side], rng));
            let blocks = vec![arms.as_ref().map(ArmStream::empty)];
            CellStream { functions: design.shares.len(), arms, blocks }
        };
        Self { cells: (0..design.cells).map(|number| cell(number, rng)).collect(), edge: design.edge, hop: 0 }
    }

    /// Counts one more hop.
    pub(super) fn advance(&mut self, rng: &mut Generator) {
        for cell in &mut self.cells {
            if self.edge == Some(self.hop) {
                cell.blocks.push(cell.arms.as_ref().map(ArmStream::empty));
            }
            if let Some(block) = cell.blocks.last_mut() {
                cell.arms.head.count(&mut block.head, rng);
                cell.arms.base.count(&mut block.base, rng);
            }
        }
        self.hop += 1;
    }

    /// What all hops so far have counted in each cell.
    pub(super) fn contrasts(&self) -> impl Iterator<Item = Contrast<'_>> {
        let pods = |cell: &CellStream| cell.arms.as_ref().map(|arm| arm.pods.clone());
        self.cells.iter().map(move |cell| contrast(cell.functions, &cell.blocks, pods(cell)))
    }

    /// The same, block by block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[Pair]> {
        self.cells.iter().map(|cell| cell.blocks.as_slice())
    }
}

/// The pods of one build in one cell.
struct ArmStream {
    pods: BTreeMap<u16, u32>,
    source: Source,
    /// What one bucket counts in the hop.
    hop: Vec<u64>,
}

enum Source {
    /// One sampler per bucket, ascending.
    Steady(Vec<Sampler>),
    Wandering(Wandering),
}

impl ArmStream {
    fn new(design: &Design, side: Side, costs: &[f64], rng: &mut Generator) -> Self {
        let pods = pods(design.pods[side], &design.shares, &design.noise[side], rng);
        let source = match design.wander {
            None => {
                let means = Means::of(&pods, SAMPLES_A_HOP, costs);
                Source::Steady(means.buckets.values().map(|bucket| Sampler::new(&bucket.means, &LADDER)).collect())
            }
            Some(wander) => Source::Wandering(Wandering::new(wander, &pods, costs, rng)),
        };
        Self { pods: pods_by_bucket(&pods), source, hop: vec![0; design.shares.len()] }
    }

    fn empty(&self) -> Table {
        let zero = || vec![0; self.hop.len()];
        let rows = self.pods.keys().map(|&bucket| Row::new(bucket, zero())).collect();
        Table { rows, pods: self.pods.clone(), hop_pairs: zero() }
    }

    fn count(&mut self, table: &mut Table, rng: &mut Generator) {
        for (index, row) in table.rows.iter_mut().enumerate() {
            self.hop.fill(0);
            match &mut self.source {
                Source::Steady(samplers) => samplers[index].draw(&LADDER, rng, &mut self.hop),
                Source::Wandering(wandering) => wandering.count(row.bucket, &mut self.hop, rng),
            }
            row.add_hop(&self.hop, &mut table.hop_pairs);
        }
    }
}

impl Row {
    /// Adds what the bucket counted in a hop, also to the pairs of its arm.
    fn add_hop(&mut self, hop: &[u64], pairs: &mut [u64]) {
        for ((count, pairs), &here) in self.counts.iter_mut().zip(pairs).zip(hop) {
            *count += here;
            *pairs += here * here.saturating_sub(1);
        }
        let samples: u64 = hop.iter().sum();
        self.samples += samples;
        self.hop_squares += float(samples) * float(samples);
    }
}

/// Pods whose costs wander, ascending by bucket.
struct Wandering {
    pods: Vec<WanderingPod>,
    kept: f64,
    fresh: f64,
    sigma: f64,
    normal: Normal,
    means: Vec<f64>,
}

struct WanderingPod {
    bucket: u16,
    /// Expected samples of a hop by function, without wandering.
    means: Vec<f64>,
    /// The current position of each: standard normal.
    states: Vec<f64>,
}

impl Wandering {
    fn new(wander: Wander, pods: &[Pod], costs: &[f64], rng: &mut Generator) -> Self {
        let normal = Normal::new();
        let mut pod = |pod: &Pod| WanderingPod {
            bucket: pod.bucket,
            means: pod
                .weights
                .iter()
                .zip(costs)
                .map(|(weight, cost)| SAMPLES_A_HOP * pod.size * weight * cost)
                .collect(),
            states: costs.iter().map(|_| normal.next(rng)).collect(),
        };
        let mut pods: Vec<WanderingPod> = pods.iter().map(&mut pod).collect();
        pods.sort_by_key(|pod| pod.bucket);
        let kept = wander.correlation;
        let (fresh, sigma) = (libm::sqrt(1.0 - kept * kept), libm::sqrt(libm::log1p(wander.cv * wander.cv)));
        Self { pods, kept, fresh, sigma, normal, means: vec![0.0; costs.len()] }
    }

    /// Counts a hop of one bucket, and makes a step.
    fn count(&mut self, bucket: u16, hop: &mut [u64], rng: &mut Generator) {
        self.means.fill(0.0);
        let first = self.pods.partition_point(|pod| pod.bucket < bucket);
        for pod in self.pods[first..].iter_mut().take_while(|pod| pod.bucket == bucket) {
            pod.add_to(&mut self.means, self.sigma);
            for state in &mut pod.states {
                *state = self.kept * *state + self.fresh * self.normal.next(rng);
            }
        }
        for (count, &mean) in hop.iter_mut().zip(&self.means) {
            *count = u64::from(poisson(mean, rng));
        }
    }
}

impl WanderingPod {
    /// Adds its expected counts at the current position.
    fn add_to(&self, sums: &mut [f64], sigma: f64) {
        let middle = 0.5 * sigma * sigma;
        for ((sum, mean), state) in sums.iter_mut().zip(&self.means).zip(&self.states) {
            *sum += mean * exp_near_zero(sigma * state - middle);
        }
    }
}

/// exp(x) to a relative 2e-11 for |x| < .35, seven standard deviations of a CV of 5 %; without branches, so that it vectorises.
#[inline]
fn exp_near_zero(x: f64) -> f64 {
    const INVERSE_FACTORIALS: [f64; 10] = [
        1.0,
        1.0,
        0.5,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5_040.0,
        1.0 / 40_320.0,
        1.0 / 362_880.0,
    ];
    INVERSE_FACTORIALS.iter().rev().fold(0.0, |sum, term| sum * x + term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::chance::generator_of;

    fn design(wander: Option<Wander>) -> Design {
        Design {
            cells: 2,
            pods: Arms { head: 3, base: 30 },
            shares: vec![0.5, 0.3, 0.2],
            noise: Arms { head: Noise::of(0.0), base: Noise::of(0.0) },
            wander,
            changed: None,
            hops: 0,
            edge: Some(200),
        }
    }

    /// Counts of the base of the first cell by function, after so many hops.
    fn counted(design: &Design, hops: u64) -> (Vec<u64>, usize) {
        let (_, mut rng) = generator_of(3, "stream", 0);
        let mut stream = Stream::new(design, &mut rng);
        (0..hops).for_each(|_| stream.advance(&mut rng));
        let blocks = stream.blocks().next().unwrap();
        (
            blocks
                .iter()
                .fold(vec![0; 3], |sums, pair| sums.iter().zip(pair.base.merged()).map(|(a, b)| a + b).collect()),
            blocks.len(),
        )
    }

    #[test]
    fn a_series_is_the_exponential() {
        for x in [-0.35, -0.05, 0.0, 0.1, 0.35] {
            assert!((exp_near_zero(x) / libm::exp(x) - 1.0).abs() < 2e-11, "{x}");
        }
    }

    #[test]
    fn steady_and_wandering_fleets_have_the_same_shares() {
        for wander in [None, Some(Wander { cv: 0.05, correlation: 0.9 })] {
            let (counts, blocks) = counted(&design(wander), 300);
            let [first, second, third] = counts[..] else { panic!("{counts:?}") };
            assert_eq!(blocks, 2, "the edge begins a block");
            let share = [first, second, third].map(|count| f64::from(u32::try_from(count).unwrap()));
            let share = share[1] / share.iter().sum::<f64>();
            // 9 million samples; wandering moves a share by 5 % / sqrt(30 pods x 300 / 19 hops) = .23 %.
            assert!((share - 0.3).abs() < 0.3 * 0.0069, "{share}");
        }
    }

    #[test]
    fn hops_add_up_to_what_clumping_is_measured_by() {
        let mut row = Row::new(0, vec![0, 0]);
        let mut pairs = vec![0, 0];
        for hop in [[3, 1], [0, 2]] {
            row.add_hop(&hop, &mut pairs);
        }
        assert_eq!((row.samples, row.counts, pairs), (6, vec![3, 3], vec![6, 2]));
        assert!((row.hop_squares - 20.0).abs() < 1e-12);
    }

    #[test]
    fn wandering_is_as_wide_and_as_slow_as_stated() {
        let (_, mut rng) = generator_of(3, "stream", 1);
        let pods = pods(1, &[1.0; 400], &Noise::of(0.0), &mut rng);
        let mut wandering = Wandering::new(Wander { cv: 0.05, correlation: 0.9 }, &pods, &[1.0; 400], &mut rng);
        let (mut squares, mut products, mut last) = (0.0, 0.0, wandering.pods[0].states.clone());
        for _ in 0..1000 {
            wandering.count(pods[0].bucket, &mut [0; 400], &mut rng);
            let now = &wandering.pods[0].states;
            squares += now.iter().map(|z| z * z).sum::<f64>();
            products += now.iter().zip(&last).map(|(a, b)| a * b).sum::<f64>();
            last.clone_from(now);
        }
        assert!((squares / 400_000.0 - 1.0).abs() < 0.03, "variance {}", squares / 400_000.0);
        assert!((products / squares - 0.9).abs() < 0.005, "correlation {}", products / squares);
    }
}
