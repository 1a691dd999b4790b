//! At which hop a record is applied.
//!
//! Each partition has a watermark: the hop of the largest event time seen in it less the lateness. A profile is applied
//! at its own hop if that lies at or after the watermark just before its record; an older profile is applied at the
//! watermark. The application hop thus depends only on the earlier records of the partition, and a closed hop is never
//! revised.
//!
//! Here stacks are folded to counts by function. Those that are idle ([`IdleStacks`]) are left out before, and counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fold::{fold_stacks, fold_values};
use fleetdiff_schemas::identity::{Cohort, Identity};
use fleetdiff_schemas::profile::{
    Decoded, Folded, Position, Profile, ProfileType, RequestPoint, Requests, Samples, Stack, Temporality, content_hash,
    value_of_each,
};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::RejectedRow;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos, TimeRange};
use serde::{Deserialize, Serialize};

use super::idle::IdleStacks;
use crate::counts::encoding::{Entry, encode};
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::paths::{decode_paths, encode_paths};

/// How far an event time may lie after the moment at which the broker received the record.
const FUTURE: Nanos = Nanos::from_seconds(60);

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

/// The counts of one cohort in one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortCounts {
    /// Whose samples.
    pub cohort: Cohort,
    /// Number of samples.
    pub samples: u64,
    /// Counts by function, see [`crate::counts::encoding`]; empty for a snapshot, whose difference is folded.
    #[serde(with = "serde_bytes")]
    pub functions: Vec<u8>,
    /// Samples by call path, see [`crate::counts::paths`]; empty if the profile came without stacks.
    #[serde(with = "serde_bytes")]
    pub paths: Vec<u8>,
    /// The values of the samples, by function as `functions` are, or of a snapshot by call path as `paths` are; empty if the
    /// profile does not say them, or if each sample stands for as much.
    #[serde(with = "serde_bytes")]
    pub values: Vec<u8>,
    /// Their sum.
    pub value: u64,
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

/// What a record became.
#[derive(Clone, Debug)]
pub enum Admitted {
    /// A message about a pod, at its application hop.
    OfPod(Hop, OfPod),
    /// A refused part, at the hop under which it is booked.
    Rejected(Hop, RejectedRow),
}

/// The state of the partitions that one worker reads.
#[derive(Debug)]
pub struct Admission {
    clock: HopClock,
    lateness: Nanos,
    drain: Nanos,
    window: u64,
    partitions: BTreeMap<i32, Partition>,
    idle: IdleStacks,
    last_names: Option<NumberedNames>,
}

/// A name table as it arrived, and the number of each name: the records of a run mostly share one table.
type NumberedNames = (Arc<[Arc<str>]>, Vec<FunctionId>);

#[derive(Debug, Default)]
struct Partition {
    watermark: Option<Hop>,
    /// Refused parts without a time, which wait for a watermark at which to book them.
    waiting: Vec<RejectedRow>,
}

impl Admission {
    /// The state before any partition has given a record.
    pub fn new(config: &Config) -> Self {
        Self {
            clock: config.clock(),
            lateness: config.lateness,
            drain: config.drain,
            window: config.window_hops(),
            partitions: BTreeMap::new(),
            idle: IdleStacks::new(config),
            last_names: None,
        }
    }

    /// The watermark of a partition: nothing more is applied before it. `None` before its first good profile.
    pub fn watermark(&self, partition: i32) -> Option<Hop> {
        self.partitions.get(&partition).and_then(|state| state.watermark)
    }

    /// Decides the application hops of a record's parts and moves its partition's watermark. If the partition was idle
    /// and comes back with this record, nothing of it is applied before `not_before`.
    pub fn admit(&mut self, record: Decoded, not_before: Hop, table: &FunctionTable) -> Vec<Admitted> {
        let mut admitted = Vec::with_capacity(record.parts.len());
        if not_before > Hop(0) {
            self.reach(record.position.partition, not_before, &mut admitted);
        }
        let watermark = self.watermark(record.position.partition);
        let mut latest = None;
        for (part, content) in record.parts.into_iter().enumerate() {
            let part = u32::try_from(part).unwrap_or(u32::MAX);
            match content.and_then(countable).and_then(|profile| not_from_future(profile, record.broker_time)) {
                Ok(profile) => {
                    let at = profile.event_time();
                    latest = latest.max(Some(at));
                    self.apply(profile, watermark, &record.position, part, table, &mut admitted);
                }
                Err(rejection) => {
                    self.refuse(rejection, &record.position, part, record.broker_time, watermark, &mut admitted)
                }
            }
        }
        for (part, point) in (0..).zip(record.points) {
            match dated(point.event_time(), record.broker_time) {
                Ok(at) => {
                    latest = latest.max(Some(at));
                    let hop = self.clock.hop_of(at).max(watermark.unwrap_or_default());
                    admitted.push(Admitted::OfPod(hop, OfPod::Requests(point)));
                }
                Err(rejection) => {
                    self.refuse(rejection, &record.position, part, record.broker_time, watermark, &mut admitted)
                }
            }
        }
        self.advance(record.position.partition, latest, &mut admitted);
        admitted
    }

