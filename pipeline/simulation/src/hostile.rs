//! A service that uses up whatever is given to it, as one does that puts an identifier of each request into its labels.

use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

/// The name of the service.
pub const SERVICE: &str = "hostile";
/// New functions of each profile.
const FUNCTIONS: u32 = 200;
/// Profiles of each hop.
const PROFILES: i64 = 20;

/// Its profiles over some hops from this instant on. Each comes from a new pod of a new build, with a new cohort, functions and
/// call paths.
pub fn profiles(from: Nanos, hop: Nanos, hops: i64) -> impl Iterator<Item = Profile> {
    (0..hops * PROFILES).map(move |number| {
        let start = from.plus(Nanos(hop.0 * (number / PROFILES)));
        let window = TimeRange { start, end: start.plus(hop) };
        let names: Vec<Arc<str>> = (0..FUNCTIONS).map(|name| Arc::from(format!("generated_{number}_{name}"))).collect();
        let stack = |frame: u32| Stack { frames: vec![0, frame], count: 2, cohort: None, value: 0 };
        let identity = Identity {
            service: SERVICE.into(),
            build: format!("build-{number}").as_str().into(),
            region: "east".into(),
            cohort: format!("cohort-{number}").as_str().into(),
            hardware: "any".into(),
            node: None,
            pod: format!("pod-{number}").as_str().into(),
            process_start: Some(from.since(Nanos::from_seconds(3_600))),
        };
        Profile {
            identity: Arc::new(identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window,
            requests: None,
            names: names.into(),
            samples: Samples::Stacks((1..FUNCTIONS).map(stack).collect()),
        }
    })
}
