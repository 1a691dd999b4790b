//! The result of a comparison: all findings, or why there are none.

use std::sync::Arc;

use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::profile::{CountKind, ProfileType};

use super::finding::Finding;
use super::overlap::Overlap;
use crate::sides::Sides;

/// The total weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// What weights are.
    pub unit: Arc<str>,
    /// Of each side.
    pub totals: Sides<u64>,
}

/// What is known about the variation between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// Nothing: a side has a single run.
    Unknown,
    /// A little: 2 to 4 runs on the smaller side.
    Tentative,
    /// Enough: at least 5 runs per side.
    Known,
}

impl Spread {
    pub(super) fn of(runs: Sides<usize>) -> Self {
        match runs.base.min(runs.head) {
            0 | 1 => Self::Unknown,
            2..=4 => Self::Tentative,
            _ => Self::Known,
        }
    }
}

/// All findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What was sampled.
    pub profile_type: ProfileType,
    /// Runs of each side.
    pub runs: Sides<usize>,
    /// Samples of each side.
    pub samples: Sides<u64>,
    /// What weights are, and the total of each side, if every run has weights.
    pub weights: Option<Weighed>,
    /// What is known about the variation between runs.
    pub spread: Spread,
    /// Between single runs, by how much functions differ beyond independent samples
    /// ([`Settings::background`](super::Settings::background)).
    pub background: Option<f64>,
    /// How much both sides have in common.
    pub overlap: Overlap,
    /// Self counts, then total counts; in each, significant rows first, by the smallest change that is compatible with
    /// the samples.
    pub findings: Vec<Finding>,
}

impl Compared {
    /// The findings of one kind, in their order.
    pub fn of_kind(&self, kind: CountKind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.count_kind == kind)
    }
}

/// Why two sides cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// A side without a sample.
    #[error("the {0} holds no sample")]
    Empty(&'static str),
    /// Profiles of several types.
    #[error("{first} is a {first_type} profile and {other} a {other_type} profile", first_type = .first_type.name(), other_type = .other_type.name())]
    Types {
        /// A run.
        first: String,
        /// Its type.
        first_type: ProfileType,
        /// One of another type.
        other: String,
        /// That type.
        other_type: ProfileType,
    },
    /// Weights of several units.
    #[error("{first} has weights of {first_unit} and {other} of {other_unit}")]
    Units {
        /// A run.
        first: String,
        /// What its weights are.
        first_unit: Arc<str>,
        /// One with other weights.
        other: String,
        /// What those are.
        other_unit: Arc<str>,
    },
    /// Profiles of different programs.
    #[error("base and head have {} of {} functions in common, and {:.1} % of their samples: these are profiles of different programs", .0.common, .0.fewer, 100.0 * .0.samples)]
    DifferentPrograms(Overlap),
    /// The dataflow failed.
    #[error(transparent)]
    Failed(#[from] RunError),
}
