//! Tests of the oracle itself: its statistics against vectors of the reference programs, its decisions against tiny
//! fleets whose rows were computed by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "oracle_self/admission.rs"]
mod admission;
#[path = "oracle_self/agreement.rs"]
mod agreement;
#[path = "oracle_self/beyond_shares.rs"]
mod beyond_shares;
#[path = "oracle_self/comparisons.rs"]
mod comparisons;
#[path = "oracle_self/fleets.rs"]
mod fleets;
#[path = "oracle_self/rows.rs"]
mod rows;
#[path = "oracle_self/snapshots.rs"]
mod snapshots;
#[path = "oracle_self/speed.rs"]
mod speed;
#[path = "oracle_self/vectors.rs"]
mod vectors;
