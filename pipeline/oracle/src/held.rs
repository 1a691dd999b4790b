//! What a look takes from all functions of a cell together, and for how long it is held: section 14 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ArmFigures, CellKey};
use fleetdiff_schemas::time::Hop;

use super::counts::{BASE, HEAD};
use super::evidence::Evidence;
use super::family::LookAt;
use super::statistics::levels::{GroupPrior, Held};
use super::statistics::normalization::Scales;

/// A cell is measured afresh at each look of this many.
const TURNS: u64 = 6;

/// What was measured over all functions of a cell at one look.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    at: Hop,
    /// Start of the comparison's epoch.
    epoch: Hop,
    /// Sides and pods with samples.
    pods: BTreeSet<(usize, usize)>,
    /// Whether pods of different ages are compared.
    across_ages: bool,
    /// Samples of head and base.
    samples: [i64; 2],
    samples_per_pod: f64,
    /// By count kind that had tests: the functions in the order of the test, and what was measured.
    kinds: BTreeMap<CountKind, (Vec<usize>, Held)>,
    /// Held with self counts.
    pub scales: Option<Scales>,
}

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

    /// What is held of a kind, for these functions. A function that is new earns all of the prior. Groups of priors are
    /// held by parts of cost: their mean counts grow with the samples of a pod.
    pub fn of_kind(&self, kind: CountKind, functions: &[usize], arms: &[ArmFigures; 2]) -> Option<Held> {
        let (known, held) = self.kinds.get(&kind)?;
        let calm = |function: &usize| {
            let place = known.iter().position(|one| one == function);
            place.map_or(1.0, |place| held.calm[place])
        };
        let grown = samples_per_pod(arms) / self.samples_per_pod;
        let group = |group: &GroupPrior| GroupPrior { lowest_mean: group.lowest_mean * grown, ..*group };
        let priors = held.priors.iter().map(group).collect();
        Some(Held { calm: functions.iter().map(calm).collect(), priors, tau2: held.tau2 })
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

fn samples_per_pod(arms: &[ArmFigures; 2]) -> f64 {
    let sum = |of: fn(&ArmFigures) -> i64| signed_float(arms.iter().map(of).sum());
    sum(|arm| arm.total) / sum(|arm| arm.pods)
}

fn is_its_turn(at: &LookAt<'_>, cell: &CellKey) -> bool {
    let look = at.hop.0 / at.config.clock().hops_in(at.config.evaluate_every).max(1);
    let hash = stable_hash(format!("{}\0{}", cell.region, cell.cohort).as_bytes());
    look.wrapping_add(hash).is_multiple_of(TURNS)
}
