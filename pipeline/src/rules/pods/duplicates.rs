//! Which profiles of a pod were counted within the window, so that each is counted once.

use std::collections::{HashSet, VecDeque};

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::{Hop, Nanos, TimeRange};
use serde::{Deserialize, Serialize, Serializer};

/// Build, process, type, window and content.
pub(super) type ProfileKey = (Build, Option<Nanos>, ProfileType, TimeRange, u128);

/// Profiles in the order in which they were counted, which is all that is saved of them.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "VecDeque<(Hop, ProfileKey)>")]
pub(super) struct Duplicates {
    known: HashSet<ProfileKey>,
    order: VecDeque<(Hop, ProfileKey)>,
}

impl Serialize for Duplicates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.order.serialize(serializer)
    }
}

impl From<VecDeque<(Hop, ProfileKey)>> for Duplicates {
    fn from(order: VecDeque<(Hop, ProfileKey)>) -> Self {
        Self { known: order.iter().map(|(_, key)| key.clone()).collect(), order }
    }
}

impl Duplicates {
    /// Whether a profile that is applied at this hop was not counted before.
    pub(super) fn is_new(&mut self, hop: Hop, key: ProfileKey) -> bool {
        let is_new = self.known.insert(key.clone());
        if is_new {
            self.order.push_back((hop, key));
        }
        is_new
    }

    /// Forgets what was counted a window or longer before this hop.
    pub(super) fn forget(&mut self, hop: Hop, window: u64) {
        while let Some((_, key)) = self.order.pop_front_if(|(at, _)| at.plus(window) <= hop) {
            self.known.remove(&key);
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.known.shrink_to_fit();
        self.order.shrink_to_fit();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
