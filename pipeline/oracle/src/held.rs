//! What a look takes from all functions of a cell together: section 14 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::time::Hop;

use super::loads::Differences;
use super::statistics::levels::{GroupPrior, Held};
use super::statistics::normalization::Scales;

/// What was measured over all functions of a cell at one look.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub at: Hop,
    /// Start of the comparison's epoch.
    pub epoch: Hop,
    /// Sides and pods with samples.
    pub pods: BTreeSet<(usize, usize)>,
    /// Whether pods of different ages are compared.
    pub across_ages: bool,
    /// Samples of head and base.
    pub samples: [i64; 2],
    pub samples_per_pod: f64,
    pub differ: Differences,
    /// By count kind that had tests: the functions in the order of the test, and what was measured.
    pub kinds: BTreeMap<CountKind, (Vec<usize>, Held)>,
    /// Held with self counts.
    pub scales: Option<Scales>,
}

impl Measured {
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
}

pub(super) fn samples_per_pod(arms: &[ArmFigures; 2]) -> f64 {
    let sum = |of: fn(&ArmFigures) -> i64| signed_float(arms.iter().map(of).sum());
    sum(|arm| arm.total) / sum(|arm| arm.pods)
}
