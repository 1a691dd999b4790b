//! The call tree of a record: each stack is a node, whose frames are the names from the root down to it.

use super::Take;
use super::bytes::{Reader, malformed, out_of_range, put, put_len};
use super::layout::MAX_NODES;
use crate::profile::shared_frames;
use crate::rejected::Rejection;

/// What an allocation takes besides what is in it.
const ALLOCATION: usize = 16;

/// One node: its caller's number, its name, and how many frames a stack that ends in it has.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: usize,
    name: u32,
    depth: usize,
    /// The least name that its next child may have: children ascend.
    next_child: u32,
}

/// A tree that is read.
#[derive(Debug)]
pub(super) struct CallTree {
    nodes: Vec<Node>,
}

impl CallTree {
    /// Reads the two columns of a tree whose nodes have names of a table of this length.
    pub(super) fn read(reader: &mut Reader<'_>, names: usize, take: &mut Take<'_>) -> Result<Self, Rejection> {
        let number = reader.entries(2, MAX_NODES)?;
        take((number + 1) * size_of::<Node>())?;
        let mut nodes = Vec::with_capacity(number + 1);
        // NB: the root's name is never read.
        nodes.push(Node { parent: 0, name: 0, depth: 0, next_child: 0 });
        reader.column(number, |up| {
            let mut parent = nodes.len() - 1;
            for _ in 0..up {
                match nodes.get(parent) {
                    Some(node) if node.depth > 0 => parent = node.parent,
                    _ => return Err(malformed("a node above the root")),
                }
            }
            let depth = nodes.get(parent).map_or(0, |node| node.depth) + 1;
            nodes.push(Node { parent, name: 0, depth, next_child: 0 });
            Ok(())
        })?;
        let mut place = 0;
        reader.column(number, |index| {
            let name = u32::try_from(index).ok().filter(|_| usize::try_from(index).is_ok_and(|index| index < names));
            let name = name.ok_or_else(|| out_of_range("function", index, names))?;
            place += 1;
            let Some(node) = nodes.get_mut(place) else { return Ok(()) };
            node.name = name;
            let parent = node.parent;
            match nodes.get_mut(parent) {
                Some(parent) if name < parent.next_child => Err(malformed("callees that do not ascend")),
                Some(parent) => {
                    parent.next_child = name + 1;
                    Ok(())
                }
                None => Ok(()),
            }
        })?;
        Ok(Self { nodes })
    }

    /// The frames of the stack that ends in a node, root first.
    pub(super) fn frames(&self, node: u64, take: &mut Take<'_>) -> Result<Vec<u32>, Rejection> {
        let found = usize::try_from(node).ok().and_then(|node| self.nodes.get(node));
        let mut at = found.ok_or_else(|| out_of_range("node", node, self.nodes.len()))?;
        take(ALLOCATION + at.depth * size_of::<u32>())?;
        let mut frames = vec![0; at.depth];
        for frame in frames.iter_mut().rev() {
            *frame = at.name;
            match self.nodes.get(at.parent) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Ok(frames)
    }
}

/// A tree that is written: its paths, ascending, with the number of the node in which each ends.
#[derive(Debug, Default)]
pub(super) struct Paths {
    ends: Vec<(Vec<u32>, usize)>,
    ups: Vec<usize>,
    names: Vec<u32>,
}

impl Paths {
    /// The tree of these paths, given in any order and any number of times.
    pub(super) fn of(mut paths: Vec<Vec<u32>>) -> Self {
        paths.sort_unstable();
        paths.dedup();
        let mut tree = Self::default();
        // The numbers of the nodes of the path before, from the root's child down.
        let mut open: Vec<usize> = Vec::new();
        let mut before: Vec<u32> = Vec::new();
        for path in paths {
            let common = shared_frames(&path, &before);
            let mut up = open.len() - common;
            open.truncate(common);
            for &name in path.iter().skip(common) {
                tree.ups.push(up);
                tree.names.push(name);
                open.push(tree.names.len());
                up = 0;
            }
            before.clone_from(&path);
            tree.ends.push((path, open.last().copied().unwrap_or(0)));
        }
        tree
    }

    /// The node in which a path ends.
    pub(super) fn node(&self, path: &[u32]) -> Option<usize> {
        let place = self.ends.binary_search_by(|(known, _)| known.as_slice().cmp(path)).ok()?;
        self.ends.get(place).map(|(_, node)| *node)
    }

    /// Appends the two columns.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_len(out, self.names.len());
        for &up in &self.ups {
            put_len(out, up);
        }
        for &name in &self.names {
            put(out, u64::from(name));
        }
    }
}
