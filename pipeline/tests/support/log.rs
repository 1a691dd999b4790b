//! A log of decisions that a test can look into.

use std::sync::{Arc, Mutex};

use fleetdiff_pipeline::rules::decisions::{Decision, DecisionLog};
use fleetdiff_schemas::sink::SinkError;

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Decision>>>);

impl Log {
    /// What was decided so far.
    pub fn made(&self) -> Vec<Decision> {
        self.0.lock().unwrap().clone()
    }
}

impl DecisionLog for Log {
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(decision.clone());
        Ok(())
    }
}
