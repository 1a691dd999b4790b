//! Fleets whose profiles are of memory.

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::{float, whole};
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType, Samples, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

/// Makes each profile of a fleet two of memory: of allocations, with the same stacks and counts, and of what is in use when it ends.
/// The functions give the bytes allocated, and those in use, for each sample of a stack with this innermost frame.
pub fn with_memory(
    partitions: &mut [Vec<Decoded>],
    allocated: impl Fn(&Profile, u32) -> u64,
    in_use: impl Fn(&Profile, u32) -> u64,
) {
    for record in partitions.iter_mut().flatten() {
        let parts = std::mem::take(&mut record.parts);
        record.parts = parts
            .into_iter()
            .flat_map(|part| match part {
                Ok(profile) => {
                    let end = profile.window.end;
                    let level = of_memory(&profile, ProfileType::LiveHeap, &in_use);
                    let window = TimeRange { start: end, end };
                    let level = Profile { temporality: Temporality::Gauge, window, requests: None, ..level };
                    vec![Ok(of_memory(&profile, ProfileType::Heap, &allocated)), Ok(level)]
                }
                refused => vec![refused],
            })
            .collect();
    }
}

/// Multiplies the samples of snapshots, and the bytes that they stand for: what is in use of a stack with this innermost frame depends
/// on how long the process has run.
pub fn fill(partitions: &mut [Vec<Decoded>], factor: impl Fn(Nanos, u32) -> f64) {
    let profiles = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
    for profile in profiles.filter(|profile| profile.profile_type == ProfileType::LiveHeap) {
        let started = profile.identity.process_start.unwrap_or(profile.window.end);
        let age = profile.window.end.since(started);
        let of_profile = format!("{}\0{}", profile.identity.pod, profile.window.end.0);
        let Samples::Stacks(stacks) = &mut profile.samples else { continue };
        for (place, stack) in stacks.iter_mut().enumerate() {
            let bytes = stack.value / stack.count.max(1);
            // NB: rounded up as often as the fraction says: halves cut off would let memory begin late and then rush.
            let chance = float(stable_hash(format!("{of_profile}\0{place}").as_bytes())) / float(u64::MAX);
            let count = float(stack.count) * factor(age, stack.frames.last().copied().unwrap_or(0));
            stack.count = whole((count + chance).floor());
            stack.value = stack.count * bytes;
        }
        stacks.retain(|stack| stack.count > 0);
    }
}

/// When the first profile of a fleet begins; 1970 if it has none.
pub fn first_moment(partitions: &[Vec<Decoded>]) -> Nanos {
    let profiles = partitions.iter().flatten().flat_map(|record| &record.parts).flatten();
    profiles.map(|profile| profile.window.start).min().unwrap_or(Nanos(0))
}

/// A profile of another type, with so many bytes for each sample of a stack.
fn of_memory(profile: &Profile, profile_type: ProfileType, bytes: &impl Fn(&Profile, u32) -> u64) -> Profile {
    let mut other = Profile { profile_type, ..profile.clone() };
    if let Samples::Stacks(stacks) = &mut other.samples {
        for stack in stacks {
            stack.value = stack.count * bytes(profile, stack.frames.last().copied().unwrap_or(0));
        }
    }
    other
}
