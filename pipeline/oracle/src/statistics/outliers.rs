//! The test of outlying pods, as in the reference program (`reference_outliers.py`): function by function, pod by pod.

mod moderation;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::{float, length_float};

use self::moderation::{moderate, normalization_from};
use super::ENOUGH_FUNCTIONS;
use super::tails::{bisect, ln_binomial_lower, ln_chi_square_tail, ln_f1_tail};

/// A function is tested if a pod of each arm is expected to have at least this many samples of it on average.
const MIN_PER_POD: f64 = 5.0;
/// Both arms together must have at least this many samples of it.
const MIN_COUNT: f64 = 30.0;
/// A pod's own factor is estimated from at most this many functions, those with the most samples.
const NORMALIZATION_FUNCTIONS: usize = 1000;
/// A base pod's squared residual counts as at most this part of its largest possible value.
const LARGEST_RESIDUAL: f64 = 0.98;
/// A smaller p-value is far out.
const FAR: f64 = 0.01;
/// Weight of the prior of the tail: as if this many more pods far out had been seen, with exact p-values.
const PRIOR: f64 = 20.0;
/// The smallest number of samples of a function that a pod is expected to have.
const LEAST_EXPECTED: f64 = 1e-6;

/// The samples of one pod in one stratum.
#[derive(Clone, Debug)]
pub struct PodSamples {
    /// Number of the stratum.
    pub stratum: usize,
    /// Number of the pod, the same in all its strata.
    pub pod: usize,
    /// Samples in all.
    pub samples: u64,
    /// Samples by function; as many functions as for every other pod.
    pub counts: Vec<u64>,
}

/// The result of the test for one function.
#[derive(Clone, Debug)]
pub struct OutlyingPods {
    /// ln p of "no head pod differs by more than base pods do".
    pub ln_p: f64,
    /// Variance of the log ratio between base pods.
    pub tau2: f64,
    /// The head pods, ascending by number.
    pub pods: Vec<Deviation>,
}

/// One head pod in one function.
#[derive(Clone, Copy, Debug)]
pub struct Deviation {
    /// Number of the pod.
    pub pod: usize,
    /// Predictive t.
    pub t: f64,
    /// ln of its two-sided p, with the tail of base pods.
    pub ln_p: f64,
}

/// The result of the test by function, `None` if it is not tested. `untested` are functions that are in no family.
pub fn outlying_pods(head: &[PodSamples], base: &[PodSamples], untested: &[usize]) -> Vec<Option<OutlyingPods>> {
    let functions = head.iter().chain(base).map(|seen| seen.counts.len()).max().unwrap_or(0);
    let mut arms = Arms::of(head, base, functions);
    let mut found = vec![None; functions];
    let tested: Vec<usize> = (0..functions).filter(|f| arms.is_tested(*f) && !untested.contains(f)).collect();
    if tested.is_empty() {
        return found;
    }
    arms.give_own_normalization(&tested);
    let plain = arms.spread(&tested, &vec![None; tested.len()]);
    let offsets: Vec<Option<f64>> =
        tested.iter().zip(&plain.tau2).map(|(f, tau2)| Some(offset(*tau2, arms.mean_of_base(*f)))).collect();
    let spread = arms.spread(&tested, &offsets);
    let scores: Vec<Scores> =
        (0..tested.len()).map(|i| arms.scores(tested[i], offsets[i], spread.tau2[i], spread.df)).collect();
    let tail = Tail::of(&scores);
    for (i, f) in tested.iter().enumerate() {
        found[*f] = Some(arms.outcome(&scores[i], spread.tau2[i], &tail));
    }
    found
}

/// The offset under which the log of a count has no skewness.
fn offset(tau2: f64, mu: f64) -> f64 {
    let a = tau2 * mu;
    mu * (2.0 + 3.0 * a) / (1.0 + 3.0 * a + 3.0 * a * a)
}

/// A pod over all its strata.
struct Pod {
    number: usize,
    /// Pods that share strata, directly or through others, have one number.
    group: usize,
    strata: BTreeSet<usize>,
    /// Samples by function.
    counts: Vec<f64>,
    /// Samples that are expected by function.
    expected: Vec<f64>,
}

