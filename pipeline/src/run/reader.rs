//! One source as the dataflow reads it: the positions of its partitions, and which are ahead, idle or ended.

mod beginning;
mod bookmarks;
mod refused;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

pub(super) use self::bookmarks::Bookmark;
use self::bookmarks::{Bookmarks, Seen};
use self::tally::Tally;
use super::Service;
use super::error::RunError;
use super::pulse::{PartitionVitals, Pulse};
use super::wall::WallClock;
use crate::counts::functions::FunctionTable;
use crate::operators::arrive::{Arrived, Content, Remark, RowOfRecord};
use crate::rules::admission::{Admission, Admitted, Elsewhere};
use crate::rules::decisions::history::History;
use crate::rules::decisions::{Decision, Decisions, Due, KnownReturns};
use crate::rules::watermarks::{PartitionState, Report};

/// Hops that a partition may be ahead of the closed hop before it is held back.
pub(super) const AHEAD: u64 = 12;

/// Where earlier runs had bookmarks, by source and partition.
pub(super) type Resumed = BTreeMap<(String, i32), Bookmark>;

/// A source with the state of its partitions.
pub(super) struct Reader {
    source: Box<dyn Source>,
    admission: Admission,
    partitions: BTreeMap<i32, Place>,
    decisions: Decisions,
    returns: KnownReturns,
    history: History,
    /// The first open hop as this reader has seen it, and since when.
    frontier: (Hop, Instant),
    clock: HopClock,
    wall: WallClock,
    lateness: Nanos,
    /// How often files had been completed when it last looked.
    flushes: u64,
    ended: bool,
    /// Hops between checkpoints, if they are taken.
    every: Option<u64>,
}

/// The position of a partition.
struct Place {
    state: PartitionState,
    next_offset: i64,
    /// Whether its first record is still to be compared with the one with which it began.
    is_unread: bool,
    /// Its first watermark.
    first: Option<Hop>,
    /// When it last gave something good or was held back.
    active_at: Instant,
    /// Whether it is held back now.
    held_back: bool,
    /// Since when it is idle, if it is.
    idle_since: Option<Instant>,
    /// The last hop under which something of it that was refused is booked.
    refused_through: Option<Hop>,
    tally: Tally,
    /// Where this run has begun to count it, if not at its first record: the offset, and the record before it.
    resumed_at: (i64, Option<Seen>),
    /// From where it would have to be read again.
    bookmarks: Option<Bookmarks>,
}

impl Place {
    fn unread(now: Instant) -> Self {
        Self {
            state: PartitionState::Silent,
            next_offset: 0,
            is_unread: false,
            first: None,
            active_at: now,
            held_back: false,
            idle_since: None,
            refused_through: None,
            tally: Tally::default(),
            resumed_at: (0, None),
            bookmarks: None,
        }
    }

    /// Before anything is closed, "ahead" is counted from the partition's own start, so that this partition does not
    /// fill the memory while another is silent.
    fn is_ahead_of(&self, open_from: Hop) -> bool {
        let from = self.first.map_or(open_from, |first| first.max(open_from));
        matches!(self.state, PartitionState::Watermark(hop) if hop > from.plus(AHEAD))
    }
}

/// What one poll did.
pub(super) struct Polling {
    pub(super) busy: bool,
    /// Partitions whose state has changed.
    pub(super) changed: Vec<i32>,
}

