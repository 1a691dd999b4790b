//! Load scaling: does a function cost more per request when there are more requests?
//!
//! The estimand is the elasticity beta of samples per request with respect to load: 0 if the cost of a request stays the same, .3 if
//! each costs 23 % more at twice the load (2^.3), -1 for work that does not depend on requests at all. Shares cannot show this:
//! one function of fixed cost makes the shares of all others move with load.
//!
//! | what | how |
//! |---|---|
//! | load of an interval | requests a pod, over the pods that served in it, as a logarithm |
//! | model | samples of a pod in an interval have mean requests x exp(a_pod + beta load): each pod has a level of its own |
//! | estimate | the Poisson score equation, by Newton's method; it assumes no Poisson law, only that mean |
//! | error | the scores of pods and of blocks of time, added, less what both count (Cameron, Gelbach & Miller 2011); at least the larger of both |
//! | degrees of freedom | the smaller of pods - 1 and blocks - 2 |
//! | test | of abs(beta) <= a band, as TREAT (McCarthy & Smyth 2009) |
//!
//! Blocks are taken as independent. If what a function costs moves by itself, for all pods at once and for longer than a block, the error
//! is too small: with a CV of 2 % over two minutes nothing is lost (`fleetdiff calibrate`, rows `load...`), with 15 % most runs have a
//! false elasticity. Whatever else changes with time looks like load if load only rose or only fell; whether load can be told from time is
//! [`Load::withheld`]. What makes the estimate wrong beyond that: requests of another kind at peak, and intervals so short that a
//! request is served in one and its samples are taken in the next.

use crate::median::median;
use crate::minimum_effect::outside_band;
use crate::number::length;
use crate::tails::{F1Tail, t_quantile};

/// An elasticity within this band around 0 is none.
pub const BAND: f64 = 0.05;
/// The load must have spanned this factor between blocks.
pub const LEAST_SPAN: f64 = 1.5;
/// The most blocks of time; longer ones are less alike.
const BLOCKS: u64 = 15;
/// The fewest blocks.
const LEAST_BLOCKS: usize = 6;
/// The fewest pods.
const LEAST_PODS: usize = 3;
/// A fall (or rise) of load counts beside the opposite one from this part of it on.
const BACK: f64 = 0.5;
/// Newton's method ends with a step this small.
const CLOSE: f64 = 1e-12;
/// An elasticity beyond this is no elasticity: all samples are at one end of the load.
const FARTHEST: f64 = 20.0;

/// Requests of the pods in an interval of time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadInterval {
    /// When: number of the interval, ascending. Gaps are time too.
    pub number: u64,
    /// Requests of each pod; 0 of a pod that served none, whose samples are then left out.
    pub requests: Vec<f64>,
}

/// The load of one build in one cell: what the elasticities of all functions have in common.
#[derive(Clone, Debug)]
pub struct Load {
    pods: usize,
    intervals: Vec<LoadInterval>,
    /// ln of the load of each interval, less the median.
    ln_load: Vec<f64>,
    /// The block of each interval, ascending from 0.
    block: Vec<usize>,
    /// The mean of `ln_load` in each block.
    of_block: Vec<f64>,
}

/// Why no elasticity can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Withheld {
    /// Fewer than three pods served.
    FewPods,
    /// Fewer than six blocks of time.
    FewBlocks,
    /// The load of blocks differs by less than a factor of [`LEAST_SPAN`]; this is the factor.
    LoadSpanTooSmall(f64),
    /// Load only rose, or only fell, or nearly: time has done the same.
    LoadIsTime,
}

/// A slope with its error: an elasticity, or a difference of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub df: f64,
}

impl Load {
    /// From intervals in ascending order, each with the requests of the same pods in the same order. Intervals without any request
    /// are left out.
    #[must_use]
    pub fn of(intervals: impl IntoIterator<Item = LoadInterval>) -> Self {
        let intervals: Vec<_> = intervals.into_iter().filter(|one| serving(one) > 0).collect();
        let load = |one: &LoadInterval| libm::log(one.requests.iter().sum::<f64>() / length(serving(one)));
        let loads: Vec<f64> = intervals.iter().map(load).collect();
        let middle = median(&loads);
        let ln_load: Vec<f64> = loads.iter().map(|load| load - middle).collect();
        let ends = || intervals.first().zip(intervals.last()).map(|(first, last)| (first.number, last.number));
        let each = ends().map_or(1, |(first, last)| (last - first + 1).div_ceil(BLOCKS));
        let first = ends().map_or(0, |(first, _)| first);
        let mut places: Vec<u64> = intervals.iter().map(|one| (one.number - first) / each).collect();
        let mut distinct = places.clone();
        distinct.dedup();
        let block = places.drain(..).map(|place| distinct.partition_point(|&other| other < place)).collect();
        let mut new = Self { pods: 0, intervals, ln_load, block, of_block: vec![0.0; distinct.len()] };
        let pods = new.intervals.first().map_or(0, |one| one.requests.len());
        new.pods = (0..pods).filter(|&pod| new.intervals.iter().any(|one| one.requests[pod] > 0.0)).count();
        new.of_block = new.means();
        new
    }

