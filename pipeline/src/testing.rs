//! What stands beside the dataflow to judge it: fleets whose truth is known.
//!
//! [`fleet`] makes them from a seed, for tests, benches, `generate` and `demo` alike.

pub mod experiment;
pub mod fleet;
pub mod incremental;
pub mod oracle;
