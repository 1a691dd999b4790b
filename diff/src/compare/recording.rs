//! What is compared: runs, and the weights of their samples.

use std::sync::Arc;

use fleetdiff_formats::Values;
use fleetdiff_formats::reading::Weights;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

/// What weights are where times are compared.
const UNIT_OF_TIMES: &str = "time/nanoseconds";

/// What one run recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its origin, as it is shown.
    pub label: String,
    /// Its stacks; identity and time are not used.
    pub profile: Profile,
    /// What the profiler wrote in addition to samples, if that was read too.
    pub weights: Option<Weights>,
    /// What the counts of the stacks are: samples, or nanoseconds of which nobody knows how many samples they are.
    pub values: Values,
    /// Where each stretch of its time ends in the list of stacks ([`SLICES`](fleetdiff_formats::reading::SLICES)), if that is known.
    pub slices: Option<Vec<usize>>,
}

impl Recording {
    /// A run of these stacks, whose frames are indexes into `names`, root first; it has no weights.
    pub fn of_stacks(
        label: impl Into<String>,
        profile_type: ProfileType,
        names: Arc<[Arc<str>]>,
        stacks: Vec<Stack>,
    ) -> Self {
        let profile = Profile {
            identity: Arc::new(nobody()),
            profile_type,
            temporality: if profile_type.is_level() { Temporality::Gauge } else { Temporality::Delta },
            window: TimeRange { start: Nanos(1), end: Nanos(2) },
            requests: None,
            names,
            samples: Samples::Stacks(stacks),
        };
        Self { label: label.into(), profile, weights: None, values: Values::Samples, slices: None }
    }

    /// What its stacks weigh, with the unit, if that is known.
    pub(crate) fn weighed(&self) -> Option<(Arc<str>, &Profile)> {
        match self.values {
            Values::Samples => self.weights.as_ref().map(|weights| (Arc::clone(&weights.unit), &weights.profile)),
            Values::Times => Some((UNIT_OF_TIMES.into(), &self.profile)),
        }
    }
}

/// The identity of every profile that is read from a file, which names no service, build or pod: each field that must have a value
/// is `-`. A comparison of files does not use it.
pub fn nobody() -> Identity {
    Identity {
        service: "-".into(),
        build: "-".into(),
        region: "-".into(),
        cohort: "-".into(),
        hardware: "-".into(),
        node: None,
        pod: "-".into(),
        process_start: None,
    }
}
