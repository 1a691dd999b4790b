//! At which hop a record is applied.
//!
//! Each partition has a watermark: the hop of its time less the lateness. Its time is the largest event time seen in it, as
//! far as the clocks of its senders can be believed ([`super::clocks`]). A profile is applied at its own hop if that lies at
//! or after the watermark just before its record; an older profile is applied at the watermark; one that is ahead of the
//! time of its partition waits. The application hop thus depends only on the earlier records of the partition, and a closed
//! hop is never revised.
//!
//! All that is decided from all records of a partition. Only then what another shard counts is left out, so that hops are the same
//! whichever services a run counts.
//!
//! Here stacks are folded to counts by function. Those that are idle ([`IdleStacks`]) are left out before, and counted.

mod admitted;
mod folding;
mod parts;

pub use self::admitted::{Admitted, Elsewhere};
pub use self::folding::CohortCounts;

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::config::{Config, Shard};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType, RequestPoint, Requests, Stamped, Temporality};
use fleetdiff_schemas::rows::{ClockRow, RejectedRow};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos, TimeRange};
use serde::{Deserialize, Serialize};

use self::folding::{content_of, fold};
use self::parts::{Good, Part, Parts, Refused, clock_row, is_ahead, refused, time_of};
use super::clocks::Agreement;
use super::clocks::waiting::{Fate, Queue};
use super::idle::IdleStacks;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::FunctionId;

/// One decoded and folded profile, with the hop at which it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodProfile {
    /// Whose it is.
    pub identity: Arc<Identity>,
    /// What was observed.
    pub profile_type: ProfileType,
    /// Whether its counts are for the window or, by call path only, since the process began.
    pub temporality: Temporality,
    /// When; for a snapshot, its moment.
    pub window: TimeRange,
    /// Operations served meanwhile.
    pub requests: Option<Requests>,
    /// Hash of all stacks as a multiset, idle ones too.
    pub content: u128,
    /// The hop of its event time.
    pub own: Hop,
    /// What its partition decides about it: whether it is on time, late or too late.
    pub arrival: Arrival,
    /// Where it came from.
    pub partition: i32,
    /// Where in the partition.
    pub offset: i64,
    /// Which part of the record.
    pub part: u32,
    /// Its counts, one entry a cohort; without idle stacks.
    pub cohorts: Vec<CohortCounts>,
    /// Samples of idle stacks.
    pub idle: u64,
}

impl PodProfile {
    /// Samples in all, those of idle stacks too.
    pub fn samples(&self) -> u64 {
        self.cohorts.iter().map(|part| part.samples).sum::<u64>() + self.idle
    }
}

/// Whether a profile is on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Arrival {
    /// Applied at its own hop.
    InTime,
    /// Applied later, its own hop still within the window.
    Late,
    /// Its own hop has left the window.
    TooLate,
}

/// A message that a process was alive at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// Of which pod.
    pub identity: Arc<Identity>,
    /// When: the end of a profile's window.
    pub at: Nanos,
}

/// A message about a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfPod {
    /// What a profiler saw.
    Profile(PodProfile),
    /// Requests that it served, as a metric has them.
    Requests(RequestPoint),
    /// That it was alive; sent only if profiles are held back until that is known.
    Seen(Sighting),
}

impl OfPod {
    /// Whose it is.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::Profile(profile) => &profile.identity,
            Self::Requests(point) => &point.identity,
            Self::Seen(sighting) => &sighting.identity,
        }
    }
}

/// The state of the partitions that one worker reads.
#[derive(Debug)]
pub struct Admission {
    clock: HopClock,
    lateness: Nanos,
    agreement: u64,
    drain: Nanos,
    window: u64,
    shard: Shard,
    partitions: BTreeMap<i32, Partition>,
    idle: IdleStacks,
    last_names: Option<NumberedNames>,
}

/// A name table as it arrived, and the number of each name: the records of a run mostly share one table.
#[derive(Debug)]
struct NumberedNames {
    names: Arc<[Arc<str>]>,
    ids: Vec<FunctionId>,
    /// The round in which they were asked for: later, numbers may be those of other names.
    round: u32,
}

