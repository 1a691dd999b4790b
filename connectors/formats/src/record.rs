//! A record of one profile as its format reads it.

use std::borrow::Cow;

use fleetdiff_schemas::rejected::Rejection;

use crate::compression::decompress;
use crate::labels::Measure;

/// The bytes of a record, and what of its labels says how they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'b> {
    pub(crate) bytes: &'b [u8],
    /// Largest record after decompression in bytes.
    pub(crate) max_bytes: usize,
    pub(crate) measure: Measure,
}

impl<'b> Record<'b> {
    /// The text of the record, its compression undone.
    ///
    /// # Errors
    /// Those of [`decompress`].
    pub(crate) fn text(&self) -> Result<Cow<'b, [u8]>, Rejection> {
        decompress(self.bytes, self.max_bytes)
    }
}
