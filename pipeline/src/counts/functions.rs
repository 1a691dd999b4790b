//! Function names as numbers.
//!
//! A process numbers the names that it meets ([`FunctionTable`]), in whatever order its workers meet them. No result
//! may depend on that order. Rows and floating-point sums therefore use each cell's own numbers ([`CellFunctions`]),
//! which are assigned at the close of a hop in the order of stable hashes, and so depend on the records only.
//!
//! A function's place in a cell's columns does depend on the order of the process. The bytes of a profile ascend in
//! that order, so that adding a profile walks through a column instead of jumping around in it (2.4 times as fast,
//! measured).

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::profile::{OVERFLOW, Stack, UNSYMBOLISED};
use fleetdiff_schemas::time::Hop;
use fleetdiff_statistics::Untested;
use serde::{Deserialize, Serialize};

use super::ids::{FunctionId, PathId};
use super::numbered::Numbered;
use super::numbers::{Elsewhere, Forgotten};
use super::paths::{Node, PathTable, decode_paths};
use super::places::Places;
use super::rounds::Rounds;

/// Which of the names that stand for several functions has this stable hash.
pub(crate) fn which_of_several(hash: u64) -> Option<usize> {
    static HASHES: LazyLock<[u64; 2]> =
        LazyLock::new(|| [UNSYMBOLISED, OVERFLOW].map(|name| stable_hash(name.as_bytes())));
    HASHES.iter().position(|&other| other == hash)
}

/// The names that this process has met and not forgotten, shared by its workers.
#[derive(Debug, Default)]
pub struct FunctionTable {
    names: RwLock<Names>,
    paths: PathTable,
    rounds: Arc<Rounds>,
    /// If another process gives the numbers.
    elsewhere: Option<Elsewhere>,
}

/// Names by number, each with its stable hash.
type Names = Numbered<Arc<str>, (u64, Arc<str>)>;

impl FunctionTable {
    /// A table with these names and call paths, as [`Self::numbered`] and [`PathTable::numbered`] gave them; `None` if they contradict
    /// themselves.
    pub(crate) fn of(names: &[(FunctionId, Arc<str>)], paths: &[(PathId, Node)]) -> Option<Self> {
        let numbered = names.iter().map(|(id, name)| (*id, Arc::clone(name), named(name)));
        let names = RwLock::new(Names::default().put_back(numbered)?);
        Some(Self { names, paths: PathTable::of(paths)?, ..Self::default() })
    }

    /// A table of numbers that another process gives.
    pub(crate) fn numbered_by(elsewhere: Elsewhere) -> Self {
        let rounds = Arc::new(Rounds::default());
        let paths = PathTable::numbered_by(Arc::clone(&elsewhere.numbers), Arc::clone(&rounds));
        Self { paths, rounds, elsewhere: Some(elsewhere), ..Self::default() }
    }

    /// All names with their numbers, ascending by number.
    pub(crate) fn numbered(&self) -> Vec<(FunctionId, Arc<str>)> {
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<_> = table.numbers().map(|(name, id)| (id, Arc::clone(name))).collect();
        names.sort_unstable_by_key(|(id, _)| *id);
        names
    }

    /// The call paths of these functions.
    pub fn paths(&self) -> &PathTable {
        &self.paths
    }

    /// The number of the current round. Numbers that were asked for in an earlier round may be those of other names by now.
    pub fn round(&self) -> u32 {
        self.rounds.now()
    }