/// What is known of one partition: all that decides about its next records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Partition {
    watermark: Option<Hop>,
    /// Its time.
    clocks: Agreement,
    /// Good parts that are ahead of that.
    early: Queue<Arc<Part<Good>>>,
    /// Refused parts without a time, which wait for a watermark at which to book them.
    waiting: Vec<RejectedRow>,
}

impl Partition {
    /// Of a partition that has given nothing.
    fn new(agreement: u64) -> Self {
        Self { watermark: None, clocks: Agreement::of(agreement), early: Queue::default(), waiting: Vec::new() }
    }

    /// Nothing more is applied before this.
    pub fn watermark(&self) -> Option<Hop> {
        self.watermark
    }
}

/// What is known of the clock that gave a profile its time.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// How far it is ahead, or if negative behind, if it is wrong.
    lead: Option<Nanos>,
    has_waited: bool,
}

impl Admission {
    /// The state before any partition has given a record.
    pub fn new(config: &Config) -> Self {
        Self {
            clock: config.clock(),
            lateness: config.lateness,
            agreement: config.agreement,
            drain: config.drain,
            window: config.window_hops(),
            shard: config.shard,
            partitions: BTreeMap::new(),
            idle: IdleStacks::new(config),
            last_names: None,
        }
    }

    /// The watermark of a partition: nothing more is applied before it. `None` before its first time.
    pub fn watermark(&self, partition: i32) -> Option<Hop> {
        self.partitions.get(&partition).and_then(|state| state.watermark)
    }

    /// What is known of a partition so far.
    pub fn known(&self, partition: i32) -> Partition {
        self.partitions.get(&partition).cloned().unwrap_or_else(|| Partition::new(self.agreement))
    }

    /// Goes on with what was known of a partition.
    pub fn resume(&mut self, partition: i32, known: Partition) {
        self.partitions.insert(partition, known);
    }

    /// How many parts of a partition wait for the time on which its pods agree.
    pub fn early(&self, partition: i32) -> usize {
        self.partitions.get(&partition).map_or(0, |state| state.early.count())
    }

    /// The first hop under which a part that was refused when it was decoded will be booked, if that is known at once.
    pub fn booked_from(&self, record: &Decoded) -> Option<Hop> {
        let state = self.partitions.get(&record.position.partition);
        let agreed = state.and_then(|state| state.clocks.agreed());
        let refused = record.parts.iter().filter_map(|part| part.as_ref().err());
        let times = refused.map(|rejection| time_of(record.stamped, rejection, agreed));
        let watermark = state.and_then(|state| state.watermark);
        times.filter_map(|time| time.map(|at| self.clock.hop_of(at)).max(watermark)).min()
    }

    /// Decides the application hops of a record's parts, and of those that waited for it, and moves its partition's
    /// watermark. If the partition was idle and comes back with this record, nothing is applied before `not_before`.
    pub fn admit(&mut self, record: Decoded, not_before: Hop, table: &FunctionTable) -> Vec<Admitted> {
        let mut admitted = Vec::with_capacity(record.parts.len());
        let partition = record.position.partition;
        self.take_back(partition, not_before, &mut admitted);
        let watermark = self.watermark(partition);
        let mut parts = Parts::of(record);
        let clocks = &mut self.state(partition).clocks;
        let before = clocks.agreed();
        parts.tell(clocks);
        let agreed = clocks.agreed();
        if let Some(agreed) = agreed.filter(|_| agreed > before) {
            let Partition { early, clocks, .. } = self.state(partition);
            let decided = early.decided(clocks);
            self.settle(decided, agreed, watermark, table, &mut admitted);
        }
        for part in std::mem::take(&mut parts.good) {
            let at = part.holds.at();
            if matches!(parts.stamped, Stamped::BySender(_)) && is_ahead(at, agreed) {
                let Partition { early, clocks, .. } = self.state(partition);
                early.put(clocks, part.holds.sender(), at, part.holds.length(), Arc::new(part));
            } else {
                let shown = Shown { lead: parts.behind(at, agreed), has_waited: false };
                self.apply(part, shown, watermark, table, &mut admitted);
            }
        }
        for part in std::mem::take(&mut parts.refused) {
            let time = time_of(parts.stamped, &part.holds.rejection, agreed);
            self.refuse(part, time, watermark, &mut admitted);
        }
        self.advance(partition, &mut admitted);
        admitted
    }

