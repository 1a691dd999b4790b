//! From counts to evidence: what the tests of one cell say, before anything is decided over many rows.
//!
//! [`arms`] sets the builds of a cell against each other, on top of what is [`closed`], and [`pods`] its single pods, [`look`] is what the live rule needs at every
//! evaluation, with what a [`family`] remembers and who calls whom ([`callers`]), [`report`] the rows of a table, [`kind`] by kind of count, with [`requests`] where
//! they are known or pods compared one by one ([`pod_by_pod`]), in what the arms are [`imbalance`], and [`snapshot`] carries a cell's
//! counts to where cells are rolled up. Where no base build runs any more, [`history`] sets the head against what is kept;
//! [`strata_detail`] says in words where arms ran; [`view`] is a cell as an evaluation sees it.

pub mod arms;
pub(crate) mod callers;
pub mod closed;
pub mod family;
pub(crate) mod history;
pub(crate) mod imbalance;
pub(crate) mod kind;
pub mod look;
pub(crate) mod pod_by_pod;
pub mod pods;
pub mod report;
pub(crate) mod requests;
pub(crate) mod row;
pub mod snapshot;
mod strata;
pub(crate) mod strata_detail;
pub mod view;
