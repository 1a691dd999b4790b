//! What a service brings beyond its limits.

use serde::{Deserialize, Serialize};

use crate::identity::Service;
use crate::profile::OVERFLOW;
use crate::time::Nanos;
use crate::verdict::Limited;

/// What of a service was counted together at one hop because it exceeds one limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LimitRow {
    /// Start of the hop.
    pub hop_at: Nanos,
    /// Which service.
    pub service: Service,
    /// What there is too much of.
    pub what: Limited,
    /// How much there may be.
    pub limit: i64,
    /// Parts of profiles, one a cell, that were concerned.
    pub profiles: i64,
    /// Their samples that were: of functions those at the leaf.
    pub samples: i64,
}

impl LimitRow {
    /// What the row is about: rows that are equal here are added.
    pub fn key(&self) -> (Nanos, &Service, Limited) {
        (self.hop_at, &self.service, self.what)
    }

    /// What is said of it to people.
    pub fn warning(&self) -> String {
        let Self { service, what, limit, .. } = self;
        format!("service {service} exceeds limits.{what} ({limit}): what came last is counted together as {OVERFLOW}")
    }

    /// Adds what another row about the same holds.
    pub fn add(&mut self, other: &Self) {
        self.profiles = self.profiles.saturating_add(other.profiles);
        self.samples = self.samples.saturating_add(other.samples);
    }
}
