//! The hash of all samples of a profile, from what is known of its call paths.
//!
//! The text of a stack is written and hashed once: the stacks of a service come again in each of its profiles, and have a number by
//! then. The law: it is the [`content_hash`] of the stacks.

use std::collections::HashMap;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::profile::{Profile, Samples, Stack, content_hash};
use foldhash::fast::RandomState;

use crate::counts::ids::PathId;

/// How many stacks are remembered at most.
const MOST: usize = 1 << 17;

/// The hashes of stacks in one round, in which a call path has one number.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// One sample of a path, by the cohort that it names itself.
    known: HashMap<Option<Cohort>, HashMap<PathId, u128, RandomState>, RandomState>,
    /// How many these are.
    count: usize,
}

impl Contents {
    /// Forgets all: call paths have other numbers from now on.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The hash of all samples of a profile whose stacks have these call paths.
    pub(super) fn of(&mut self, profile: &Profile, paths: &[PathId]) -> u128 {
        match &profile.samples {
            Samples::Stacks(stacks) => {
                let hashes = stacks
                    .iter()
                    .zip(paths)
                    .map(|(stack, &path)| self.of_one(profile, stack, path).wrapping_mul(u128::from(stack.count)));
                hashes.fold(0, u128::wrapping_add)
            }
            Samples::Folded { content, .. } => *content,
        }
    }

    /// The hash of one sample of a stack.
    fn of_one(&mut self, profile: &Profile, stack: &Stack, path: PathId) -> u128 {
        let by_text = || content_hash(&profile.names, &[Stack { count: 1, ..stack.clone() }]);
        // A frame without a name is in the text of a stack, but not in its path.
        if stack.frames.iter().any(|&frame| index_of(frame) >= profile.names.len()) {
            return by_text();
        }
        if let Some(hash) = self.known.get(&stack.cohort).and_then(|paths| paths.get(&path)) {
            return *hash;
        }
        let hash = by_text();
        if self.count == MOST {
            self.forget();
        }
        self.count += 1;
        self.known.entry(stack.cohort.clone()).or_default().insert(path, hash);
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::identity::Identity;
    use fleetdiff_schemas::profile::{ProfileType, Temporality};
    use fleetdiff_schemas::time::{Nanos, TimeRange};
    use proptest::prelude::*;

    use super::*;
    use crate::counts::functions::FunctionTable;

    fn profile(names: &[&str], stacks: Vec<Stack>) -> Profile {
        let identity = Identity {
            service: "shop".into(),
            build: "v1".into(),
            region: "east".into(),
            cohort: "all".into(),
            hardware: "h".into(),
            node: None,
            pod: "p".into(),
            process_start: None,
        };
        Profile {
            identity: identity.into(),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: TimeRange { start: Nanos(0), end: Nanos(10) },
            requests: None,
            names: names.iter().map(|name| Arc::from(*name)).collect(),
            samples: Samples::Stacks(stacks),
        }
    }

    fn stacks() -> impl Strategy<Value = Vec<Stack>> {
        let cohort = prop_oneof![Just(None), Just(Some("x".into())), Just(Some("".into()))];
        // A profile has three names: frame 3 is beyond them.
        let stack = (prop::collection::vec(0u32..4, 0..5), 0u64..5, cohort);
        prop::collection::vec(
            stack.prop_map(|(frames, count, cohort)| Stack { frames, count, cohort, value: 0 }),
            0..20,
        )
    }

    proptest! {
        /// The law, for profiles of different tables of names one after the other.
        #[test]
        fn oracle_contents_are_the_hash_of_the_stacks(profiles in prop::collection::vec((stacks(), 0usize..3), 1..8)) {
            let orders = [["main", "a", "ab"], ["ab", "main", "a"], ["a", "main", ""]];
            let (mut contents, table) = (Contents::default(), FunctionTable::default());
            for (stacks, order) in profiles {
                let profile = profile(&orders[order], stacks.clone());
                let paths = table.intern_paths(&stacks, &table.intern(&profile.names));
                prop_assert_eq!(contents.of(&profile, &paths), content_hash(&profile.names, &stacks));
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut contents = Contents::default();
        let names = ["main"];
        let one = profile(&names, vec![Stack { frames: vec![0], count: 1, cohort: None, value: 0 }]);
        for path in 1..=200_000 {
            contents.of(&one, &[path]);
        }
        let held: usize = contents.known.values().map(HashMap::len).sum();
        assert!(held == contents.count && held <= MOST, "{held} of {}", contents.count);
    }
}
