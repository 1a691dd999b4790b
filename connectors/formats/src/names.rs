//! Function names: a function is its name, so every format gives its frames here and nowhere else.
//!
//! A name as it came goes through two steps, the same for every format: [`NameRules`] take off what changes from build to
//! build or from process to process though the function does not (lines, hashes, numbers of generated classes), and the [`Rewrites`] that
//! were configured are applied. `Naming` remembers what came of a name from profile to profile; `Names` is the table of one profile, no name twice.

mod class;
mod naming;
mod rewrites;
mod rules;

use std::borrow::Cow;
use std::sync::Arc;

use fleetdiff_schemas::profile::UNSYMBOLISED;
use fleetdiff_schemas::rejected::Rejection;

use self::naming::Known;
use crate::budget::{ALLOCATION, Budget};

pub use class::FrameClass;
pub(super) use naming::Naming;
pub use rewrites::{BadRewrite, Rewrites};
pub(crate) use rules::demangled_as_by_perf;
pub use rules::{NameRules, RUNTIMES, Rule, UnknownRule, rules};

/// What a name that came takes: an entry of a map (key, value and a byte, with as much again unused and half of it while the map grows),
/// and one of a list.
const CAME: usize = 56 + 80;

/// The same of a name as it is counted.
const COUNTED: usize = 56 + 32;

/// The names of one profile in the order of their first sight.
pub(super) struct Names<'a> {
    naming: &'a mut Naming,
    budget: Budget,
    list: Vec<Arc<str>>,
}

impl<'a> Names<'a> {
    /// No names yet.
    pub(super) fn new(naming: &'a mut Naming, budget: &Budget) -> Self {
        naming.begin();
        Self { naming, budget: budget.clone(), list: Vec::new() }
    }

    /// No names yet, and room for so many.
    ///
    /// # Errors
    /// `too_large` if there is no room.
    pub(super) fn with_capacity(naming: &'a mut Naming, budget: &Budget, names: usize) -> Result<Self, Rejection> {
        let mut empty = Self::new(naming, budget);
        empty.list = budget.list(names)?;
        Ok(empty)
    }

    /// The index of a frame's name; a frame without a symbol (`""`, `[unknown]`, an address) is [`UNSYMBOLISED`].
    ///
    /// # Errors
    /// `too_large` if there is no room for it.
    pub(super) fn index_of(&mut self, raw: &str) -> Result<u32, Rejection> {
        let new = match self.naming.find(raw) {
            Known::Met(index) => return Ok(index),
            Known::New(new) => new,
        };
        self.budget.take(CAME + ALLOCATION + raw.len())?;
        let index = match new.index {
            Some(index) => index,
            None => self.add(Arc::clone(&new.name))?,
        };
        self.naming.put(&new, index);
        Ok(index)
    }

    /// A text as the rules leave it.
    pub(super) fn normalised<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.naming.normalised(text)
    }

    fn add(&mut self, name: Arc<str>) -> Result<u32, Rejection> {
        // The list of a profile is a copy of this one.
        self.budget.take(COUNTED + ALLOCATION + name.len() + size_of::<Arc<str>>())?;
        // NB: a decoder reads fewer than 2^32 bytes, thus fewer names; the last index is a ceiling never reached.
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.budget.push(&mut self.list, name)?;
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
        if let Some(index) = self.naming.find_counted(name) {
            return Ok(index);
        }
        let name: Arc<str> = name.into();
        let index = self.add(Arc::clone(&name))?;
        self.naming.put_counted(&name, index);
        Ok(index)
    }

    /// The names by index.
    pub(super) fn into_list(mut self) -> Arc<[Arc<str>]> {
        std::mem::take(&mut self.list).into()
    }
}

impl Drop for Names<'_> {
    fn drop(&mut self) {
        self.naming.end();
    }
}

#[cfg(test)]
mod tests {
    use super::naming::tests::naming;
    use super::*;

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
}
