//! One source as the dataflow reads it: the positions of its partitions, and which are ahead, idle or ended.

mod refused;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use self::tally::Tally;
use super::error::RunError;
use super::pulse::{PartitionVitals, Pulse};
use crate::counts::functions::FunctionTable;
use crate::operators::arrive::{Arrived, Content, Remark};
use crate::rules::admission::{Admission, Admitted};
use crate::rules::decisions::{Decision, Decisions, KnownReturns};
use crate::rules::watermarks::{PartitionState, Report};

/// Hops that a partition may be ahead of the closed hop before it is held back.
pub(super) const AHEAD: u64 = 12;

/// A source with the state of its partitions.
pub(super) struct Reader {
    source: Box<dyn Source>,
    admission: Admission,
    partitions: BTreeMap<i32, Place>,
    decisions: Decisions,
    returns: KnownReturns,
    /// The first open hop as this reader has seen it, and since when.
    frontier: (Hop, Instant),
    clock: HopClock,
    lateness: Nanos,
    /// How often files had been completed when it last looked.
    flushes: u64,
    ended: bool,
}

/// The position of a partition.
struct Place {
    state: PartitionState,
    next_offset: i64,
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
}

impl Place {
    fn unread() -> Self {
        Self {
            state: PartitionState::Silent,
            next_offset: 0,
            first: None,
            active_at: Instant::now(),
            held_back: false,
            idle_since: None,
            refused_through: None,
            tally: Tally::default(),
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
    pub(super) fn new(config: &Config, source: Box<dyn Source>, decisions: &Decisions) -> Self {
        let partitions: BTreeMap<_, _> =
            source.partitions().into_iter().map(|number| (number, Place::unread())).collect();
        Self {
            returns: decisions.known_returns(source.name()),
            decisions: decisions.clone(),
            ended: partitions.is_empty(),
            frontier: (Hop(0), Instant::now()),
            clock: config.clock(),
            lateness: config.lateness,
            flushes: 0,
            source,
            admission: Admission::new(config),
            partitions,
        }
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
        let mut any_behind = false;
        for (&number, place) in &mut self.partitions {
            if place.state == PartitionState::Ended {
                continue;
            }
            let ahead = place.is_ahead_of(open_from);
            place.held_back = ahead;
            if ahead {
                place.active_at = Instant::now();
            }
            self.source.set_paused(number, ahead);
            any_behind |= !ahead;
        }
        !any_behind
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
        let stays_idle = self.stays_idle(&record, open_from);
        let not_before = self.take_back(partition, offset, open_from, stays_idle)?;
        let mut any_good = not_before > Hop(0);
        let place = self.partitions.entry(partition).or_insert_with(Place::unread);
        place.tally.record(&record);
        for admitted in self.admission.admit(record, not_before, table) {
            any_good |= matches!(admitted, Admitted::OfPod(..));
            place.tally.admitted(&admitted);
            if let Admitted::Rejected(hop, _) = &admitted {
                place.refused_through = place.refused_through.max(Some(*hop));
            }
            let (hop, arrived) = arrived(admitted);
            give(hop, arrived);
        }
        place.next_offset = offset.saturating_add(1);
        if stays_idle {
            return Ok(Polling { busy: true, changed: Vec::new() });
        }
        let watermark = self.admission.watermark(partition);
        let before =
            std::mem::replace(&mut place.state, watermark.map_or(PartitionState::Silent, PartitionState::Watermark));
        place.idle_since = None;
        place.first = place.first.or(watermark);
        if any_good {
            place.active_at = Instant::now();
        }
        let changed = before != place.state;
        Ok(Polling { busy: true, changed: changed.then_some(partition).into_iter().collect() })
    }

    /// The hop before which nothing of the record at this offset is applied. If the partition was idle, this is the
    /// first open hop, and is written to the log before it takes effect.
    fn take_back(&mut self, partition: i32, offset: i64, open_from: Hop, stays_idle: bool) -> Result<Hop, RunError> {
        let known = self.returns.due(partition, offset);
        let was_idle = self.partitions.get(&partition).is_some_and(|place| place.state == PartitionState::Idle);
        // NB: an earlier decision holds, unless this run has closed more hops than that one had.
        if !was_idle || stays_idle || known.is_some_and(|known| known >= open_from) {
            return Ok(known.unwrap_or_default());
        }
        let source = self.source.name().to_owned();
        tracing::info!(source, partition, offset, "the partition gives again");
        let back = Decision::Back { source, partition, offset, applied_from: open_from };
        self.decisions.append(&back).map_err(RunError::Decision)?;
        Ok(open_from)
    }

    /// Declares partitions idle that have given no good record for the time `after`, although everything they had was
    /// read. Called when the source has just had nothing. Gives the partitions that are idle now.
    pub(super) fn find_idle(&mut self, after: Duration, open_from: Hop) -> Result<Vec<i32>, RunError> {
        let mut idle = Vec::new();
        for (&partition, place) in &mut self.partitions {
            let gives = matches!(place.state, PartitionState::Silent | PartitionState::Watermark(_));
            if !gives || place.active_at.elapsed() < after || !self.source.is_drained(partition) {
                continue;
            }
            let source = self.source.name().to_owned();
            tracing::warn!(
                source,
                partition,
                "nothing has come for {} s: event time goes on without this partition",
                after.as_secs()
            );
            self.decisions
                .append(&Decision::Idle { source, partition, from_hop: open_from })
                .map_err(RunError::Decision)?;
            place.state = PartitionState::Idle;
            place.idle_since = Some(Instant::now());
            idle.push(partition);
        }
        Ok(idle)
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
                    let (hop, arrived) = arrived(admitted);
                    give(hop, arrived);
                }
            }
            self.partitions.entry(partition).or_insert_with(Place::unread).state = PartitionState::Ended;
        }
        self.ended |= self.partitions.values().all(|place| place.state == PartitionState::Ended);
        if self.ended {
            for admitted in self.admission.leftovers() {
                let (hop, arrived) = arrived(admitted);
                give(hop, arrived);
            }
        }
        Ok(partitions)
    }
}

fn arrived(admitted: Admitted) -> (Hop, Arrived) {
    match admitted {
        Admitted::OfPod(hop, arrived) => (hop, Arrived { hop, content: Content::OfPod(arrived) }),
        Admitted::Rejected(hop, row) => {
            (hop, Arrived { hop, content: Content::Remark(Remark::Rejected(Box::new(row))) })
        }
        Admitted::Clock(hop, row) => (hop, Arrived { hop, content: Content::Remark(Remark::Clock(Box::new(row))) }),
    }
}
