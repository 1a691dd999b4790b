//! From counts to evidence: the test results of one cell, before anything is decided over many rows.
//!
//! [`arms`] compares the builds of a cell, and [`pods`] its single pods; [`tests`] are those of shares. [`look`] makes
//! what the live rule needs at every evaluation, with what a [`family`] remembers, what is [`held`] from an earlier look
//! and which function calls which ([`callers`]). [`report`] makes the rows of a table, [`kind`] those of one kind of count, with [`requests`] if they
//! are known, or with pods compared one by one ([`pod_by_pod`]), and with the [`imbalance`] of the arms ([`arm_facts`]), the [`gap`] of [`load`] and [`ages`] that may have made a change alone, what is [`hidden`] in it,
//! and the [`splits`] of the base. [`snapshot`]
//! carries a cell's counts to where cells are rolled up. If no base build runs any more, [`history`] compares the head
//! with what is kept of the base. [`strata_detail`] says in words where arms ran; [`view`] is a cell as an evaluation
//! sees it. [`others`] is what the test of one function takes from all functions. [`scaling`] is how its cost follows load, [`heap`] what became of memory, [`waiting`] what
//! requests wait for, both by pod ([`tally`]), [`stacks`] the samples by stack for a picture.

pub mod ages;
mod arm_facts;
pub mod arms;
pub(crate) mod callers;
pub mod family;
pub mod gap;
pub mod heap;
pub mod held;
pub(crate) mod hidden;
pub(crate) mod history;
pub(crate) mod imbalance;
pub(crate) mod kind;
pub mod load;
pub mod look;
mod others;
pub mod plain;
pub(crate) mod pod_by_pod;
pub mod pods;
pub mod report;
pub(crate) mod requests;
pub(crate) mod row;
pub mod scaling;
pub mod snapshot;
pub(crate) mod splits;
pub mod stacks;
mod strata;
pub(crate) mod strata_detail;
mod tally;
pub(crate) mod tests;
pub mod view;
pub mod waiting;
pub(crate) mod young;
