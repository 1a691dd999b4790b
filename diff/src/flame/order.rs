//! The order of siblings in the picture.

use std::collections::BTreeMap;

use super::node::{Node, place};
use crate::sides::Sides;

/// A node as it occurred on the sides, by the numbers of the growing tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Met {
    /// Whether it occurred on a side.
    pub(super) by: Sides<bool>,
    /// Its children in the order in which they first occurred on a side.
    pub(super) children: Sides<Vec<u32>>,
}

/// The nodes depth first, siblings in their order, with their callers renumbered.
pub(super) fn in_order_of_the_picture(nodes: &[Node], met: &[Met]) -> Vec<Node> {
    let mut ordered: Vec<Node> = Vec::with_capacity(nodes.len());
    // Number in the growing tree, and the caller's number in the picture. Not recursive: stacks may be deep.
    let mut waiting = vec![(0, 0)];
    while let Some((number, parent)) = waiting.pop() {
        let index = u32::try_from(ordered.len()).unwrap_or(u32::MAX);
        ordered.push(Node { parent, ..nodes[place(number)] });
        let children = siblings(&met[place(number)].children, met);
        waiting.extend(children.into_iter().rev().map(|child| (child, index)));
    }
    ordered
}

/// The children of both sides: those of the base in their order, and each child that only the head has after its left
/// neighbour.
fn siblings(children: &Sides<Vec<u32>>, met: &[Met]) -> Vec<u32> {
    let mut after: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    let mut left = None;
    for &child in &children.head {
        if met[place(child)].by.base {
            left = Some(child);
        } else {
            after.entry(left).or_default().push(child);
        }
    }
    let mut merged = after.remove(&None).unwrap_or_default();
    for &child in &children.base {
        merged.push(child);
        merged.extend(after.remove(&Some(child)).unwrap_or_default());
    }
    merged
}
