//! What a cell holds of an earlier look: what the tests of a comparison take from all functions together.
//!
//! Rows are tested at each look. What they share (the spread between pods, priors, the scales on which shares may have
//! stood still) changes slowly and costs several passes over all functions. It is measured afresh at the first look of an
//! epoch, in a new time block, when pods of the same age meet, when more than a tenth of the pods changed or an arm has a quarter more samples, at every
//! report, and else at every sixth look, at which cells take turns.
//!
//! NB: without the samples, scales from the first ten seconds of a canary would stand for a minute, while rows become
//! precise: two functions of the demo that nothing happened to were flagged.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::{PodId, stable_hash};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::Hop;
use fleetdiff_statistics::pooled::is_due;
use fleetdiff_statistics::{Pooled, Scales};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use super::gap::Gap;

/// A pod of one arm.
type ArmPod = (Side, PodId);

/// When a look is, as far as it decides whether the cell is measured afresh.
#[derive(Clone, Copy, Debug)]
pub struct LookTime {
    /// First hop of the comparison's epoch.
    pub epoch: Hop,
    /// First hop of the service's current time block.
    pub block: Hop,
    /// Number of the look.
    pub number: u64,
    /// Whether there is a report at this hop.
    pub reports: bool,
}

/// What is held of one comparison in one cell.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Held {
    from: State,
    gap: Option<Gap>,
    measured: Option<Measured>,
}

/// The state of a cell at a look, as far as it decides whether what is held still fits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    epoch: Hop,
    block: Hop,
    across_ages: bool,
    pods: BTreeSet<ArmPod>,
    /// Samples of head and base.
    samples: [i64; 2],
}

/// What was measured of all functions together.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    own: Pooled,
    total: Option<Pooled>,
    scales: Scales,
}

impl Held {
    /// Drops what is held if this look measures afresh.
    pub fn begin(&mut self, at: LookTime, cell: &CellKey, arms: &CellArms<'_>) {
        let of = |side| arms.pods(side).into_iter().map(move |pod| (side, pod.clone()));
        let now = State {
            epoch: at.epoch,
            block: at.block,
            across_ages: arms.across_ages,
            pods: of(Side::Head).chain(of(Side::Base)).collect(),
            samples: [Side::Head, Side::Base].map(|side| arms.figures(side).total),
        };
        let is_turn = at.reports || is_due(at.number, hash_of(cell));
        if is_turn || self.measured.is_none() || !self.from.still_fits(&now) {
            *self = Self { from: now, gap: None, measured: None };
        }
    }

    /// How the arms' pods differ in load and age: as it is held, or else as it is now, which is held from then on.
    pub fn gap(&mut self, now: impl FnOnce() -> Gap) -> Gap {
        *self.gap.get_or_insert_with(now)
    }

    /// What is held of a kind of count.
    pub fn pooled(&self, kind: CountKind) -> Option<&Pooled> {
        let measured = self.measured.as_ref()?;
        match kind {
            CountKind::SelfCount => Some(&measured.own),
            CountKind::Total => measured.total.as_ref(),
        }
    }

    /// The scales that are held.
    pub fn scales(&self) -> Option<&Scales> {
        self.measured.as_ref().map(|measured| &measured.scales)
    }

    /// Holds what self counts showed, unless something is held already.
    pub fn hold(&mut self, own: &Pooled, scales: &Scales) {
        self.measured.get_or_insert_with(|| Measured { own: own.clone(), total: None, scales: scales.clone() });
    }

    /// Holds what total counts showed, if self counts are held.
    pub fn hold_total(&mut self, total: &Pooled) {
        if let Some(measured) = &mut self.measured {
            measured.total.get_or_insert_with(|| total.clone());
        }
    }
}

/// Cells take turns by the hash of their names.
fn hash_of(cell: &CellKey) -> u64 {
    stable_hash(format!("{}\0{}", cell.region, cell.cohort).as_bytes())
}

impl State {
    /// Whether nothing has changed so much that it must be measured afresh: the same epoch and block, at most a tenth of
    /// the pods came or went, and no arm has more than a quarter more samples.
    fn still_fits(&self, now: &Self) -> bool {
        let came_or_went = self.pods.symmetric_difference(&now.pods).count();
        let grown = |(before, now): (i64, i64)| now.saturating_mul(4) > before.saturating_mul(5);
        self.epoch == now.epoch
            && self.block == now.block
            && self.across_ages == now.across_ages
            && came_or_went * 10 <= self.pods.union(&now.pods).count()
            && !self.samples.into_iter().zip(now.samples).any(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(head: std::ops::Range<u8>, samples: [i64; 2]) -> State {
        let pod = |side, pod: u8| (side, PodId::from(format!("p{pod}").as_str()));
        let pods = head.map(|number| pod(Side::Head, number)).chain((0..9).map(|number| pod(Side::Base, number)));
        State { epoch: Hop(6), block: Hop(12), across_ages: false, pods: pods.collect(), samples }
    }

    #[test]
    fn what_is_held_fits_until_time_pods_or_samples_change_it() {
        let held = state(0..11, [1000, 5000]);
        assert!(held.still_fits(&held.clone()));
        assert!(held.still_fits(&state(0..11, [1250, 6250])), "a quarter more");
        assert!(!held.still_fits(&state(0..11, [1251, 5000])) && !held.still_fits(&state(0..11, [1000, 6251])));
        assert!(held.still_fits(&state(1..11, [1000, 5000])), "one of 20 pods went");
        assert!(held.still_fits(&state(1..12, [1000, 5000])), "one of 21 went and one came");
        assert!(!held.still_fits(&state(2..12, [1000, 5000])), "two of 21 went and one came");
        assert!(!held.still_fits(&State { epoch: Hop(12), ..held.clone() }));
        assert!(!held.still_fits(&State { block: Hop(18), ..held.clone() }));
        assert!(!held.still_fits(&State { across_ages: true, ..held.clone() }));
    }
}
