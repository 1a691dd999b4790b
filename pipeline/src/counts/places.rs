//! The places of a cell's functions by the numbers of the process.
//!
//! A place is looked up for each entry of each profile, so most of them stand in an array. But a cell that has met few functions must
//! not have a slot for each name that the process has met: with many cells and many names that is far more than all their counts. The
//! array ends where it would have too many slots for the functions of the cell; what lies beyond is in a hash map.

use std::collections::HashMap;

use fleetdiff_schemas::number::index_of;
use foldhash::fast::FixedState;

use super::ids::FunctionId;

/// Slots of the array for each function of the cell, at most.
const SLOTS: usize = 16;

/// Places by the numbers of the process.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By number: the place + 1, or 0 where there is none.
    near: Vec<u32>,
    /// Of numbers beyond the end of the array.
    far: HashMap<FunctionId, u32, FixedState>,
}

impl Places {
    /// The place of a function, if it has one.
    #[inline]
    pub fn get(&self, id: FunctionId) -> Option<usize> {
        match self.near.get(index_of(id)) {
            Some(&place) => (place > 0).then(|| index_of(place - 1)),
            None => self.far(id),
        }
    }

    #[inline(never)]
    fn far(&self, id: FunctionId) -> Option<usize> {
        self.far.get(&id).map(|&place| index_of(place))
    }

    /// Adds functions with their places, of a cell that has so many functions then.
    pub fn extend(&mut self, new: &[(FunctionId, u32)], functions: usize) {
        let most = functions.saturating_mul(SLOTS);
        let numbers = new.iter().map(|(id, _)| *id).chain(self.far.keys().copied()).map(index_of);
        let end = numbers.filter(|&number| number < most).max().map_or(0, |last| last + 1);
        if end > self.near.len() {
            self.near.resize(end, 0);
            let Self { near, far } = self;
            far.retain(|&id, &mut place| near.get_mut(index_of(id)).map(|slot| *slot = place + 1).is_none());
        }
        for &(id, place) in new {
            match self.near.get_mut(index_of(id)) {
                Some(slot) => *slot = place + 1,
                None => drop(self.far.insert(id, place)),
            }
        }
    }

    /// Forgets the place of a function.
    pub fn forget(&mut self, id: FunctionId) {
        match self.near.get_mut(index_of(id)) {
            Some(slot) => *slot = 0,
            None => drop(self.far.remove(&id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_functions_with_large_numbers_take_little() {
        let mut places = Places::default();
        let ids = (0..20).chain([4_000_000]);
        places.extend(&ids.zip(0..).collect::<Vec<_>>(), 21);
        assert_eq!((places.near.len(), places.far.len()), (20, 1));
        assert_eq!([19, 20, 4_000_000].map(|id| places.get(id)), [Some(19), None, Some(20)]);
    }

    proptest! {
        /// Law: a place is that which was given last, wherever it stands.
        #[test]
        fn gives_what_was_given(steps in proptest::collection::vec((proptest::collection::vec(0u32..400, 0..12), proptest::collection::vec(0u32..400, 0..4)), 1..12)) {
            let (mut places, mut truth) = (Places::default(), BTreeMap::new());
            for (mut met, forgotten) in steps {
                met.retain(|id| !truth.contains_key(id));
                met.sort_unstable();
                met.dedup();
                let new: Vec<(FunctionId, u32)> = met.into_iter().map(|id| (id, 7 * id)).collect();
                truth.extend(new.iter().copied());
                places.extend(&new, truth.len());
                for id in forgotten {
                    if truth.remove(&id).is_some() {
                        places.forget(id);
                    }
                }
                prop_assert!((0..500).all(|id| places.get(id) == truth.get(&id).map(|&place| index_of(place))));
            }
        }
    }
}
