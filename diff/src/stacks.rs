//! The stacks of all runs of a side, with equal stacks summed.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::{Profile, Samples, UNSYMBOLISED};

use crate::compare::recording::Recording;
use crate::flame::place;
use crate::sides::Sides;

/// A run that came folded by function; its label.
pub(crate) struct NoStacks(pub String);

/// Names from the root to the leaf; never empty.
pub(crate) type Path<'a> = Vec<&'a str>;

/// The stacks of both sides with the samples of each; a stack that one side lacks has 0 there.
pub(crate) fn of_sides(sides: &Sides<Vec<Recording>>) -> Result<BTreeMap<Path<'_>, Sides<u64>>, NoStacks> {
    let mut both: BTreeMap<Path<'_>, Sides<u64>> = BTreeMap::new();
    for (path, count) in of_side(&sides.base)? {
        both.entry(path).or_default().base = count;
    }
    for (path, count) in of_side(&sides.head)? {
        both.entry(path).or_default().head = count;
    }
    Ok(both)
}

/// The stacks of one side with their samples, none of them 0.
pub(crate) fn of_side(side: &[Recording]) -> Result<BTreeMap<Path<'_>, u64>, NoStacks> {
    let mut sums = BTreeMap::new();
    side.iter().try_for_each(|run| add(&mut sums, &run.profile, &run.label))?;
    Ok(sums)
}

/// The stacks of one side with their weights, none of them 0; runs without weights have none.
pub(crate) fn weights_of_side(side: &[Recording]) -> Result<BTreeMap<Path<'_>, u64>, NoStacks> {
    let mut sums = BTreeMap::new();
    let weighed = side.iter().filter_map(|run| Some((run, run.weighed()?.1)));
    weighed.into_iter().try_for_each(|(run, weights)| add(&mut sums, weights, &run.label))?;
    Ok(sums)
}

/// A frame with an unknown name counts as one without symbol, and so does the leaf of a stack without frames. Sums
/// saturate at `u64::MAX`.
fn add<'a>(sums: &mut BTreeMap<Path<'a>, u64>, profile: &'a Profile, label: &str) -> Result<(), NoStacks> {
    let Samples::Stacks(stacks) = &profile.samples else { return Err(NoStacks(label.to_owned())) };
    let name = |frame: &u32| profile.names.get(place(*frame)).map_or(UNSYMBOLISED, |name| &**name);
    for stack in stacks.iter().filter(|stack| stack.count > 0) {
        let mut path: Path<'a> = stack.frames.iter().map(name).collect();
        if path.is_empty() {
            path.push(UNSYMBOLISED);
        }
        let sum = sums.entry(path).or_default();
        *sum = sum.saturating_add(stack.count);
    }
    Ok(())
}
