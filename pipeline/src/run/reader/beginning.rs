//! How partitions begin: those that are there at the start, those that are added later, and those whose next records are gone.

use std::ops::Range;

use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::{NEW_FOLDER, SourceError};
use fleetdiff_schemas::time::Hop;

use super::bookmarks::{Bookmark, Bookmarks, Seen};
use super::{Place, Reader};
use crate::rules::decisions::Decision;
use crate::rules::decisions::history::{Beginning, Gone};
use crate::rules::watermarks::PartitionState;
use crate::run::error::RunError;

impl Reader {
    /// Begins with a partition that is there at the start.
    pub(super) fn begin(&mut self, partition: i32) -> Result<(), RunError> {
        let Some(held) = self.source.held(partition) else {
            let bookmarks = self.bookmarks_from(partition, 0);
            self.partitions.insert(partition, Place { bookmarks, ..Place::unread(self.wall.instant()) });
            return Ok(());
        };
        let beginning = self.history.begin(partition, &held).map_err(|gone| self.gone(&gone))?;
        let offset = held.start;
        let bookmarks = self.bookmarks_from(partition, offset);
        self.partitions.insert(
            partition,
            Place {
                next_offset: self.history.after_lost(partition, offset),
                is_unread: true,
                bookmarks,
                ..Place::unread(self.wall.instant())
            },
        );
        match beginning {
            Beginning::Known => Ok(()),
            Beginning::Lost(lost) => self.lose(partition, lost),
            Beginning::New(from_hop) => self.log_beginning(partition, offset, from_hop),
        }
    }

    /// Goes on with a partition where an earlier run had a bookmark. Records before it may be gone by now.
    pub(super) fn resume(&mut self, partition: i32, from: Bookmark) -> Result<(), RunError> {
        let (offset, known) = (from.offset, from.known.clone());
        let watermark = known.watermark();
        self.admission.resume(partition, known);
        let place = Place {
            state: watermark.map_or(PartitionState::Silent, PartitionState::Watermark),
            next_offset: self.history.after_lost(partition, offset),
            first: watermark,
            resumed_at: (offset, from.last),
            bookmarks: self.every.map(|every| Bookmarks::resumed(from, every)),
            ..Place::unread(self.wall.instant())
        };
        self.partitions.insert(partition, place);
        match self.source.held(partition) {
            Some(held) if held.start > offset => self.lose(partition, offset..held.start),
            _ => Ok(()),
        }
    }

    /// Whether a record lies before the bookmark from which its partition is counted in this run. The one just before it must be the one
    /// that was there then.
    pub(super) fn is_before_bookmark(&self, partition: i32, seen: Seen) -> Result<bool, RunError> {
        let Some(&Place { resumed_at: (from, last), .. }) = self.partitions.get(&partition) else { return Ok(false) };
        match last {
            Some(last) if last.0 == seen.0 && last != seen => {
                Err(self.gone(&Gone::other_than_read(partition, last, seen)))
            }
            _ => Ok(seen.0 < from),
        }
    }

    /// The first bookmark of a partition that is read from this offset on, if checkpoints are taken.
    fn bookmarks_from(&self, partition: i32, offset: i64) -> Option<Bookmarks> {
        self.every.map(|every| Bookmarks::begun_at(offset, self.admission.known(partition), every))
    }

    /// Begins with a partition that was added. It is not waited for before it gives something, unless nothing is closed yet.
    pub(super) fn join(&mut self, partition: i32, open_from: Hop) -> Result<(), RunError> {
        let offset = self.source.held(partition).map_or(0, |held| held.start);
        // NB: a run that makes its rows again may not have come to where an earlier one ended.
        let from_hop = open_from.max(self.history.decided_before());
        self.log_beginning(partition, offset, from_hop)?;
        let bookmarks = self.bookmarks_from(partition, offset);
        let mut place = Place { next_offset: offset, is_unread: true, bookmarks, ..Place::unread(self.wall.instant()) };
        if from_hop > Hop(0) {
            place.state = PartitionState::Idle;
            place.idle_since = Some(place.active_at);
        }
        self.partitions.insert(partition, place);
        Ok(())
    }

    fn log_beginning(&mut self, partition: i32, offset: i64, from_hop: Hop) -> Result<(), RunError> {
        let source = self.source.name().to_owned();
        if from_hop > Hop(0) {
            let from = fleetdiff_schemas::tables::calendar::rfc3339(self.clock.start_of(from_hop));
            tracing::warn!(source, partition, "the partition was added: its records are counted from {from} on");
            self.returns.add_bound(partition, offset, from_hop);
            self.history.added(partition, offset);
        }
        let begun = Decision::Begun { source, partition, offset, from_hop };
        self.decisions.append(&begun).map_err(RunError::Decision)
    }

    /// Goes on after records that were deleted before they were read.
    pub(super) fn lose(&mut self, partition: i32, lost: Range<i64>) -> Result<(), RunError> {
        let source = self.source.name().to_owned();
        let records = u64::try_from(lost.end.saturating_sub(lost.start)).unwrap_or(0);
        tracing::error!(
            source,
            partition,
            "{records} records are lost (offsets {} to {}): the brokers deleted them before they were read (retention)",
            lost.start,
            lost.end.saturating_sub(1)
        );
        let now = self.wall.instant();
        let place = self.partitions.entry(partition).or_insert_with(|| Place::unread(now));
        place.tally.lost(records);
        place.next_offset = lost.end;
        let decision = Decision::Lost { source, partition, offset: lost.start, next_offset: lost.end };
        self.decisions.append(&decision).map_err(RunError::Decision)
    }

    /// The first record of a partition must be the one with which it began.
    pub(super) fn check_first(&mut self, record: &Decoded) -> Result<(), RunError> {
        let (partition, offset, stamped_at) =
            (record.position.partition, record.position.offset, record.stamped.time());
        let Some(place) = self.partitions.get_mut(&partition).filter(|place| place.is_unread) else { return Ok(()) };
        place.is_unread = false;
        let is_new = self.history.take_first(partition, offset, stamped_at).map_err(|gone| self.gone(&gone))?;
        if is_new {
            let source = self.source.name().to_owned();
            let first = Decision::First { source, partition, offset, stamped_at };
            self.decisions.append(&first).map_err(RunError::Decision)?;
        }
        Ok(())
    }

    fn gone(&self, gone: &Gone) -> RunError {
        RunError::Source(SourceError {
            source_name: self.source.name().to_owned(),
            detail: gone.to_string(),
            hint: NEW_FOLDER.to_owned(),
        })
    }
}
