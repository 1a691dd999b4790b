//! Function names as numbers.
//!
//! A process numbers the names that it meets ([`FunctionTable`]), in whatever order its workers meet them. No result may
//! depend on that order: rows and floating-point sums go by each cell's own numbers ([`CellFunctions`]), which are given
//! at the close of a hop in the order of stable hashes and so depend on the records alone.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use fleetdiff_schemas::identity::stable_hash;

/// A function, as numbered by this process.
pub type FunctionId = u32;

/// The names that this process has met, shared by its workers.
#[derive(Debug, Default)]
pub struct FunctionTable {
    names: RwLock<Names>,
}

#[derive(Debug, Default)]
struct Names {
    ids: HashMap<Arc<str>, FunctionId>,
    entries: Vec<(u64, Arc<str>)>,
}

impl FunctionTable {
    /// The numbers of these names, new ones given where needed. Same order as `names`.
    ///
    /// # Panics
    /// Panics if another worker panicked while it held the table, or after four billion distinct names.
    pub fn intern(&self, names: &[Arc<str>]) -> Vec<FunctionId> {
        let known = {
            let table = self.names.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            names.iter().map(|name| table.ids.get(name).copied()).collect::<Vec<_>>()
        };
        if let Some(all) = known.iter().copied().collect::<Option<Vec<_>>>() {
            return all;
        }
        let mut table = self.names.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        names.iter().map(|name| table.id_of(name)).collect()
    }

    /// The stable hash and the name of a function.
    pub fn get(&self, id: FunctionId) -> (u64, Arc<str>) {
        let table = self.names.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        table.entries[index(id)].clone()
    }
}

impl Names {
    fn id_of(&mut self, name: &Arc<str>) -> FunctionId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = FunctionId::try_from(self.entries.len()).unwrap_or(FunctionId::MAX);
        self.entries.push((stable_hash(name.as_bytes()), Arc::clone(name)));
        self.ids.insert(Arc::clone(name), id);
        id
    }
}

/// The functions of one cell, numbered densely in the order in which the cell met them.
#[derive(Debug, Default)]
pub struct CellFunctions {
    /// By process number: the cell's number + 1, or 0 where the cell has not met the function.
    dense: Vec<u32>,
    /// By the cell's number: stable hash and name.
    entries: Vec<(u64, Arc<str>)>,
}

impl CellFunctions {
    /// Numbers the functions of `ids` that are new to the cell, in the order of their stable hashes.
    pub fn admit(&mut self, ids: impl Iterator<Item = FunctionId>, table: &FunctionTable) {
        let mut new: Vec<FunctionId> = ids.filter(|&id| self.get(id).is_none()).collect();
        new.sort_unstable();
        new.dedup();
        let mut named: Vec<_> = new.into_iter().map(|id| (table.get(id), id)).collect();
        named.sort_unstable();
        for (entry, id) in named {
            let slot = index(id);
            if slot >= self.dense.len() {
                self.dense.resize(slot + 1, 0);
            }
            self.entries.push(entry);
            self.dense[slot] = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        }
    }

    /// The cell's number of a function, if the cell has met it.
    #[inline]
    pub fn get(&self, id: FunctionId) -> Option<usize> {
        match self.dense.get(index(id)) {
            Some(&number) if number > 0 => Some(index(number - 1)),
            _ => None,
        }
    }

    /// How many functions the cell has met.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cell has met none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Stable hash and name by the cell's number.
    pub fn entries(&self) -> &[(u64, Arc<str>)] {
        &self.entries
    }
}

#[expect(clippy::as_conversions, reason = "usize is at least 32 bits on every platform that this builds for")]
fn index(id: u32) -> usize {
    id as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_a_cell_does_not_depend_on_the_process() {
        let names: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Arc::from).to_vec();
        let reversed: Vec<Arc<str>> = names.iter().rev().cloned().collect();
        let entries = |order: &[Arc<str>]| {
            let table = FunctionTable::default();
            table.intern(order);
            let mut cell = CellFunctions::default();
            cell.admit(table.intern(&names).into_iter(), &table);
            cell.entries().to_vec()
        };
        assert_eq!(entries(&names), entries(&reversed));
        assert_eq!(entries(&names).len(), 4);
    }
}
