//! The words of fleetdiff: what crosses a boundary between two of its parts, or leaves the program.
//!
//! Who is speaking about which pod ([`identity`]), when ([`time`]), what a profiler saw ([`profile`]), why a record
//! was refused ([`rejected`]), what was concluded ([`verdict`], [`rows`], [`fan_out`]) and what is announced ([`alert`]).
//! Nothing here does I/O and nothing knows an engine.

pub mod alert;
pub mod comparison;
pub mod config;
pub mod delta;
pub mod fan_out;
pub mod fold;
pub mod identity;
pub mod number;
pub mod profile;
pub mod rejected;
pub mod rows;
pub mod sink;
pub mod source;
pub mod tables;
pub mod time;
pub mod verdict;