    /// The numbers of these names, assigned where a name is new. Same order as `names`.
    ///
    /// # Panics
    /// Panics after four billion distinct names.
    pub fn intern(&self, names: &[Arc<str>]) -> Vec<FunctionId> {
        let round = self.round();
        let known = {
            let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
            names.iter().map(|name| table.find(&**name, round)).collect::<Option<Vec<_>>>()
        };
        known.unwrap_or_else(|| {
            let mut table = self.names.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(Elsewhere { numbers, .. }) = &self.elsewhere {
                // NB: under the lock, as what is forgotten, so that the first process hears of both in their order.
                let unknown: Vec<Arc<str>> =
                    names.iter().filter(|name| table.find(&***name, round).is_none()).cloned().collect();
                for (id, name) in numbers.of_names(&unknown).into_iter().zip(unknown) {
                    let known = named(&name);
                    table.put(id, name, known, round);
                }
            }
            names.iter().map(|name| table.number_of(Arc::clone(name), round, named)).collect()
        })
    }

    /// Learns the names of these numbers, if they are those of another process, and keeps them in this round and the next.
    fn learn(&self, functions: &[FunctionId]) {
        let Some(Elsewhere { numbers, .. }) = &self.elsewhere else { return };
        let round = self.round();
        let unknown = |table: &Names| table.mark(functions.iter().copied(), round);
        if unknown(&self.names.read().unwrap_or_else(PoisonError::into_inner)).is_empty() {
            return;
        }
        let mut table = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let mut unknown = unknown(&table);
        unknown.sort_unstable();
        unknown.dedup();
        for (&id, name) in unknown.iter().zip(numbers.names(&unknown)) {
            let known = named(&name);
            table.put(id, name, known, round);
        }
    }

    /// Learns the call paths of bytes of [`encode_paths`](super::paths::encode_paths) at once, if their numbers are those of another
    /// process: cheaper than one by one when they are needed.
    pub fn meet_paths<'a>(&self, encoded: impl Iterator<Item = &'a [u8]>) {
        if self.elsewhere.is_some() {
            let paths: Vec<PathId> = encoded.flat_map(decode_paths).map(|(path, _)| path).collect();
            self.paths.learn(&paths);
        }
    }

    /// The number of each stack's call path, in the order of the stacks. `ids` numbers the names that frames point to; a frame beyond
    /// its end is left out.
    pub fn intern_paths(&self, stacks: &[Stack], ids: &[FunctionId]) -> Vec<PathId> {
        self.paths.intern(stacks, ids, self.round())
    }

    /// The stable hash and the name of a function.
    pub fn get(&self, id: FunctionId) -> (u64, Arc<str>) {
        self.learn(&[id]);
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        table.entry(id).0.clone()
    }

    /// The stable hashes and names of functions, in their order.
    pub(crate) fn entries(&self, functions: &[FunctionId]) -> Vec<(u64, Arc<str>)> {
        self.learn(functions);
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        functions.iter().map(|&id| table.entry(id).0.clone()).collect()
    }

    /// The stable hashes and names of functions, in their order.
    ///
    /// # Errors
    /// The first number that is nobody's.
    fn known(&self, functions: &[FunctionId]) -> Result<Vec<(u64, Arc<str>)>, FunctionId> {
        self.learn(functions);
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let known = |&id: &FunctionId| {
            table.get(id).filter(|(_, mark)| mark.is_met()).map(|(entry, _)| entry.clone()).ok_or(id)
        };
        functions.iter().map(known).collect()
    }

    /// The stable hashes of functions, in their order.
    pub fn hashes(&self, functions: &[FunctionId]) -> Vec<u64> {
        self.learn(functions);
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        functions.iter().map(|&id| table.entry(id).0.0).collect()
    }

    /// The stable hashes of call paths, in their order: of those of their functions, root first.
    pub fn hashes_of_paths(&self, paths: &[PathId]) -> Vec<u64> {
        let of_paths: Vec<Vec<FunctionId>> = self.paths.frames_of(paths);
        self.learn(&of_paths.concat());
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let hash_of = |frames: &Vec<FunctionId>| {
            let bytes: Vec<u8> = frames.iter().flat_map(|&id| table.entry(id).0.0.to_le_bytes()).collect();
            stable_hash(&bytes)
        };
        of_paths.iter().map(hash_of).collect()
    }

    /// The number of functions that have a number.
    pub fn count(&self) -> usize {
        self.names.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// These functions are held for long: they are not forgotten in this round and the next.
    pub fn hold(&self, functions: impl Iterator<Item = FunctionId>) {
        let functions: Vec<FunctionId> = functions.collect();
        self.learn(&functions);
        self.names.read().unwrap_or_else(PoisonError::into_inner).mark(functions.into_iter(), self.round());
    }

    /// These call paths, and with them their functions, are held for long: they are not forgotten in this round and the next.
    pub fn hold_paths(&self, paths: impl Iterator<Item = PathId>) {
        self.paths.hold(paths, self.round());
    }

    /// What is asked for from now on may be in flight until this hop.
    pub fn in_flight(&self, until: Hop) {
        self.rounds.in_flight(until.0);
    }

    /// This worker holds nothing for long but what it has marked in this round. Once all workers have said so, what none of them
    /// holds, and nobody met in this round and the one before, is forgotten, unless what was met earlier is still
    /// [in flight](Self::in_flight). This worker has closed `hop`.
    pub fn finish_round(&self, worker: usize, workers: usize, hop: Hop) {
        let processes = self.elsewhere.as_ref().map_or(1, |elsewhere| elsewhere.processes);
        self.rounds.finish(worker, workers / processes, hop.0, |first| {
            let functions = self.paths.forget_before(first);
            let mut table = self.names.write().unwrap_or_else(PoisonError::into_inner);
            for (id, round) in functions {
                table.mark(std::iter::once(id), round);
            }
            let forgotten = table.forget_before(first);
            match &self.elsewhere {
                Some(Elsewhere { numbers, .. }) => {
                    numbers.let_go(Forgotten::Functions(forgotten));
                    numbers.finish_round(hop.0);
                }
                None => table.release(forgotten),
            }
        });
    }
}

