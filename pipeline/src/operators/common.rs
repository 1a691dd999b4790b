//! What all workers of a process share.

use std::sync::{Arc, Mutex, PoisonError};

use crate::checkpoint::{Checkpoints, Keeper, State, Unreadable};
use crate::counts::functions::FunctionTable;
use crate::counts::held::Held;

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
    /// For a run with these checkpoints.
    ///
    /// # Errors
    /// If the one with which it begins cannot be read.
    pub fn new(checkpoints: Checkpoints) -> Result<Self, Unreadable> {
        Ok(Self { table: Arc::new(checkpoints.table()?), checkpoints, ..Self::default() })
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