impl Pod {
    /// ln of the samples over those expected: half a sample is added to both, or the offset that removes the skewness.
    fn log_ratio(&self, f: usize, offset: Option<f64>) -> f64 {
        let (x, e) = (self.counts[f], self.expected[f]);
        match offset {
            None => ((x + 0.5) / (e + 0.5)).ln(),
            Some(offset) => (1.0 + offset / e) * ((x + offset) / (e + offset)).ln(),
        }
    }

    fn normalization(&mut self, factor: f64) {
        self.expected.iter_mut().for_each(|expected| *expected = (*expected * factor).max(LEAST_EXPECTED));
    }
}

/// Both arms, in the strata that both have.
struct Arms {
    head: Vec<Pod>,
    base: Vec<Pod>,
    groups: usize,
    /// Total of expected samples, by arm and function.
    expected: [Vec<f64>; 2],
    /// Samples of all functions.
    samples: f64,
}

/// How much base pods differ, by function, with the degrees of freedom.
struct Spread {
    tau2: Vec<f64>,
    df: f64,
}

/// The mean of the base pods of a group.
#[derive(Clone, Copy, Default)]
struct Centre {
    mean: f64,
    weight: f64,
}

/// The pods of one function before the tail is known.
struct Scores {
    /// Number of the head pod, t, exact ln p.
    head: Vec<(usize, f64, f64)>,
    /// Exact ln p of each base pod that is not alone in its group.
    base: Vec<f64>,
}

impl Arms {
    fn of(head: &[PodSamples], base: &[PodSamples], functions: usize) -> Self {
        let strata = |arm: &[PodSamples]| -> BTreeSet<usize> {
            arm.iter().filter(|seen| seen.samples > 0).map(|seen| seen.stratum).collect()
        };
        let shared: BTreeSet<usize> = strata(head).intersection(&strata(base)).copied().collect();
        let kept = |arm: &[PodSamples]| -> Vec<PodSamples> {
            arm.iter().filter(|seen| seen.samples > 0 && shared.contains(&seen.stratum)).cloned().collect()
        };
        let (head, base) = (kept(head), kept(base));
        let samples = |arm: &[PodSamples], stratum: usize| -> f64 {
            float(arm.iter().filter(|seen| seen.stratum == stratum).map(|seen| seen.samples).sum())
        };
        let mut shares: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let (mut expected, mut all) = ([vec![0.0; functions], vec![0.0; functions]], 0.0);
        for stratum in &shared {
            let within: Vec<&PodSamples> = head.iter().chain(&base).filter(|seen| seen.stratum == *stratum).collect();
            let total = samples(&head, *stratum) + samples(&base, *stratum);
            let share = |f: usize| float(within.iter().map(|seen| seen.counts[f]).sum()) / total;
            let share: Vec<f64> = (0..functions).map(share).collect();
            for (expected, arm) in expected.iter_mut().zip([&head, &base]) {
                let samples = samples(arm, *stratum);
                expected.iter_mut().zip(&share).for_each(|(expected, share)| *expected += share * samples);
            }
            all += total;
            shares.insert(*stratum, share);
        }
        let mut arms =
            Self { head: pods(&head, &shares), base: pods(&base, &shares), groups: 0, expected, samples: all };
        arms.number_groups();
        arms
    }

    fn number_groups(&mut self) {
        let mut pods: Vec<&mut Pod> = self.head.iter_mut().chain(&mut self.base).collect();
        pods.iter_mut().enumerate().for_each(|(number, pod)| pod.group = number);
        loop {
            let before: Vec<usize> = pods.iter().map(|pod| pod.group).collect();
            for one in 0..pods.len() {
                for other in 0..pods.len() {
                    if !pods[one].strata.is_disjoint(&pods[other].strata) {
                        pods[one].group = pods[one].group.min(pods[other].group);
                    }
                }
            }
            if pods.iter().map(|pod| pod.group).eq(before) {
                break;
            }
        }
        let groups: BTreeSet<usize> = pods.iter().map(|pod| pod.group).collect();
        for pod in pods {
            pod.group = groups.iter().position(|group| *group == pod.group).unwrap_or(0);
        }
        self.groups = groups.len();
    }

    /// Degrees of freedom between base pods.
    fn df(&self) -> usize {
        self.base.len().saturating_sub(self.groups)
    }