/// What other processes ask of the first one. All that is given is held for them.
impl FunctionTable {
    /// The numbers of these names.
    pub(crate) fn give_numbers(&self, process: usize, names: &[Arc<str>]) -> Vec<FunctionId> {
        let round = self.round();
        let mut table = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let mut number = |name: &Arc<str>| {
            let id = table.number_of(Arc::clone(name), round, named);
            table.entry(id).1.hold(process);
            id
        };
        names.iter().map(&mut number).collect()
    }

    /// The names of these numbers; `None` if one is nobody's.
    pub(crate) fn give_names(&self, process: usize, functions: &[FunctionId]) -> Option<Vec<Arc<str>>> {
        let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let name = |&id: &FunctionId| {
            let ((_, name), mark) = table.get(id).filter(|(_, mark)| mark.is_met())?;
            mark.hold(process);
            Some(Arc::clone(name))
        };
        functions.iter().map(name).collect()
    }

    /// The paths of these stacks, one for each frame.
    pub(crate) fn give_paths(&self, process: usize, stacks: &[Vec<FunctionId>]) -> Vec<Vec<PathId>> {
        self.paths.give(process, stacks, self.round())
    }

    /// These paths and those with which they begin; `None` if one is nobody's.
    pub(crate) fn give_nodes(&self, process: usize, paths: &[PathId]) -> Option<Vec<(PathId, Node)>> {
        self.paths.give_nodes(process, paths)
    }

    /// Another process has forgotten these.
    pub(crate) fn take_back(&self, process: usize, forgotten: &Forgotten) {
        let round = self.round();
        match forgotten {
            Forgotten::Functions(functions) => {
                let table = self.names.read().unwrap_or_else(PoisonError::into_inner);
                let entries = functions.iter().filter_map(|&id| table.get(id));
                entries.for_each(|(_, mark)| mark.let_go(process, round));
            }
            Forgotten::Paths(paths) => self.paths.take_back(process, paths, round),
        }
    }
}

fn named(name: &Arc<str>) -> (u64, Arc<str>) {
    (stable_hash(name.as_bytes()), Arc::clone(name))
}

