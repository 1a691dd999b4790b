//! Profiles of a build that was built otherwise: the same program, with other names or with functions inlined.

use std::sync::Arc;

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{Decoded, Profile, Samples};

fn profiles<'a>(partitions: &'a mut [Vec<Decoded>], build: &'a Build) -> impl Iterator<Item = &'a mut Profile> {
    let parts = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
    parts.filter(move |profile| profile.identity.build == *build)
}

/// Functions of a build have the names that `name` gives them.
pub fn rename(partitions: &mut [Vec<Decoded>], build: &Build, name: impl Fn(&str) -> Option<String>) {
    for profile in profiles(partitions, build) {
        let renamed = profile.names.iter().map(|old| name(old).map_or_else(|| Arc::clone(old), Arc::from));
        profile.names = renamed.collect();
    }
}

/// A function of a build is inlined in its callers: it has no frame.
pub fn inline(partitions: &mut [Vec<Decoded>], build: &Build, function: &str) {
    for profile in profiles(partitions, build) {
        let is_inlined = |frame: &u32| {
            let place = usize::try_from(*frame).ok();
            place.and_then(|place| profile.names.get(place)).is_some_and(|name| **name == *function)
        };
        if let Samples::Stacks(stacks) = &mut profile.samples {
            stacks.iter_mut().for_each(|stack| stack.frames.retain(|frame| !is_inlined(frame)));
        }
    }
}
