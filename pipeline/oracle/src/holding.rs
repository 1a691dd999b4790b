//! For how long what a look measured over all functions is held: section 14 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;

use super::counts::{BASE, HEAD};
use super::evidence::Evidence;
use super::family::LookAt;
use super::held::{Measured, samples_per_pod};

/// A cell is measured afresh at each look of this many.
const TURNS: u64 = 6;

impl Measured {
    /// What these tests measured; `None` if there were none.
    pub fn of(at: &LookAt<'_>, evidence: &Evidence) -> Option<Self> {
        let mut measured = Self {
            at: at.hop,
            epoch: at.open.epoch,
            pods: pods(evidence),
            across_ages: evidence.provisional_until_at.is_some(),
            samples: evidence.arms.map(|arm| arm.total),
            samples_per_pod: samples_per_pod(&evidence.arms),
            differ: evidence.differ,
            kinds: BTreeMap::new(),
            scales: None,
        };
        measured.add(evidence);
        (!measured.kinds.is_empty()).then_some(measured)
    }

    /// Holds kinds from now on that had no tests before.
    pub fn add(&mut self, evidence: &Evidence) {
        for (kind, found) in evidence.kinds.iter().filter(|(_, found)| found.tested() > 0) {
            let Some(test) = found.test.as_ref().filter(|_| !self.kinds.contains_key(kind)) else { continue };
            self.kinds.insert(*kind, (found.functions.clone(), test.test.held.clone()));
            if *kind == CountKind::SelfCount {
                self.scales = Some(test.scales.clone());
            }
        }
    }

    /// Whether it still holds at a look. `evidence` is that of the cell now, however it was tested.
    pub fn holds(&self, at: &LookAt<'_>, cell: &CellKey, evidence: &Evidence) -> bool {
        let now = pods(evidence);
        let changed = self.pods.symmetric_difference(&now).count() * 10 > self.pods.union(&now).count();
        let block = at.blocks.iter().filter(|block| **block <= at.hop).max();
        let grown = |arm: usize| 4.0 * signed_float(evidence.arms[arm].total) > 5.0 * signed_float(self.samples[arm]);
        self.epoch == at.open.epoch
            && block.is_none_or(|block| *block <= self.at)
            && self.across_ages == evidence.provisional_until_at.is_some()
            && !changed
            && !grown(HEAD)
            && !grown(BASE)
            && !at.report
            && !is_its_turn(at, cell)
    }
}

fn pods(evidence: &Evidence) -> BTreeSet<(usize, usize)> {
    let side = |arm: usize| evidence.pods[arm].iter().map(move |pod| (arm, *pod));
    side(HEAD).chain(side(BASE)).collect()
}

fn is_its_turn(at: &LookAt<'_>, cell: &CellKey) -> bool {
    let look = at.hop.0 / at.config.clock().hops_in(at.config.evaluate_every).max(1);
    let hash = stable_hash(format!("{}\0{}", cell.region, cell.cohort).as_bytes());
    look.wrapping_add(hash).is_multiple_of(TURNS)
}
