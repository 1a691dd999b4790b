//! What a service has done.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::ClockRow;
use fleetdiff_schemas::time::Hop;

use fleetdiff_report::AaCheckRate;

/// What was done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Hops that had rows.
    pub(crate) hops: u64,
    /// The last of them.
    pub(crate) through: Hop,
    /// Records that were decoded.
    pub(crate) decoded: i64,
    /// Records that were rejected, by reason.
    pub(crate) rejected: BTreeMap<Reason, u64>,
    /// Pods whose clock was wrong, as service/pod; at most [`NAMED`] of each kind.
    pub(crate) clocks: WrongClocks,
    /// Changes of flags.
    pub(crate) flags: u64,
    /// The rate of false positives.
    pub(crate) aa_check: AaCheckRate,
}

/// The most pods with a wrong clock that are kept, so that pods without number need no memory without bound.
const NAMED: usize = 10_000;

/// Pods whose clock was wrong, as service/pod; at most [`NAMED`] of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrongClocks {
    pub(crate) ahead: BTreeSet<String>,
    pub(crate) behind: BTreeSet<String>,
}

impl WrongClocks {
    /// Takes a row of `clocks` and gives what is to be said of it, if it is the first of its pod.
    pub(crate) fn take(&mut self, row: &ClockRow) -> Option<String> {
        let (pods, direction) = if row.ahead > 0 { (&mut self.ahead, "ahead") } else { (&mut self.behind, "behind") };
        let pod = format!("{}/{}", row.service, row.pod);
        let is_new = pods.len() < NAMED && pods.insert(pod.clone());
        let seconds = row.ahead.unsigned_abs() / 1_000_000_000;
        is_new.then(|| {
            format!(
                "the clock of pod {pod} (build {}) is {seconds} s {direction}{}",
                row.build,
                if row.ahead > 0 { "" } else { ", or its profiles come so late" }
            )
        })
    }
}
