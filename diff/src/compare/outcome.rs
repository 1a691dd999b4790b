//! The result of a comparison: all findings, or why there are none.

use std::sync::Arc;

use fleetdiff_formats::Values;
use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::profile::{CountKind, ProfileType};

use super::finding::Finding;
use super::overlap::Overlap;
use super::reach::Reach;
use crate::figures::grouped;
use crate::sides::Sides;

/// The total weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// What weights are.
    pub unit: Arc<str>,
    /// Of each side.
    pub totals: Sides<u64>,
}

/// The fewest runs of each side that times are compared with: from here on the variation between runs is known
/// ([`Spread::Known`]), which is all that there is.
pub const FEWEST_RUNS: usize = 5;

/// What was measured of times before their tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// How coarse times are, in nanoseconds.
    pub(super) grain: u64,
    /// The part of the time of both sides together from which a function is tested, 0 to 1.
    pub floor: f64,
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
            2..FEWEST_RUNS => Self::Tentative,
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
    /// Samples of each side; none where times are compared.
    pub samples: Option<Sides<u64>>,
    /// What was measured of times, where they are compared.
    pub times: Option<Measured>,
    /// What weights are, and the total of each side, if every run has weights.
    pub weights: Option<Weighed>,
    /// What is known about the variation between runs.
    pub spread: Spread,
    /// Between single runs, by how much functions differ beyond independent samples
    /// ([`Settings::background`](super::Settings::background)).
    pub background: Option<f64>,
    /// What could have been seen of the largest functions; empty where the variation between runs is not known.
    pub reach: Vec<Reach>,
    /// How much both sides have in common.
    pub overlap: Overlap,
    /// Self counts, then total counts; in each, significant rows first, by the smallest change that is compatible with
    /// the samples.
    pub findings: Vec<Finding>,
}

impl Compared {
    /// What is compared: samples, or, where nobody can count them, their times in nanoseconds ([`times`](super::times)).
    pub fn totals(&self) -> Sides<u64> {
        self.samples.or_else(|| self.weights.as_ref().map(|weights| weights.totals)).unwrap_or_default()
    }

    /// What the figures of [`Compared::totals`] and [`Finding::amount`] are.
    pub fn values(&self) -> Values {
        if self.samples.is_some() { Values::Samples } else { Values::Times }
    }

    /// Whether functions can only stand out: each side, or one, is a single run.
    pub fn can_only_stand_out(&self) -> bool {
        self.background.is_some()
    }

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
    /// Runs of which some are of samples and some of times.
    #[error("{counted} counts samples, and {timed} has times that cannot be counted")]
    CountsAndTimes {
        /// A run of samples.
        counted: String,
        /// A run of times.
        timed: String,
    },
    /// Times, and too few runs to compare them by.
    #[error("times without a period can be compared by how runs differ among each other, with {FEWEST_RUNS} runs of each side or more: base has {}, head {}", .0.base, .0.head)]
    FewRuns(Sides<usize>),
    /// Times, and a method that needs counts.
    #[error("the article's rule needs counts of samples, and the files have times without a period")]
    NeedsCounts,
    /// A side of which no function has a name.
    #[error("no function of the {side} has a name: {samples} samples without symbols", samples = grouped(*.samples))]
    Nameless {
        /// The side.
        side: &'static str,
        /// Its samples.
        samples: u64,
    },
    /// Profiles of different programs.
    #[error("base and head have {} of {} functions in common, and {:.1} % of their samples: these are profiles of different programs", .0.common, .0.fewer, 100.0 * .0.samples)]
    DifferentPrograms(Overlap),
    /// The dataflow failed.
    #[error(transparent)]
    Failed(#[from] RunError),
}
