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
//! | error between pods | the scores of pods (Liang & Zeger 1986) |
//! | error over time | what a function costs drifts for all pods at once. How much, each function shows by its own scores; how long that lasts, all functions show together: the correlation rho of one interval with the next, of what counting does not explain, corrected for the fit (Kendall 1954). The drift then counts (1 + rho) / (1 - rho) times (a first-order autoregression) |
//! | degrees of freedom | the smaller of pods - 1 and the intervals that rho leaves |
//! | test | of abs(beta) <= a band, as TREAT (McCarthy & Smyth 2009) |
//!
//! What changes with time anyway looks like load if load only rose or only fell; whether load can be told from time is
//! [`Load::withheld`]. What makes the estimate wrong beyond that: requests of another kind at peak, functions that drift for far longer
//! than most, and intervals so short that a request is served in one and its samples are taken in the next.

use std::collections::BTreeMap;

use crate::median::median;
use crate::minimum_effect::outside_band;
use crate::number::length;
use crate::tails::{F1Tail, t_quantile};

/// An elasticity within this band around 0 is none.
pub const BAND: f64 = 0.05;
/// The load must have spanned this factor between blocks.
pub const LEAST_SPAN: f64 = 1.5;
/// Blocks of time in which the load is averaged to see its course.
const BLOCKS: u64 = 15;
/// The fewest intervals.
pub const LEAST_INTERVALS: usize = 12;
/// The fewest pods.
pub const LEAST_PODS: usize = 3;
/// A fall (or rise) of load counts beside the opposite one from this part of it on.
const BACK: f64 = 0.5;
/// Newton's method ends with a step this small.
const CLOSE: f64 = 1e-12;
/// An elasticity beyond this is no elasticity: all samples are at one end of the load.
const FARTHEST: f64 = 20.0;
/// Information of less than this per sample is rounding.
const NOTHING: f64 = 1e-12;
/// A function with fewer samples says nothing of how long drift lasts.
const ENOUGH: f64 = 200.0;
/// The longest that drift is taken to last.
const MOST_PERSISTENCE: f64 = 0.95;
/// Fewer degrees of freedom carry no test.
pub const LEAST_DF: f64 = 2.0;

/// Requests of the pods in an interval of time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadInterval {
    /// When: number of the interval, ascending. Gaps are time too.
    pub number: u64,
    /// Requests of each pod, or of pods that share a bucket; 0 where none were served: the samples there are then left out.
    pub requests: Vec<f64>,
    /// Pods that served; where pods share a bucket, more than there are buckets with requests.
    pub serving: f64,
}

/// The load of one build in one cell: what the elasticities of all functions have in common.
#[derive(Clone, Debug)]
pub struct Load {
    pods: usize,
    /// Those with requests, and the place of each among all that were given.
    intervals: Vec<(usize, LoadInterval)>,
    /// ln of the load of each interval, less the median.
    ln_load: Vec<f64>,
    /// The mean of `ln_load` in each block of time.
    of_block: Vec<f64>,
}

/// Why no elasticity can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Withheld {
    /// Fewer than three pods served.
    FewPods,
    /// Fewer than twelve intervals.
    FewIntervals,
    /// The load of blocks differs by less than a factor of [`LEAST_SPAN`]; this is the factor.
    LoadSpanTooSmall(f64),
    /// Load only rose, or only fell, or nearly: time has done the same.
    LoadIsTime,
}