    /// Decides about the parts that still wait in a partition that has ended.
    pub fn end(&mut self, partition: i32, not_before: Hop, table: &FunctionTable) -> Vec<Admitted> {
        let mut admitted = Vec::new();
        self.take_back(partition, not_before, &mut admitted);
        let watermark = self.watermark(partition);
        let Partition { early, clocks, .. } = self.state(partition);
        let moved_with = clocks.moved_with();
        clocks.conclude();
        if let Some(agreed) = clocks.agreed() {
            let decided = early.concluded(agreed, moved_with);
            self.settle(decided, agreed, watermark, table, &mut admitted);
        }
        self.advance(partition, &mut admitted);
        admitted
    }

    /// The parts that still wait for a watermark, which will not come because their partition has ended.
    pub fn leftovers(&mut self) -> Vec<Admitted> {
        let waiting = self.partitions.values_mut().flat_map(|state| state.waiting.drain(..));
        let waiting: Vec<RejectedRow> = waiting.collect();
        waiting.into_iter().map(|row| self.rejected(Hop(0), row)).collect()
    }

    fn state(&mut self, partition: i32) -> &mut Partition {
        self.partitions.entry(partition).or_insert_with(|| Partition::new(self.agreement))
    }

    /// Applies or refuses what has waited.
    fn settle(
        &mut self,
        decided: Vec<(Arc<Part<Good>>, Fate)>,
        agreed: Nanos,
        watermark: Option<Hop>,
        table: &FunctionTable,
        out: &mut Vec<Admitted>,
    ) {
        for (part, fate) in decided {
            let part = Arc::unwrap_or_clone(part);
            match fate {
                Fate::Applied { lead } => self.apply(part, Shown { lead, has_waited: true }, watermark, table, out),
                Fate::Rejected { lead } => self.refuse(refused(part, agreed, lead), Some(agreed), watermark, out),
            }
        }
    }

    fn apply(
        &mut self,
        part: Part<Good>,
        shown: Shown,
        watermark: Option<Hop>,
        table: &FunctionTable,
        out: &mut Vec<Admitted>,
    ) {
        let own = self.clock.hop_of(part.holds.at());
        let seen = own.max(watermark.unwrap_or_default());
        let is_of_shard = self.shard.has_service(&part.holds.identity().service);
        let Part { holds, position, part } = part;
        let mut profile = match holds {
            Good::Profile(profile) => profile,
            Good::Requests(point) if is_of_shard => return out.push(Admitted::OfPod(seen, OfPod::Requests(point))),
            Good::Requests(_) => return out.push(Admitted::Elsewhere(seen, Elsewhere::Requests)),
        };
        let held = self.held_back(&profile);
        let hop = seen.plus(held);
        let arrival = match watermark {
            _ if own.plus(self.window) <= hop => Arrival::TooLate,
            Some(watermark) if own < watermark => Arrival::Late,
            _ => Arrival::InTime,
        };
        if !is_of_shard {
            return out.push(Admitted::Elsewhere(hop, Elsewhere::Profile(arrival)));
        }
        if held > 0 {
            let sighting = Sighting { identity: Arc::clone(&profile.identity), at: profile.window.end };
            out.push(Admitted::OfPod(seen, OfPod::Seen(sighting)));
        }
        table.in_flight(hop);
        if let Some(lead) = shown.lead {
            let row = clock_row(&profile.identity, &position, lead, profile.total());
            let (samples_waited, samples_late_dropped) = match arrival {
                Arrival::TooLate => (0, row.samples),
                _ if shown.has_waited => (row.samples, 0),
                _ => (0, 0),
            };
            out.push(self.shown(hop, ClockRow { samples_waited, samples_late_dropped, ..row }));
        }
        let content = content_of(&profile);
        self.number_names(&profile, table);
        let ids = self.last_names.as_ref().map_or(&[][..], |last| &last.ids);
        let idle = self.idle.take_from(&mut profile, ids);
        let cohorts = fold(&profile, ids, table);
        let pod = PodProfile {
            identity: profile.identity,
            profile_type: profile.profile_type,
            temporality: profile.temporality,
            window: profile.temporality.window(profile.window),
            requests: profile.requests,
            content,
            own,
            arrival,
            partition: position.partition,
            offset: position.offset,
            part,
            cohorts,
            idle,
        };
        out.push(Admitted::OfPod(hop, OfPod::Profile(pod)));
    }

