//! The steps of the dataflow, one a file. Each collects what belongs to a hop and acts once the hop is closed; what it does
//! then is a pure function or state machine from elsewhere.

pub mod announce;
pub mod arrive;
pub mod at_close;
pub mod by_cell;
pub mod by_comparison;
pub mod by_pod;
pub mod deliver;
pub mod fan_out;
pub mod ledger;
pub mod registry;
pub mod split;

use fleetdiff_schemas::identity::stable_hash;

/// The worker that a key belongs to, before it is taken modulo their number.
fn route(parts: &[&str]) -> u64 {
    stable_hash(parts.join("\0").as_bytes())
}
