//! Function names: a function is its name, so every format gives its frames here and nowhere else.
//!
//! A name as it came goes through two steps, the same for every format: [`normalised()`] takes off what changes from build
//! to build though the function does not (line numbers, hashes, offsets), and the [`Rewrites`] that were configured are
//! applied. `Naming` remembers what came of a name for as long as its decoder lives; `Names` is the table of one
//! profile, no name twice.

mod class;
mod normalised;
mod rewrites;

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::UNSYMBOLISED;
use fleetdiff_schemas::rejected::Rejection;

use crate::budget::{ALLOCATION, Budget};

pub use class::FrameClass;
pub use normalised::normalised;
pub use rewrites::{BadRewrite, Rewrites};

/// What an entry of a map takes: key, value and a byte, with as much again unused and half of it while the map grows.
const SEEN: usize = 56;

type Map<V> = HashMap<Arc<str>, V, foldhash::fast::RandomState>;

/// The names that a decoder has met, by how they came.
#[derive(Debug)]
pub(super) struct Naming {
    rewrites: Rewrites,
    known: Map<Arc<str>>,
    /// Bytes of text that may still be remembered.
    room: usize,
    most: usize,
}

impl Naming {
    /// Remembers nothing yet; later text of at most an eighth of the largest record, `max_bytes`.
    pub(super) fn new(max_bytes: usize, rewrites: &Rewrites) -> Self {
        let most = max_bytes / 8;
        Self { rewrites: rewrites.clone(), known: Map::default(), room: most, most }
    }

    /// A frame's name as it came and as it is counted.
    fn name(&mut self, raw: &str) -> (Arc<str>, Arc<str>) {
        if let Some((raw, name)) = self.known.get_key_value(raw) {
            return (Arc::clone(raw), Arc::clone(name));
        }
        let name = self.counted_as(raw);
        let raw = if *name == *raw { Arc::clone(&name) } else { Arc::from(raw) };
        self.remember(&raw, &name);
        (raw, name)
    }

    fn counted_as(&self, raw: &str) -> Arc<str> {
        let name = normalised(raw);
        if name == UNSYMBOLISED {
            return UNSYMBOLISED.into();
        }
        let name = self.rewrites.apply(name);
        if name.is_empty() { UNSYMBOLISED.into() } else { name.into() }
    }

    /// Keeps a name, after forgetting all others if there is no room: they are found again as they come.
    fn remember(&mut self, raw: &Arc<str>, name: &Arc<str>) {
        // An entry holds more than its text: two counted pointers, and the counts.
        let cost = raw.len() + name.len() + 64;
        if cost > self.room {
            self.known.clear();
            self.room = self.most;
        }
        if let Some(left) = self.room.checked_sub(cost) {
            self.room = left;
            self.known.insert(Arc::clone(raw), Arc::clone(name));
        }
    }
}

/// The names of one profile in the order of their first sight.
pub(super) struct Names<'a> {
    naming: &'a mut Naming,
    budget: Budget,
    list: Vec<Arc<str>>,
    /// By how they came.
    seen: Map<u32>,
    /// By what they are counted as; different ones that came may be the same.
    index: Map<u32>,
}

impl<'a> Names<'a> {
    /// No names yet.
    pub(super) fn new(naming: &'a mut Naming, budget: &Budget) -> Self {
        Self { naming, budget: budget.clone(), list: Vec::new(), seen: Map::default(), index: Map::default() }
    }

    /// No names yet, and room for so many.
    ///
    /// # Errors
    /// `too_large` if there is no room.
    pub(super) fn with_capacity(naming: &'a mut Naming, budget: &Budget, names: usize) -> Result<Self, Rejection> {
        budget.take(names.saturating_mul(SEEN))?;
        let map = || Map::with_capacity_and_hasher(names, foldhash::fast::RandomState::default());
        Ok(Self { list: budget.list(names)?, seen: map(), index: map(), ..Self::new(naming, budget) })
    }

