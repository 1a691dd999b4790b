//! What a cell holds of an earlier look: what the tests of a comparison take from all functions together.
//!
//! Rows are tested at each look. What they share (the spread between pods, priors, the scales on which shares may have
//! stood still) changes slowly and costs several passes over all functions. It is measured afresh at the first look of an
//! epoch, in a new time block, when more than a tenth of the pods changed or an arm has a quarter more samples, at every
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

use super::arms::CellArms;

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
#[derive(Debug, Default)]
pub struct Held {
    epoch: Hop,
    block: Hop,
    pods: BTreeSet<ArmPod>,
    /// Samples of head and base.
    samples: [i64; 2],
    measured: Option<Measured>,
}

/// What was measured of all functions together.
#[derive(Debug)]
struct Measured {
    own: Pooled,
    total: Option<Pooled>,
    scales: Scales,
}

impl Held {
    /// Drops what is held if this look measures afresh.
    pub fn begin(&mut self, at: LookTime, cell: &CellKey, arms: &CellArms<'_>) {
        let of = |side| arms.pods(side).into_iter().map(move |pod| (side, pod.clone()));
        let pods: BTreeSet<ArmPod> = of(Side::Head).chain(of(Side::Base)).collect();
        let samples = [Side::Head, Side::Base].map(|side| arms.figures(side).total);
        let same_time = self.epoch == at.epoch && self.block == at.block;
        let is_turn = at.reports || is_due(at.number, hash_of(cell));
        let changed = have_changed(&self.pods, &pods) || have_grown(self.samples, samples);
        if !same_time || is_turn || changed || self.measured.is_none() {
            *self = Self { epoch: at.epoch, block: at.block, pods, samples, measured: None };
        }
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

/// Whether an arm has more than a quarter more samples.
fn have_grown(before: [i64; 2], now: [i64; 2]) -> bool {
    before.into_iter().zip(now).any(|(before, now)| now.saturating_mul(4) > before.saturating_mul(5))
}

/// Whether more than a tenth of the pods came or went.
fn have_changed(before: &BTreeSet<ArmPod>, now: &BTreeSet<ArmPod>) -> bool {
    before.symmetric_difference(now).count() * 10 > before.union(now).count()
}
