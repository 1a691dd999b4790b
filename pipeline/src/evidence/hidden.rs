//! What divides pods and has no label: nodes that several of them share, kinds of machine, pools, tenants.
//!
//! No test of one function can know it, and each would be wrong: pods that share a node are fewer replicates than they seem,
//! and arms on two kinds of machine differ without a change of the build. All functions together show it, once a report.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::float;
use fleetdiff_statistics::Untested;
use fleetdiff_statistics::hidden_factor::{BucketCountsOf, HiddenFactor};

use super::imbalance::Imbalance;
use super::pods::WindowPods;
use crate::counts::plane::Plane;

/// Of an arm with more pods these are looked at, those with the smallest hashes: time grows with the cube. 128: *measured*,
/// hidden hardware of 90 % of the head and 10 % of the base is found in 8 of 10 fleets of 60 base pods.
const MOST_PODS: usize = 128;

/// The divisions of the pods of a cell within the window, in the stratum in which the smaller arm has most samples, by the
/// functions with samples of these pods but `untested`.
pub fn hidden(pods: &WindowPods, untested: Untested) -> Vec<Imbalance> {
    let Some(stratum) = pods.largest_stratum() else { return Vec::new() };
    let arms = [Side::Head, Side::Base].map(|side| looked_at(pods, side, stratum));
    let mut is_used = vec![false; pods.functions()];
    arms.iter().flatten().for_each(|(_, own)| own.mark_used(&mut is_used));
    for place in untested.into_iter().flatten() {
        if let Some(is_used) = is_used.get_mut(place) {
            *is_used = false;
        }
    }
    let [head, base] = arms.map(|rows| rows.into_iter().map(|row| Pod::of(row, &is_used)).collect::<Vec<_>>());
    let found = HiddenFactor::of(&buckets(&head), &buckets(&base));
    let groups = found.is_some_and(|found| found.has_groups()).then_some(Imbalance::Groups);
    let factor = found.is_some_and(|found| found.divides_arms()).then_some(Imbalance::Factor);
    groups.into_iter().chain(factor).collect()
}

/// Samples, and samples by function, of the pods of an arm that are looked at.
fn looked_at(pods: &WindowPods, side: Side, stratum: usize) -> Vec<(u64, &Plane)> {
    let mut rows: Vec<_> = pods.in_stratum(side, stratum).collect();
    rows.sort_by_key(|(name, ..)| (stable_hash(name.as_str().as_bytes()), *name));
    rows.into_iter().take(MOST_PODS).map(|(_, samples, own)| (samples, own)).collect()
}

/// A pod by the functions that are used.
struct Pod {
    samples: f64,
    counts: Vec<f64>,
}

impl Pod {
    fn of((samples, own): (u64, &Plane), is_used: &[bool]) -> Self {
        let used = is_used.iter().enumerate().filter(|(_, is_used)| **is_used);
        Self { samples: float(samples), counts: used.map(|(function, _)| float(own.get(function))).collect() }
    }
}

fn buckets(pods: &[Pod]) -> Vec<BucketCountsOf<'_>> {
    pods.iter().map(|pod| BucketCountsOf { samples: pod.samples, counts: &pod.counts }).collect()
}
