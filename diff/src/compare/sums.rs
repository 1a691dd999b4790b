//! Samples, or their weights, summed by function.

use std::collections::BTreeMap;

use fleetdiff_formats::reading::FILTERED;
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, Profile, Samples};

use super::recording::Recording;
use crate::flame::place;

/// The sums of one side, or of one run, as the dataflow counts: a stack without a frame is part of the whole but of no
/// function, and so are samples that a filter left out. Sums saturate at `u64::MAX`.
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

    /// The weights of all runs of a side; runs without weights add nothing.
    pub(crate) fn of_weights(side: &'a [Recording]) -> Self {
        Self::of_profiles(side.iter().filter_map(|run| Some(run.weighed()?.1)))
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

    fn add(&mut self, profile: &'a Profile) {
        let Samples::Stacks(stacks) = &profile.samples else { return };
        for part in fold_stacks(&profile.names, stacks, &"".into()) {
            self.whole = self.whole.saturating_add(part.samples);
            for function in part.functions {
                let name = profile.names.get(place(function.name)).map(|name| &**name).filter(|name| *name != FILTERED);
                let Some(name) = name else { continue };
                self.give(CountKind::SelfCount, name, function.own);
                self.give(CountKind::Total, name, function.total);
            }
        }
    }

    fn give(&mut self, kind: CountKind, function: &'a str, count: u64) {
        if count == 0 {
            return;
        }
        let sum = self.functions.entry((kind, function)).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// The part that some samples are of the whole; 0 of nothing.
pub(super) fn part(own: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(own) / float(whole) }
}
