//! The nodes of a call tree, and its input.

use std::sync::Arc;

use fleetdiff_schemas::profile::Stack;

use crate::sides::Sides;

/// What one replicate of a side recorded. A side is the average of its runs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Function names.
    pub names: &'a [Arc<str>],
    /// Its stacks, whose frames are indexes into `names`, root first. A frame beyond them is counted as
    /// [`UNSYMBOLISED`](fleetdiff_schemas::profile::UNSYMBOLISED).
    pub stacks: &'a [Stack],
}

/// A call path and the samples that end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index into [`CallTree::names`](super::CallTree::names).
    pub name: u32,
    /// Index of the caller; less than the node's own, and the root is its own.
    pub parent: u32,
    /// How many callers it has; the root has none.
    pub depth: u32,
    /// Raw samples whose stack ends here, summed over the runs of a side.
    pub own: Sides<u64>,
}

/// The name of the root.
pub const ROOT: &str = "all";

/// A 32-bit number as an index.
pub(crate) fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