impl Reader {
    /// Reads a source from its beginning, or a partition from the bookmark that an earlier run had in it.
    pub(super) fn new(
        config: &Config,
        source: Box<dyn Source>,
        service: &Service,
        resumed: &Resumed,
    ) -> Result<Self, RunError> {
        let numbers = source.partitions();
        let name = source.name().to_owned();
        let bookmarks = numbers.iter().filter_map(|&number| Some((number, resumed.get(&(name.clone(), number))?)));
        let bookmarks: Vec<(i32, Bookmark)> = bookmarks.map(|(number, from)| (number, from.clone())).collect();
        let (decisions, wall) = (&service.decisions, service.wall.clone());
        let mut reader = Self {
            returns: decisions.known_returns(source.name()),
            history: decisions.history(source.name()),
            decisions: decisions.clone(),
            ended: numbers.is_empty() && !source.may_grow(),
            frontier: (Hop(0), wall.instant()),
            clock: config.clock(),
            wall,
            lateness: config.lateness,
            flushes: 0,
            source,
            admission: Admission::new(config),
            partitions: BTreeMap::new(),
            every: service.checkpoints.every(),
        };
        for (number, from) in bookmarks {
            reader.resume(number, from)?;
        }
        let new = numbers.into_iter().filter(|number| !resumed.contains_key(&(name.clone(), *number)));
        new.collect::<Vec<_>>().into_iter().try_for_each(|number| reader.begin(number))?;
        Ok(reader)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = i32> {
        self.partitions.keys().copied()
    }

    pub(super) fn report(&self, partition: i32) -> Report {
        let place = self.partitions.get(&partition);
        let (state, next_offset) = place.map_or((PartitionState::Ended, 0), |place| (place.state, place.next_offset));
        Report { source: self.source.name().to_owned(), partition, state, next_offset }
    }

    /// The first hop at which this reader may still give something without a decision; `None` if no partition of it
    /// must be waited for.
    pub(super) fn open_from(&self) -> Option<Hop> {
        let hops = self.partitions.values().filter_map(|place| match place.state {
            PartitionState::Silent => Some(Hop(0)),
            PartitionState::Watermark(hop) => Some(hop),
            PartitionState::Idle | PartitionState::Ended => None,
        });
        hops.min()
    }

    /// Whether every partition that still gives records has run too far ahead; single partitions are paused at the
    /// source.
    pub(super) fn is_ahead_of(&mut self, open_from: Hop) -> bool {
        let (mut any_open, mut any_behind) = (false, false);
        for (&number, place) in &mut self.partitions {
            if place.state == PartitionState::Ended {
                continue;
            }
            let ahead = place.is_ahead_of(open_from);
            place.held_back = ahead;
            if ahead {
                place.active_at = self.wall.instant();
            }
            self.source.set_paused(number, ahead);
            any_open = true;
            any_behind |= !ahead;
        }
        any_open && !any_behind
    }

    /// Takes the next thing that the source has; nothing closes before `open_from` as long as this goes on.
    pub(super) fn poll(
        &mut self,
        open_from: Hop,
        table: &FunctionTable,
        mut give: impl FnMut(Hop, Arrived),
    ) -> Result<Polling, RunError> {
        match self.source.poll()? {
            Polled::Idle => Ok(Polling { busy: false, changed: Vec::new() }),
            Polled::PartitionEnd(partition) => {
                let changed = self.end(vec![partition], open_from, table, &mut give)?;
                Ok(Polling { busy: true, changed })
            }
            Polled::End => {
                self.ended = true;
                let open = self.partitions.iter().filter(|(_, place)| place.state != PartitionState::Ended);
                let open = open.map(|(&partition, _)| partition).collect();
                Ok(Polling { busy: true, changed: self.end(open, open_from, table, &mut give)? })
            }
            Polled::PartitionAdded(partition) => {
                self.join(partition, open_from)?;
                Ok(Polling { busy: true, changed: vec![partition] })
            }
            Polled::Lost(partition, lost) => {
                self.lose(partition, lost)?;
                Ok(Polling { busy: true, changed: Vec::new() })
            }
            Polled::Record(record) => self.take(*record, open_from, table, &mut give),
        }
    }

    fn take(
        &mut self,
        record: Decoded,
        open_from: Hop,
        table: &FunctionTable,
        give: &mut impl FnMut(Hop, Arrived),
    ) -> Result<Polling, RunError> {
        let (partition, offset) = (record.position.partition, record.position.offset);
        let seen = (offset, record.stamped.time());
        if self.is_before_bookmark(partition, seen)? {
            return Ok(Polling { busy: true, changed: Vec::new() });
        }
        self.check_first(&record)?;
        let stays_idle = self.stays_idle(&record, open_from);
        let not_before = self.take_back(partition, offset, open_from, stays_idle)?;
        let mut any_good = not_before > Hop(0);
        let now = self.wall.instant();
        let place = self.partitions.entry(partition).or_insert_with(|| Place::unread(now));
        place.tally.record(&record, now);
        for admitted in self.admission.admit(record, not_before, table) {
            let hop = admitted.hop();
            any_good |= admitted.is_good();
            place.tally.admitted(&admitted);
            if admitted.refused().is_some() {
                place.refused_through = place.refused_through.max(Some(hop));
            }
            if let Some(bookmarks) = &mut place.bookmarks {
                bookmarks.applied(hop.max(open_from));
            }
            give_admitted(admitted, give);
        }
        place.next_offset = self.history.after_lost(partition, offset.saturating_add(1));
        if let Some(bookmarks) = &mut place.bookmarks
            && bookmarks.is_due(self.admission.watermark(partition))
        {
            bookmarks.place(seen, self.admission.known(partition));
        }
        if stays_idle {
            return Ok(Polling { busy: true, changed: Vec::new() });
        }
        self.history.gave(partition, offset);
        let watermark = self.admission.watermark(partition);
        let before =
            std::mem::replace(&mut place.state, watermark.map_or(PartitionState::Silent, PartitionState::Watermark));
        place.idle_since = None;
        place.first = place.first.or(watermark);
        if any_good {
            place.active_at = now;
        }
        let changed = before != place.state;
        Ok(Polling { busy: true, changed: changed.then_some(partition).into_iter().collect() })
    }

    /// The hop before which nothing of the record at this offset is applied. If the partition was idle, in this run or at the end
    /// of an earlier one, this is the first open hop, and is written to the log before it takes effect.
    fn take_back(&mut self, partition: i32, offset: i64, open_from: Hop, stays_idle: bool) -> Result<Hop, RunError> {
        let known = self.returns.due(partition, offset);
        let was_idle = self.partitions.get(&partition).is_some_and(|place| place.state == PartitionState::Idle);
        let was_idle = was_idle || self.history.rests(partition, offset);
        let Due { applied_from: known, is_return } = known.unwrap_or_default();
        // NB: an earlier decision holds, unless this run has closed more hops than that one had.
        if !was_idle || stays_idle || is_return && known >= open_from {
            return Ok(known);
        }
        let source = self.source.name().to_owned();
        tracing::info!(source, partition, offset, "the partition gives again");
        let applied_from = open_from.max(self.history.decided_before()).max(known);
        let back = Decision::Back { source, partition, offset, applied_from };
        self.decisions.append(&back).map_err(RunError::Decision)?;
        Ok(applied_from)
    }

    /// Declares partitions idle that have given no good record for the time `after`, although everything they had was
    /// read. Called when the source has just had nothing. Gives the partitions that are idle now.
    pub(super) fn find_idle(&mut self, after: Duration, open_from: Hop) -> Result<Vec<i32>, RunError> {
        let (mut idle, now) = (Vec::new(), self.wall.instant());
        for (&partition, place) in &mut self.partitions {
            let gives = matches!(place.state, PartitionState::Silent | PartitionState::Watermark(_));
            let rests = self.history.rests(partition, place.next_offset);
            let is_silent = rests || now.saturating_duration_since(place.active_at) >= after;
            if !gives || !is_silent || !self.source.is_drained(partition) {
                continue;
            }
            let source = self.source.name().to_owned();
            if rests {
                tracing::info!(
                    source,
                    partition,
                    "nothing has come since it was found idle: event time goes on without it"
                );
            } else {
                tracing::warn!(
                    source,
                    partition,
                    "nothing has come for {} s: event time goes on without this partition",
                    after.as_secs()
                );
                let offset = Some(place.next_offset);
                let idle = Decision::Idle { source, partition, from_hop: open_from, offset };
                self.decisions.append(&idle).map_err(RunError::Decision)?;
            }
            place.state = PartitionState::Idle;
            place.idle_since = Some(now);
            idle.push(partition);
        }
        Ok(idle)
    }

    /// From where each partition must be read again so that nothing is missed that is applied at this boundary or later.
    pub(super) fn bookmarks_before(&self, boundary: Hop) -> impl Iterator<Item = (i32, &Bookmark)> {
        self.partitions
            .iter()
            .filter_map(move |(number, place)| Some((*number, place.bookmarks.as_ref()?.before(boundary)?)))
    }

    /// No earlier boundary than this is asked about any more.
    pub(super) fn forget_before(&mut self, boundary: Hop) {
        let bookmarks = self.partitions.values_mut().filter_map(|place| place.bookmarks.as_mut());
        bookmarks.for_each(|bookmarks| bookmarks.forget_before(boundary));
    }

    /// The name of the source.
    pub(super) fn name(&self) -> &str {
        self.source.name()
    }

    /// Says how the source and its partitions are.
    pub(super) fn report_to(&mut self, pulse: &Pulse, worker: usize) -> Result<(), RunError> {
        if self.tell(pulse, worker)? {
            self.source.flushed();
        }
        Ok(())
    }

    /// Gives whether files were completed since the last time.
    fn tell(&mut self, pulse: &Pulse, worker: usize) -> Result<bool, RunError> {
        let health = self.source.health()?;
        let name: Arc<str> = self.source.name().into();
        let vitals = &mut *pulse.lock();
        for (&number, place) in &self.partitions {
            let extent = health.extents.get(&number);
            let partition = PartitionVitals {
                state: place.state,
                next_offset: extent.map_or(place.next_offset, |extent| extent.next),
                end: extent.map(|extent| extent.end),
                held_back: place.held_back,
                early: self.admission.early(number),
                given: place.tally.given().clone(),
            };
            vitals.partitions.insert((Arc::clone(&name), number), partition);
        }
        vitals.transports.insert((name, worker), health);
        let flushes = vitals.output.flushes;
        Ok(std::mem::replace(&mut self.flushes, flushes) < flushes)
    }

    /// Ends partitions. What still waits in them for its time is decided now; if its partition was idle, that is a return.
    fn end(
        &mut self,
        partitions: Vec<i32>,
        open_from: Hop,
        table: &FunctionTable,
        give: &mut impl FnMut(Hop, Arrived),
    ) -> Result<Vec<i32>, RunError> {
        for &partition in &partitions {
            if self.admission.early(partition) > 0 {
                let next = self.partitions.get(&partition).map_or(0, |place| place.next_offset);
                let not_before = self.take_back(partition, next, open_from, false)?;
                for admitted in self.admission.end(partition, not_before, table) {
                    give_admitted(admitted, give);
                }
            }
            let now = self.wall.instant();
            self.partitions.entry(partition).or_insert_with(|| Place::unread(now)).state = PartitionState::Ended;
        }
        self.ended |= self.partitions.values().all(|place| place.state == PartitionState::Ended);
        if self.ended {
            for admitted in self.admission.leftovers() {
                give_admitted(admitted, give);
            }
        }
        Ok(partitions)
    }
}

/// Gives the dataflow what this run counts, and of what other shards count, at which hops profiles are applied.
fn give_admitted(admitted: Admitted, give: &mut impl FnMut(Hop, Arrived)) {
    let (hop, content) = match admitted {
        Admitted::OfPod(hop, of_pod) => (hop, Content::OfPod(of_pod)),
        Admitted::Rejected(hop, row) => (hop, Content::Remark(Remark::Row(RowOfRecord::Rejected(Box::new(row))))),
        Admitted::Clock(hop, row) => (hop, Content::Remark(Remark::Row(RowOfRecord::Clock(Box::new(row))))),
        Admitted::Elsewhere(hop, Elsewhere::Profile(_)) => (hop, Content::Remark(Remark::AppliedElsewhere)),
        Admitted::Elsewhere(_, Elsewhere::Requests | Elsewhere::Rejected(_)) => return,
    };
    give(hop, Arrived { hop, content });
}
