//! The counts of one cell: window and epochs, by stratum, build and bucket.
//!
//! Each addition is kept by its own hop, as bytes. An epoch consists of whole time blocks. While the epoch of an open
//! comparison contains a block, what leaves the window is added once more, to the columns of what has left: the epoch
//! is what was added, and the window is what was added less what has left. Each sample thus costs two additions. It is
//! subtracted only if no comparison is open: then the same bytes are subtracted in place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Bucket, Build, Hardware};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::Scope;
use serde::{Deserialize, Serialize};

use super::archive::{Archive, Keeping};
use super::bucket::{Addition, BucketState, StratumKey, known};
use super::encoding::{Entry, decode};
use super::functions::{CellFunctions, FunctionTable};
use super::ids::FunctionId;
use super::load::LoadCounts;
use super::merged::MergedCounts;
use super::paths::CallTrees;

/// Counts by build and bucket; only occupied buckets exist.
type Arms = BTreeMap<(Build, Bucket), BucketState>;

/// The part of a stratum that has left the window and is kept for an epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
enum Left {
    /// Nothing: what leaves the window is subtracted.
    #[default]
    Nothing,
    /// This part.
    Part(Arms),
    /// All of it.
    All,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stratum {
    /// What was added and not subtracted.
    added: Arms,
    left: Left,
}

impl Stratum {
    fn place(&mut self, addition: &Addition) -> &mut BucketState {
        if matches!(self.left, Left::All) {
            self.left = Left::Part(self.added.clone());
        }
        self.added.entry((addition.build.clone(), addition.bucket)).or_default()
    }

    /// Removes an addition from the window; it is `kept` for an epoch, or subtracted.
    fn expire(&mut self, addition: &Addition, functions: &CellFunctions, kept: bool) {
        let place = (addition.build.clone(), addition.bucket);
        if kept && matches!(self.left, Left::Nothing) {
            self.left = Left::Part(Arms::new());
        }
        if let Left::Part(left) = &mut self.left {
            let state = left.entry(place).or_default();
            state.add(addition);
            state.add_entries(known(addition, functions));
        } else if let Some(state) = self.added.get_mut(&place) {
            state.subtract(addition, functions);
            if state.is_empty() {
                self.added.remove(&place);
            }
        }
    }

    /// Subtracts what has left the window: no epoch needs it any more.
    fn forget(&mut self) {
        match std::mem::take(&mut self.left) {
            Left::Nothing => {}
            Left::Part(left) => {
                for (place, state) in left {
                    if let Some(added) = self.added.get_mut(&place) {
                        *added = added.without(&state);
                    }
                }
                self.added.retain(|_, state| !state.is_empty());
            }
            Left::All => self.added.clear(),
        }
    }

    /// One set of columns is enough once everything has left.
    fn settle(&mut self) {
        let sums =
            |arms: &Arms| arms.values().fold((0, 0), |sums, state| (sums.0 + state.samples, sums.1 + state.requests));
        if matches!(&self.left, Left::Part(left) if sums(left) == sums(&self.added)) {
            self.left = Left::All;
        }
    }
}

/// The counts of a stratum in a scope.
#[derive(Clone, Copy, Debug)]
pub struct StratumCounts<'a> {
    stratum: &'a Stratum,
    scope: Scope,
}

impl<'a> StratumCounts<'a> {
    /// The occupied buckets of a build, ascending.
    pub fn buckets(self, build: &Build) -> impl Iterator<Item = (Bucket, Cow<'a, BucketState>)> {
        let places = (build.clone(), Bucket(0))..=(build.clone(), Bucket(u8::MAX));
        let states = self
            .stratum
            .added
            .range(places)
            .filter_map(move |(place, added)| Some((place.1, self.in_scope(place, added)?)));
        states.filter(|(_, state)| state.samples > 0)
    }

    fn in_scope(self, place: &(Build, Bucket), added: &'a BucketState) -> Option<Cow<'a, BucketState>> {
        match (self.scope, &self.stratum.left) {
            (Scope::Epoch, _) | (_, Left::Nothing) => Some(Cow::Borrowed(added)),
            (Scope::Window, Left::All) => None,
            (Scope::Window, Left::Part(left)) => {
                Some(left.get(place).map_or(Cow::Borrowed(added), |left| Cow::Owned(added.without(left))))
            }
        }
    }
}

/// The counts of one cell.
#[derive(Debug, Serialize, Deserialize)]
pub struct CellCounts {
    functions: CellFunctions,
    strata: BTreeMap<StratumKey, Stratum>,
    ring: BTreeMap<Hop, Vec<(StratumKey, Addition)>>,
    calls: CallTrees,
    archive: Archive,
    load: LoadCounts,
    /// The window by build alone, if the method reads it.
    merged: Option<MergedCounts>,
}

impl CellCounts {
    /// A cell without counts; `keeping` says what is kept of what leaves the window.
    pub fn new(clock: HopClock, keeping: Option<Keeping>) -> Self {
        Self {
            functions: CellFunctions::default(),
            strata: BTreeMap::new(),
            ring: BTreeMap::new(),
            calls: CallTrees::default(),
            archive: Archive::new(keeping),
            load: LoadCounts::new(clock),
            merged: None,
        }
    }

