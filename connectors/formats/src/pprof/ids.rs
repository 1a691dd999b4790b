//! Tables whose entries are referred to by an id of their own.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::faults::malformed;
use crate::budget::Budget;

/// A table by id. Ids are mostly 1, 2, 3, ..., which makes the place of an id known; else it is searched.
pub(super) struct Ids<T> {
    entries: Vec<(u64, T)>,
    kind: &'static str,
}

impl<T: Copy> Ids<T> {
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries), kind: "" }
    }

    /// None yet, and room for so many that is charged.
    ///
    /// # Errors
    /// `too_large` if there is none.
    pub(super) fn charged(entries: usize, budget: &Budget) -> Result<Self, Rejection> {
        Ok(Self { entries: budget.list(entries)?, kind: "" })
    }

    pub(super) fn push(&mut self, id: u64, entry: T) {
        self.entries.push((id, entry));
    }

    pub(super) fn checked(mut self, kind: &'static str) -> Result<Self, Rejection> {
        self.kind = kind;
        if !self.entries.is_sorted_by_key(|(id, _)| *id) {
            self.entries.sort_by_key(|(id, _)| *id);
        }
        let twice = self.entries.windows(2).find(|pair| matches!(pair, [a, b] if a.0 == b.0));
        let zero = self.entries.first().is_some_and(|(id, _)| *id == 0);
        match twice {
            Some(pair) => Err(malformed(&format!("two {kind}s with the id {}", pair.first().map_or(0, |(id, _)| *id)))),
            None if zero => Err(malformed(&format!("a {kind} with the id 0"))),
            None => Ok(self),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Ids with their entries, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, T)> {
        self.entries.iter().copied()
    }

    /// The entry of an id.
    pub(super) fn get(&self, id: u64) -> Result<T, Rejection> {
        self.find(id).ok_or_else(|| self.missing(id))
    }

    /// The same, where a rejection is too large to be handed about.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<T> {
        let expected = usize::try_from(id.wrapping_sub(1)).ok().and_then(|place| self.entries.get(place));
        match expected {
            Some((at, entry)) if *at == id => Some(*entry),
            _ => self.search(id),
        }
    }

    fn search(&self, id: u64) -> Option<T> {
        let place = self.entries.binary_search_by_key(&id, |(at, _)| *at).ok()?;
        self.entries.get(place).map(|(_, entry)| *entry)
    }

    /// Why there is no entry.
    #[cold]
    pub(super) fn missing(&self, id: u64) -> Rejection {
        let detail = format!("{} {id} is in no table of {} {}s", self.kind, self.entries.len(), self.kind);
        Rejection::new(Reason::IndexOutOfRange, detail)
    }
}
