//! What becomes of refused records while nothing good comes.
//!
//! Refused parts are booked at the time at which their record was sent, but only good records move event time. If no partition
//! gives any, the hops of refused parts would never close, and nobody would find them in the tables. So once event time has
//! stood still for as long as a silent partition is waited for, an idle partition passes the hops of what it had refused.
//! That depends on the wall clock, so it is a decision, which is logged before it takes effect.

use std::time::Duration;

use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::time::Hop;

use super::Reader;
use crate::rules::decisions::Decision;
use crate::rules::watermarks::{PartitionState, Report};
use crate::run::error::RunError;

impl Reader {
    /// Whether this record leaves its partition idle: all of it is refused, at hops that are open still.
    pub(super) fn stays_idle(&self, record: &Decoded, open_from: Hop) -> bool {
        let place = self.partitions.get(&record.position.partition);
        let is_idle = place.is_some_and(|place| place.state == PartitionState::Idle);
        (is_idle || self.history.rests(record.position.partition, record.position.offset))
            && record.points.is_empty()
            && record.parts.iter().all(Result::is_err)
            && (!is_idle || self.admission.booked_from(record).is_none_or(|hop| hop >= open_from))
    }

    /// Moves event time over the hops of refused records, if nothing else has moved it for the time `after`. Called when the
    /// source has just had nothing. Gives what is to be reported, in this order.
    pub(in crate::run) fn close_refused(&mut self, after: Duration, open_from: Hop) -> Result<Vec<Report>, RunError> {
        let now = self.wall.instant();
        if open_from != self.frontier.0 {
            self.frontier = (open_from, now);
        }
        let mut reports = Vec::new();
        if now.saturating_duration_since(self.frontier.1) < after {
            return Ok(reports);
        }
        // NB: times of refused records are their senders'. A clock that is ahead must not move event time beyond the present.
        let latest = self.clock.hop_of(self.wall.now().since(self.lateness));
        let source = self.source.name().to_owned();
        for (&partition, place) in &mut self.partitions {
            let (Some(idle_since), Some(through)) = (place.idle_since, place.refused_through) else { continue };
            if now.saturating_duration_since(idle_since) < after {
                continue;
            }
            // The last hop waits for its last records as long as some still come.
            let is_quiet = place.tally.given().last_at.is_none_or(|at| now.saturating_duration_since(at) >= after);
            let applied_from = if is_quiet { through.plus(1) } else { through }.min(latest);
            if applied_from <= open_from {
                continue;
            }
            let offset = place.next_offset;
            let decision = Decision::Refused { source: source.clone(), partition, offset, applied_from };
            self.decisions.append(&decision).map_err(RunError::Decision)?;
            self.returns.add_bound(partition, offset, applied_from);
            // It is not asked again before the announcement has been heard, or again nothing has happened for a while.
            place.idle_since = Some(now);
            let report = |state| Report { source: source.clone(), partition, state, next_offset: offset };
            reports.extend([PartitionState::Watermark(applied_from), PartitionState::Idle].map(report));
        }
        Ok(reports)
    }
}
