//! Which profiles travel in one record of the columnar delta.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::profile::{Profile, Samples};
use fleetdiff_schemas::time::Nanos;

/// Profiles of one record at most (guess): they share one table of names, and a record is decoded as a whole.
const MAX_PROFILES: usize = 32;

/// Entries of stacks or functions of one record at most, so that records of large profiles stay around 1 MB (guess).
const MAX_ENTRIES: usize = 100_000;

/// Profiles for one record, in the order in which they came; all end at the same moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) end: Nanos,
    pub(super) profiles: Vec<Profile>,
    entries: usize,
}

/// Collects the profiles that end at one moment: by pod, or all together.
#[derive(Debug, Default)]
pub(super) struct Batches {
    end: Option<Nanos>,
    open: BTreeMap<Option<PodId>, Batch>,
}

impl Batches {
    /// Takes a profile; gives the records that are complete now.
    pub(super) fn add(&mut self, profile: Profile, keyed: bool) -> Vec<Batch> {
        let end = profile.window.end;
        let mut ready = if self.end == Some(end) { Vec::new() } else { self.take() };
        self.end = Some(end);
        let group = keyed.then(|| profile.identity.pod.clone());
        let batch = self
            .open
            .entry(group.clone())
            .or_insert_with(|| Batch { end, profiles: Vec::new(), entries: 0 });
        batch.entries += entries(&profile);
        batch.profiles.push(profile);
        if batch.profiles.len() >= MAX_PROFILES || batch.entries >= MAX_ENTRIES {
            ready.extend(self.open.remove(&group));
        }
        ready
    }

    /// Gives all that is held back, by pod.
    pub(super) fn take(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

fn entries(profile: &Profile) -> usize {
    match &profile.samples {
        Samples::Stacks(stacks) => stacks.iter().map(|stack| 1 + stack.frames.len()).sum(),
        Samples::Folded { cohorts, .. } => cohorts.iter().map(|part| part.functions.len()).sum(),
    }
}
