//! How much one service may bring.

use serde::{Deserialize, Serialize};

use crate::time::{Hop, Nanos};
use crate::verdict::Limited;

/// How much of each kind one service may have at a time. What came first has a place until it was not seen for the retention; what
/// finds none is counted together as [`OVERFLOW`](crate::profile::OVERFLOW), so that no service takes memory from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Limits {
    /// What was not seen for this long is forgotten, at the latest after twice as long. At least two windows are kept. 3 h: *guess*
    /// (what is not seen for hours is gone).
    pub retention: Nanos,
    /// Distinct functions.
    pub functions: u64,
    /// Distinct call paths.
    pub paths: u64,
    /// Cells of all types of profile.
    pub cells: u64,
    /// Builds.
    pub builds: u64,
    /// Pods.
    pub pods: u64,
    /// Counts within the window, in bytes as [`bytes_of`](Self::bytes_of) has them.
    pub bytes: u64,
}

impl Limits {
    /// The limit of a kind.
    pub fn of(&self, what: Limited) -> u64 {
        match what {
            Limited::Functions => self.functions,
            Limited::Paths => self.paths,
            Limited::Cells => self.cells,
            Limited::Builds => self.builds,
            Limited::Pods => self.pods,
            Limited::Bytes => self.bytes,
        }
    }

    /// About what a profile with this many counts by function and by call path takes in memory while it is in the window.
    pub fn bytes_of(functions: u64, paths: u64) -> u64 {
        400 + 3 * functions + 3 * paths
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            retention: Nanos::from_seconds(10_800),
            functions: 200_000,
            paths: 2_000_000,
            cells: 1_000,
            builds: 100,
            pods: 20_000,
            bytes: 4 << 30,
        }
    }
}

/// Which limits hold at which hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsByHop {
    first: Limits,
    changes: Vec<(Hop, Limits)>,
}

impl LimitsByHop {
    /// These hold from the first hop on.
    pub fn new(first: Limits) -> Self {
        Self { first, changes: Vec::new() }
    }

    /// Others hold from this hop on, or from the last change if that is later. The retention stays what it was.
    ///
    /// ```
    /// use fleetdiff_schemas::config::{Limits, LimitsByHop};
    /// use fleetdiff_schemas::time::Hop;
    /// let mut limits = LimitsByHop::new(Limits { pods: 5, ..Limits::default() });
    /// limits.change(Hop(7), Limits { pods: 9, ..Limits::default() });
    /// assert_eq!((limits.at(Hop(6)).pods, limits.at(Hop(7)).pods, limits.last().pods), (5, 9, 9));
    /// ```
    pub fn change(&mut self, from: Hop, limits: Limits) -> Hop {
        let from = self.changes.last().map_or(from, |(last, _)| from.max(*last));
        self.changes.push((from, Limits { retention: self.first.retention, ..limits }));
        from
    }

    /// Those that hold at a hop.
    pub fn at(&self, hop: Hop) -> &Limits {
        let since = self.changes.partition_point(|(from, _)| *from <= hop);
        since.checked_sub(1).map_or(&self.first, |last| &self.changes[last].1)
    }

    /// Those that hold in the end.
    pub fn last(&self) -> &Limits {
        self.changes.last().map_or(&self.first, |(_, limits)| limits)
    }
}
