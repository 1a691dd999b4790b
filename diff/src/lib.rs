//! Two profiles on a laptop: what is compared, and the pictures of it.
//!
//! [`flame`] merges the stacks of both sides into one call tree.

pub mod flame;
