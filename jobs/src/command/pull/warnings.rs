//! Warnings, each of which is said once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<BTreeSet<String>>);

impl Warnings {
    pub(super) fn once(&self, what: String) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&what) {
            tracing::warn!("{what}");
            said.insert(what);
        }
    }
}