/// The functions of one cell, numbered densely in the order in which the cell met them. The number of a function that was forgotten
/// goes to a later one.
///
/// In a checkpoint it has the numbers of the process only, and is of use once it was [restored](Self::restore).
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CellFunctions {
    /// By the cell's number: the process's.
    ids: Vec<FunctionId>,
    /// By the cell's number: the place in columns.
    places: Vec<u32>,
    /// Numbers that are free, descending.
    free: Vec<usize>,
    /// By the process's number: the place in columns.
    #[serde(skip)]
    met: Places,
    /// By the cell's number: stable hash and name; no name where the number is free.
    #[serde(skip)]
    entries: Vec<(u64, Arc<str>)>,
    /// By place: the cell's number.
    #[serde(skip)]
    numbers: Vec<u32>,
    /// The cell's numbers of what stands for several functions.
    #[serde(skip)]
    of_several: Untested,
}

impl CellFunctions {
    /// Adds the functions of `ids` that are new to the cell: numbers in the order of their stable hashes, places in the
    /// order of the process as far as numbers are new.
    pub fn admit(&mut self, ids: impl Iterator<Item = FunctionId>, table: &FunctionTable) {
        let mut new: Vec<FunctionId> = ids.filter(|&id| self.place(id).is_none()).collect();
        new.sort_unstable();
        new.dedup();
        let mut named: Vec<_> = table.entries(&new).into_iter().zip(new).collect();
        named.sort_unstable();
        let mut met = Vec::with_capacity(named.len());
        let reused = named.len().min(self.free.len());
        let mut appended = named.split_off(reused);
        for (entry, id) in named {
            let Some(number) = self.free.pop() else { continue };
            self.find_of_several(number, entry.0);
            (self.entries[number], self.ids[number]) = (entry, id);
            met.push((id, self.places[number]));
        }
        let mut by_id: Vec<FunctionId> = appended.iter().map(|(_, id)| *id).collect();
        by_id.sort_unstable();
        let first = self.len();
        self.numbers.resize(first + by_id.len(), 0);
        for (entry, id) in appended.drain(..) {
            let place = short(first + by_id.partition_point(|&other| other < id));
            self.numbers[index_of(place)] = short(self.entries.len());
            self.find_of_several(self.entries.len(), entry.0);
            self.entries.push(entry);
            self.ids.push(id);
            self.places.push(place);
            met.push((id, place));
        }
        self.met.extend(&met, self.entries.len());
    }

    /// Gives its functions the names that the process knows, after it was read from a checkpoint.
    ///
    /// # Errors
    /// A number for which the process has no name.
    pub(super) fn restore(&mut self, table: &FunctionTable) -> Result<(), FunctionId> {
        let numbers: Vec<usize> = self.taken().collect();
        let ids: Vec<FunctionId> = self.ids().collect();
        self.entries = vec![(0, "".into()); self.ids.len()];
        for (&number, entry) in numbers.iter().zip(table.known(&ids)?) {
            self.find_of_several(number, entry.0);
            self.entries[number] = entry;
        }
        self.numbers = vec![0; self.places.len()];
        for (number, &place) in (0..).zip(&self.places) {
            self.numbers[index_of(place)] = number;
        }
        let met: Vec<(FunctionId, u32)> =
            numbers.iter().map(|&number| (self.ids[number], self.places[number])).collect();
        self.met.extend(&met, self.entries.len());
        Ok(())
    }

    fn find_of_several(&mut self, number: usize, hash: u64) {
        if let Some(which) = which_of_several(hash) {
            self.of_several[which] = Some(number);
        }
    }

    /// The cell's numbers of what stands for several functions, and so is never tested.
    pub fn untested(&self) -> Untested {
        self.of_several
    }