    /// Why elasticities on this load say nothing; `None` if they do.
    #[must_use]
    pub fn withheld(&self) -> Option<Withheld> {
        let (rise, fall) = (greatest_rise(self.of_block.iter()), greatest_rise(self.of_block.iter().rev()));
        match rise.max(fall) {
            _ if self.pods < LEAST_PODS => Some(Withheld::FewPods),
            _ if self.of_block.len() < LEAST_BLOCKS => Some(Withheld::FewBlocks),
            span if span < libm::log(LEAST_SPAN) => Some(Withheld::LoadSpanTooSmall(libm::exp(span))),
            span if rise.min(fall) < BACK * span => Some(Withheld::LoadIsTime),
            _ => None,
        }
    }

    /// The factor between the blocks of highest and lowest load; 1 without any.
    #[must_use]
    pub fn span(&self) -> f64 {
        let rise = greatest_rise(self.of_block.iter()).max(greatest_rise(self.of_block.iter().rev()));
        libm::exp(rise)
    }

    /// The numbers of the third of intervals with the lowest load, and of the third with the highest.
    #[must_use]
    pub fn thirds(&self) -> (Vec<u64>, Vec<u64>) {
        let mut order: Vec<usize> = (0..self.intervals.len()).collect();
        order.sort_by(|&a, &b| self.ln_load[a].total_cmp(&self.ln_load[b]).then(a.cmp(&b)));
        let third = order.len() / 3;
        let numbers = |places: &[usize]| places.iter().map(|&place| self.intervals[place].number).collect();
        (numbers(&order[..third]), numbers(&order[order.len() - third..]))
    }

    /// The elasticity of a function whose samples by interval number and pod `samples` gives; `None` if it has none, or all of them at one
    /// end of the load.
    ///
    /// Checked against statsmodels (`scaling.json`) to 1e-8. Costs intervals x pods for each of some five steps.
    #[must_use]
    pub fn elasticity(&self, samples: impl Fn(u64, usize) -> f64) -> Option<Slope> {
        let pods: Vec<Pod> = (0..self.intervals.first()?.requests.len()).map(|pod| self.pod(pod, &samples)).collect();
        let beta = self.root(&pods)?;
        let growth = self.growth(beta);
        let (mut information, mut of_pods, mut of_both) = (0.0, 0.0, 0.0);
        let mut of_blocks = vec![0.0; self.of_block.len()];
        for pod in pods.iter().filter(|pod| pod.samples > 0.0) {
            let at = self.moments(pod, &growth);
            information += pod.samples * at.variance;
            let mut scores = vec![0.0; self.of_block.len()];
            for &(place, requests, samples) in &pod.served {
                let expected = pod.samples * requests * growth[place] / at.sum;
                scores[self.block[place]] += (samples - expected) * (self.ln_load[place] - at.mean);
            }
            of_pods += square(scores.iter().sum());
            of_both += scores.iter().copied().map(square).sum::<f64>();
            of_blocks.iter_mut().zip(&scores).for_each(|(sum, score)| *sum += score);
        }
        let (clusters, blocks) = (length(self.pods), length(self.of_block.len()));
        let of_pods = of_pods * clusters / (clusters - 1.0);
        let of_blocks = of_blocks.into_iter().map(square).sum::<f64>() * blocks / (blocks - 2.0);
        let variance = (of_pods + of_blocks - of_both).max(of_pods).max(of_blocks);
        let error = libm::sqrt(variance) / information;
        let df = (clusters - 1.0).min(blocks - 2.0);
        (information > 0.0 && error.is_finite() && error > 0.0 && df >= 1.0).then_some(Slope { value: beta, error, df })
    }