    /// The cell without counts, which also sums its window by build alone.
    pub fn merging(self) -> Self {
        Self { merged: Some(MergedCounts::default()), ..self }
    }

    /// The window by build alone, if the cell sums it.
    pub fn merged(&self) -> Option<&MergedCounts> {
        self.merged.as_ref()
    }

    /// What was served and sampled minute by minute.
    pub fn load(&self) -> &LoadCounts {
        &self.load
    }

    /// What is kept after it has left the window.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The functions that the cell has met.
    pub fn functions(&self) -> &CellFunctions {
        &self.functions
    }

    /// Adds the additions of one hop. Their own hops lie in the window.
    pub fn add(&mut self, additions: Vec<Addition>, blocks: &Blocks, table: &FunctionTable) {
        table.meet_paths(additions.iter().map(|addition| &*addition.paths));
        let keyed = additions.into_iter().map(|mut addition| {
            self.calls.add(blocks.of(addition.own), &addition.build, &std::mem::take(&mut addition.paths));
            let key =
                StratumKey { block: blocks.of(addition.own), hardware: addition.hardware.clone(), age: addition.age };
            (key, addition)
        });
        let additions: Vec<(StratumKey, Addition)> = keyed.collect();
        let mut unmet = Vec::new();
        for (key, addition) in &additions {
            let state = place(&mut self.strata, key, addition);
            state.add(addition);
            let functions = &self.functions;
            let met = |entry: Entry| {
                let function = functions.place(entry.function);
                if function.is_none() {
                    unmet.push((key, addition, entry));
                }
                Some((function?, entry))
            };
            state.add_entries(decode(&addition.functions).filter_map(met));
        }
        if !unmet.is_empty() {
            self.functions.admit(unmet.iter().map(|(_, _, entry)| entry.function), table);
        }
        for (key, addition, entry) in unmet {
            if let Some(function) = self.functions.place(entry.function) {
                place(&mut self.strata, key, addition).add_entries(std::iter::once((function, entry)));
            }
        }
        let late: Vec<Addition> =
            additions.iter().map(|(_, addition)| addition).filter(|one| self.load.is_late(one)).cloned().collect();
        for (key, addition) in additions {
            if let Some(merged) = &mut self.merged {
                merged.add(&addition, &self.functions);
            }
            self.ring.entry(addition.own).or_default().push((key, addition));
        }
        self.load.add_late(&late, &self.ring, &self.functions);
    }

    /// Sums the minutes that are over once `hop` has closed, if they lie in the window, which begins with `first`.
    pub fn close_minutes(&mut self, hop: Hop, first: Hop) {
        self.load.close(hop, first, &self.ring, &self.functions);
    }

    /// Removes from the window what happened before `first`, its first hop. `epoch` is the earliest epoch of an open
    /// comparison; whole strata of blocks from there on are kept. Without an epoch nothing outside the window is kept.
    pub fn expire(&mut self, first: Hop, epoch: Option<Hop>) {
        let kept = |block: Hop| epoch.is_some_and(|epoch| epoch <= block);
        while let Some(hop) = self.ring.first_entry().filter(|hop| *hop.key() < first) {
            for (key, addition) in hop.remove() {
                if let Some(merged) = &mut self.merged {
                    merged.subtract(&addition, &self.functions);
                }
                if let Some(stratum) = self.strata.get_mut(&key) {
                    stratum.expire(&addition, &self.functions, kept(key.block));
                }
                if self.archive.keeps(addition.own, key.age) {
                    self.archive.take(key, addition, &self.functions);
                }
            }
        }
        self.archive.forget(first);
        self.calls.keep(kept);
        self.strata.retain(|key, stratum| {
            if kept(key.block) {
                stratum.settle();
            } else {
                stratum.forget();
            }
            !stratum.added.is_empty()
        });
    }

    /// Drops what is kept of builds after it has left the window.
    pub fn forget_builds(&mut self, builds: &[Build]) {
        if !builds.is_empty() {
            self.archive.forget_builds(builds);
        }
    }

    /// Forgets functions that nothing is known of any more, except those that `is_held` names by the cell's numbers, and marks those
    /// that stay in the table of the process.
    pub fn forget_functions(&mut self, is_held: impl Fn(usize) -> bool, table: &FunctionTable) {
        let mut used = vec![false; self.functions.len()];
        self.strata.values().flat_map(|stratum| stratum.added.values()).for_each(|state| state.mark_used(&mut used));
        // What is in the window may be a value without a count.
        for (_, addition) in self.ring.values().flatten() {
            let values = decode(&addition.values).filter_map(|entry| self.functions.place(entry.function));
            values.for_each(|place| used[place] = true);
        }
        self.archive.mark_used(&mut used, &self.functions);
        self.load.mark_used(&mut used);
        let numbers: Vec<usize> = (0..used.len()).map(|place| self.functions.number(place)).collect();
        self.functions.forget_unused(|place| used[place] || is_held(numbers[place]));
        table.hold(self.functions.ids());
        table.hold_paths(self.calls.paths());
    }

