//! What is read of a topic.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetdiff_formats::identity::IdentityMapping;

/// What to read of which topic.
#[derive(Clone, Debug)]
pub struct TopicSettings {
    /// Its name.
    pub topic: String,
    /// The first offset to read of each partition, as far as it is still there; partitions without an entry are read from their earliest
    /// record.
    pub start: BTreeMap<i32, i64>,
    /// Whether to stop at the offsets at which the partitions end when the reader is opened.
    pub until_end: bool,
    /// Which headers identify a profile.
    pub identity: IdentityMapping,
    /// How long the cluster may be gone before the run fails; `None` waits until it is back.
    pub give_up_after: Option<Duration>,
}

impl TopicSettings {
    /// Reads the whole topic from its earliest records and continues for ever.
    pub fn new(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            start: BTreeMap::new(),
            until_end: false,
            identity: IdentityMapping::default(),
            give_up_after: None,
        }
    }
}