    /// The index of a frame's name; a frame without a symbol (`""`, `[unknown]`, an address) is [`UNSYMBOLISED`].
    ///
    /// # Errors
    /// `too_large` if there is no room for it.
    pub(super) fn index_of(&mut self, raw: &str) -> Result<u32, Rejection> {
        if let Some(&index) = self.seen.get(raw) {
            return Ok(index);
        }
        self.budget.take(SEEN + ALLOCATION + raw.len())?;
        let (raw, name) = self.naming.name(raw);
        let index = match self.index.get(&name) {
            Some(&index) => index,
            None => self.add(name)?,
        };
        self.seen.insert(raw, index);
        Ok(index)
    }

    fn add(&mut self, name: Arc<str>) -> Result<u32, Rejection> {
        // The list of a profile is a copy of this one.
        self.budget.take(SEEN + ALLOCATION + name.len() + size_of::<Arc<str>>())?;
        // NB: a decoder reads fewer than 2^32 bytes, thus fewer names; the last index is a ceiling never reached.
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.budget.push(&mut self.list, Arc::clone(&name))?;
        self.index.insert(name, index);
        Ok(index)
    }

    /// The name with this index; none has one beyond the table.
    pub(super) fn name(&self, index: u32) -> Arc<str> {
        let found = usize::try_from(index).ok().and_then(|place| self.list.get(place));
        found.map_or_else(|| UNSYMBOLISED.into(), Arc::clone)
    }

    /// The index of a name that is counted as it is, whatever it looks like.
    ///
    /// # Errors
    /// `too_large` if there is no room for it.
    pub(super) fn index_of_counted(&mut self, name: &str) -> Result<u32, Rejection> {
        match self.index.get(name) {
            Some(&index) => Ok(index),
            None => self.add(name.into()),
        }
    }

    /// The names by index.
    pub(super) fn into_list(self) -> Arc<[Arc<str>]> {
        self.list.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(max_bytes: usize, rewrites: &[&str]) -> Naming {
        let rewrites = Rewrites::parse(rewrites).unwrap();
        Naming::new(max_bytes, &rewrites)
    }

    fn list(naming: &mut Naming, raw: &[&str]) -> (Vec<u32>, Vec<String>) {
        let mut names = Names::new(naming, &Budget::of(0, 1 << 20));
        let found = raw.iter().map(|raw| names.index_of(raw).unwrap()).collect();
        (found, names.into_list().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_that_become_the_same_are_one() {
        let mut naming = naming(1 << 20, &["^v[0-9]+ => v"]);
        let raw = ["v1.run", "run (a.py:1)", "v2.run", "run (a.py:2)", "v.run", "run (a.py)", "", "0x7f00aa"];
        let expected = ["v.run", "run (a.py)", UNSYMBOLISED].map(str::to_owned).to_vec();
        assert_eq!(list(&mut naming, &raw), (vec![0, 1, 0, 1, 0, 1, 2, 2], expected));
    }

    #[test]
    fn what_is_rewritten_to_nothing_has_no_symbol_and_that_name_is_never_rewritten() {
        let mut naming = naming(1 << 20, &["^stub.* => ", "_ => -"]);
        let expected = [UNSYMBOLISED, "a-b"].map(str::to_owned).to_vec();
        assert_eq!(list(&mut naming, &["stub_7", "[unknown]", "a_b"]), (vec![0, 0, 1], expected));
    }

    #[test]
    fn a_name_is_made_once_a_decoder() {
        let mut naming = naming(1 << 20, &[]);
        let first = naming.name("run (a.py:1)").1;
        assert!(Arc::ptr_eq(&first, &naming.name("run (a.py:1)").1));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_no_less_right() {
        let mut naming = naming(8_000, &["x => y"]);
        for number in 0..5_000 {
            let (raw, name) = (format!("x{number} (a.py:3)"), format!("y{number} (a.py)"));
            assert_eq!((*naming.name(&raw).1).to_owned(), name);
            let held: usize = naming.known.iter().map(|(raw, name)| raw.len() + name.len() + 64).sum();
            assert!(held <= 1_000 && held + naming.room == 1_000, "{held}");
        }
        let long = "x".repeat(2_000);
        assert_eq!(naming.name(&long).1.len(), 2_000);
    }
}
