//! Flags that rest on pods of different ages.
//!
//! A new build runs on young pods, and young pods warm up: until pods of the same age run in both arms, a difference may be
//! that. A row that is selected before is provisional. From the third look at which pods of the same age are compared in its
//! cell, it is confirmed as soon as they alone make the live rule reject it. It is cleared as a warm-up as soon as the 95 %
//! interval of their change covers no change and leaves out half of the change with which it was selected, and at the latest
//! when they have been compared for as long as a process is young. It can be selected again after that. In between nothing happens
//! to it: with the first seconds of pods of the same age, causes and their callers come apart.

use std::collections::BTreeSet;

use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_statistics::effect::LnInterval;
use fleetdiff_statistics::faded::is_refuted;
use serde::{Deserialize, Serialize};

use super::{FlagKey, LiveRule, Place, may_be_raised};
use crate::evidence::row::RowEvidence;

/// The look at pods of the same age at which a provisional row is decided at the earliest.
const DECISIVE_LOOK: u64 = 3;

/// What a row that rests on pods of different ages waits for.
#[derive(Debug, Serialize, Deserialize)]
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

/// The provisional rows of cells in which pods of the same age are compared, at a look.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Nothing happens to them, whatever else is known: there are too few data of pods of the same age.
    pub open: BTreeSet<FlagKey>,
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

    /// One more look at pods of the same age. `now` is the row if it is tested; `confirms` says that they alone would select it.
    fn meet(&mut self, hop: Hop, young: u64, now: Option<&RowEvidence>, confirms: bool) -> Outcome {
        let met = *self.met.get_or_insert(hop);
        self.looks += 1;
        let refuted = |interval| is_refuted(self.theta, &in_logarithms(interval));
        match () {
            () if self.looks < DECISIVE_LOOK => Outcome::Open,
            () if confirms => Outcome::Confirmed,
            () if now.and_then(|now| now.row.effect()).is_some_and(refuted) => Outcome::WarmUp,
            () if met.plus(young) <= hop => Outcome::WarmUp,
            () => Outcome::Open,
        }
    }
}

impl LiveRule {
    /// Decides about the provisional rows of cells in which pods of the same age are compared.
    pub(super) fn settle(&mut self, hop: Hop, of_same_age: &BTreeSet<Place>, rejected: &BTreeSet<FlagKey>) -> Settled {
        let mut settled = Settled::default();
        let (min_effect, young) = (self.min_effect, self.young);
        let here = self.selected.iter_mut().filter(|(key, _)| of_same_age.contains(&(key.0.clone(), key.1.clone())));
        for (key, selected) in here {
            let Some(provisional) = &mut selected.provisional else { continue };
            let confirms = selected.is_tested && rejected.contains(key) && may_be_raised(&selected.now, min_effect);
            let now = Some(&selected.now).filter(|_| selected.is_tested);
            match provisional.meet(hop, young, now, confirms) {
                Outcome::Open => settled.open.insert(key.clone()),
                Outcome::Confirmed => {
                    (selected.provisional, selected.theta) = (None, selected.now.theta);
                    settled.confirmed.insert(key.clone())
                }
                Outcome::WarmUp => settled.warm_up.insert(key.clone()),
            };
        }
        settled
    }
}

pub(super) fn in_logarithms(ratio: Interval) -> LnInterval {
    LnInterval { low: libm::log(ratio.low), high: libm::log(ratio.high) }
}