    fn pod(&self, pod: usize, samples: &impl Fn(u64, usize) -> f64) -> Pod {
        let served = self.intervals.iter().enumerate().filter(|(_, one)| one.requests[pod] > 0.0);
        let served: Vec<_> = served.map(|(place, one)| (place, one.requests[pod], samples(one.number, pod))).collect();
        Pod { samples: served.iter().map(|(_, _, samples)| samples).sum(), served }
    }

    /// The root of the score: it falls with beta, so that Newton's steps, halved where they go too far, find it.
    fn root(&self, pods: &[Pod]) -> Option<f64> {
        let (mut beta, mut low, mut high) = (0.0, -FARTHEST, FARTHEST);
        for _ in 0..100 {
            let (score, information) = self.score(pods, beta);
            if information <= 0.0 || information.is_nan() {
                return None;
            }
            if score > 0.0 {
                low = beta
            } else {
                high = beta
            }
            let newton = beta + score / information;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - beta).abs() <= CLOSE {
                return (next.abs() < FARTHEST - 1.0).then_some(next);
            }
            beta = next;
        }
        (beta.abs() < FARTHEST - 1.0).then_some(beta)
    }

    fn score(&self, pods: &[Pod], beta: f64) -> (f64, f64) {
        let growth = self.growth(beta);
        let (mut score, mut information) = (0.0, 0.0);
        for pod in pods.iter().filter(|pod| pod.samples > 0.0) {
            let at = self.moments(pod, &growth);
            let seen: f64 = pod.served.iter().map(|&(place, _, samples)| samples * self.ln_load[place]).sum();
            score += seen - pod.samples * at.mean;
            information += pod.samples * at.variance;
        }
        (score, information)
    }

    /// What a request costs in each interval, relative to the median load.
    fn growth(&self, beta: f64) -> Vec<f64> {
        self.ln_load.iter().map(|load| libm::exp(beta * load)).collect()
    }

    /// How the samples of a pod are expected to lie over the load.
    fn moments(&self, pod: &Pod, growth: &[f64]) -> Moments {
        let weights = || pod.served.iter().map(|&(place, requests, _)| (place, requests * growth[place]));
        let sum: f64 = weights().map(|(_, weight)| weight).sum();
        let mean = weights().map(|(place, weight)| weight * self.ln_load[place]).sum::<f64>() / sum;
        let variance = weights().map(|(place, weight)| weight * square(self.ln_load[place] - mean)).sum::<f64>() / sum;
        Moments { sum, mean, variance }
    }

    fn means(&self) -> Vec<f64> {
        let mut sums = vec![(0.0, 0usize); self.of_block.len()];
        for (&block, load) in self.block.iter().zip(&self.ln_load) {
            sums[block].0 += load;
            sums[block].1 += 1;
        }
        sums.into_iter().map(|(sum, number)| sum / length(number)).collect()
    }
}

/// One pod's samples of a function.
struct Pod {
    samples: f64,
    /// Place of each interval in which it served, its requests and its samples.
    served: Vec<(usize, f64, f64)>,
}

struct Moments {
    /// Of requests x exp(beta load).
    sum: f64,
    /// Of ln load, weighted by that.
    mean: f64,
    variance: f64,
}

impl Slope {
    /// This slope less another one, of other pods: does the new build scale worse? Both see the same time, so that what moves both
    /// at once counts twice in the error, which is then too large, not too small.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let (one, two) = (square(self.error), square(other.error));
        let df = square(one + two) / (square(one) / self.df + square(two) / other.df);
        Self { value: self.value - other.value, error: libm::sqrt(one + two), df }
    }

    /// ln p of a slope of at most `band` in either direction.
    #[must_use]
    pub fn ln_p(self, band: f64) -> f64 {
        let tail = F1Tail::new(self.df);
        let at = |end: f64| tail.ln_tail(square((self.value - end) / self.error));
        outside_band(self.value, band, at(band), at(-band))
    }

    /// The interval of this level, for example .95.
    #[must_use]
    pub fn interval(self, level: f64) -> (f64, f64) {
        let reach = t_quantile(level, self.df) * self.error;
        (self.value - reach, self.value + reach)
    }
}

/// Pods that served in an interval.
fn serving(one: &LoadInterval) -> usize {
    one.requests.iter().filter(|&&requests| requests > 0.0).count()
}

/// The greatest rise from a value to a later one.
fn greatest_rise<'v>(values: impl Iterator<Item = &'v f64>) -> f64 {
    let (mut least, mut rise) = (f64::INFINITY, 0.0_f64);
    for &value in values {
        least = least.min(value);
        rise = rise.max(value - least);
    }
    rise
}

fn square(value: f64) -> f64 {
    value * value
}
