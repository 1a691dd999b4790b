//! Fleets whose truth is known, and fleetdiff's results on them.
//!
//! [`fleet`] makes them from a seed, for tests, benches, `generate` and `demo`; [`experiment`] runs presets through the
//! dataflow; [`calibration`] counts how often the statistics are wrong; [`flags`] says what became of each flag; [`memory`] makes
//! their profiles profiles of memory. [`day`] and [`hostile`] are services that bring ever new names.

pub mod calibration;
pub mod day;
pub mod experiment;
pub mod flags;
pub mod fleet;
pub mod hostile;
pub mod load;
pub mod memory;
mod run;
pub mod waiting;

pub use run::run_fleet;
