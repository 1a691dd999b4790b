//! Rows come in the hop in which they are filed: else the file that they belong to may be complete.

use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::{Hop, HopClock};

pub fn assert_filed(clock: HopClock, hop: Hop, tables: &Tables) {
    let first = tables.filed_from();
    assert!(first.is_none_or(|at| at >= clock.start_of(hop)), "at {hop:?}, a row of {first:?}: {tables:?}");
}
