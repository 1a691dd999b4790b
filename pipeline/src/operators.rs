//! The steps of the dataflow, one per file. Each collects the data of a hop and acts once the hop is closed, by calling
//! a pure function or state machine from another module.

pub(crate) mod add_up;
pub(crate) mod announce;
pub(crate) mod arrive;
pub mod at_close;
pub(crate) mod by_cell;
pub(crate) mod by_comparison;
pub(crate) mod by_pod;
pub(crate) mod common;
pub(crate) mod deliver;
pub(crate) mod fan_out;
pub(crate) mod incidents;
pub(crate) mod ledger;
pub(crate) mod limits;
pub(crate) mod registry;
pub mod split;

use fleetdiff_schemas::identity::stable_hash;

/// The worker that a key belongs to, before it is taken modulo their number.
fn route(parts: &[&str]) -> u64 {
    stable_hash(parts.join("\0").as_bytes())
}