    /// The parts that still wait for a watermark, which will not come because their partition has ended.
    pub fn leftovers(&mut self) -> Vec<Admitted> {
        let waiting = self.partitions.values_mut().flat_map(|state| state.waiting.drain(..));
        waiting.map(|row| Admitted::Rejected(Hop(0), row)).collect()
    }

    fn apply(
        &mut self,
        mut profile: Profile,
        watermark: Option<Hop>,
        from: &Position,
        part: u32,
        table: &FunctionTable,
        out: &mut Vec<Admitted>,
    ) {
        let own = self.clock.hop_of(profile.event_time());
        let seen = own.max(watermark.unwrap_or_default());
        let held = self.held_back(&profile);
        if held > 0 {
            let sighting = Sighting { identity: Arc::clone(&profile.identity), at: profile.window.end };
            out.push(Admitted::OfPod(seen, OfPod::Seen(sighting)));
        }
        let hop = seen.plus(held);
        let arrival = match watermark {
            _ if own.plus(self.window) <= hop => Arrival::TooLate,
            Some(watermark) if own < watermark => Arrival::Late,
            _ => Arrival::InTime,
        };
        let content = content_of(&profile);
        if self.last_names.as_ref().is_none_or(|(names, _)| !Arc::ptr_eq(names, &profile.names)) {
            self.last_names = Some((Arc::clone(&profile.names), table.intern(&profile.names)));
        }
        let ids = self.last_names.as_ref().map_or(&[][..], |(_, ids)| ids);
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
            partition: from.partition,
            offset: from.offset,
            part,
            cohorts,
            idle,
        };
        out.push(Admitted::OfPod(hop, OfPod::Profile(pod)));
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

    fn refuse(
        &mut self,
        rejection: Rejection,
        from: &Position,
        part: u32,
        broker: Option<Nanos>,
        watermark: Option<Hop>,
        out: &mut Vec<Admitted>,
    ) {
        let time = rejection.at.or(broker).map(|at| self.clock.hop_of(at));
        let row = RejectedRow { hop_at: None, position: from.clone(), part: i64::from(part), rejection };
        match time.max(watermark) {
            Some(hop) => out.push(self.booked(hop, row)),
            None => self.partitions.entry(from.partition).or_default().waiting.push(row),
        }
    }

    fn advance(&mut self, partition: i32, latest: Option<Nanos>, out: &mut Vec<Admitted>) {
        if let Some(latest) = latest {
            self.reach(partition, self.clock.hop_of(latest.since(self.lateness)), out);
        }
    }

    /// Moves a partition's watermark forward to a hop, and books the parts that waited for the first watermark.
    fn reach(&mut self, partition: i32, hop: Hop, out: &mut Vec<Admitted>) {
        let state = self.partitions.entry(partition).or_default();
        let watermark = state.watermark.map_or(hop, |before| before.max(hop));
        state.watermark = Some(watermark);
        let waiting = std::mem::take(&mut state.waiting);
        out.extend(waiting.into_iter().map(|row| self.booked(watermark, row)));
    }

    fn booked(&self, hop: Hop, row: RejectedRow) -> Admitted {
        Admitted::Rejected(hop, RejectedRow { hop_at: Some(self.clock.start_of(hop)), ..row })
    }
}

fn countable(profile: Profile) -> Result<Profile, Rejection> {
    match profile.uncountable() {
        Some(fault) => Err(Rejection { samples: profile.total(), ..fault }),
        None => Ok(profile),
    }
}

fn not_from_future(profile: Profile, broker: Option<Nanos>) -> Result<Profile, Rejection> {
    match dated(profile.event_time(), broker) {
        Ok(_) => Ok(profile),
        Err(fault) => Err(Rejection { profile_type: Some(profile.profile_type), samples: profile.total(), ..fault }),
    }
}