    fn is_tested(&self, f: usize) -> bool {
        let both: f64 = self.head.iter().chain(&self.base).map(|pod| pod.counts[f]).sum();
        let [head, base] = [(0, &self.head), (1, &self.base)]
            .map(|(arm, pods)| self.expected[arm][f] >= MIN_PER_POD * length_float(pods.len()));
        self.df() > 0 && !self.head.is_empty() && both >= MIN_COUNT && both < self.samples && head && base
    }

    fn mean_of_base(&self, f: usize) -> f64 {
        self.base.iter().map(|pod| pod.expected[f]).sum::<f64>() / length_float(self.base.len())
    }

    /// Multiplies the expected samples of each pod by its own factor, the one that most of its functions show.
    fn give_own_normalization(&mut self, tested: &[usize]) {
        let mut factors = vec![1.0; self.head.len() + self.base.len()];
        if tested.len() >= ENOUGH_FUNCTIONS {
            let total = |f: usize| self.head.iter().chain(&self.base).map(|pod| pod.counts[f]).sum::<f64>();
            let mut best = tested.to_vec();
            best.sort_by(|x, y| total(*y).total_cmp(&total(*x)).then(x.cmp(y)));
            best.truncate(NORMALIZATION_FUNCTIONS);
            best.sort_unstable();
            let plain = vec![None; best.len()];
            let spread = self.spread(&best, &plain);
            let centres: Vec<Vec<Centre>> = best
                .iter()
                .zip(&spread.tau2)
                .map(|(f, tau2)| self.centres(*f, &self.logs_of_base(*f, None), *tau2))
                .collect();
            for (factor, pod) in factors.iter_mut().zip(self.head.iter().chain(&self.base)) {
                let off = |(f, centres): (&usize, &Vec<Centre>)| pod.log_ratio(*f, None) - centres[pod.group].mean;
                let offs: Vec<f64> = best.iter().zip(&centres).map(off).collect();
                let variances: Vec<f64> =
                    best.iter().zip(&spread.tau2).map(|(f, tau2)| 1.0 / pod.expected[*f] + tau2).collect();
                *factor = normalization_from(&offs, &variances);
            }
        }
        self.head.iter_mut().chain(&mut self.base).zip(factors).for_each(|(pod, factor)| pod.normalization(factor));
    }

    /// The log ratios of base pods.
    fn logs_of_base(&self, f: usize, offset: Option<f64>) -> Vec<f64> {
        self.base.iter().map(|pod| pod.log_ratio(f, offset)).collect()
    }

    /// Means of the log ratios `logs` of base pods by group, weighted by the precision of each.
    fn centres(&self, f: usize, logs: &[f64], tau2: f64) -> Vec<Centre> {
        let mut sums = vec![Centre::default(); self.groups];
        for (pod, log) in self.base.iter().zip(logs) {
            let weight = 1.0 / (tau2 + 1.0 / pod.expected[f]);
            sums[pod.group].mean += weight * log;
            sums[pod.group].weight += weight;
        }
        sums.into_iter().map(|sum| Centre { mean: sum.mean / sum.weight, weight: sum.weight }).collect()
    }

    /// tau^2 of each function: the value at which the weighted squares of base pods equal their degrees of freedom
    /// (Paule & Mandel), moderated over the functions like a dispersion.
    fn spread(&self, functions: &[usize], offsets: &[Option<f64>]) -> Spread {
        let df = length_float(self.df());
        let (mut phi, mut mu) = (Vec::new(), Vec::new());
        for (f, offset) in functions.iter().zip(offsets) {
            let logs = self.logs_of_base(*f, *offset);
            let squares = |tau2: f64| -> f64 {
                let centres = self.centres(*f, &logs, tau2);
                let square = |(pod, log): (&Pod, &f64)| {
                    (log - centres[pod.group].mean).powi(2) / (tau2 + 1.0 / pod.expected[*f])
                };
                self.base.iter().zip(&logs).map(square).sum()
            };
            let mean = self.mean_of_base(*f);
            let mut high = 1e-8;
            while squares(high) > df {
                high *= 4.0;
            }
            let least = squares(0.0);
            phi.push(if least > df { 1.0 + bisect(0.0, high, |tau2| squares(tau2) > df) * mean } else { least / df });
            mu.push(mean);
        }
        let (phi, df) = moderate(&phi, &mu, df);
        Spread { tau2: phi.iter().zip(&mu).map(|(phi, mu)| (phi - 1.0) / mu).collect(), df }
    }

