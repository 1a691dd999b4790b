//! What the pods of a comparison serve.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::Hop;

use super::{Active, Archive, BASE, HEAD};
use crate::loads::Loads;
use crate::timeline::Open;

/// What the pods of an arm did: requests, and the hops with samples, by pod.
#[derive(Default)]
struct Arm<'a> {
    requests: BTreeMap<&'a PodId, u64>,
    active: BTreeMap<usize, BTreeSet<Hop>>,
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
    /// The cells in which one arm's load is more than 4/3 of the other's at the close of a hop, by type.
    pub fn different_loads(&self, config: &Config, open: &Open, hop: Hop) -> BTreeMap<(ProfileType, CellKey), Loads> {
        let mut cells: BTreeMap<(ProfileType, CellKey), [Arm<'_>; 2]> = BTreeMap::new();
        for (place, arm, active) in self.active(config, open, hop) {
            let arm = &mut cells.entry(place).or_default()[arm];
            match active {
                Active::Requests { pod, count } => *arm.requests.entry(pod).or_default() += count,
                Active::Pod { pod, own, .. } => drop(arm.active.entry(pod).or_default().insert(own)),
            }
        }
        let seconds = float(u64::try_from(config.clock().width().0).unwrap_or(0)) / 1e9;
        let of_cell = |(place, arms): (_, [Arm<'_>; 2])| {
            let ((head, of_head), (base, of_base)) =
                (arms[HEAD].load(&self.pods, seconds)?, arms[BASE].load(&self.pods, seconds)?);
            let differ = 3.0 * head > 4.0 * base || 3.0 * base > 4.0 * head;
            differ.then_some((place, Loads { means: [head, base], variance: of_head + of_base }))
        };
        cells.into_iter().filter_map(of_cell).collect()
    }
}
