//! What a service has done.

use std::collections::BTreeMap;

use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::Hop;

use crate::aa_check::AaCheckRate;

/// What was done so far.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Hops that had rows.
    pub hops: u64,
    /// The last of them.
    pub through: Hop,
    /// Records that were decoded.
    pub decoded: i64,
    /// Records that were rejected, by reason.
    pub rejected: BTreeMap<Reason, u64>,
    /// Changes of flags.
    pub flags: u64,
    /// The rate of false calls.
    pub aa_check: AaCheckRate,
}
