//! Up to which event time the pods of a partition agree.
//!
//! Under CreateTime a record's timestamp is the clock of its sender, so that one wrong clock could move event time for all
//! pods of the partition. Here a partition follows event time only as far as several pods agree, and what is ahead of that
//! waits ([`waiting`]). The law: where at least three pods are live and one clock is wrong, the agreed time is never after the
//! latest event time of the other pods. It depends only on the earlier records of the partition: silence is counted in
//! records, not by a clock.

pub(crate) mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fleetdiff_schemas::identity::{PodId, Service};
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

/// How far an event time may lie ahead of the agreed time, or of the broker's clock. *Guess*: clocks that are kept at all
/// differ by far less, and a profile and its transport take less.
pub(crate) const AHEAD: Nanos = Nanos::from_seconds(60);

/// Pods further apart than this do not support each other; who is further behind the agreed time has no say. *Guess*: twice
/// the window, so that what is further behind would not be counted anyway.
pub(crate) const APART: Nanos = Nanos::from_seconds(3600);

/// A pod is silent once another pod has sent so many records since its last one. *Guess*: a quarter of an hour of profiles of
/// 30 s, longer than restarts and retries.
const RECORDS: usize = 30;

/// Who sends.
pub(crate) type Sender = (Service, PodId);

/// What was heard last of a pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Heard {
    /// The largest event time of its last record.
    at: Nanos,
    /// The numbers of its last records.
    records: VecDeque<u64>,
}

/// The pods of one partition, and the time on which they agree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Agreement {
    needed: usize,
    senders: BTreeMap<Sender, Heard>,
    by_time: BTreeSet<(Nanos, Sender)>,
    by_record: BTreeSet<(u64, Sender)>,
    records: u64,
    /// Pods whose last record has this number or a lower one are silent; 0 while no pod has sent enough to tell.
    silent_through: u64,
    agreed: Option<Nanos>,
    moved_with: u64,
}

impl Agreement {
    /// No records yet; so many pods must agree if there are that many.
    pub(crate) fn of(needed: u64) -> Self {
        Self {
            needed: usize::try_from(needed).unwrap_or(usize::MAX),
            senders: BTreeMap::new(),
            by_time: BTreeSet::new(),
            by_record: BTreeSet::new(),
            records: 0,
            silent_through: 0,
            agreed: None,
            moved_with: 0,
        }
    }

    /// The agreed time, if there is one yet.
    pub(crate) fn agreed(&self) -> Option<Nanos> {
        self.agreed
    }

    /// Whether enough was heard to tell which pods there are; before that a time may be that of a slow clock.
    pub(crate) fn is_known(&self) -> bool {
        self.silent_through > 0
    }

    /// The number of the last record.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The number of the record that last moved the agreed time.
    pub(crate) fn moved_with(&self) -> u64 {
        self.moved_with
    }

    /// Takes a record whose time needs no agreement: its broker's clock vouches for it, or there are no clocks.
    pub(crate) fn follow(&mut self, at: Nanos) {
        self.records += 1;
        self.move_to(at);
    }

    /// Takes a record that was stamped by its sender: the largest event time in it of each pod.
    pub(crate) fn hear(&mut self, latest: BTreeMap<Sender, Nanos>) {
        self.records += 1;
        for (sender, at) in latest {
            self.note(sender, at);
        }
        self.forget();
        self.decide(self.is_known());
    }

    /// Decides once more when the partition has ended: who is alone now will stay alone.
    pub(crate) fn conclude(&mut self) {
        self.decide(true);
    }

    fn note(&mut self, sender: Sender, at: Nanos) {
        let mut records = self.remove(Some(sender.clone()));
        records.push_back(self.records);
        if records.len() > RECORDS {
            records.pop_front();
        }
        if let Some(&first) = records.front().filter(|_| records.len() == RECORDS) {
            self.silent_through = self.silent_through.max(first);
        }
        self.by_time.insert((at, sender.clone()));
        self.by_record.insert((self.records, sender.clone()));
        self.senders.insert(sender, Heard { at, records });
    }

    /// Forgets pods that are silent, and those that are too far behind to have a say.
    fn forget(&mut self) {
        while self.by_record.first().is_some_and(|(last, _)| *last <= self.silent_through) {
            let silent = self.by_record.pop_first();
            self.remove(silent.map(|(_, sender)| sender));
        }
        let Some(agreed) = self.agreed else { return };
        while self.by_time.first().is_some_and(|(at, _)| agreed.since(*at) > APART) {
            let behind = self.by_time.pop_first();
            self.remove(behind.map(|(_, sender)| sender));
        }
    }

    /// Removes a pod wherever it still is, and gives the numbers of its last records.
    fn remove(&mut self, sender: Option<Sender>) -> VecDeque<u64> {
        let Some((sender, heard)) = sender.and_then(|sender| self.senders.remove_entry(&sender)) else {
            return VecDeque::new();
        };
        if let Some(&last) = heard.records.back() {
            self.by_record.remove(&(last, sender.clone()));
        }
        self.by_time.remove(&(heard.at, sender));
        heard.records
    }

    /// The largest event time that enough pods have reached, and that is not contradicted by more pods than support it.
    fn decide(&mut self, is_known: bool) {
        // At most half of the pods are further behind a time if the pod in the middle is not.
        let Some((middle, _)) = self.by_time.iter().nth(self.by_time.len() / 2) else { return };
        let latest = self.by_time.iter().rev().map(|(at, _)| *at);
        let reached = latest.zip(1..).find(|(at, pods)| {
            let is_enough = *pods >= self.needed || is_known && self.are_most(*pods, *at);
            is_enough && at.since(*middle) <= APART
        });
        if let Some((at, _)) = reached {
            self.move_to(at);
        }
    }

    /// Whether the `pods` that have reached `at` are more than half of those that are not further behind it.
    fn are_most(&self, pods: usize, at: Nanos) -> bool {
        let needed_for_half = self.by_time.iter().rev().nth(2 * pods - 1);
        needed_for_half.is_none_or(|(other, _)| at.since(*other) > APART)
    }

    fn move_to(&mut self, at: Nanos) {
        if self.agreed < Some(at) {
            self.agreed = Some(at);
            self.moved_with = self.records;
        }
    }
}

#[cfg(test)]
mod tests;
