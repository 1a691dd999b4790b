//! Flags that rest on pods of different ages.
//!
//! A new build runs on young pods, and young pods warm up: until pods of the same age run in both arms, a difference may be
//! that. A row that is selected before is provisional. From the third look at which pods of the same age are compared in its
//! cell, it is confirmed as soon as they alone make the live rule reject it. It is cleared as a warm-up as soon as the 95 %
//! interval of their change covers no change and leaves out half of the change with which it was selected, and at the latest
//! when they have been compared for as long as a process is young. It can be selected again after that.

use std::collections::BTreeSet;

use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_statistics::effect::LnInterval;
use fleetdiff_statistics::faded::is_refuted;

use super::{FlagKey, LiveRule, Place, Selected};
use crate::evidence::row::RowEvidence;

/// The look at pods of the same age at which a provisional row is decided at the earliest.
const DECISIVE_LOOK: u64 = 3;

/// What a row that rests on pods of different ages waits for.
#[derive(Debug)]
pub(super) struct Provisional {
    /// When the first young pods were no longer young, as far as it was known when the row was selected.
    pub until_at: Nanos,
    /// The change with which it was selected.
    theta: f64,
    /// The first hop at which pods of the same age were compared in its cell.
    met: Option<Hop>,
    /// Looks since then.
    looks: u64,
}

/// Provisional rows of which pods of the same age have decided at a look.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub confirmed: BTreeSet<FlagKey>,
    pub warm_up: BTreeSet<FlagKey>,
}

enum Outcome {
    Open,
    Confirmed,
    WarmUp,
}

impl Provisional {
    /// A row that is selected now; `None` if it rests on pods of the same age.
    pub fn of(now: &RowEvidence) -> Option<Self> {
        let until_at = now.row.provisional_until_at?;
        Some(Self { until_at, theta: now.theta, met: None, looks: 0 })
    }
}

impl LiveRule {
    /// Decides about the provisional rows of cells in which pods of the same age are compared.
    pub(super) fn settle(&mut self, hop: Hop, of_same_age: &BTreeSet<Place>, rejected: &[FlagKey]) -> Settled {
        let mut settled = Settled::default();
        let rejected: BTreeSet<&FlagKey> = rejected.iter().collect();
        let confirms = |key: &FlagKey, selected: &Selected| selected.is_tested && rejected.contains(key);
        let keys: Vec<FlagKey> = self.selected.keys().cloned().collect();
        for key in keys.into_iter().filter(|key| of_same_age.contains(&(key.0.clone(), key.1.clone()))) {
            let Some(selected) = self.selected.get(&key) else { continue };
            let confirms = confirms(&key, selected) && self.may_be_raised(&selected.now);
            let young = self.young;
            let Some(selected) = self.selected.get_mut(&key) else { continue };
            match selected.meet(hop, young, confirms) {
                Outcome::Open => {}
                Outcome::Confirmed => {
                    selected.provisional = None;
                    settled.confirmed.insert(key);
                }
                Outcome::WarmUp => drop(settled.warm_up.insert(key)),
            }
        }
        settled
    }
}

impl Selected {
    /// One more look at pods of the same age; `confirms` says that they alone would select the row.
    fn meet(&mut self, hop: Hop, young: u64, confirms: bool) -> Outcome {
        let Some(provisional) = &mut self.provisional else { return Outcome::Open };
        let met = *provisional.met.get_or_insert(hop);
        provisional.looks += 1;
        let refuted = || {
            let interval = self.now.row.effect().filter(|_| self.is_tested);
            interval.is_some_and(|interval| is_refuted(provisional.theta, &in_logarithms(interval)))
        };
        match () {
            () if provisional.looks < DECISIVE_LOOK => Outcome::Open,
            () if confirms => Outcome::Confirmed,
            () if refuted() || met.plus(young) <= hop => Outcome::WarmUp,
            () => Outcome::Open,
        }
    }
}

fn in_logarithms(ratio: Interval) -> LnInterval {
    LnInterval { low: libm::log(ratio.low), high: libm::log(ratio.high) }
}
