//! What all workers of a process share.

use std::sync::{Arc, Mutex, PoisonError};

use crate::checkpoint::{Checkpoints, Keeper, State, Unreadable};
use crate::counts::functions::FunctionTable;
use crate::counts::held::Held;
use crate::counts::numbers::Elsewhere;

/// What the operators of all workers share.
#[derive(Clone, Default)]
pub struct Common {
    /// Names and call paths with their numbers.
    pub table: Arc<FunctionTable>,
    /// How much is held.
    pub held: Arc<Held>,
    /// The checkpoints that are taken, and the one with which the run begins.
    pub checkpoints: Checkpoints,
    /// Why the run cannot begin with its checkpoint.
    unreadable: Arc<Mutex<Option<Unreadable>>>,
}

impl Common {
    /// For a run with these checkpoints. `elsewhere` says which process gives numbers, if it is not this one.
    ///
    /// # Errors
    /// If the one with which it begins cannot be read.
    pub(crate) fn new(checkpoints: Checkpoints, elsewhere: Option<Elsewhere>) -> Result<Self, Unreadable> {
        let table =
            elsewhere.map_or_else(|| checkpoints.table(), |elsewhere| Ok(FunctionTable::numbered_by(elsewhere)))?;
        Ok(Self { table: Arc::new(table), checkpoints, ..Self::default() })
    }

    /// What saves a state on a worker; the state is that of the checkpoint from now on. `None` if that cannot be read: the run must not
    /// begin.
    pub(crate) fn keeper<S: State>(&self, of: (usize, usize), state: &mut S) -> Option<Keeper> {
        let kept = self.checkpoints.keeper(of, &self.table, state);
        kept.map_err(|unreadable| {
            self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(unreadable);
        })
        .ok()
    }

    /// Why the run cannot begin, once all operators are built.
    pub fn unreadable(&self) -> Option<Unreadable> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
