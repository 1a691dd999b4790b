//! The pods of an arm within the window: how old and how large they are, on which machines they run, how much they serve.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::{ComparisonId, Side};
use fleetdiff_schemas::identity::{Hardware, PodId};
use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::time::{Hop, Nanos};

use crate::counts::cell::CellCounts;

/// An arm of a comparison in one cell within the window.
#[derive(Debug, Default)]
pub struct ArmFacts<'a> {
    /// Of each pod.
    requests: BTreeMap<&'a PodId, u64>,
    /// Hops at which each pod had samples.
    active: BTreeMap<&'a PodId, BTreeSet<Hop>>,
    /// Those with samples.
    pub(super) pods: BTreeMap<&'a PodId, PodFacts<'a>>,
}

/// What the pods of an arm serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    /// Requests per hop that profiles cover, mean over pods.
    pub mean: f64,
    /// Variance of the mean.
    pub variance: f64,
}

impl Load {
    /// Variance of ln of the mean.
    pub fn variance_of_ln(self) -> f64 {
        self.variance / (self.mean * self.mean)
    }
}

/// A pod with samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodFacts<'a> {
    pub bucket: u8,
    /// Of its latest process.
    pub started: Nanos,
    /// When it last had samples.
    last: Hop,
    /// On what it ran then.
    pub hardware: &'a Hardware,
    pub samples: u64,
}

impl<'a> ArmFacts<'a> {
    /// Of the additions of one arm.
    pub fn of(counts: &'a CellCounts, comparison: &ComparisonId, side: Side) -> Self {
        let mut arm = Self::default();
        for (key, addition) in counts.in_window().filter(|(_, addition)| comparison.side(&addition.build) == Some(side))
        {
            *arm.requests.entry(&addition.pod).or_default() += addition.requests;
            if addition.samples > 0 {
                arm.active.entry(&addition.pod).or_default().insert(addition.own);
                let here = PodFacts {
                    bucket: addition.bucket.0,
                    started: addition.started,
                    last: addition.own,
                    hardware: &key.hardware,
                    samples: addition.samples,
                };
                arm.pods.entry(&addition.pod).and_modify(|pod| pod.add(here)).or_insert(here);
            }
        }
        arm
    }

    /// What its pods serve; `None` without pods or requests.
    pub(super) fn load(&self) -> Option<Load> {
        let of_pod = |(pod, hops): (&&PodId, &BTreeSet<Hop>)| {
            float(self.requests.get(*pod).copied().unwrap_or(0)) / float(hops_covered(hops))
        };
        let loads: Vec<f64> = self.active.iter().map(of_pod).collect();
        let pods = length_float(loads.len());
        let mean = loads.iter().sum::<f64>() / pods;
        let squares: f64 = loads.iter().map(|load| (load - mean) * (load - mean)).sum();
        (mean > 0.0).then(|| Load { mean, variance: squares / ((pods - 1.0).max(1.0) * pods) })
    }

    /// The first hop at which one of its pods had samples.
    pub(super) fn first_active(&self) -> Option<Hop> {
        self.active.values().filter_map(BTreeSet::first).min().copied()
    }

    /// The lower median over its pods.
    pub(super) fn median<T: Ord + Copy>(&self, of: impl Fn(&PodFacts<'a>) -> T) -> Option<T> {
        let mut values: Vec<T> = self.pods.values().map(of).collect();
        values.sort_unstable();
        values.get(values.len().checked_sub(1)? / 2).copied()
    }

    /// How many of its pods last ran on such a machine, and how many there are.
    pub(super) fn on(&self, hardware: &Hardware) -> (u64, u64) {
        let here = self.pods.values().filter(|pod| pod.hardware == hardware).count();
        (size(here), size(self.pods.len()))
    }
}

impl PodFacts<'_> {
    fn add(&mut self, more: Self) {
        if (self.started, self.last, self.hardware) < (more.started, more.last, more.hardware) {
            (self.started, self.last, self.hardware) = (more.started, more.last, more.hardware);
        }
        self.samples += more.samples;
    }

    /// Nanoseconds for which its latest process has run.
    pub(super) fn age(&self, now: Nanos) -> i64 {
        now.0.saturating_sub(self.started.0).max(0)
    }
}

/// How many hops a pod's profiles cover that are counted in these: from each to the next, but at most as many as the lower median of
/// these, which the last has too. A profile may be longer than a hop.
fn hops_covered(hops: &BTreeSet<Hop>) -> u64 {
    let steps: Vec<u64> = hops.iter().zip(hops.iter().skip(1)).map(|(hop, next)| next.0 - hop.0).collect();
    let mut ascending = steps.clone();
    ascending.sort_unstable();
    let usual = ascending.len().checked_sub(1).map_or(1, |last| ascending[last / 2]);
    usual + steps.into_iter().map(|step| step.min(usual)).sum::<u64>()
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_cover_the_hops_between_them_but_no_pauses() {
        let covered = |hops: &[u64]| hops_covered(&hops.iter().copied().map(Hop).collect());
        assert_eq!(covered(&[7]), 1);
        assert_eq!(covered(&[7, 8, 9]), 3, "a profile a hop");
        assert_eq!(covered(&[6, 12, 18]), 18, "profiles of six hops");
        assert_eq!(covered(&[6, 12, 18, 90, 96]), 30, "a pause is not covered");
        assert_eq!(covered(&[1, 2, 4, 5, 6]), 5, "a hop without samples");
    }
}
