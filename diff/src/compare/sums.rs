//! Samples, or what they stand for, added up by function.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::profile::{CountKind, Profile, Samples};

use super::Recording;
use crate::flame::place;

/// The sums of one side, or of one run, as the dataflow counts: a stack without a frame is part of the whole and of no function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums<'a> {
    whole: u64,
    functions: BTreeMap<(CountKind, &'a str), u64>,
}

impl<'a> Sums<'a> {
    /// The samples of all runs of a side.
    pub fn of_samples(side: &'a [Recording]) -> Self {
        Self::of_profiles(side.iter().map(|run| &run.profile))
    }

    /// The weights of all runs of a side; runs without any add nothing.
    pub fn of_weights(side: &'a [Recording]) -> Self {
        Self::of_profiles(side.iter().filter_map(|run| Some(&run.weights.as_ref()?.profile)))
    }

    fn of_profiles(profiles: impl Iterator<Item = &'a Profile>) -> Self {
        let mut sums = Self::default();
        profiles.for_each(|profile| sums.add(profile));
        sums
    }

    /// Of all functions together.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Of one function.
    pub fn of(&self, kind: CountKind, function: &str) -> u64 {
        self.functions.get(&(kind, function)).copied().unwrap_or(0)
    }

    /// All functions of one kind, by name.
    pub fn functions(&self, kind: CountKind) -> impl Iterator<Item = (&'a str, u64)> {
        self.functions.iter().filter(move |((of, _), _)| *of == kind).map(|((_, function), sum)| (*function, *sum))
    }

    /// A function that recurs on a stack is counted once; sums are held at `u64::MAX`.
    fn add(&mut self, profile: &'a Profile) {
        let Samples::Stacks(stacks) = &profile.samples else { return };
        let name = |frame: &u32| profile.names.get(place(*frame)).map(|name| &**name);
        for stack in stacks {
            self.whole = self.whole.saturating_add(stack.count);
            if let Some(leaf) = stack.frames.last().and_then(name) {
                self.give(CountKind::SelfCount, leaf, stack.count);
            }
            let on_stack: BTreeSet<&str> = stack.frames.iter().filter_map(name).collect();
            on_stack.into_iter().for_each(|function| self.give(CountKind::Total, function, stack.count));
        }
    }

    fn give(&mut self, kind: CountKind, function: &'a str, count: u64) {
        let sum = self.functions.entry((kind, function)).or_default();
        *sum = sum.saturating_add(count);
    }
}
