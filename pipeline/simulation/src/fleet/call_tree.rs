//! The functions in which a synthetic fleet has its samples, and their callers.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::{FoldedFunction, Stack, UNSYMBOLISED, content_hash};

/// A video service on one event loop: some 300 functions on some 530 call paths, in folded form with weights.
const VIDEO_SERVICE: &str = include_str!("video_service.folded");

/// The shape of a fleet's profiles before any noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// A video service: server, middleware, handlers, codec, database client, cache, broker client, TLS, collector,
    /// allocator and kernel. `main` and `server::event_loop` are on every stack.
    VideoService,
    /// This many functions that call nothing; the share of the i-th is proportional to 1/i.
    Zipf(u32),
}

/// One call path, at whose leaf samples are taken.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Indexes of names, root first.
    pub(super) frames: Vec<u32>,
    /// Index of the last frame's name; none for a sample without frames.
    pub(super) leaf: Option<usize>,
    /// Expected share of all samples of an unchanged pod without noise.
    pub(super) share: f64,
    node: usize,
}

/// All paths of a program, laid out so that the samples of one profile are folded in one pass over the tree.
#[derive(Clone, Debug)]
pub(super) struct CallTree {
    pub(super) names: Arc<[Arc<str>]>,
    pub(super) paths: Vec<Path>,
    /// The node above each node; parents come first. Node 0 is the empty stack, its own parent.
    parents: Vec<usize>,
    /// (node, function) where the function is not already above the node: recursion counts once.
    outermost: Vec<(usize, usize)>,
}

/// Memory for one fold, reused.
#[derive(Debug, Default)]
pub(super) struct FoldRoom {
    nodes: Vec<u64>,
    own: Vec<u64>,
    total: Vec<u64>,
    seen: Vec<FoldedFunction>,
}

impl CallTree {
    /// Builds the tree; `unknown` is the share of samples whose leaf has no symbol, or that have no frame at all (half
    /// and half).
    pub(super) fn new(calls: Calls, unknown: f64) -> Self {
        let mut tree = Self { names: Arc::new([]), paths: Vec::new(), parents: vec![0], outermost: Vec::new() };
        let mut growing = Growing::default();
        match calls {
            Calls::VideoService => VIDEO_SERVICE.lines().for_each(|line| tree.add_line(line, &mut growing)),
            Calls::Zipf(functions) => (1..=functions).for_each(|rank| {
                tree.add(&[&format!("function_{rank:04}")], 1.0 / f64::from(rank), &mut growing);
            }),
        }
        let known: f64 = tree.paths.iter().map(|path| path.share).sum();
        tree.paths.iter_mut().for_each(|path| path.share *= (1.0 - unknown) / known);
        if unknown > 0.0 {
            tree.add(&[UNSYMBOLISED], unknown / 2.0, &mut growing);
            tree.add(&[], unknown / 2.0, &mut growing);
        }
        tree.names = growing.names.into();
        tree
    }

    /// One line of folded text: frames between semicolons, a space, a weight.
    fn add_line(&mut self, line: &str, growing: &mut Growing) {
        if let Some((stack, weight)) = line.rsplit_once(' ') {
            let frames: Vec<&str> = stack.split(';').collect();
            self.add(&frames, weight.parse().unwrap_or(0.0), growing);
        }
    }

    fn add(&mut self, frames: &[&str], weight: f64, growing: &mut Growing) {
        let mut node = 0;
        let mut above = Vec::new();
        for frame in frames {
            let (index, function) = growing.function(frame);
            node = *growing.children.entry((node, function)).or_insert_with(|| {
                self.parents.push(node);
                if !above.contains(&index) {
                    self.outermost.push((self.parents.len() - 1, function));
                }
                self.parents.len() - 1
            });
            above.push(index);
        }
        let leaf = frames.last().map(|frame| growing.function(frame).1);
        self.paths.push(Path { frames: above, leaf, share: weight, node });
    }

    /// The index of a function by name.
    pub(super) fn function(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }

    /// Expected share of all samples with this function as their leaf.
    pub(super) fn self_share(&self, function: usize) -> f64 {
        self.paths.iter().filter(|path| path.leaf == Some(function)).map(|path| path.share).sum()
    }

