//! Call paths as numbers, and samples by call path.
//!
//! A path is a node of the tree of all stacks that this process has met: its parent and the function that was called.
//! Like [functions](super::functions), paths are numbered in whatever order workers meet them, and nothing that leaves
//! a cell depends on that order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{Stack, shared_frames};
use fleetdiff_schemas::time::Hop;
use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::encoding::{Entry, pull, push};
use super::ids::{EMPTY, FunctionId, PathId};
use super::numbered::Numbered;
use super::numbers::{Forgotten, Numbers};
use super::rounds::{Mark, Rounds};

/// The call paths that this process has met, shared by its workers.
#[derive(Debug, Default)]
pub struct PathTable {
    paths: RwLock<Paths>,
    /// If another process gives the numbers: it, and the rounds of this one.
    elsewhere: Option<(Arc<dyn Numbers>, Arc<Rounds>)>,
}

/// A path without its last function, and that function.
pub(crate) type Node = (PathId, FunctionId);

/// Paths by number.
#[derive(Debug)]
struct Paths(Numbered<Node, Node, FixedState>);

impl Default for Paths {
    fn default() -> Self {
        // The empty path is no call.
        Self(Numbered::from_one())
    }
}

impl Paths {
    /// The path and those that it begins with, except the empty one.
    fn up(&self, path: PathId) -> impl Iterator<Item = &(Node, Mark)> {
        let entry = |path: PathId| self.0.get(path).filter(|(_, mark)| path != EMPTY && mark.is_met());
        std::iter::successors(entry(path), move |((caller, _), _)| entry(*caller))
    }

    /// The functions of a path, root first.
    fn frames(&self, path: PathId) -> Vec<FunctionId> {
        let mut frames: Vec<FunctionId> = self.up(path).map(|((_, function), _)| *function).collect();
        frames.reverse();
        frames
    }

    /// Marks a path and those that it begins with: what is marked has its beginnings marked too.
    fn mark(&self, path: PathId, round: u32) {
        self.up(path).take_while(|(_, mark)| mark.get() < round).for_each(|(_, mark)| mark.set(round));
    }

    /// Asks another process for the numbers of the stacks that have none here.
    fn ask_for(&mut self, stacks: &[Stack], ids: &[FunctionId], round: u32, numbers: &dyn Numbers) {
        let mut walk = Walk::new(ids);
        let id = |frame: &u32| usize::try_from(*frame).ok().and_then(|frame| ids.get(frame)).copied();
        let mut unknown: Vec<Vec<FunctionId>> = Vec::new();
        for stack in stacks {
            if walk.down(stack, |path, function| self.0.find(&(path, function), round)).is_none() {
                unknown.push(stack.frames.iter().filter_map(id).collect());
            }
        }
        for (functions, paths) in unknown.iter().zip(numbers.of_stacks(&unknown)) {
            let callers = std::iter::once(EMPTY).chain(paths.iter().copied());
            for (node, &path) in callers.zip(functions.iter().copied()).zip(&paths) {
                self.0.put(path, node, node, round);
            }
        }
    }
}

/// Walks stacks down the tree. The frames that a stack shares with the one before are not walked again; they are many
/// if stacks come in the order of a tree.
struct Walk<'a> {
    ids: &'a [FunctionId],
    before: &'a [u32],
    /// The path after each frame of the stack before.
    paths: Vec<PathId>,
}

impl<'a> Walk<'a> {
    fn new(ids: &'a [FunctionId]) -> Self {
        Self { ids, before: &[], paths: Vec::new() }
    }

    /// The path of a stack; `step` gives the path of a function called from a path.
    fn down(&mut self, stack: &'a Stack, mut step: impl FnMut(PathId, FunctionId) -> Option<PathId>) -> Option<PathId> {
        let shared = shared_frames(&stack.frames, self.before);
        self.paths.truncate(shared);
        let mut path = self.paths.last().copied().unwrap_or(EMPTY);
        self.before = &[];
        for &frame in &stack.frames[shared..] {
            if let Some(&function) = usize::try_from(frame).ok().and_then(|frame| self.ids.get(frame)) {
                path = step(path, function)?;
            }
            self.paths.push(path);
        }
        self.before = &stack.frames;
        Some(path)
    }
}

