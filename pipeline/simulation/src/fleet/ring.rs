//! A build that runs beside base and head: one more ring of a roll-out.

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::time::Nanos;

/// A further build, in every cell.
#[derive(Clone, Debug)]
pub struct Ring {
    pub(super) build: Build,
    pub(super) pods: u32,
    /// When its pods start, from the first instant; `None` if they have run for hours.
    pub(super) starts: Option<Nanos>,
    /// When its pods end, from the first instant.
    pub(super) ends: Option<Nanos>,
    /// Requests of a pod relative to those of other builds' pods.
    pub(super) load: f64,
    /// Whether what is changed in the head is changed in it too.
    pub(super) has_changes: bool,
}

impl Ring {
    /// A build with this many pods in each cell, which has run for hours, serves as the others do, and is as the base.
    pub fn new(build: impl Into<Build>, pods_per_cell: u32) -> Self {
        Self { build: build.into(), pods: pods_per_cell, starts: None, ends: None, load: 1.0, has_changes: false }
    }

    /// Its pods start this long after the first profile.
    #[must_use]
    pub fn starts_after(self, length: Nanos) -> Self {
        Self { starts: Some(length), ..self }
    }

    /// Its pods end this long after the first profile.
    #[must_use]
    pub fn ends_after(self, length: Nanos) -> Self {
        Self { ends: Some(length), ..self }
    }

    /// Its pods serve this many times the requests of other pods; costs follow by the elasticities of the fleet.
    #[must_use]
    pub fn load(self, factor: f64) -> Self {
        Self { load: factor, ..self }
    }

    /// What is changed in the head is changed in it too.
    #[must_use]
    pub fn with_changes(self) -> Self {
        Self { has_changes: true, ..self }
    }
}