    /// What one sample of each path adds to a profile's content hash.
    pub(super) fn hashes(&self, cohort: Option<&Cohort>) -> Vec<u128> {
        let one = |path: &Path| Stack { frames: path.frames.clone(), count: 1, cohort: cohort.cloned(), value: 0 };
        self.paths.iter().map(|path| content_hash(&self.names, &[one(path)])).collect()
    }

    /// Folds samples by path (`counts`, in the order of `paths`) to self and total counts by function, ascending, and
    /// the number of samples in all.
    pub(super) fn fold(&self, counts: &[u64], room: &mut FoldRoom) -> (u64, Vec<FoldedFunction>) {
        room.clear(self.parents.len(), self.names.len());
        for (path, &count) in self.paths.iter().zip(counts) {
            room.nodes[path.node] += count;
            if let Some(leaf) = path.leaf {
                room.own[leaf] += count;
            }
        }
        for node in (1..self.parents.len()).rev() {
            room.nodes[self.parents[node]] += room.nodes[node];
        }
        for &(node, function) in &self.outermost {
            room.total[function] += room.nodes[node];
        }
        (room.nodes[0], room.functions())
    }
}

impl FoldRoom {
    fn clear(&mut self, nodes: usize, functions: usize) {
        for (column, length) in [(&mut self.nodes, nodes), (&mut self.own, functions), (&mut self.total, functions)] {
            column.clear();
            column.resize(length, 0);
        }
    }

    /// Functions that were seen. The processor cannot predict whether one was, so the code does not branch on it.
    fn functions(&mut self) -> Vec<FoldedFunction> {
        self.seen.resize(self.total.len() + 1, FoldedFunction { name: 0, own: 0, total: 0 });
        let mut seen = 0;
        for (name, (&own, &total)) in (0..).zip(self.own.iter().zip(&self.total)) {
            self.seen[seen] = FoldedFunction { name, own, total };
            seen += usize::from(total > 0);
        }
        self.seen[..seen].to_vec()
    }
}

/// Data that is needed only while the tree grows.
#[derive(Default)]
struct Growing {
    names: Vec<Arc<str>>,
    known: HashMap<Arc<str>, (u32, usize)>,
    children: HashMap<(usize, usize), usize>,
}

impl Growing {
    /// The function's index, as profiles write it and as memory is indexed.
    fn function(&mut self, name: &str) -> (u32, usize) {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let position = self.names.len();
        let index = (u32::try_from(position).unwrap_or(u32::MAX), position);
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.known.insert(name, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_video_service_has_the_shape_that_its_users_rely_on() {
        let tree = CallTree::new(Calls::VideoService, 0.0);
        assert_eq!((tree.names.len(), tree.paths.len()), (308, 533));
        let share: f64 = tree.paths.iter().map(|path| path.share).sum();
        assert!((share - 1.0).abs() < 1e-12);
        let own = tree.self_share(tree.function("serialize_video_chunk").unwrap());
        assert!((0.15..0.18).contains(&own), "{own}");
        for (index, name) in (0..).zip(tree.names.iter()) {
            let on_path = tree.paths.iter().filter(|path| path.frames.contains(&index));
            let total: f64 = on_path.map(|path| path.share).sum();
            // No function lies between "on every stack" and "well below half", so that a caller's share is never
            // ambiguous.
            assert!(total < 0.4 || (total - 1.0).abs() < 1e-12, "{name} {total}");
            assert_eq!(total > 0.9, ["main", "server::event_loop"].contains(&&**name));
        }
    }

    #[test]
    fn a_recursive_function_counts_once_a_sample() {
        let tree = CallTree::new(Calls::VideoService, 0.0);
        let marking = tree.function("gc::mark_object").unwrap();
        let index = u32::try_from(marking).unwrap();
        let counts: Vec<u64> =
            tree.paths.iter().map(|path| u64::from(path.frames.iter().filter(|&&f| f == index).count() == 2)).collect();
        let recursive: u64 = counts.iter().sum();
        let (samples, functions) = tree.fold(&counts, &mut FoldRoom::default());
        let marked = functions.iter().find(|function| function.name == index).unwrap();
        assert!(recursive >= 2);
        assert_eq!((samples, marked.total), (recursive, recursive));
    }
}