impl PathTable {
    /// A table with these paths, as [`Self::numbered`] gave them; `None` if they contradict themselves.
    pub(super) fn of(paths: &[(PathId, Node)]) -> Option<Self> {
        let numbered = paths.iter().map(|&(path, node)| (path, node, node));
        Some(Self { paths: RwLock::new(Paths(Numbered::from_one().put_back(numbered)?)), elsewhere: None })
    }

    /// A table of numbers that another process gives.
    pub(super) fn numbered_by(numbers: Arc<dyn Numbers>, rounds: Arc<Rounds>) -> Self {
        Self { elsewhere: Some((numbers, rounds)), ..Self::default() }
    }

    /// All paths with their numbers, ascending by number.
    pub(crate) fn numbered(&self) -> Vec<(PathId, Node)> {
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        let mut paths: Vec<_> = table.0.numbers().map(|(node, path)| (path, *node)).collect();
        paths.sort_unstable();
        paths
    }

    /// See [`FunctionTable::intern_paths`](super::functions::FunctionTable::intern_paths).
    pub(super) fn intern(&self, stacks: &[Stack], ids: &[FunctionId], round: u32) -> Vec<PathId> {
        let known = {
            let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
            let mut walk = Walk::new(ids);
            stacks
                .iter()
                .map(|stack| walk.down(stack, |path, function| table.0.find(&(path, function), round)))
                .collect::<Option<Vec<_>>>()
        };
        known.unwrap_or_else(|| {
            let mut table = self.paths.write().unwrap_or_else(PoisonError::into_inner);
            if let Some((numbers, _)) = &self.elsewhere {
                // NB: under the lock, see `FunctionTable::intern`.
                table.ask_for(stacks, ids, round, numbers.as_ref());
            }
            let mut walk = Walk::new(ids);
            stacks
                .iter()
                .filter_map(|stack| {
                    walk.down(stack, |path, function| Some(table.0.number_of((path, function), round, |node| *node)))
                })
                .collect()
        })
    }

    /// Learns these paths and those with which they begin, if their numbers are those of another process, and keeps them in this round
    /// and the next.
    pub(super) fn learn(&self, paths: &[PathId]) {
        let Some((numbers, rounds)) = &self.elsewhere else { return };
        let round = rounds.now();
        let unknown = |table: &Paths| table.0.mark(paths.iter().copied().filter(|&path| path != EMPTY), round);
        let is_known = {
            let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
            paths.iter().for_each(|&path| table.mark(path, round));
            unknown(&table).is_empty()
        };
        if is_known {
            return;
        }
        let mut table = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        let unknown = unknown(&table);
        for (path, node) in numbers.nodes(&unknown) {
            table.0.put(path, node, node, round);
        }
    }

    /// A path and those that it begins with, down to the empty one.
    pub fn beginnings(&self, path: PathId) -> Vec<PathId> {
        self.learn(&[path]);
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        let shorter = table.up(path).map(|((caller, _), _)| *caller);
        std::iter::once(path).chain(shorter).collect()
    }

    /// The functions of a path, root first.
    pub fn frames(&self, path: PathId) -> Vec<FunctionId> {
        self.learn(&[path]);
        self.paths.read().unwrap_or_else(PoisonError::into_inner).frames(path)
    }

    /// The functions of each of these paths, root first.
    pub(super) fn frames_of(&self, paths: &[PathId]) -> Vec<Vec<FunctionId>> {
        self.learn(paths);
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths.iter().map(|&path| table.frames(path)).collect()
    }

    /// The number of paths that have a number.
    pub fn count(&self) -> usize {
        self.paths.read().unwrap_or_else(PoisonError::into_inner).0.len()
    }

    /// See [`FunctionTable::hold_paths`](super::functions::FunctionTable::hold_paths).
    pub(super) fn hold(&self, paths: impl Iterator<Item = PathId>, round: u32) {
        let paths: Vec<PathId> = paths.collect();
        self.learn(&paths);
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths.into_iter().for_each(|path| table.mark(path, round));
    }

