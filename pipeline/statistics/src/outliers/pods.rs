//! The pods of two arms with their strata, and their counts function by function.

use std::collections::BTreeMap;

use crate::contrast::Untested;
use crate::number::{float, index_of, length};
use crate::strata::BucketCounts;

/// Functions that are read at once.
const BLOCK: usize = 128;
/// A pod whose strata do not have the function at all is expected to have so many samples of it: it then weighs nothing.
const LEAST_EXPECTED: f64 = 1e-6;

/// One pod in one stratum.
#[derive(Clone)]
pub struct PodRow<'a> {
    /// The stratum's number: what ran side by side (a block of time on one hardware).
    pub stratum: usize,
    /// The pod's number, the same in all its strata; another than that of any other pod of its arm.
    pub pod: u32,
    /// Its samples in the stratum, more than 0.
    pub samples: u64,
    /// Its counts by function; several builds of one arm add up.
    pub counts: Vec<&'a dyn BucketCounts>,
}

/// One pod in all its strata.
pub struct Pod<'a> {
    pub number: u32,
    pub group: usize,
    /// exp of its own scale.
    pub normalization: f64,
    /// Stratum, samples.
    samples: Vec<(usize, f64)>,
    counts: Vec<&'a dyn BucketCounts>,
}

/// Both arms, in strata that both have.
pub struct Pods<'a> {
    pub head: Vec<Pod<'a>>,
    pub base: Vec<Pod<'a>>,
    /// How many groups of pods there are.
    pub groups: usize,
    /// By group: whether it has more than one base pod.
    pub paired: Vec<bool>,
    /// By stratum: the share of each function over both arms.
    pub shares: Vec<Vec<f64>>,
}

/// One function: counts and expectations by pod, of both arms.
pub struct Column {
    pub head: Arm,
    pub base: Arm,
}

/// One arm of one function, by pod.
#[derive(Default)]
pub struct Arm {
    pub counts: Vec<f64>,
    pub expected: Vec<f64>,
}

