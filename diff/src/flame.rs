//! The merged call tree of two sides, the shape behind a differential flame graph.
//!
//! A node is a call path, with the number of samples of each side whose stack ends there. Its total, the samples whose
//! stacks go through it, is the sum over it and all nodes below it. Laws:
//! - the total of a node is its own count plus the totals of its children, on each side;
//! - sums do not depend on how stacks are split into runs;
//! - siblings are in the order in which they first occur, those of the base first, and a node that only the head has
//!   comes right after its left neighbour in the head. So A->C, A->B, A->C shows C before a B half as wide.

mod growth;
mod node;
mod order;

use std::sync::Arc;

use self::growth::Growth;
use crate::sides::Side;

pub(crate) use self::node::place;
pub use self::node::{Node, ROOT, Run};
pub use crate::sides::Sides;

/// The call tree of both sides, its nodes in the order of the picture: a node, then all below it, then its right neighbour.
///
/// Node 0 is the root, above every stack; its name is the first and is [`ROOT`].
///
/// ```
/// use fleetdiff_diff::flame::{CallTree, Run};
/// use fleetdiff_schemas::profile::Stack;
/// let names = ["A".into(), "B".into(), "C".into()];
/// let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
/// let stacks = [stack(&[0, 2], 1), stack(&[0, 1], 1), stack(&[0, 2], 1)];
/// let tree = CallTree::merge(&[Run { names: &names, stacks: &stacks }], &[]);
/// let shown: Vec<_> = tree.nodes().iter().zip(tree.totals()).map(|(node, total)| (tree.name(node), total.base)).collect();
/// assert_eq!(shown, [("all", 3), ("A", 3), ("C", 2), ("B", 1)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTree {
    names: Vec<Arc<str>>,
    nodes: Vec<Node>,
    runs: Sides<u32>,
}

impl CallTree {
    /// Merges the stacks of all runs of both sides. A side without runs has no samples.
    pub fn merge(base: &[Run<'_>], head: &[Run<'_>]) -> Self {
        let mut growth = Growth::new();
        base.iter().for_each(|run| growth.add(Side::Base, run));
        head.iter().for_each(|run| growth.add(Side::Head, run));
        let runs = |side: &[Run<'_>]| u32::try_from(side.len()).unwrap_or(u32::MAX);
        let (names, nodes) = growth.finish();
        Self { names, nodes, runs: Sides { base: runs(base), head: runs(head) } }
    }

    /// The names of functions, without duplicates, except that a function may have the same name as the root.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The same tree, whose stacks were summed over more runs than there were lists of stacks.
    #[must_use]
    pub fn summed_over(self, runs: Sides<u32>) -> Self {
        Self { runs, ..self }
    }

    /// All nodes, in the order of the picture.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The name of a node of this tree.
    pub fn name(&self, node: &Node) -> &str {
        self.names.get(place(node.name)).map_or("", |name| name)
    }

    /// Over how many runs each side is summed.
    pub fn runs(&self) -> Sides<u32> {
        self.runs
    }

    /// Raw samples that go through each node, summed over the runs of a side.
    pub fn totals(&self) -> Vec<Sides<u64>> {
        let mut totals: Vec<_> = self.nodes.iter().map(|node| node.own).collect();
        // Backwards, since a node comes after its caller; the root is its own caller and is not added to itself.
        for (index, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let below = totals[index];
            totals[place(node.parent)].add(below);
        }
        totals
    }
}
