//! What a service has done.

use std::collections::BTreeMap;

use fleetdiff_schemas::rejected::Reason;
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
    /// Changes of flags.
    pub(crate) flags: u64,
    /// The rate of false positives.
    pub(crate) aa_check: AaCheckRate,
}
