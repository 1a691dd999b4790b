//! The states of boundaries, until all workers have given them.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::time::Hop;

use super::Keep;
use super::parts::Part;

/// Parts by the name of their state.
pub(super) type States = BTreeMap<String, Vec<Part>>;

/// How many boundaries are open at most. Each has only the state of sources, unless there will be a checkpoint.
const OPEN: usize = 32;

/// Boundaries that sources have passed.
pub(super) struct Collected {
    /// Names of all states that a worker has.
    pub(super) expected: BTreeSet<&'static str>,
    by_hop: BTreeMap<Hop, Collection>,
    /// Up to here nothing is opened any more.
    through: Hop,
    pub(super) keep: Box<dyn Keep>,
}

/// States of one boundary: who has given them, and what.
#[derive(Default)]
struct Collection {
    /// Whether there will be a checkpoint, once that is decided.
    is_wanted: Option<bool>,
    from: BTreeSet<(&'static str, usize)>,
    states: States,
}

impl Collected {
    pub(super) fn new(keep: Box<dyn Keep>) -> Self {
        Self { expected: BTreeSet::new(), by_hop: BTreeMap::new(), through: Hop(0), keep }
    }

    /// The boundaries after `before` up to `last`, `every` hops apart, which sources pass now.
    pub(super) fn open(&mut self, before: Hop, last: Hop, every: u64) -> Vec<Hop> {
        let after = before.max(self.through);
        let passed = (0..).map(|number: u64| last.0.checked_sub(number * every).map(Hop));
        let passed = passed.map_while(|boundary| boundary.filter(|boundary| *boundary > after)).take(OPEN);
        let passed: Vec<Hop> = passed.collect();
        for boundary in &passed {
            self.by_hop.entry(*boundary).or_default();
        }
        while self.by_hop.len() > OPEN {
            self.through = self.by_hop.pop_first().map_or(self.through, |(boundary, _)| boundary.max(self.through));
        }
        passed.into_iter().rev().filter(|boundary| *boundary > self.through).collect()
    }

    /// The boundaries after `before` up to `last` at which there will be a checkpoint. That is decided when an operator first passes one.
    pub(super) fn wanted(&mut self, before: Hop, last: Hop) -> Vec<Hop> {
        let mut is_free = self.keep.is_ready() && self.by_hop.values().all(|other| other.is_wanted != Some(true));
        let passed = self.by_hop.range_mut(before.plus(1)..=last).rev();
        // NB: the last one first. If several are passed at once, it serves best.
        let wanted = passed.filter_map(|(boundary, collection)| {
            let is_wanted = *collection.is_wanted.get_or_insert(is_free);
            is_free &= !is_wanted;
            is_wanted.then_some(*boundary)
        });
        wanted.collect()
    }

    /// Takes the parts of a state on one worker. Gives all, if nothing is missing any more.
    pub(super) fn take(
        &mut self,
        boundary: Hop,
        from: (&'static str, usize),
        mut parts: Vec<Part>,
        workers: usize,
    ) -> Option<States> {
        let collection = self.by_hop.get_mut(&boundary).filter(|collection| collection.is_wanted != Some(false))?;
        collection.from.insert(from);
        collection.states.entry(from.0.to_owned()).or_default().append(&mut parts);
        if collection.from.len() < self.expected.len() * workers {
            return None;
        }
        self.through = boundary;
        let later = self.by_hop.split_off(&boundary.plus(1));
        std::mem::replace(&mut self.by_hop, later).remove(&boundary).map(|complete| complete.states)
    }

    /// There is no checkpoint at this boundary.
    pub(super) fn refuse(&mut self, boundary: Hop) -> Option<States> {
        if let Some(collection) = self.by_hop.get_mut(&boundary) {
            *collection = Collection { is_wanted: Some(false), ..Collection::default() };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;

    struct Ready(bool);

    impl Keep for Ready {
        fn is_ready(&self) -> bool {
            self.0
        }

        fn keep(&mut self, _: Checkpoint) {}
    }

    fn hops<const N: usize>(hops: [u64; N]) -> Vec<Hop> {
        hops.map(Hop).to_vec()
    }

    #[test]
    fn sources_open_boundaries_and_the_first_operator_decides() {
        let mut collected = Collected::new(Box::new(Ready(true)));
        collected.expected.extend(["sources", "a", "b"]);
        assert_eq!(collected.open(Hop(0), Hop(1_000), 10).len(), OPEN, "not every boundary since 1970");
        assert_eq!(collected.open(Hop(1_000), Hop(1_020), 10), hops([1_010, 1_020]));
        assert_eq!(collected.wanted(Hop(0), Hop(1_005)), hops([1_000]), "the last of those that were passed");
        assert_eq!(collected.wanted(Hop(1_000), Hop(1_010)), hops([]), "one at a time");
        assert_eq!(collected.wanted(Hop(0), Hop(1_020)), hops([1_000]), "another operator passes all at once");
        for (number, from) in ["sources", "a", "b"].into_iter().enumerate() {
            assert_eq!(collected.take(Hop(1_000), (from, 0), Vec::new(), 1).is_some(), number == 2);
        }
        assert_eq!(collected.open(Hop(0), Hop(1_000), 10), hops([]), "of another worker, too late");
        assert_eq!(collected.wanted(Hop(1_010), Hop(1_020)), hops([]), "decided before");
        assert_eq!(collected.open(Hop(1_020), Hop(1_030), 10), hops([1_030]));
        assert_eq!(collected.wanted(Hop(1_020), Hop(1_030)), hops([1_030]));
        assert_eq!(collected.refuse(Hop(1_030)), None);
        assert_eq!(collected.take(Hop(1_030), ("a", 0), Vec::new(), 1), None);
        assert_eq!(collected.wanted(Hop(0), Hop(1_030)), hops([]));
    }

    #[test]
    fn nothing_is_saved_while_it_is_not_wanted() {
        let mut collected = Collected::new(Box::new(Ready(false)));
        assert_eq!(collected.open(Hop(0), Hop(30), 10), hops([10, 20, 30]));
        assert_eq!(collected.wanted(Hop(0), Hop(20)), hops([]));
        collected.keep = Box::new(Ready(true));
        assert_eq!(collected.wanted(Hop(0), Hop(20)), hops([]), "decided before");
        assert_eq!(collected.wanted(Hop(20), Hop(30)), hops([30]));
    }
}