    /// Makes the names of a profile the last ones that were numbered.
    fn number_names(&mut self, profile: &Profile, table: &FunctionTable) {
        let round = table.round();
        let is_last = |last: &NumberedNames| last.round == round && Arc::ptr_eq(&last.names, &profile.names);
        if !self.last_names.as_ref().is_some_and(is_last) {
            if self.last_names.as_ref().is_none_or(|last| last.round != round) {
                self.idle.forget();
            }
            let names = Arc::clone(&profile.names);
            self.last_names = Some(NumberedNames { ids: table.intern(&names), names, round });
        }
    }

    /// The number of hops for which a profile waits to see whether its process goes on: the time cropped before an end,
    /// plus one more profile. A snapshot does not say when the next one comes; the lateness is at least half of the
    /// longest profile.
    fn held_back(&self, profile: &Profile) -> u64 {
        if self.drain.0 == 0 {
            return 0;
        }
        let more = match profile.temporality {
            Temporality::Delta => profile.window.end.since(profile.window.start),
            Temporality::Cumulative | Temporality::Gauge => self.lateness.plus(self.lateness),
        };
        self.clock.hops_in(self.drain.plus(more))
    }

    fn refuse(&mut self, part: Part<Refused>, time: Option<Nanos>, watermark: Option<Hop>, out: &mut Vec<Admitted>) {
        let Part { holds: Refused { rejection, clock }, position, part } = part;
        let hop = time.map(|at| self.clock.hop_of(at)).max(watermark);
        if let (Some((identity, lead)), Some(hop)) = (clock, hop)
            && self.shard.has_service(&identity.service)
        {
            let row = clock_row(&identity, &position, lead, rejection.samples);
            out.push(self.shown(hop, ClockRow { samples_rejected: row.samples, ..row }));
        }
        let row = RejectedRow { hop_at: None, position, part: i64::from(part), rejection };
        match hop {
            Some(hop) => out.push(self.booked(hop, row)),
            None => self.state(row.position.partition).waiting.push(row),
        }
    }

    /// Moves a partition's watermark to its time less the lateness.
    fn advance(&mut self, partition: i32, out: &mut Vec<Admitted>) {
        if let Some(agreed) = self.state(partition).clocks.agreed() {
            self.reach(partition, self.clock.hop_of(agreed.since(self.lateness)), out);
        }
    }

    /// Nothing of a partition that was idle is applied before the hop at which it comes back; hop 0 if it was not idle.
    fn take_back(&mut self, partition: i32, not_before: Hop, out: &mut Vec<Admitted>) {
        if not_before > Hop(0) {
            self.reach(partition, not_before, out);
        }
    }

    /// Moves a partition's watermark forward to a hop, and books the parts that waited for the first watermark.
    fn reach(&mut self, partition: i32, hop: Hop, out: &mut Vec<Admitted>) {
        let state = self.state(partition);
        let watermark = state.watermark.map_or(hop, |before| before.max(hop));
        state.watermark = Some(watermark);
        let waiting = std::mem::take(&mut state.waiting);
        out.extend(waiting.into_iter().map(|row| self.booked(watermark, row)));
    }

    fn booked(&self, hop: Hop, row: RejectedRow) -> Admitted {
        self.rejected(hop, RejectedRow { hop_at: Some(self.clock.start_of(hop)), ..row })
    }

    /// A refused part. It names no service, so its partition says which shard counts it.
    fn rejected(&self, hop: Hop, row: RejectedRow) -> Admitted {
        match self.shard.has_partition(&row.position.source, row.position.partition) {
            true => Admitted::Rejected(hop, row),
            false => Admitted::Elsewhere(hop, Elsewhere::Rejected(row)),
        }
    }

    fn shown(&self, hop: Hop, row: ClockRow) -> Admitted {
        Admitted::Clock(hop, ClockRow { hop_at: self.clock.start_of(hop), ..row })
    }
}

#[cfg(test)]
mod tests;