/// An event time, unless it lies so far after the moment at which the broker received the record that a clock must be
/// wrong.
fn dated(at: Nanos, broker: Option<Nanos>) -> Result<Nanos, Rejection> {
    match broker {
        Some(taken) if at > taken.plus(FUTURE) => Err(Rejection {
            at: Some(taken),
            ..Rejection::new(
                Reason::FromFuture,
                format!(
                    "event time {} ns lies more than 60 s after the broker took the record ({} ns); check the sender's clock",
                    at.0, taken.0
                ),
            )
        }),
        _ => Ok(at),
    }
}

fn content_of(profile: &Profile) -> u128 {
    match &profile.samples {
        Samples::Stacks(stacks) => content_hash(&profile.names, stacks),
        Samples::Folded { content, .. } => *content,
    }
}

/// The counts of a profile whose names have these numbers.
fn fold(profile: &Profile, ids: &[FunctionId], table: &FunctionTable) -> Vec<CohortCounts> {
    let own = &profile.identity.cohort;
    match &profile.samples {
        Samples::Folded { cohorts, .. } => cohorts.iter().map(|part| encoded(part, ids, Vec::new())).collect(),
        Samples::Stacks(stacks) if profile.temporality == Temporality::Cumulative => {
            let mut values = paths_of(stacks, own, ids, table, |stack| stack.value);
            let counts = paths_of(stacks, own, ids, table, |stack| stack.count).into_iter();
            let cohorts = counts.map(|(cohort, paths)| {
                let values = values.remove(&cohort).unwrap_or_default();
                unfolded(cohort, paths, values)
            });
            cohorts.collect()
        }
        Samples::Stacks(stacks) => {
            let cohorts = fold_stacks(&profile.names, stacks, own);
            // What is the same for all need not be kept by function.
            let each = value_of_each(stacks);
            let values = match each {
                Some(_) => Vec::new(),
                None => fold_values(&profile.names, stacks, own),
            };
            let mut paths = paths_of(stacks, own, ids, table, |stack| stack.count);
            let with_paths = |part: &Folded| {
                let values = values.iter().find(|values| values.cohort == part.cohort);
                CohortCounts {
                    values: values.map(|values| functions_of(values, ids)).unwrap_or_default(),
                    value: values.map_or_else(|| part.samples * each.unwrap_or(0), |values| values.samples),
                    ..encoded(part, ids, paths.remove(&part.cohort).unwrap_or_default())
                }
            };
            cohorts.iter().map(with_paths).collect()
        }
    }
}

/// Samples by call path, or their values, for each cohort; none if all are 0.
fn paths_of(
    stacks: &[Stack],
    default_cohort: &Cohort,
    ids: &[FunctionId],
    table: &FunctionTable,
    of: fn(&Stack) -> u64,
) -> BTreeMap<Cohort, Vec<u8>> {
    if stacks.iter().all(|stack| of(stack) == 0) {
        return BTreeMap::new();
    }
    let paths = table.paths().intern(stacks, ids);
    let mut cohorts: BTreeMap<Cohort, Vec<(PathId, u64)>> = BTreeMap::new();
    for (stack, path) in stacks.iter().zip(paths).filter(|(stack, _)| of(stack) > 0) {
        let cohort = stack.cohort.as_ref().unwrap_or(default_cohort);
        match cohorts.get_mut(cohort) {
            Some(samples) => samples.push((path, of(stack))),
            None => drop(cohorts.insert(cohort.clone(), vec![(path, of(stack))])),
        }
    }
    cohorts.into_iter().map(|(cohort, samples)| (cohort, encode_paths(samples))).collect()
}

fn unfolded(cohort: Cohort, paths: Vec<u8>, values: Vec<u8>) -> CohortCounts {
    let sum = |paths: &[u8]| decode_paths(paths).map(|(_, count)| count).sum();
    CohortCounts { cohort, samples: sum(&paths), value: sum(&values), functions: Vec::new(), paths, values }
}

fn encoded(part: &Folded, ids: &[FunctionId], paths: Vec<u8>) -> CohortCounts {
    CohortCounts {
        cohort: part.cohort.clone(),
        samples: part.samples,
        functions: functions_of(part, ids),
        paths,
        values: Vec::new(),
        value: 0,
    }
}

/// Counts, or values, by function.
fn functions_of(part: &Folded, ids: &[FunctionId]) -> Vec<u8> {
    let mut entries = Vec::with_capacity(part.functions.len());
    entries.extend(part.functions.iter().filter_map(|function| {
        let id = *ids.get(usize::try_from(function.name).ok()?)?;
        Some(Entry { function: id, own: function.own, total: function.total })
    }));
    entries.sort_unstable_by_key(|entry| entry.function);
    encode(&entries)
}
