//! Stacks to nodes, in whatever order they come.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::{Stack, UNSYMBOLISED};
use foldhash::fast::FixedState;

use super::node::{Node, ROOT, Run, place};
use super::order::{Met, in_order_of_the_picture};
use crate::sides::{Side, Sides};

/// A growing tree. Nodes are numbered as they first occur; the order of siblings is kept for each side and merged at
/// the end.
#[derive(Debug)]
pub(super) struct Growth {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, FixedState>,
    nodes: Vec<Node>,
    /// For each node, its children as they occurred on each side.
    met: Vec<Met>,
    /// By caller and name.
    found: HashMap<(u32, u32), u32, FixedState>,
}

impl Growth {
    pub(super) fn new() -> Self {
        Self {
            names: vec![ROOT.into()],
            numbers: HashMap::default(),
            nodes: vec![Node { name: 0, parent: 0, depth: 0, own: Sides::default() }],
            met: vec![Met::default()],
            found: HashMap::default(),
        }
    }

    /// The names and the nodes of the tree, in the order of the picture.
    pub(super) fn finish(self) -> (Vec<Arc<str>>, Vec<Node>) {
        let nodes = in_order_of_the_picture(&self.nodes, &self.met);
        (self.names, nodes)
    }

    /// Adds the stacks of a run to a side; entries with a count of 0 leave no trace.
    pub(super) fn add(&mut self, side: Side, run: &Run<'_>) {
        // Only names that a stack uses become names of the tree.
        let mut numbers = vec![None; run.names.len()];
        for Stack { frames, count, .. } in run.stacks.iter().filter(|stack| stack.count > 0) {
            let mut node = 0;
            for &frame in frames {
                let name = match numbers.get_mut(place(frame)) {
                    Some(number) => *number.get_or_insert_with(|| self.number(&run.names[place(frame)])),
                    None => self.number(&UNSYMBOLISED.into()),
                };
                node = self.child(side, node, name);
            }
            let own = self.nodes[place(node)].own.of(side);
            *own = own.saturating_add(*count);
        }
    }

    fn number(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        number
    }

    fn child(&mut self, side: Side, parent: u32, name: u32) -> u32 {
        let Self { nodes, met, found, .. } = self;
        let child = *found.entry((parent, name)).or_insert_with(|| {
            let depth = nodes[place(parent)].depth + 1;
            nodes.push(Node { name, parent, depth, own: Sides::default() });
            met.push(Met::default());
            u32::try_from(nodes.len() - 1).unwrap_or(u32::MAX)
        });
        if !std::mem::replace(met[place(child)].by.of(side), true) {
            met[place(parent)].children.of(side).push(child);
        }
        child
    }
}
