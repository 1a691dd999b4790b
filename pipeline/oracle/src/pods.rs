//! The evidence of single pods within the window: "By pod" in section 5 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{CountKind, is_of_several};
use fleetdiff_schemas::verdict::{Support, Verdict};

use super::arms::{column, kept_or_all};
use super::counts::{Archive, BASE, Cell, HEAD, PodCounts};
use super::evidence::Evidence;
use super::row::{About, Line, untested};
use super::statistics::outliers::{PodSamples, outlying_pods};
use super::statistics::rare::{RareArm, ln_p_rare};

/// The pods of one cell in kept strata.
pub(super) struct ByPod<'a> {
    archive: &'a Archive,
    /// Head and base: place of the stratum, number of the pod, counts.
    arms: [Vec<(usize, usize, &'a PodCounts)>; 2],
}

impl<'a> ByPod<'a> {
    pub fn of(archive: &'a Archive, cell: &'a Cell) -> Self {
        let used = kept_or_all(cell);
        let arm = |arm: usize| {
            let all = used.iter().enumerate().flat_map(move |(stratum, arms)| {
                arms[arm].pods.iter().map(move |(pod, counts)| (stratum, *pod, counts))
            });
            all.collect()
        };
        Self { archive, arms: [arm(HEAD), arm(BASE)] }
    }

    /// A row for each function under the floor that can be tested, with its `rare_ln_p`.
    pub fn rare(&self, config: &Config, about: &About, evidence: &Evidence) -> Vec<Line> {
        let Some(kind) = evidence.kinds.get(&about.kind) else { return Vec::new() };
        let rare = kind.counts.iter().filter(|(_, counts)| counts[HEAD] + counts[BASE] < config.min_count);
        let line = |(function, counts): (&usize, &[u64; 2])| {
            let row = untested(about, evidence, &self.archive.names[*function], *counts);
            if row.verdict != Verdict::Inconclusive {
                return None;
            }
            let arm = |arm: usize| RareArm {
                count: counts[arm],
                total: u64::try_from(evidence.arms[arm].total).unwrap_or(0),
                showing: self.showing(arm, about.kind, *function),
                pods: u64::try_from(self.pods(arm)).unwrap_or(0),
            };
            let mut line = Line::of(Some(*function), row);
            line.row.rare_ln_p = Some(ln_p_rare(arm(HEAD), arm(BASE)));
            line.row.support = Support::Tentative;
            Some(line)
        };
        rare.filter_map(line).collect()
    }

    /// Fills `outlier_ln_p` and remembers the head's pods of functions that may have outlying ones.
    pub fn add_outliers(&self, config: &Config, about: &About, evidence: &Evidence, lines: &mut [Line]) {
        if evidence.support != Support::Firm {
            return;
        }
        let names = self.archive.names.iter().enumerate();
        let untested: Vec<usize> = names.filter(|(_, name)| is_of_several(name)).map(|(number, _)| number).collect();
        let [head, base] = [HEAD, BASE].map(|arm| self.samples(arm, about.kind));
        let found = outlying_pods(&head, &base, &untested);
        for line in lines {
            let Some(function) = line.function else { continue };
            let Some(found) = found.get(function).and_then(Option::as_ref) else { continue };
            line.row.outlier_ln_p = Some(found.ln_p);
            // Pods are named only if the function may be selected.
            let named = found.pods.iter().filter(|_| found.ln_p <= config.q.ln());
            line.deviating =
                named.filter_map(|pod| Some((self.archive.pods.get(pod.pod)?.as_str().to_owned(), pod.ln_p))).collect();
        }
    }

    /// The pods of an arm, as input of the test of outlying pods.
    fn samples(&self, arm: usize, kind: CountKind) -> Vec<PodSamples> {
        let pod = |(stratum, pod, seen): &(usize, usize, &PodCounts)| PodSamples {
            stratum: *stratum,
            pod: *pod,
            samples: seen.samples,
            counts: seen.functions.iter().map(|function| function[column(kind)]).collect(),
        };
        self.arms[arm].iter().map(pod).collect()
    }

    /// How many pods of an arm have a sample of a function.
    fn showing(&self, arm: usize, kind: CountKind, function: usize) -> u64 {
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for (_, pod, counts) in &self.arms[arm] {
            *sums.entry(*pod).or_default() += counts.functions[function][column(kind)];
        }
        u64::try_from(sums.values().filter(|count| **count > 0).count()).unwrap_or(0)
    }

    fn pods(&self, arm: usize) -> usize {
        self.arms[arm].iter().map(|(_, pod, _)| *pod).collect::<BTreeSet<_>>().len()
    }
}
