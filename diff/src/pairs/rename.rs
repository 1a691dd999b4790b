//! A profile with other names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, Samples};

use crate::flame::place;

/// Gives frames their new names, and leaves out those of `dropped` functions, whose samples are their caller's. A frame at the root is not
/// left out. Profiles that are folded by function stay as they are.
pub(super) fn rename(profile: &mut Profile, names: &BTreeMap<Arc<str>, Arc<str>>, dropped: &BTreeSet<&str>) {
    let Samples::Stacks(stacks) = &mut profile.samples else { return };
    let mut kept: Vec<Arc<str>> = Vec::new();
    let mut number_of: HashMap<Arc<str>, u32, foldhash::fast::FixedState> = HashMap::default();
    // By old number: the new one, and whether the frame is left out.
    let mut now = Vec::with_capacity(profile.names.len());
    for old in profile.names.iter() {
        let new = names.get(old).unwrap_or(old);
        let next = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let number = *number_of.entry(Arc::clone(new)).or_insert_with(|| {
            kept.push(Arc::clone(new));
            next
        });
        now.push((number, dropped.contains(&**old)));
    }
    for stack in stacks {
        let frames = std::mem::take(&mut stack.frames);
        let kept = (0..).zip(frames).filter_map(|(depth, frame)| match now.get(place(frame)) {
            Some((_, true)) if depth > 0 => None,
            Some((number, _)) => Some(*number),
            // A frame without a name stays one.
            None => Some(u32::MAX),
        });
        stack.frames = kept.collect();
    }
    profile.names = kept.into();
}
