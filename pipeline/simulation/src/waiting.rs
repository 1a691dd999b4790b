//! Fleets whose profiles are of time on the CPU and off it.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::{AT_THREAD, Decoded, Profile, ProfileType, Samples};

/// Nanoseconds between two samples on the CPU.
const TICK: u64 = 10_000_000;

/// Sets beside each profile on the CPU one of waiting. `waits` gives, for the stacks with this innermost frame, the threads that wait and
/// the nanoseconds of each wait; there are as many waits as samples on the CPU.
pub fn with_waiting(
    partitions: &mut [Vec<Decoded>],
    profile_type: ProfileType,
    waits: impl Fn(&Profile, u32) -> Vec<(&'static str, u64)>,
) {
    for record in partitions.iter_mut().flatten() {
        let mut beside = Vec::new();
        for profile in record.parts.iter_mut().flatten() {
            beside.push(Ok(waiting(profile, profile_type, &waits)));
            if let Samples::Stacks(stacks) = &mut profile.samples {
                stacks.iter_mut().for_each(|stack| stack.value = stack.count * TICK);
            }
        }
        record.parts.extend(beside);
    }
}

fn waiting(
    profile: &Profile,
    profile_type: ProfileType,
    waits: &impl Fn(&Profile, u32) -> Vec<(&'static str, u64)>,
) -> Profile {
    let Samples::Stacks(stacks) = &profile.samples else { return profile.clone() };
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut places: HashMap<(u32, &str), u32> = HashMap::new();
    let mut waiting = Vec::new();
    for stack in stacks {
        for (thread, nanoseconds) in waits(profile, stack.frames.last().copied().unwrap_or(0)) {
            let mut of_thread = stack.clone();
            for frame in &mut of_thread.frames {
                let name = usize::try_from(*frame).ok().and_then(|frame| profile.names.get(frame));
                let name = name.map_or("", |name| name);
                *frame = *places.entry((*frame, thread)).or_insert_with(|| {
                    names.push(if thread.is_empty() {
                        name.into()
                    } else {
                        format!("{name}{AT_THREAD}{thread}").into()
                    });
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                });
            }
            of_thread.value = stack.count * nanoseconds;
            waiting.push(of_thread);
        }
    }
    Profile { profile_type, names: names.into(), samples: Samples::Stacks(waiting), ..profile.clone() }
}
