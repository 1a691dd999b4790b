//! The call tree of a file.

use std::collections::HashMap;

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::document::Node;
use crate::budget::Budget;

/// What a node is counted as besides what the file says of it: its place by its id, and its parent.
const NODE: usize = 56;

/// The nodes and who called whom, by their places in the list.
pub(super) struct Tree<'a> {
    pub(super) nodes: &'a [Node<'a>],
    places: HashMap<u32, usize, foldhash::fast::RandomState>,
    parents: Vec<Option<usize>>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(nodes: &'a [Node<'a>], budget: &Budget) -> Result<Self, Rejection> {
        budget.take(nodes.len() * NODE)?;
        let mut tree = Self { nodes, places: HashMap::default(), parents: vec![None; nodes.len()] };
        for (place, node) in nodes.iter().enumerate() {
            if tree.places.insert(node.id, place).is_some() {
                return Err(malformed(&format!("two nodes with the id {}", node.id)));
            }
        }
        for (place, node) in nodes.iter().enumerate() {
            node.parent.into_iter().try_for_each(|parent| tree.put(tree.place(parent)?, place))?;
            node.children.iter().try_for_each(|child| tree.put(place, tree.place(*child)?))?;
        }
        Ok(tree)
    }

    pub(super) fn place(&self, id: u32) -> Result<usize, Rejection> {
        self.places.get(&id).copied().ok_or_else(|| {
            let detail = format!("node {id} is none of the {} nodes", self.nodes.len());
            Rejection::new(Reason::IndexOutOfRange, detail)
        })
    }

    /// Makes one node the parent of another, which may be said twice (by `parent` and by `children`).
    fn put(&mut self, parent: usize, child: usize) -> Result<(), Rejection> {
        match self.parents.get_mut(child) {
            Some(known) if known.is_none_or(|known| known == parent) => {
                *known = Some(parent);
                Ok(())
            }
            _ => Err(malformed(&format!("node {} has two parents", self.nodes.get(child).map_or(0, |node| node.id)))),
        }
    }

    /// The names from the root, which is no frame itself, to a node.
    pub(super) fn path(&self, leaf: usize, names: &[u32], budget: &Budget) -> Result<Vec<u32>, Rejection> {
        let mut path = Vec::new();
        let mut next = Some(leaf);
        while let Some(place) = next {
            next = self.parents.get(place).copied().flatten();
            if path.len() > names.len() {
                return Err(malformed("a node is its own caller"));
            }
            let root = next.is_none() && self.nodes.get(place).is_some_and(|node| node.call_frame.is_root());
            if let Some(name) = names.get(place).filter(|_| !root) {
                budget.push(&mut path, *name)?;
            }
        }
        path.reverse();
        Ok(path)
    }
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
