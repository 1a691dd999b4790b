//! The decoder of the formats whose records hold one profile and name no time: their samples, and what the labels say.

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Rejection;

use crate::collected::{Collected, Collector};
use crate::decode::{Decode, Options};
use crate::labels::{Labels, one_profile};
use crate::record::Record;

/// Reads the samples of one record.
pub(crate) type Read = fn(&Record<'_>, &mut Collected<'_>) -> Result<(), Rejection>;

/// Decodes records of one profile by the parser of their format.
pub(crate) struct OneProfile {
    collector: Collector,
    read: Read,
}

impl OneProfile {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub(crate) fn new(options: &Options, read: Read) -> Self {
        Self { collector: Collector::new(options), read }
    }
}

impl Decode for OneProfile {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let part = one_profile(labels, None, |measure| self.collector.contents(bytes, measure, self.read));
        vec![part]
    }
}
