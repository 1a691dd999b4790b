//! Whether the head goes on where the base stopped: counts of one process, of which the later hold the earlier.

use std::collections::HashMap;

use fleetdiff_schemas::profile::{Profile, ProfileType, Samples};

use super::Recording;
use crate::flame::{Sides, place};

/// Whether both sides are one profile of a type that runtimes count since the process began, and the head has every stack of the base
/// at least as often. Two runs of one program hardly ever look so; two snapshots of one process always do.
pub fn head_holds_base(sides: &Sides<Vec<Recording>>) -> bool {
    let ([base], [head]) = (sides.base.as_slice(), sides.head.as_slice()) else { return false };
    let since_start = matches!(base.profile.profile_type, ProfileType::Heap | ProfileType::Mutex | ProfileType::Block);
    if !since_start {
        return false;
    }
    let (base, head) = (by_stack(&base.profile), by_stack(&head.profile));
    !base.is_empty() && base.iter().all(|(stack, count)| head.get(stack).is_some_and(|more| more >= count))
}

fn by_stack(profile: &Profile) -> HashMap<Vec<&str>, u64> {
    let Samples::Stacks(stacks) = &profile.samples else { return HashMap::new() };
    let mut counts = HashMap::with_capacity(stacks.len());
    for stack in stacks {
        let names = stack.frames.iter().filter_map(|frame| profile.names.get(place(*frame))).map(|name| &**name).collect::<Vec<_>>();
        let count: &mut u64 = counts.entry(names).or_default();
        *count = count.saturating_add(stack.count);
    }
    counts
}
