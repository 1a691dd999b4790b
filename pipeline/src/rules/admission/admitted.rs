//! What becomes of records: what this run counts, and what another shard counts.

use fleetdiff_schemas::rows::{ClockRow, RejectedRow};
use fleetdiff_schemas::time::Hop;

use super::{Arrival, OfPod};

/// What another shard counts. Here it is known only that it came.
#[derive(Clone, Debug)]
pub enum Elsewhere {
    /// A profile.
    Profile(Arrival),
    /// Requests that a pod served.
    Requests,
    /// A refused part.
    Rejected(RejectedRow),
}

/// What a record became.
#[derive(Clone, Debug)]
pub enum Admitted {
    /// A message about a pod, at its application hop.
    OfPod(Hop, OfPod),
    /// A refused part, at the hop under which it is booked.
    Rejected(Hop, RejectedRow),
    /// What a profile shows of a clock that is wrong, at the same hop as the profile.
    Clock(Hop, ClockRow),
    /// What belongs to another shard, at the hop at which it is applied or booked there.
    Elsewhere(Hop, Elsewhere),
}

impl Admitted {
    /// At which hop.
    pub fn hop(&self) -> Hop {
        match self {
            Self::OfPod(hop, _) | Self::Rejected(hop, _) | Self::Clock(hop, _) | Self::Elsewhere(hop, _) => *hop,
        }
    }

    /// Whether it is something that is counted, here or by another shard.
    pub fn is_good(&self) -> bool {
        match self {
            Self::OfPod(..) | Self::Elsewhere(_, Elsewhere::Profile(_) | Elsewhere::Requests) => true,
            Self::Rejected(..) | Self::Clock(..) | Self::Elsewhere(_, Elsewhere::Rejected(_)) => false,
        }
    }

    /// The refused part, whoever counts it.
    pub fn refused(&self) -> Option<&RejectedRow> {
        match self {
            Self::Rejected(_, row) | Self::Elsewhere(_, Elsewhere::Rejected(row)) => Some(row),
            Self::OfPod(..) | Self::Clock(..) | Self::Elsewhere(..) => None,
        }
    }
}