    /// Forgets what was not marked since round `first` and is held nowhere else. Gives the functions of the other paths, with the round
    /// in which they were marked, at least `first`.
    pub(super) fn forget_before(&self, first: u32) -> Vec<(FunctionId, u32)> {
        let mut table = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        let forgotten = table.0.forget_before(first);
        match &self.elsewhere {
            Some((numbers, _)) => numbers.let_go(Forgotten::Paths(forgotten)),
            None => table.0.release(forgotten),
        }
        let met = |mark: &Mark| mark.get().max(first);
        let mut functions: Vec<_> = table.0.entries().map(|((_, function), mark)| (*function, met(mark))).collect();
        functions.sort_unstable();
        functions.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 = if is_same { next.1 } else { kept.1 };
            is_same
        });
        functions
    }

    /// See [`FunctionTable::give_paths`](super::functions::FunctionTable::give_paths).
    pub(super) fn give(&self, process: usize, stacks: &[Vec<FunctionId>], round: u32) -> Vec<Vec<PathId>> {
        let mut table = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        let mut give = |stack: &Vec<FunctionId>| {
            let mut path = EMPTY;
            let mut down = |&function: &FunctionId| {
                path = table.0.number_of((path, function), round, |node| *node);
                table.0.entry(path).1.hold(process);
                path
            };
            stack.iter().map(&mut down).collect()
        };
        stacks.iter().map(&mut give).collect()
    }

    /// See [`FunctionTable::give_nodes`](super::functions::FunctionTable::give_nodes).
    pub(super) fn give_nodes(&self, process: usize, paths: &[PathId]) -> Option<Vec<(PathId, Node)>> {
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        let mut nodes = BTreeMap::new();
        for &path in paths {
            let mut next = path;
            while next != EMPTY && !nodes.contains_key(&next) {
                let (node, mark) = table.0.get(next).filter(|(_, mark)| mark.is_met())?;
                mark.hold(process);
                nodes.insert(next, *node);
                next = node.0;
            }
        }
        Some(nodes.into_iter().collect())
    }

    /// Another process has forgotten these.
    pub(super) fn take_back(&self, process: usize, paths: &[PathId], round: u32) {
        let table = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        let entries = paths.iter().filter_map(|&path| table.0.get(path));
        entries.for_each(|(_, mark)| mark.let_go(process, round));
    }

    /// Folds bytes of [`encode_paths`] to counts by function, ascending by function, as
    /// [`fold_stacks`](fleetdiff_schemas::fold::fold_stacks) folds the stacks of these paths.
    pub fn fold(&self, paths: &[u8]) -> Vec<Entry> {
        let mut functions: BTreeMap<FunctionId, Entry> = BTreeMap::new();
        let (paths, counts): (Vec<PathId>, Vec<u64>) = decode_paths(paths).unzip();
        for (mut frames, count) in self.frames_of(&paths).into_iter().zip(counts) {
            let leaf = frames.last().copied();
            frames.sort_unstable();
            frames.dedup();
            for function in frames {
                let entry = functions.entry(function).or_insert(Entry { function, own: 0, total: 0 });
                entry.total += count;
                entry.own += if leaf == Some(function) { count } else { 0 };
            }
        }
        functions.into_values().collect()
    }
}

/// Samples by path as bytes: one entry per path, ascending, LEB128 of the distance to the path before and of the count.
pub fn encode_paths(mut samples: Vec<(PathId, u64)>) -> Vec<u8> {
    samples.sort_unstable();
    let mut bytes = Vec::with_capacity(samples.len() * 3);
    let mut previous = 0;
    for group in samples.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(path, _)) = group.first() else { continue };
        push(&mut bytes, u64::from(path - previous));
        push(&mut bytes, group.iter().map(|(_, count)| count).sum());
        previous = path;
    }
    bytes
}

/// The entries of bytes made by [`encode_paths`].
pub fn decode_paths(bytes: &[u8]) -> impl Iterator<Item = (PathId, u64)> + '_ {
    let (mut rest, mut path): (&[u8], PathId) = (bytes, 0);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        path = path.wrapping_add(PathId::try_from(pull(&mut rest)).unwrap_or(0));
        Some((path, pull(&mut rest)))
    })
}

/// The sum, by path, of what several [`encode_paths`] made.
pub fn sum_of_paths<'a>(mut parts: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    match parts.len() {
        1 => parts.next().unwrap_or_default().to_vec(),
        _ => encode_paths(parts.flat_map(decode_paths).collect()),
    }
}

/// Samples of one build in one time block, by path.
pub type PathCounts = HashMap<PathId, u64, FixedState>;

/// The call trees of a cell: one per build and time block, of everything that was counted there. They do not follow the
/// window. A tree is kept as long as its block belongs to the epoch of a comparison; it shows which function calls
/// which, but not how much of that lies within the window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CallTrees {
    blocks: BTreeMap<Hop, BTreeMap<Build, PathCounts>>,
}