    fn scores(&self, f: usize, offset: Option<f64>, tau2: f64, df: f64) -> Scores {
        let centres = self.centres(f, &self.logs_of_base(f, offset), tau2);
        let off = |pod: &Pod| pod.log_ratio(f, offset) - centres[pod.group].mean;
        let head = |pod: &Pod| {
            let t = off(pod) / (tau2 + 1.0 / pod.expected[f] + 1.0 / centres[pod.group].weight).sqrt();
            (pod.number, t, ln_f1_tail(t * t, df))
        };
        let residual = |pod: &Pod| {
            let variance = tau2 + 1.0 / pod.expected[f] - 1.0 / centres[pod.group].weight;
            let square = (off(pod).powi(2) / variance).min(LARGEST_RESIDUAL * df);
            if df > 1.0 { ln_f1_tail(square * (df - 1.0) / (df - square), df - 1.0) } else { 0.0 }
        };
        let is_alone = |pod: &&Pod| self.base.iter().filter(|other| other.group == pod.group).count() < 2;
        Scores {
            head: self.head.iter().map(head).collect(),
            base: self.base.iter().filter(|pod| !is_alone(pod)).map(residual).collect(),
        }
    }

    fn outcome(&self, scores: &Scores, tau2: f64, tail: &Tail) -> OutlyingPods {
        let df = self.df();
        let pods: Vec<Deviation> =
            scores.head.iter().map(|(pod, t, exact)| Deviation { pod: *pod, t: *t, ln_p: tail.ln_p(*exact) }).collect();
        let of_head = -2.0 * pods.iter().map(|pod| pod.ln_p).sum::<f64>();
        let of_base = -2.0 * scores.base.iter().map(|exact| tail.ln_p(*exact)).sum::<f64>();
        let of_base = of_base * length_float(df) / length_float(scores.base.len());
        // P(Beta(a, b) > x) for whole a and b: fewer than a of a + b - 1 uniform numbers are below x.
        let against =
            if of_base > 0.0 { ln_binomial_lower(pods.len() - 1, pods.len() + df - 1, of_head, of_base) } else { 0.0 };
        OutlyingPods { ln_p: ln_chi_square_tail(of_head, pods.len()).max(against), tau2, pods }
    }
}

/// The pods of an arm, ascending by number.
fn pods(arm: &[PodSamples], shares: &BTreeMap<usize, Vec<f64>>) -> Vec<Pod> {
    let numbers: BTreeSet<usize> = arm.iter().map(|seen| seen.pod).collect();
    let pod = |number: usize| {
        let own: Vec<&PodSamples> = arm.iter().filter(|seen| seen.pod == number).collect();
        let functions = own.first().map_or(0, |seen| seen.counts.len());
        let expected = |f: usize| own.iter().map(|seen| shares[&seen.stratum][f] * float(seen.samples)).sum::<f64>();
        Pod {
            number,
            group: 0,
            strata: own.iter().map(|seen| seen.stratum).collect(),
            counts: (0..functions).map(|f| float(own.iter().map(|seen| seen.counts[f]).sum())).collect(),
            expected: (0..functions).map(|f| expected(f).max(LEAST_EXPECTED)).collect(),
        }
    };
    numbers.into_iter().map(pod).collect()
}

/// How far out base pods normally are, over all functions.
struct Tail {
    /// The fraction of base pods that are far out.
    share: f64,
    /// Their mean excess of -ln p.
    excess: f64,
}

impl Tail {
    fn of(scores: &[Scores]) -> Self {
        let all = || scores.iter().flat_map(|scores| &scores.base);
        let far: Vec<f64> = all().filter(|ln_p| **ln_p < FAR.ln()).map(|ln_p| FAR.ln() - ln_p).collect();
        let count = length_float(far.len());
        let share = (count + PRIOR) / (length_float(all().count()) + PRIOR / FAR);
        let excess = (far.iter().sum::<f64>() + PRIOR) / (count + PRIOR);
        Self { share: share.max(FAR), excess: excess.max(1.0) }
    }

    fn ln_p(&self, exact: f64) -> f64 {
        if exact >= FAR.ln() {
            exact * self.share.ln() / FAR.ln()
        } else {
            self.share.ln() - (FAR.ln() - exact) / self.excess
        }
    }
}
