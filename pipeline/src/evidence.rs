//! From counts to evidence: what the tests of one cell say, before anything is decided over many rows.
//!
//! [`arms`] sets the builds of a cell against each other, [`look`] is what the live rule needs at every evaluation, [`report`]
//! the rows of a table, and [`snapshot`] carries a cell's counts to where cells are rolled up.

pub mod arms;
pub mod look;
pub mod report;
pub mod row;
pub mod snapshot;
