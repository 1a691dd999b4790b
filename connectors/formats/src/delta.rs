//! The columnar delta, fleetdiff's own form: its bytes are defined in [`fleetdiff_schemas::delta`]; this is its place
//! among the formats. A record may be compressed as a whole and carries the identities of its profiles, so that labels
//! are not needed and not looked at.

use fleetdiff_schemas::delta::{self, SeenNames};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Rejection;

use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::{Decode, Options};
use crate::labels::{Labels, countable};
use crate::parts::gathered;

/// Decodes columnar deltas of every version.
#[derive(Debug)]
pub(crate) struct Decoder {
    max_bytes: usize,
    max_built_bytes: usize,
    seen: SeenNames,
}

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record, and builds at most [`Options::max_built_bytes`] of it.
    pub(crate) fn new(options: &Options) -> Self {
        Self { max_bytes: options.max_bytes, max_built_bytes: options.max_built_bytes, seen: SeenNames::default() }
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], _: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let record = decompress(bytes, self.max_bytes);
        let parts = record.and_then(|record| {
            let budget = Budget::of(record.len(), self.max_built_bytes);
            delta::decode_after(&record, &mut self.seen, &mut |bytes| budget.take(bytes))
        });
        match parts {
            Ok(parts) => gathered(parts.into_iter().map(|part| part.and_then(countable))),
            Err(fault) => vec![Err(fault)],
        }
    }
}
