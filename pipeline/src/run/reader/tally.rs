//! Counts of what a partition gives, at the moment at which it is read: a refused part counts at once, even while it waits for
//! a hop at which it can be booked, and whichever shard counts it.

use std::collections::BTreeSet;
use std::time::Instant;

use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rejected::Rejection;

use crate::rules::admission::{Admitted, Arrival, Elsewhere, OfPod};
use crate::run::pulse::{Given, Refusal};

/// What a partition has given, and which refused parts are counted although they are not booked.
#[derive(Debug, Default)]
pub(super) struct Tally {
    given: Given,
    unbooked: BTreeSet<(i64, i64)>,
}

impl Tally {
    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    /// Counts records that were deleted before they were read.
    pub(super) fn lost(&mut self, records: u64) {
        self.given.lost += records;
    }

    /// Counts a record as it was decoded, which is read now.
    pub(super) fn record(&mut self, record: &Decoded, now: Instant) {
        self.given.records += 1;
        self.given.last_at = Some(now);
        self.given.last_sent_at = record.stamped.time().or(self.given.last_sent_at);
        for (part, content) in (0..).zip(&record.parts) {
            if let Err(rejection) = content {
                self.unbooked.insert((record.position.offset, part));
                self.refusal(record.position.offset, rejection);
            }
        }
    }

    /// Counts what became of a part, unless that was counted when it was decoded.
    pub(super) fn admitted(&mut self, admitted: &Admitted) {
        match admitted {
            Admitted::OfPod(_, OfPod::Profile(profile)) => self.profile(profile.arrival),
            Admitted::Elsewhere(_, Elsewhere::Profile(arrival)) => self.profile(*arrival),
            Admitted::OfPod(_, OfPod::Requests(_)) | Admitted::Elsewhere(_, Elsewhere::Requests) => {
                self.given.taken += 1;
            }
            Admitted::OfPod(_, OfPod::Seen(_)) | Admitted::Clock(..) => {}
            Admitted::Rejected(_, row) | Admitted::Elsewhere(_, Elsewhere::Rejected(row)) => {
                if !self.unbooked.remove(&(row.position.offset, row.part)) {
                    self.refusal(row.position.offset, &row.rejection);
                }
            }
        }
    }

    fn profile(&mut self, arrival: Arrival) {
        self.given.taken += 1;
        match arrival {
            Arrival::InTime => {}
            Arrival::Late => self.given.late += 1,
            Arrival::TooLate => self.given.too_late += 1,
        }
    }

    fn refusal(&mut self, offset: i64, rejection: &Rejection) {
        *self.given.refused.entry(rejection.reason).or_default() += 1;
        self.given.last_refusal = Some(Refusal { offset, reason: rejection.reason, detail: rejection.detail.clone() });
    }
}
