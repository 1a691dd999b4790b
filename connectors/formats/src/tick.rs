//! What is written of the time that samples stand for.

use fleetdiff_schemas::profile::{Stack, value_of_each};

/// Nanoseconds between two samples of time, written where nobody knows them: 100 Hz, the rate of Go's profiler.
const UNKNOWN: i64 = 10_000_000;

/// How the time of stacks is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenTime {
    /// As a period: each sample stands for so many nanoseconds.
    Period(i64),
    /// Stack by stack.
    Own,
}

impl WrittenTime {
    /// What says the same as these stacks do.
    pub(crate) fn of(stacks: &[Stack]) -> Self {
        if stacks.iter().all(|stack| stack.value == 0) {
            return Self::Period(UNKNOWN);
        }
        let each = value_of_each(stacks).and_then(|each| i64::try_from(each).ok());
        each.filter(|each| *each > 1).map_or(Self::Own, Self::Period)
    }
}
