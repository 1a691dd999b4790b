//! What is ahead of the agreed time of its partition waits until that time has come, or until it is clear that a clock is wrong.

use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use super::{AHEAD, APART, Agreement, Sender};

/// Something that waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting<T> {
    at: Nanos,
    /// How long it took to observe: pods that agree may differ by that much when they report.
    length: Nanos,
    sender: Sender,
    /// The number of its record.
    came_with: u64,
    /// The agreed time when it came, or the first one after that.
    since: Option<Nanos>,
    /// How far ahead it was when the others had moved on.
    lead: Option<Nanos>,
    item: T,
}

/// What becomes of something that has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its time has come. `lead`: how far its clock was ahead, if the others had moved on by more than the limit before.
    Applied {
        /// See above.
        lead: Option<Nanos>,
    },
    /// Its clock is wrong by this.
    Rejected {
        /// How far it is ahead.
        lead: Nanos,
    },
}

/// All that waits in one partition, in the order in which it came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Queue<T> {
    waiting: Vec<Waiting<T>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { waiting: Vec::new() }
    }
}

impl<T> Queue<T> {
    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Puts something into the queue that its record, the last one that `agreement` has taken, holds too early.
    pub(crate) fn put(&mut self, agreement: &Agreement, sender: Sender, at: Nanos, length: Nanos, item: T) {
        let (came_with, since) = (agreement.records(), agreement.agreed());
        self.waiting.push(Waiting { at, length, sender, came_with, since, lead: None, item });
    }

    /// Takes out what is decided now that the agreed time has moved.
    pub(crate) fn decided(&mut self, agreement: &Agreement) -> Vec<(T, Fate)> {
        let Some(agreed) = agreement.agreed() else { return Vec::new() };
        take_decided(&mut self.waiting, |waiting| waiting.fate(agreed, agreement.is_known()))
    }

    /// Takes out all, when the partition has ended and `agreement` is concluded, of which `moved_with` was the last move
    /// before that: what came after it was contradicted by nobody.
    pub(crate) fn concluded(&mut self, agreed: Nanos, moved_with: u64) -> Vec<(T, Fate)> {
        let disputed: Vec<Sender> =
            self.waiting.iter().filter(|one| one.came_with < moved_with).map(|one| one.sender.clone()).collect();
        let fate = |waiting: &mut Waiting<T>| {
            let lead = waiting.at.since(agreed);
            let is_credible = lead <= AHEAD || lead <= APART && !disputed.contains(&waiting.sender);
            Some(if is_credible { Fate::Applied { lead: waiting.lead } } else { Fate::Rejected { lead } })
        };
        take_decided(&mut self.waiting, fate)
    }
}

impl<T> Waiting<T> {
    /// NB: no clock is taken to be wrong before it is known which pods there are: the agreed time may be that of a slow one.
    fn fate(&mut self, agreed: Nanos, is_known: bool) -> Option<Fate> {
        let lead = self.at.since(agreed);
        let since = *self.since.get_or_insert(agreed);
        if lead <= AHEAD {
            return Some(Fate::Applied { lead: self.lead });
        }
        if !is_known || agreed.since(since) <= AHEAD {
            return None;
        }
        if lead > AHEAD.plus(self.length) {
            self.lead = self.lead.max(Some(lead));
        }
        (lead > APART).then_some(Fate::Rejected { lead })
    }
}

fn take_decided<T>(
    waiting: &mut Vec<Waiting<T>>,
    mut fate: impl FnMut(&mut Waiting<T>) -> Option<Fate>,
) -> Vec<(T, Fate)> {
    let mut decided = Vec::new();
    let mut kept = Vec::with_capacity(waiting.len());
    for mut one in waiting.drain(..) {
        match fate(&mut one) {
            Some(fate) => decided.push((one.item, fate)),
            None => kept.push(one),
        }
    }
    *waiting = kept;
    decided
}
