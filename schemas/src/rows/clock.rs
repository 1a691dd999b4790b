//! Pods whose clock is wrong.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::identity::{Build, PodId, Service};
use crate::time::Nanos;

/// What the profiles of one pod that were booked at one hop show of its clock, if it is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClockRow {
    /// Start of the hop.
    pub hop_at: Nanos,
    /// Topic.
    pub source: Arc<str>,
    /// Partition of the topic.
    pub partition: i32,
    /// Whose clock.
    pub service: Service,
    /// The build.
    pub build: Build,
    /// The pod.
    pub pod: PodId,
    /// How far it is ahead, or if negative behind, in nanoseconds; of several the largest in size.
    pub ahead: i64,
    /// Profiles with a wrong time.
    pub profiles: i64,
    /// Their samples.
    pub samples: i64,
    /// Of these: counted later, since they waited for their time.
    pub samples_waited: i64,
    /// Of these: rejected.
    pub samples_rejected: i64,
    /// Of these: older than the window.
    pub samples_late_dropped: i64,
}

impl ClockRow {
    /// Adds what another row of the same key holds.
    pub fn add(&mut self, other: &Self) {
        if (other.ahead.unsigned_abs(), other.ahead) > (self.ahead.unsigned_abs(), self.ahead) {
            self.ahead = other.ahead;
        }
        self.profiles = self.profiles.saturating_add(other.profiles);
        self.samples = self.samples.saturating_add(other.samples);
        self.samples_waited = self.samples_waited.saturating_add(other.samples_waited);
        self.samples_rejected = self.samples_rejected.saturating_add(other.samples_rejected);
        self.samples_late_dropped = self.samples_late_dropped.saturating_add(other.samples_late_dropped);
    }

    /// What the row is about: rows of one hop that are equal here are added.
    pub fn key(&self) -> (Nanos, &str, i32, &Service, &Build, &PodId) {
        (self.hop_at, &self.source, self.partition, &self.service, &self.build, &self.pod)
    }
}