impl CallTrees {
    /// Adds bytes of [`encode_paths`].
    pub fn add(&mut self, block: Hop, build: &Build, paths: &[u8]) {
        if paths.is_empty() {
            return;
        }
        let builds = self.blocks.entry(block).or_default();
        if !builds.contains_key(build) {
            builds.insert(build.clone(), PathCounts::default());
        }
        let Some(counts) = builds.get_mut(build) else { return };
        for (path, count) in decode_paths(paths) {
            *counts.entry(path).or_insert(0) += count;
        }
    }

    /// Keeps only the trees of these blocks.
    pub fn keep(&mut self, kept: impl Fn(Hop) -> bool) {
        self.blocks.retain(|&block, _| kept(block));
    }

    /// The paths of all trees; one may come several times.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathId> {
        self.blocks.values().flat_map(BTreeMap::values).flat_map(|counts| counts.keys().copied())
    }

    /// The trees of some builds in the blocks of an epoch that began at `since`.
    pub fn of<'a>(&'a self, since: Hop, builds: &'a [Build]) -> impl Iterator<Item = (Hop, &'a PathCounts)> + 'a {
        let of_block = |(&block, trees): (&Hop, &'a BTreeMap<Build, PathCounts>)| {
            builds.iter().filter_map(|build| trees.get(build)).map(|tree| (block, tree)).collect::<Vec<_>>()
        };
        self.blocks.range(since..).flat_map(of_block)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rounds::FIRST;
    use super::*;

    fn stack(frames: &[u32], count: u64) -> Stack {
        Stack { frames: frames.to_vec(), count, cohort: None, value: 0 }
    }

    #[test]
    fn a_path_has_one_number_whoever_asks() {
        let table = PathTable::default();
        let ids = [7, 8, 9];
        let (main, read, again) = (stack(&[0], 1), stack(&[0, 2], 1), stack(&[0, 2, 2], 1));
        let first = table.intern(&[read.clone(), main.clone(), again], &ids, FIRST);
        assert_eq!(table.intern(&[main, read], &ids, FIRST), [first[1], first[0]]);
        assert_eq!(table.frames(first[2]), [7, 9, 9]);
        assert_eq!(table.intern(&[stack(&[], 3)], &ids, FIRST), [EMPTY]);
        assert_eq!(table.frames(EMPTY), Vec::<FunctionId>::new());
    }

    proptest! {
        /// The law: folding paths gives the same as folding their stacks, including recursion.
        #[test]
        fn oracle_paths_fold_as_their_stacks_do(stacks in prop::collection::vec((prop::collection::vec(0u32..4, 0..6), 0u64..50), 0..30)) {
            let stacks: Vec<Stack> = stacks.into_iter().map(|(frames, count)| stack(&frames, count)).collect();
            let (table, ids) = (PathTable::default(), [7, 3, 9, 5]);
            let names: Vec<std::sync::Arc<str>> = ["a", "b", "c", "d"].map(Into::into).to_vec();
            let samples = table.intern(&stacks, &ids, FIRST).into_iter().zip(&stacks).filter(|(_, stack)| stack.count > 0);
            let folded = table.fold(&encode_paths(samples.map(|(path, stack)| (path, stack.count)).collect()));
            let expected: BTreeMap<FunctionId, (u64, u64)> = fleetdiff_schemas::fold::fold_stacks(&names, &stacks, &"x".into())
                .iter()
                .flat_map(|part| &part.functions)
                .map(|f| (ids[usize::try_from(f.name).unwrap_or(9)], (f.own, f.total)))
                .collect();
            prop_assert!(folded.is_sorted_by(|a, b| a.function < b.function));
            prop_assert_eq!(folded.into_iter().map(|entry| (entry.function, (entry.own, entry.total))).collect::<BTreeMap<_, _>>(), expected);
        }

        /// The law: decoding gives what was encoded, with equal paths summed.
        #[test]
        fn paths_come_back(samples in prop::collection::vec((0u32..1000, 1u64..1 << 40), 0..50)) {
            let mut sums = BTreeMap::new();
            samples.iter().for_each(|&(path, count)| *sums.entry(path).or_insert(0) += count);
            let bytes = encode_paths(samples);
            prop_assert_eq!(decode_paths(&bytes).collect::<Vec<_>>(), sums.into_iter().collect::<Vec<_>>());
        }
    }
}
