//! The states of boundaries, until all workers have given them.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::time::Hop;

use super::parts::Part;
use super::{Checkpoint, Image, Keep};
use crate::counts::functions::FunctionTable;

/// Parts by the name of their state.
pub(super) type States = BTreeMap<String, Vec<Part>>;

/// Of whom a state is: its name and the worker, or the process if it gives all that its workers have.
type Giver = (&'static str, usize);

/// The boundaries at which there will be a checkpoint.
pub(super) struct Collected {
    /// Who of this process gives something at each.
    expected: BTreeSet<Giver>,
    /// How many other processes do.
    pub(super) others: usize,
    by_hop: BTreeMap<Hop, Collection>,
    /// Up to here there is nothing more to collect.
    settled: Hop,
    keep: Box<dyn Keep>,
}

/// States of one boundary: who has given them, and what.
#[derive(Default)]
struct Collection {
    from: BTreeSet<Giver>,
    states: States,
}

impl Collected {
    pub(super) fn new(keep: Box<dyn Keep>) -> Self {
        Self { expected: BTreeSet::new(), others: 0, by_hop: BTreeMap::new(), settled: Hop(0), keep }
    }

    /// A worker of this process has this state.
    pub(super) fn expect(&mut self, name: &'static str, worker: usize) {
        self.expected.insert((name, worker));
    }

    /// Whether there will be a checkpoint at a boundary that event time is about to pass: one at a time.
    pub(super) fn decide(&mut self, boundary: Hop) -> bool {
        let is_wanted = boundary > self.settled && self.by_hop.is_empty() && self.keep.is_ready(boundary);
        if is_wanted {
            self.want(boundary);
        }
        is_wanted
    }

    /// There will be one.
    pub(super) fn want(&mut self, boundary: Hop) {
        if boundary > self.settled {
            self.by_hop.entry(boundary).or_default();
        }
    }

    /// The boundaries after `before` up to `last` at which there will be a checkpoint.
    pub(super) fn wanted(&self, before: Hop, last: Hop) -> Vec<Hop> {
        self.by_hop.range(before.plus(1)..=last).map(|(boundary, _)| *boundary).collect()
    }

    /// Takes states, and keeps all once nothing is missing any more.
    pub(super) fn give(&mut self, boundary: Hop, from: Giver, states: States, table: &FunctionTable) {
        let complete = self.take(boundary, from, states);
        self.keep_if_complete(boundary, complete, table);
    }

    /// Takes states. Gives all, if nothing is missing any more.
    fn take(&mut self, boundary: Hop, from: Giver, states: States) -> Option<States> {
        let collection = self.by_hop.get_mut(&boundary)?;
        collection.from.insert(from);
        for (name, mut parts) in states {
            collection.states.entry(name).or_default().append(&mut parts);
        }
        if collection.from.len() < self.expected.len() + self.others {
            return None;
        }
        self.settle(boundary).map(|complete| complete.states)
    }

    /// Keeps what is complete.
    fn keep_if_complete(&mut self, boundary: Hop, complete: Option<States>, table: &FunctionTable) {
        if let Some(mut states) = complete {
            states.values_mut().for_each(|parts| parts.sort_unstable());
            // NB: names that were met since are in the image too. What states refer to cannot have been forgotten since.
            self.keep.keep(Checkpoint { hop: boundary, states, names: Image::of(table) });
        }
    }

    /// There is no checkpoint at this boundary.
    pub(super) fn refuse(&mut self, boundary: Hop) {
        if self.settle(boundary).is_some() {
            self.keep.refused(boundary);
        }
    }

    fn settle(&mut self, boundary: Hop) -> Option<Collection> {
        self.settled = self.settled.max(boundary);
        let later = self.by_hop.split_off(&boundary.plus(1));
        std::mem::replace(&mut self.by_hop, later).remove(&boundary)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    /// Whether it is ready, and what it was given.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<(bool, Vec<Hop>)>>);

    impl Keep for Kept {
        fn is_ready(&self, _: Hop) -> bool {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0
        }

        fn keep(&mut self, checkpoint: Checkpoint) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).1.push(checkpoint.hop);
        }
    }

    fn hops<const N: usize>(hops: [u64; N]) -> Vec<Hop> {
        hops.map(Hop).to_vec()
    }

    #[test]
    fn one_checkpoint_at_a_time_once_all_have_given_their_states() {
        let kept = Kept::default();
        kept.0.lock().unwrap().0 = true;
        let mut collected = Collected::new(Box::new(kept.clone()));
        let givers = [("sources", 0), ("a", 0), ("a", 1)];
        givers.iter().for_each(|(name, worker)| collected.expect(name, *worker));
        collected.others = 1;
        assert!(collected.decide(Hop(10)));
        assert!(!collected.decide(Hop(20)), "one at a time");
        assert_eq!(collected.wanted(Hop(0), Hop(30)), hops([10]));
        let last =
            givers.into_iter().chain([("", 1)]).filter_map(|giver| collected.take(Hop(10), giver, States::new()));
        let last: Vec<States> = last.collect();
        assert_eq!(last.len(), 1, "only the last one makes it complete");
        collected.keep_if_complete(Hop(10), last.into_iter().next(), &FunctionTable::default());
        assert_eq!(kept.0.lock().unwrap().1, hops([10]));

        collected.want(Hop(10));
        assert_eq!(collected.wanted(Hop(0), Hop(30)), hops([]), "a worker that hears of it late");
        assert!(collected.decide(Hop(30)));
        collected.refuse(Hop(30));
        collected.want(Hop(30));
        assert_eq!(collected.wanted(Hop(0), Hop(30)), hops([]));
        kept.0.lock().unwrap().0 = false;
        assert!(!collected.decide(Hop(40)), "it is not wanted now");
        kept.0.lock().unwrap().0 = true;
        assert!(!collected.decide(Hop(30)) && collected.decide(Hop(40)));
    }
}
