//! The vocabulary of fleetdiff: the types that cross a boundary between two of its parts, or leave the program.
//!
//! They say which pod was profiled ([`identity`]), when ([`time`]), what the profiler saw ([`profile`]), why a record
//! was refused ([`rejected`]), what was concluded ([`verdict`], [`rows`], [`fan_out`]) and what is announced
//! ([`alert`]). Nothing here does I/O or knows the dataflow engine.

pub mod alert;
pub mod comparison;
pub mod config;
pub mod delta;
pub mod fan_out;
pub mod fold;
pub mod identity;
pub mod idle;
pub mod number;
pub mod profile;
pub mod rejected;
pub mod rows;
pub mod sink;
pub mod source;
pub mod tables;
pub mod time;
pub mod verdict;