impl<'a> Pods<'a> {
    pub fn of(functions: usize, head: &[PodRow<'a>], base: &[PodRow<'a>]) -> Self {
        let strata = |rows: &[PodRow<'a>]| -> BTreeMap<usize, ()> {
            rows.iter().filter(|row| row.samples > 0).map(|row| (row.stratum, ())).collect()
        };
        let (of_head, of_base) = (strata(head), strata(base));
        let shared: Vec<usize> = of_head.into_keys().filter(|stratum| of_base.contains_key(stratum)).collect();
        let mut shares = vec![vec![0.0; functions]; shared.len()];
        let mut totals = vec![0.0; shared.len()];
        for row in head.iter().chain(base) {
            if let Ok(stratum) = shared.binary_search(&row.stratum) {
                row.counts.iter().for_each(|counts| counts.add_to(0, &mut shares[stratum]));
                totals[stratum] += float(row.samples);
            }
        }
        for (shares, total) in shares.iter_mut().zip(totals) {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        let mut pods =
            Self { head: arm(head, &shared), base: arm(base, &shared), groups: 0, paired: Vec::new(), shares };
        pods.group();
        pods
    }

    /// Pods that share strata, directly or through others, are one group.
    fn group(&mut self) {
        let mut leader: Vec<usize> = (0..self.shares.len()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for pod in self.head.iter().chain(&self.base) {
                let least = pod.samples.iter().map(|&(stratum, _)| leader[stratum]).min().unwrap_or(0);
                for &(stratum, _) in &pod.samples {
                    changed |= leader[stratum] > least;
                    leader[stratum] = least;
                }
            }
        }
        let mut leaders = leader.clone();
        leaders.sort_unstable();
        leaders.dedup();
        self.groups = leaders.len();
        let mut base_pods = vec![0; leaders.len()];
        for pod in self.head.iter_mut().chain(&mut self.base) {
            let first = pod.samples.first().map_or(0, |&(stratum, _)| leader[stratum]);
            pod.group = leaders.binary_search(&first).unwrap_or(0);
        }
        self.base.iter().for_each(|pod| base_pods[pod.group] += 1);
        self.paired = base_pods.iter().map(|&pods| pods > 1).collect();
    }

    /// Degrees of freedom between base pods.
    pub fn free(&self) -> f64 {
        length(self.base.len().saturating_sub(self.groups))
    }

    /// The functions that are tested, ascending.
    pub fn family(&self, min_count: f64, min_per_pod: f64, untested: Untested) -> Vec<u32> {
        if self.free() <= 0.0 || self.head.is_empty() {
            return Vec::new();
        }
        let (head, base) = (self.samples_by_stratum(&self.head), self.samples_by_stratum(&self.base));
        let whole: f64 = head.iter().chain(&base).sum();
        let functions = self.shares.first().map_or(0, Vec::len);
        let tested = |&f: &usize| {
            let expected =
                |samples: &[f64]| self.shares.iter().zip(samples).map(|(share, n)| share[f] * n).sum::<f64>();
            let (a, b) = (expected(&head), expected(&base));
            let all_or_more = a + b >= whole * (1.0 - 1e-12);
            let enough = a + b >= min_count * (1.0 - 1e-12)
                && a >= min_per_pod * length(self.head.len())
                && b >= min_per_pod * length(self.base.len());
            enough && !all_or_more && !untested.contains(&Some(f))
        };
        (0..functions).filter(tested).filter_map(|f| u32::try_from(f).ok()).collect()
    }

    pub fn samples_by_stratum(&self, pods: &[Pod<'_>]) -> Vec<f64> {
        let mut sums = vec![0.0; self.shares.len()];
        pods.iter().flat_map(|pod| &pod.samples).for_each(|&(stratum, samples)| sums[stratum] += samples);
        sums
    }

    /// The functions `family`, one by one.
    pub fn columns<'s>(&'s self, family: &'s [u32]) -> impl Iterator<Item = Column> + 's {
        family.chunks(BLOCK).flat_map(move |block| {
            let (mut head, mut base) = (self.read(&self.head, block), self.read(&self.base, block));
            (0..block.len())
                .map(move |i| Column { head: std::mem::take(&mut head[i]), base: std::mem::take(&mut base[i]) })
        })
    }

    fn read(&self, pods: &[Pod<'_>], block: &[u32]) -> Vec<Arm> {
        let mut arms: Vec<Arm> = block.iter().map(|_| Arm::default()).collect();
        let mut row = vec![0.0; block.len()];
        for pod in pods {
            row.fill(0.0);
            pod.counts.iter().for_each(|counts| counts.add_only(block, &mut row));
            for ((arm, &count), &f) in arms.iter_mut().zip(&row).zip(block) {
                let expected: f64 =
                    pod.samples.iter().map(|&(stratum, samples)| self.shares[stratum][index_of(f)] * samples).sum();
                arm.counts.push(count);
                arm.expected.push((expected * pod.normalization).max(LEAST_EXPECTED));
            }
        }
        arms
    }
}

impl Arm {
    /// ln((x + 1/2)/(E + 1/2)) by pod.
    pub fn log_ratios(&self) -> Vec<f64> {
        self.counts.iter().zip(&self.expected).map(|(x, e)| libm::log((x + 0.5) / (e + 0.5))).collect()
    }

    /// (1 + o/E) ln((x + o)/(E + o)) by pod, o the `offset`: a log ratio without the skewness of its count.
    pub fn log_ratios_with(&self, offset: f64) -> Vec<f64> {
        let log = |(x, e): (&f64, &f64)| (1.0 + offset / e) * libm::log((x + offset) / (e + offset));
        self.counts.iter().zip(&self.expected).map(log).collect()
    }

    /// Counts over expectations, as if the arm were one pod.
    pub fn log_ratio_of_all(&self) -> f64 {
        libm::log((self.counts.iter().sum::<f64>() + 0.5) / (self.expected.iter().sum::<f64>() + 0.5))
    }
}

/// The pods of an arm, ascending by number.
fn arm<'a>(rows: &[PodRow<'a>], shared: &[usize]) -> Vec<Pod<'a>> {
    let mut pods: BTreeMap<u32, Pod<'a>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.samples > 0) {
        let Ok(stratum) = shared.binary_search(&row.stratum) else { continue };
        let new = || Pod { number: row.pod, group: 0, normalization: 1.0, samples: Vec::new(), counts: Vec::new() };
        let pod = pods.entry(row.pod).or_insert_with(new);
        pod.samples.push((stratum, float(row.samples)));
        pod.counts.extend(&row.counts);
    }
    pods.into_values().collect()
}
