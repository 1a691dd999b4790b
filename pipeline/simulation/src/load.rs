//! Builds of which the pods serve more.

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::Decoded;

/// Pods of a build serve so many times as much, in profiles that are otherwise the same.
pub fn serve_more(partitions: &mut [Vec<Decoded>], build: &Build, times: u64) {
    let profiles = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
    for profile in profiles.filter(|profile| profile.identity.build == *build) {
        if let Some(requests) = &mut profile.requests {
            requests.count *= times;
        }
    }
}
