//! How much came.

use std::collections::BTreeSet;

use fleetdiff_diff::figures::grouped;
use fleetdiff_schemas::identity::PodId;

#[derive(Debug, Default)]
pub(super) struct Tally {
    answered: BTreeSet<PodId>,
    profiles: usize,
    failures: usize,
}

impl Tally {
    /// Counts a profile of a pod.
    pub(super) fn profile(&mut self, pod: &PodId) {
        self.profiles += 1;
        if !self.answered.contains(pod) {
            self.answered.insert(pod.clone());
        }
    }

    /// Counts a request that gave none.
    pub(super) fn failure(&mut self) {
        self.failures += 1;
    }

    pub(super) fn profiles(&self) -> usize {
        self.profiles
    }

    pub(super) fn in_words(&self) -> String {
        let number = |count: usize, one: &str| format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" });
        let profiles = number(self.profiles, "profile");
        let failures = number(self.failures, "request");
        format!("{profiles} of {}, {failures} gave none", number(self.answered.len(), "pod"))
    }
}
