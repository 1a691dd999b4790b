//! Which profiles travel in one record of a form that holds several.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::profile::{Profile, Samples};
use fleetdiff_schemas::time::Nanos;

/// Maximum number of profiles in a record (guess): they share one table of names, and a record is decoded as a whole.
const MAX_PROFILES: usize = 32;

/// Maximum number of entries of stacks or functions in a record, so that records of large profiles stay around 1 MB
/// (guess).
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
        let batch = self.open.entry(group.clone()).or_insert_with(|| Batch { end, profiles: Vec::new(), entries: 0 });
        batch.entries += entries(&profile);
        batch.profiles.push(profile);
        if batch.profiles.len() >= MAX_PROFILES || batch.entries >= MAX_ENTRIES {
            ready.extend(self.open.remove(&group));
        }
        ready
    }

    /// Gives all profiles that are held back, by pod.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::identity::Identity;
    use fleetdiff_schemas::profile::{ProfileType, Stack, Temporality};
    use fleetdiff_schemas::time::TimeRange;

    use super::*;

    fn profile(pod: &str, end: i64, stacks: usize) -> Profile {
        let identity = Identity {
            service: "s".into(),
            build: "b".into(),
            region: "r".into(),
            cohort: "c".into(),
            hardware: "h".into(),
            node: None,
            pod: pod.into(),
            process_start: None,
        };
        Profile {
            identity: Arc::new(identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: TimeRange { start: Nanos(0), end: Nanos(end) },
            requests: None,
            names: Arc::new(["f".into()]),
            samples: Samples::Stacks(vec![Stack { frames: vec![0], count: 1, cohort: None, value: 0 }; stacks]),
        }
    }

    fn shape(batches: &[Batch]) -> Vec<Vec<(&str, i64)>> {
        fn one(profile: &Profile) -> (&str, i64) {
            (profile.identity.pod.as_str(), profile.window.end.0)
        }
        batches.iter().map(|batch| batch.profiles.iter().map(one).collect()).collect()
    }

    #[test]
    fn profiles_of_one_end_travel_together_by_pod_if_keyed() {
        for (keyed, expected) in
            [(true, vec![vec![("a", 1), ("a", 1)], vec![("b", 1)]]), (false, vec![vec![("a", 1), ("b", 1), ("a", 1)]])]
        {
            let mut batches = Batches::default();
            for pod in ["a", "b", "a"] {
                assert!(batches.add(profile(pod, 1, 1), keyed).is_empty());
            }
            assert_eq!(shape(&batches.add(profile("a", 2, 1), keyed)), expected);
            assert_eq!(shape(&batches.take()), [[("a", 2)]]);
            assert!(batches.take().is_empty());
        }
    }

    #[test]
    fn a_batch_that_is_full_leaves_at_once() {
        let mut batches = Batches::default();
        for count in 1..=2 * MAX_PROFILES {
            let ready = batches.add(profile("a", 1, 1), true);
            assert_eq!(ready.len(), usize::from(count % MAX_PROFILES == 0));
        }
        assert!(batches.take().is_empty());
        assert_eq!(batches.add(profile("a", 1, MAX_ENTRIES), true).len(), 1);
    }
}