/// The elasticities of functions on one load.
#[derive(Clone, Debug)]
pub struct Elasticities {
    /// Of each function; `None` where it has no samples, all of them at one end of the load, or where `df` are below 2.
    pub slopes: Vec<Option<Slope>>,
    /// How strongly what functions cost is correlated from one interval to the next, 0 to .95.
    pub persistence: f64,
    /// Degrees of freedom: few of few pods, and where drift lasts so long that the recording holds little of it.
    pub df: f64,
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
        let intervals: Vec<_> = intervals.into_iter().enumerate().filter(|(_, one)| one.serving > 0.0).collect();
        let load = |one: &LoadInterval| libm::log(one.requests.iter().sum::<f64>() / one.serving);
        let loads: Vec<f64> = intervals.iter().map(|(_, one)| load(one)).collect();
        let middle = median(&loads);
        let ln_load: Vec<f64> = loads.iter().map(|load| load - middle).collect();
        let pods = intervals.first().map_or(0, |(_, one)| one.requests.len());
        let pods = (0..pods).filter(|&pod| intervals.iter().any(|(_, one)| one.requests[pod] > 0.0)).count();
        let of_block = means_of_blocks(&intervals, &ln_load);
        Self { pods, intervals, ln_load, of_block }
    }

    /// Why elasticities on this load say nothing; `None` if they do.
    #[must_use]
    pub fn withheld(&self) -> Option<Withheld> {
        let (rise, fall) = self.course();
        match rise.max(fall) {
            _ if self.pods < LEAST_PODS => Some(Withheld::FewPods),
            _ if self.intervals.len() < LEAST_INTERVALS => Some(Withheld::FewIntervals),
            span if span < libm::log(LEAST_SPAN) => Some(Withheld::LoadSpanTooSmall(libm::exp(span))),
            span if rise.min(fall) < BACK * span => Some(Withheld::LoadIsTime),
            _ => None,
        }
    }

    /// The factor between the blocks of highest and lowest load; 1 without any.
    #[must_use]
    pub fn span(&self) -> f64 {
        let (rise, fall) = self.course();
        libm::exp(rise.max(fall))
    }

    /// The greatest rise of ln load from a block to a later one, and the greatest fall.
    fn course(&self) -> (f64, f64) {
        (greatest_rise(self.of_block.iter()), greatest_rise(self.of_block.iter().rev()))
    }

    /// The third of intervals with the lowest load, and the third with the highest: their places among all that were given.
    #[must_use]
    pub fn thirds(&self) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.intervals.len()).collect();
        order.sort_by(|&a, &b| self.ln_load[a].total_cmp(&self.ln_load[b]).then(a.cmp(&b)));
        let third = order.len() / 3;
        let given = |places: &[usize]| places.iter().map(|&place| self.intervals[place].0).collect();
        (given(&order[..third]), given(&order[order.len() - third..]))
    }

    /// The elasticities of so many functions, whose samples by function, place of the interval among all that were given, and pod
    /// `samples` gives; the first `telling` of them show how long drift lasts.
    ///
    /// Checked against statsmodels and NumPy (`scaling.json`) to 1e-7. Costs intervals x pods for each function and each of some five steps.
    #[must_use]
    pub fn elasticities(
        &self,
        functions: usize,
        telling: usize,
        samples: impl Fn(usize, usize, usize) -> f64,
    ) -> Elasticities {
        let fitted = |function| self.fit(&|given, pod| samples(function, given, pod));
        let fits: Vec<Option<Fit>> = (0..functions).map(fitted).collect();
        let persistence = self.persistence(&fits[..telling.min(functions)]);
        let lasting = (1.0 + persistence) / (1.0 - persistence);
        let intervals = length(self.intervals.len());
        let left = intervals - 2.0 * lasting;
        let squares = square(persistence);
        let df = (left * (1.0 - squares) / (1.0 + squares)).min(length(self.pods) - 1.0);
        let slope = |fit: &Fit| {
            let drift = (fit.over_time * intervals / left - fit.information).max(0.0) * lasting;
            let variance = fit.between_pods.max(fit.information) + drift;
            let error = libm::sqrt(variance) / fit.information;
            let is_known = error.is_finite() && error > 0.0 && df >= LEAST_DF && left > 0.0;
            is_known.then_some(Slope { value: fit.beta, error, df })
        };
        Elasticities { slopes: fits.iter().map(|fit| slope(fit.as_ref()?)).collect(), persistence, df }
    }

    /// How strongly what counting does not explain is correlated from one interval to the next, over all functions.
    fn persistence(&self, fits: &[Option<Fit>]) -> f64 {
        let telling: Vec<&Fit> = fits.iter().flatten().filter(|fit| fit.samples >= ENOUGH).collect();
        let (functions, intervals) = (length(telling.len()), length(self.intervals.len()));
        let mean = |of: fn(&Fit) -> f64| telling.iter().map(|&fit| of(fit)).sum::<f64>() / functions;
        let (excess, next) = (mean(|fit| fit.excess), mean(|fit| fit.next));
        // Of counting alone the excess has this standard deviation.
        if telling.is_empty() || excess <= 2.0 * libm::sqrt(2.0 / (intervals * functions)) {
            return 0.0;
        }
        // The fit takes a level and a slope out of each function.
        ((next / excess + 2.0 / intervals) / (1.0 - 4.0 / intervals)).clamp(0.0, MOST_PERSISTENCE)
    }

    /// Fits one function; `None` if it has no samples, or all of them at one end of the load.
    fn fit(&self, samples: &impl Fn(usize, usize) -> f64) -> Option<Fit> {
        let pods: Vec<Pod> = (0..self.intervals.first()?.1.requests.len()).map(|pod| self.pod(pod, samples)).collect();
        let beta = self.root(&pods)?;
        let growth = self.growth(beta);
        let mut fit = Fit { beta, ..Fit::default() };
        let mut each = vec![OfInterval::default(); self.intervals.len()];
        for pod in pods.iter().filter(|pod| pod.samples > 0.0) {
            let at = self.moments(pod, &growth);
            let mut score = 0.0;
            for &(place, requests, samples) in &pod.served {
                let (expected, off) = (pod.samples * requests * growth[place] / at.sum, self.ln_load[place] - at.mean);
                each[place].add(samples, expected, off);
                score += (samples - expected) * off;
            }
            fit.samples += pod.samples;
            fit.information += pod.samples * at.variance;
            fit.between_pods += square(score);
        }
        let (pods, intervals) = (length(self.pods), length(self.intervals.len()));
        let clusters = pods / (pods - 1.0);
        fit.between_pods *= clusters;
        fit.over_time = each.iter().map(|interval| square(interval.score)).sum();
        let relative: Vec<f64> = each.iter().map(OfInterval::relative).collect();
        fit.excess = relative.iter().copied().map(square).sum::<f64>() / (intervals - 2.0) - 1.0;
        let neighbours =
            (1..each.len()).filter(|&place| self.intervals[place].1.number == self.intervals[place - 1].1.number + 1);
        let products: Vec<f64> = neighbours.map(|place| relative[place] * relative[place - 1]).collect();
        fit.next = products.iter().sum::<f64>() / length(products.len()).max(1.0);
        (fit.information > 0.0).then_some(fit)
    }

    fn pod(&self, pod: usize, samples: &impl Fn(usize, usize) -> f64) -> Pod {
        let served = self.intervals.iter().enumerate().filter(|(_, (_, one))| one.requests[pod] > 0.0);
        let served: Vec<_> =
            served.map(|(place, (given, one))| (place, one.requests[pod], samples(*given, pod))).collect();
        let at_load = served.iter().map(|&(place, _, samples)| samples * self.ln_load[place]).sum();
        Pod { samples: served.iter().map(|(_, _, samples)| samples).sum(), at_load, served }
    }

    /// The root of the score: it falls with beta, so that Newton's steps, halved where they go too far, find it.
    fn root(&self, pods: &[Pod]) -> Option<f64> {
        let (mut beta, mut low, mut high) = (0.0, -FARTHEST, FARTHEST);
        let samples: f64 = pods.iter().map(|pod| pod.samples).sum();
        // Each pod with samples has served in one interval only, or the load never moved.
        if self.score(pods, 0.0).1 <= NOTHING * samples {
            return None;
        }
        for _ in 0..100 {
            let (score, information) = self.score(pods, beta);
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
            score += pod.at_load - pod.samples * at.mean;
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
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for &(place, requests, _) in &pod.served {
            let (weight, load) = (requests * growth[place], self.ln_load[place]);
            sum += weight;
            first += weight * load;
            second += weight * load * load;
        }
        let mean = first / sum;
        // Loads are centred, so that little is lost to rounding.
        Moments { sum, mean, variance: (second / sum - square(mean)).max(0.0) }
    }
}

