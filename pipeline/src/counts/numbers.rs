//! Who gives numbers to names and call paths, if a run has several processes.
//!
//! Numbers mean the same in all processes of a run, so that what they send to one another and what they save has numbers only. The
//! first process gives them; the others ask it for those of names and paths that they meet for the first time, and for the names and
//! paths of numbers that are sent to them. What they have learned they keep until they forget it, and then they say so: the first
//! process gives a number to something else only when no process holds what it means, and none has for two rounds.

use std::fmt::Debug;
use std::sync::Arc;

use super::ids::{FunctionId, PathId};
use super::paths::Node;

/// The numbers of the first process, as another one asks for them. Each question waits for its answer. Questions and what is let go are
/// taken in the order in which they are said.
pub(crate) trait Numbers: Debug + Send + Sync {
    /// The numbers of these names. From now on this process holds them.
    fn of_names(&self, names: &[Arc<str>]) -> Vec<FunctionId>;

    /// The names of these numbers. From now on this process holds them.
    fn names(&self, functions: &[FunctionId]) -> Vec<Arc<str>>;

    /// The number of the path after each frame of these stacks. From now on this process holds them.
    fn of_stacks(&self, stacks: &[Vec<FunctionId>]) -> Vec<Vec<PathId>>;

    /// These paths and those with which they begin. From now on this process holds them.
    fn nodes(&self, paths: &[PathId]) -> Vec<(PathId, Node)>;

    /// This process has forgotten these.
    fn let_go(&self, forgotten: Forgotten);

    /// All workers of this process have finished a round; by then all of them had closed this hop.
    fn finish_round(&self, hop: u64);
}

/// Numbers that a process has forgotten.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Forgotten {
    /// Of names.
    Functions(Vec<FunctionId>),
    /// Of call paths.
    Paths(Vec<PathId>),
}

/// Where a table has its numbers from, if not from itself.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub numbers: Arc<dyn Numbers>,
    /// How many processes the run has.
    pub processes: usize,
}
