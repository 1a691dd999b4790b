//! Whether the head continues the base: two cumulative profiles of one process, of which the later contains the
//! earlier.

use fleetdiff_schemas::profile::ProfileType;

use super::recording::Recording;
use crate::sides::Sides;
use crate::stacks::of_side;

/// Whether both sides are one profile of a type that runtimes count since the process began, and the head has every
/// stack of the base at least as often. This hardly ever holds for two runs of a program; it always holds for two
/// snapshots of one process.
pub fn head_holds_base(sides: &Sides<Vec<Recording>>) -> bool {
    let ([base], [_]) = (sides.base.as_slice(), sides.head.as_slice()) else { return false };
    let since_start = matches!(base.profile.profile_type, ProfileType::Heap | ProfileType::Mutex | ProfileType::Block);
    if !since_start {
        return false;
    }
    let (Ok(base), Ok(head)) = (of_side(&sides.base), of_side(&sides.head)) else { return false };
    !base.is_empty() && base.iter().all(|(stack, count)| head.get(stack).is_some_and(|more| more >= count))
}
