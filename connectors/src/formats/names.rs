//! The function names of one profile, no name twice.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::UNSYMBOLISED;

/// Names in the order of their first sight.
#[derive(Default)]
pub(super) struct Names {
    list: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
}

impl Names {
    /// Room for so many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        Self { list: Vec::with_capacity(names), index: HashMap::with_capacity(names) }
    }

    /// The index of a frame's name; a frame without a symbol (`""`, `[unknown]`) is [`UNSYMBOLISED`].
    pub(super) fn index_of(&mut self, name: &str) -> u32 {
        let name = if name.is_empty() || name == "[unknown]" { UNSYMBOLISED } else { name };
        if let Some(&index) = self.index.get(name) {
            return index;
        }
        // NB: a decoder reads fewer than 2^32 bytes, thus fewer names; the last index is a ceiling never reached.
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.list.push(Arc::clone(&name));
        self.index.insert(name, index);
        index
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The names by index.
    pub(super) fn into_list(self) -> Arc<[Arc<str>]> {
        self.list.into()
    }
}