    /// Forgets the functions whose places are not used.
    pub(super) fn forget_unused(&mut self, is_used: impl Fn(usize) -> bool) {
        let is_left = |&number: &usize| !is_used(index_of(self.places[number]));
        let left: Vec<usize> = self.taken().filter(is_left).collect();
        for &number in &left {
            self.met.forget(self.ids[number]);
            self.entries[number] = (0, "".into());
            self.of_several.iter_mut().for_each(|one| *one = one.filter(|&one| one != number));
        }
        self.free.extend(left);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// The process's numbers of the cell's functions.
    pub(super) fn ids(&self) -> impl Iterator<Item = FunctionId> {
        self.taken().map(|number| self.ids[number])
    }

    /// The cell's numbers that are not free, ascending.
    fn taken(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&number| !self.is_free(number))
    }

    fn is_free(&self, number: usize) -> bool {
        self.free.binary_search_by(|other| number.cmp(other)).is_ok()
    }

    /// The place of a function in columns, if the cell has met it.
    #[inline]
    pub fn place(&self, id: FunctionId) -> Option<usize> {
        self.met.get(id)
    }

    /// The cell's number of a function, if the cell has met it.
    pub fn get(&self, id: FunctionId) -> Option<usize> {
        self.place(id).map(|place| self.number(place))
    }

    /// The cell's number of the function at a place in columns.
    pub fn number(&self, place: usize) -> usize {
        index_of(self.numbers[place])
    }

    /// Places in columns, by the cell's number.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// How many functions have a number in the cell, with numbers that are free.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the cell has met none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Stable hash and name by the cell's number.
    pub fn entries(&self) -> &[(u64, Arc<str>)] {
        &self.entries
    }
}

fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_a_cell_does_not_depend_on_the_process() {
        let names: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Arc::from).to_vec();
        let reversed: Vec<Arc<str>> = names.iter().rev().cloned().collect();
        let cell = |order: &[Arc<str>]| {
            let table = FunctionTable::default();
            table.intern(order);
            let mut cell = CellFunctions::default();
            cell.admit(table.intern(&names[2..]).into_iter(), &table);
            cell.admit(table.intern(&names).into_iter(), &table);
            let ids = table.intern(&names);
            let places: Vec<_> = names.iter().zip(&ids).map(|(name, &id)| (cell.place(id), name.clone())).collect();
            (cell, places)
        };
        let (one, other) = (cell(&names), cell(&reversed));
        assert_eq!(one.0.entries(), other.0.entries());
        assert_eq!(one.0.len(), 4);
        for (cell, places) in [one, other] {
            for (place, name) in places {
                let number = cell.number(place.unwrap_or(9));
                assert_eq!(cell.entries()[number].1, name);
                assert_eq!(Some(index_of(cell.places()[number])), place);
            }
        }
    }

    #[test]
    fn a_cell_of_a_checkpoint_has_the_names_of_the_process() {
        let table = FunctionTable::default();
        let names: Vec<Arc<str>> = ["a", "b", OVERFLOW, "c"].map(Arc::from).to_vec();
        let ids = table.intern(&names);
        let mut cell = CellFunctions::default();
        cell.admit(ids[1..].iter().copied(), &table);
        let forgotten = cell.place(ids[1]);
        cell.forget_unused(|place| Some(place) != forgotten);
        let read = || postcard::from_bytes::<CellFunctions>(&postcard::to_stdvec(&cell).unwrap()).unwrap();
        let mut restored = read();
        assert_eq!(restored.restore(&table), Ok(()));
        let known = |cell: &CellFunctions| {
            (
                cell.entries().to_vec(),
                cell.untested(),
                cell.numbers.clone(),
                ids.iter().map(|&id| cell.get(id)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(known(&restored), known(&cell));
        assert_eq!(restored.untested().iter().flatten().count(), 1);
        let other = FunctionTable::default();
        other.intern(&names[..2]);
        assert_eq!(read().restore(&other), Err(ids[2]), "a number without a name is said");
    }
}
