//! What a process has mapped: which part of which object is at an address.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use fleetdiff_schemas::rejected::Rejection;

use crate::budget::Budget;

/// What a mapping is counted as.
const MAPPING: usize = 96;

/// A part of an object that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The address behind its last.
    pub(super) end: u64,
    /// Where its first byte is in the object.
    pub(super) offset: u64,
    pub(super) object: u32,
    /// Whether addresses in the object are those of the process, as in code that a JIT compiler made.
    pub(super) is_identical: bool,
}

/// Mappings by their first address; none overlaps another.
#[derive(Debug, Default)]
struct Mappings {
    by_start: BTreeMap<u64, Mapping>,
    charged: Charged,
}

/// Bytes that are given back when what takes them is gone.
#[derive(Debug, Default)]
struct Charged(Option<(Budget, usize)>);

impl Charged {
    fn more(&mut self, bytes: usize, budget: &Budget) -> Result<(), Rejection> {
        budget.take(bytes)?;
        self.0.get_or_insert_with(|| (budget.clone(), 0)).1 += bytes;
        Ok(())
    }

    fn less(&mut self, bytes: usize) {
        if let Some((budget, taken)) = &mut self.0 {
            let bytes = bytes.min(*taken);
            *taken -= bytes;
            budget.give_back(bytes);
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.less(usize::MAX);
    }
}

/// The addresses of a process, which its threads share; a process that was forked has its parent's until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressSpace(Rc<RefCell<Rc<Mappings>>>);

impl AddressSpace {
    /// One that is the same until it changes.
    pub(super) fn forked(&self) -> Self {
        Self(Rc::new(RefCell::new(Rc::clone(&self.0.borrow()))))
    }

    /// Maps an object, in the place of what was there before.
    ///
    /// # Errors
    /// `too_large`.
    pub(super) fn map(&self, start: u64, mapping: Mapping, budget: &Budget) -> Result<(), Rejection> {
        if mapping.end <= start {
            return Ok(());
        }
        let mut shared = self.0.borrow_mut();
        if Rc::get_mut(&mut shared).is_none() {
            *shared = Rc::new(shared.copied(budget)?);
        }
        let Some(own) = Rc::get_mut(&mut shared) else { return Ok(()) };
        own.clear(start, mapping.end, budget)?;
        own.insert(start, mapping, budget)
    }

    /// The object at an address, and where in the object that is.
    pub(super) fn find(&self, address: u64) -> Option<(u32, u64)> {
        let shared = self.0.borrow();
        let (start, mapping) = shared.by_start.range(..=address).next_back().filter(|(_, map)| address < map.end)?;
        let within = (address - start).wrapping_add(mapping.offset);
        Some((mapping.object, if mapping.is_identical { address } else { within }))
    }
}

impl Mappings {
    fn copied(&self, budget: &Budget) -> Result<Self, Rejection> {
        let mut charged = Charged::default();
        charged.more(MAPPING * self.by_start.len(), budget)?;
        Ok(Self { by_start: self.by_start.clone(), charged })
    }

    fn insert(&mut self, start: u64, mapping: Mapping, budget: &Budget) -> Result<(), Rejection> {
        self.charged.more(MAPPING, budget)?;
        if self.by_start.insert(start, mapping).is_some() {
            self.charged.less(MAPPING);
        }
        Ok(())
    }

    /// Makes room; of what reaches into it, the rest stays.
    fn clear(&mut self, start: u64, end: u64, budget: &Budget) -> Result<(), Rejection> {
        let before = self.by_start.range(..start).next_back().filter(|(_, map)| map.end > start);
        let mut reaching: Vec<u64> = before.map(|(first, _)| *first).into_iter().collect();
        reaching.extend(self.by_start.range(start..end).map(|(first, _)| *first));
        for first in reaching {
            let Some(old) = self.by_start.remove(&first) else { continue };
            self.charged.less(MAPPING);
            if first < start {
                self.insert(first, Mapping { end: start, ..old }, budget)?;
            }
            if old.end > end {
                let offset = old.offset.wrapping_add(end - first);
                self.insert(end, Mapping { offset, ..old }, budget)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(end: u64, object: u32) -> Mapping {
        Mapping { end, offset: 0, object, is_identical: false }
    }

    #[test]
    fn what_is_mapped_over_another_leaves_its_ends() {
        let (space, budget) = (AddressSpace::default(), Budget::of(0, 10_000));
        space.map(100, mapping(200, 1), &budget).unwrap();
        space.map(120, mapping(140, 2), &budget).unwrap();
        let found = [99, 100, 119, 120, 139, 140, 199, 200].map(|address| space.find(address));
        let expected =
            [None, Some((1, 0)), Some((1, 19)), Some((2, 0)), Some((2, 19)), Some((1, 40)), Some((1, 99)), None];
        assert_eq!(found, expected);
        assert_eq!(budget.left(), 10_000 - 3 * MAPPING);
    }

    #[test]
    fn a_forked_space_is_its_parents_until_it_changes_and_costs_nothing_until_then() {
        let (parent, budget) = (AddressSpace::default(), Budget::of(0, 10_000));
        parent.map(100, mapping(200, 1), &budget).unwrap();
        let child = parent.forked();
        assert_eq!((child.find(150), budget.left()), (Some((1, 50)), 10_000 - MAPPING));
        child.map(100, mapping(200, 2), &budget).unwrap();
        assert_eq!((parent.find(150), child.find(150)), (Some((1, 50)), Some((2, 50))));
        assert_eq!(budget.left(), 10_000 - 2 * MAPPING);
        drop(child);
        assert_eq!(budget.left(), 10_000 - MAPPING);
    }
}
