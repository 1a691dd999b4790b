//! What was read of a profile, or why it cannot be read so.

use std::sync::Arc;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::keys::Key;
use crate::observed::Divisor;

/// What was read of one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its raw samples.
    pub profile: Profile,
    /// What they weigh, where the file says it of every sample.
    pub weights: Option<Weights>,
    /// The window that the file itself names.
    pub window: Option<TimeRange>,
    /// Whether the file says when each sample was taken.
    pub timed: bool,
    /// What every count or value of the file was a multiple of, if that was taken for a period and they are divided by it.
    pub period: Option<Divisor>,
    /// Samples that were left out, since the file does not say of what stacks they are.
    pub lost: u64,
    /// Where each stretch of its time ends in the list of stacks ([`SLICES`](super::SLICES) of as many samples), if that was asked for and
    /// is known.
    pub slices: Option<Vec<usize>>,
}

/// What the samples of a run stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What it is, as `alloc_space/bytes` or, of perf's periods, the event.
    pub unit: Arc<str>,
    /// The stacks of the run with weights for counts.
    pub profile: Profile,
}

/// Why a profile cannot be read so; each says what `FILE ...` does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is no profile that can be counted.
    #[error("is no profile that can be compared ({reason}): {detail}", reason = .0.reason.name(), detail = .0.detail)]
    Rejected(Rejection),
    /// It has not what is asked for.
    #[error("does not say {what}", what = .0.missing())]
    Missing(Key),
    /// It has no times of samples.
    #[error("does not say when its samples were taken")]
    Timeless,
    /// All of its samples lie outside of the time asked for.
    #[error("holds no sample in the time asked for: its first is at {first:.6} s and its last at {last:.6} s", first = .first.as_seconds(), last = .last.as_seconds())]
    OutOfTime {
        /// When its first sample was taken.
        first: Nanos,
        /// When its last sample was taken.
        last: Nanos,
    },
    /// The filters leave nothing of it.
    #[error("holds no sample that the filters leave ({0})")]
    NothingLeft(&'static str),
}

impl From<Rejection> for Unread {
    fn from(fault: Rejection) -> Self {
        Self::Rejected(fault)
    }
}