/// One pod's samples of a function.
struct Pod {
    samples: f64,
    /// Sum of samples times ln load.
    at_load: f64,
    /// Place of each interval in which it served, its requests and its samples.
    served: Vec<(usize, f64, f64)>,
}

/// One function, fitted by itself. The variances are those of its score.
#[derive(Default)]
struct Fit {
    beta: f64,
    samples: f64,
    /// Also the variance that counting alone gives.
    information: f64,
    between_pods: f64,
    /// As if intervals were independent.
    over_time: f64,
    /// How much more than by counting the samples of all pods together vary from interval to interval; 0 is as much.
    excess: f64,
    /// The mean product of what counting does not explain, of an interval and the next.
    next: f64,
}

/// All pods together in one interval.
#[derive(Clone, Copy, Default)]
struct OfInterval {
    samples: f64,
    expected: f64,
    score: f64,
}

impl OfInterval {
    fn add(&mut self, samples: f64, expected: f64, off: f64) {
        self.samples += samples;
        self.expected += expected;
        self.score += (samples - expected) * off;
    }

    /// The deviation from what was expected, in standard deviations of counting.
    fn relative(&self) -> f64 {
        if self.expected > 0.0 { (self.samples - self.expected) / libm::sqrt(self.expected) } else { 0.0 }
    }
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

impl LoadInterval {
    /// An interval in which each pod has a place of its own.
    #[must_use]
    pub fn of_pods(number: u64, requests: Vec<f64>) -> Self {
        let serving = length(requests.iter().filter(|&&requests| requests > 0.0).count());
        Self { number, requests, serving }
    }
}

/// The mean load of blocks of time, ascending; a block without requests is left out.
fn means_of_blocks(intervals: &[(usize, LoadInterval)], ln_load: &[f64]) -> Vec<f64> {
    let Some(((_, first), (_, last))) = intervals.first().zip(intervals.last()) else { return Vec::new() };
    let each = (last.number - first.number + 1).div_ceil(BLOCKS);
    let mut blocks: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for ((_, interval), load) in intervals.iter().zip(ln_load) {
        let (sum, number) = blocks.entry((interval.number - first.number) / each).or_default();
        (*sum, *number) = (*sum + load, *number + 1.0);
    }
    blocks.into_values().map(|(sum, number)| sum / number).collect()
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