    /// Gives its functions the names that the process knows, after it was read from a checkpoint.
    ///
    /// # Errors
    /// A number for which the process has no name.
    pub(crate) fn restore(&mut self, table: &FunctionTable) -> Result<(), FunctionId> {
        self.functions.restore(table)
    }

    /// Whether nothing is counted or kept.
    pub fn is_empty(&self) -> bool {
        self.strata.is_empty() && self.ring.is_empty() && self.archive.is_empty()
    }

    /// The strata of a scope in ascending order; an epoch begins at `since`.
    pub fn strata(&self, scope: Scope, since: Hop) -> impl Iterator<Item = (&StratumKey, StratumCounts<'_>)> {
        let held = self.strata.iter().filter(move |(key, _)| scope == Scope::Window || key.block >= since);
        held.map(move |(key, stratum)| (key, StratumCounts { stratum, scope }))
    }

    /// What is within the window, hop by hop in the order of arrival.
    pub fn in_window(&self) -> impl Iterator<Item = (&StratumKey, &Addition)> {
        self.ring.values().flatten().map(|(key, addition)| (key, addition))
    }

    /// What young pods of a build showed within the window, by their age in minutes and kind of machine.
    pub(crate) fn young(
        &self,
        build: &Build,
        clock: HopClock,
    ) -> BTreeMap<(u64, &Hardware), BTreeMap<Bucket, BucketState>> {
        let mut ages: BTreeMap<(u64, &Hardware), BTreeMap<Bucket, BucketState>> = BTreeMap::new();
        let is_young = |key: &StratumKey, addition: &Addition| {
            key.age.is_young() && addition.samples > 0 && addition.build == *build
        };
        for (key, addition) in self.in_window().filter(|(key, addition)| is_young(key, addition)) {
            let buckets = ages.entry((addition.minutes_old(clock), &key.hardware)).or_default();
            let state = buckets.entry(addition.bucket).or_default();
            state.add(addition);
            state.add_entries(known(addition, &self.functions));
        }
        ages
    }

    /// The counts of an addition, by the cell's numbers.
    pub fn entries<'a>(&'a self, addition: &'a Addition) -> impl Iterator<Item = (usize, Entry)> + 'a {
        known(addition, &self.functions).map(|(place, entry)| (self.functions.number(place), entry))
    }

    /// The values and counts of an addition by the cell's numbers, each by self and total.
    pub(crate) fn entries_with_values<'a>(
        &'a self,
        addition: &'a Addition,
    ) -> impl Iterator<Item = (usize, [(u64, u64); 2])> + 'a {
        let mut counts = decode(&addition.functions).peekable();
        let mut values = decode(&addition.values).peekable();
        let each = addition.value_of_each();
        std::iter::from_fn(move || {
            let next = counts.peek().into_iter().chain(values.peek()).map(|entry| entry.function).min()?;
            let none = Entry { function: next, own: 0, total: 0 };
            let count = counts.next_if(|entry| entry.function == next).unwrap_or(none);
            let value = match each {
                Some(each) => Entry { own: count.own * each, total: count.total * each, ..none },
                None => values.next_if(|entry| entry.function == next).unwrap_or(none),
            };
            Some((next, [(value.own, count.own), (value.total, count.total)]))
        })
        .filter_map(|(function, both)| Some((self.functions.get(function)?, both)))
    }

    /// The call trees of builds, as far as an open comparison needs them.
    pub(crate) fn call_trees(&self) -> &CallTrees {
        &self.calls
    }

    /// Bytes of columns, of the ring and of minutes.
    pub fn size(&self) -> [usize; 3] {
        let columns = |arms: &Arms| arms.values().map(BucketState::size).sum::<usize>();
        let planes = self.strata.values().map(|stratum| {
            columns(&stratum.added) + if let Left::Part(left) = &stratum.left { columns(left) } else { 0 }
        });
        let ring = self.ring.values().flatten().map(|(_, addition)| addition.functions.len()).sum();
        [planes.sum(), ring, self.load.size()]
    }
}

fn place<'a>(
    strata: &'a mut BTreeMap<StratumKey, Stratum>,
    key: &StratumKey,
    addition: &Addition,
) -> &'a mut BucketState {
    strata.entry(key.clone()).or_default().place(addition)
}

/// The time blocks of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    starts: Vec<Hop>,
}

impl Blocks {
    /// From `block` on, hops belong to a new time block.
    pub fn begin(&mut self, block: Hop) {
        self.starts.push(block);
    }

    /// Drops blocks that ended before `first`.
    pub(crate) fn forget_before(&mut self, first: Hop) {
        let after = self.starts.partition_point(|&block| block <= first);
        self.starts.drain(..after.saturating_sub(1));
    }

    /// The block that holds a hop. A hop before the first block counts to the first; only late records have such hops.
    pub fn of(&self, own: Hop) -> Hop {
        let after = self.starts.partition_point(|&block| block <= own);
        self.starts.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }
}
