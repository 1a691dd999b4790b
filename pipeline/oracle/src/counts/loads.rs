//! What the pods of a comparison serve, and how long they have run.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::{Active, Archive, BASE, HEAD};
use crate::loads::{Ages, Differences, Loads};
use crate::timeline::Open;

/// What the pods of an arm did: requests, and the hops with samples, by pod.
#[derive(Default)]
struct Arm<'a> {
    requests: BTreeMap<&'a PodId, u64>,
    active: BTreeMap<usize, BTreeSet<Hop>>,
    /// When the latest process of each pod with samples began.
    started: BTreeMap<usize, Nanos>,
}

impl Arm<'_> {
    /// Mean and relative variance of it of the pods' requests per second; `None` without any.
    fn load(&self, pods: &[PodId], seconds: f64) -> Option<(f64, f64)> {
        let number = |of: usize| float(u64::try_from(of).unwrap_or(0));
        let of_pod = |(pod, hops): (&usize, &BTreeSet<Hop>)| {
            float(self.requests.get(&pods[*pod]).copied().unwrap_or(0)) / float(covered(hops))
        };
        let loads: Vec<f64> = self.active.iter().map(of_pod).collect();
        let mean = loads.iter().sum::<f64>() / number(loads.len());
        let spread: f64 = loads.iter().map(|load| (load - mean).powi(2)).sum();
        let freedom = if loads.len() > 1 { number(loads.len() - 1) } else { 1.0 };
        (mean > 0.0).then(|| (mean / seconds, spread / freedom / number(loads.len()) / mean.powi(2)))
    }

    /// Lower median of the ages of its pods, in hours, none below the length of a hop.
    fn age(&self, at: i64, hop: i64) -> Option<f64> {
        let mut ages: Vec<i64> = self.started.values().map(|started| (at - started.0).max(0)).collect();
        ages.sort_unstable();
        let age = ages.get(ages.len().checked_sub(1)? / 2)?;
        Some(float(u64::try_from(*age.max(&hop)).ok()?) / 1e9 / 3600.0)
    }
}

/// Ages in the middle of the time from the later of both first hops with samples to the end of `hop`, where one is more than 4/3 of the
/// other.
fn different_ages(config: &Config, [base, head]: [&Arm<'_>; 2], hop: Hop) -> Option<Ages> {
    let clock = config.clock();
    let first = |arm: &Arm<'_>| arm.active.values().filter_map(BTreeSet::first).min().copied();
    let begin = clock.start_of(first(head)?.max(first(base)?)).0;
    let middle = begin + (clock.end_of(hop).0 - begin) / 2;
    let [head, base] = [head, base].map(|arm| arm.age(middle, clock.width().0));
    let (head, base) = (head?, base?);
    (head > 4.0 / 3.0 * base || base > 4.0 / 3.0 * head).then_some(Ages { head, base })
}

/// Hops that profiles cover: each step to the next, at most the lower median of all steps, and that once more.
fn covered(hops: &BTreeSet<Hop>) -> u64 {
    let at: Vec<u64> = hops.iter().map(|hop| hop.0).collect();
    let mut steps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    let median = if steps.is_empty() { 1 } else { steps[(steps.len() - 1) / 2] };
    steps.iter().fold(median, |sum, step| sum + median.min(*step))
}

impl Archive {
    /// By type and cell, at the close of a hop: loads of which one is more than 4/3 of the other, and of memory in use such ages.
    pub fn differences(&self, config: &Config, open: &Open, hop: Hop) -> BTreeMap<(ProfileType, CellKey), Differences> {
        let mut cells: BTreeMap<(ProfileType, CellKey), [Arm<'_>; 2]> = BTreeMap::new();
        for (place, arm, active) in self.active(config, open, hop) {
            let arm = &mut cells.entry(place).or_default()[arm];
            match active {
                Active::Requests { pod, count } => *arm.requests.entry(pod).or_default() += count,
                Active::Pod { pod, own, started, .. } => {
                    arm.active.entry(pod).or_default().insert(own);
                    let latest = arm.started.entry(pod).or_insert(started);
                    *latest = started.max(*latest);
                }
            }
        }
        let seconds = float(u64::try_from(config.clock().width().0).unwrap_or(0)) / 1e9;
        let loads = |arms: &[Arm<'_>; 2]| {
            let ((head, of_head), (base, of_base)) =
                (arms[HEAD].load(&self.pods, seconds)?, arms[BASE].load(&self.pods, seconds)?);
            let differ = 3.0 * head > 4.0 * base || 3.0 * base > 4.0 * head;
            differ.then_some(Loads { means: [head, base], variance: of_head + of_base })
        };
        let of_cell = |((kind, cell), arms): ((ProfileType, CellKey), [Arm<'_>; 2])| {
            let of_memory = kind == ProfileType::LiveHeap;
            let ages = of_memory.then(|| different_ages(config, [&arms[BASE], &arms[HEAD]], hop)).flatten();
            ((kind, cell), Differences { loads: loads(&arms), ages })
        };
        cells.into_iter().map(of_cell).collect()
    }
}
