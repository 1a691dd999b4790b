//! A record of one profile as its format reads it.

use crate::budget::Budget;
use crate::labels::Measure;

/// The text of a record, its compression undone, and what is said of how it is read.
#[derive(Clone, Debug)]
pub(crate) struct Record<'t> {
    pub(crate) text: &'t [u8],
    /// What may be built from it.
    pub(crate) budget: Budget,
    pub(crate) measure: Measure,
}
