//! How profiles reach a partition: several pods per record, some late, some twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, Stamped};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Nanos;

use super::plan::Plan;
use super::pod_sampler::{CountRoom, PodSampler};
use super::random::{Purpose, uniform};

/// Between the end of a window and the broker's time of its record.
const TRANSPORT: Nanos = Nanos::from_seconds(1);

/// One partition of a fleet, made as it is read.
///
/// Pods are ordered by the moment at which their windows end and cut into groups. In each period a group is one
/// record: for each pod the copy of its profile before, if one is sent, then its profile. Keyed by pod, a group belongs
/// to one partition for ever; unkeyed, it goes to the next partition in each period. Late profiles stay in their
/// partition and form records of their own at the start of the period in which they arrive.
#[derive(Debug)]
pub struct Partition {
    plan: Arc<Plan>,
    source: Arc<str>,
    partition: u32,
    partitions: u32,
    groups: Vec<Vec<usize>>,
    samplers: Vec<Option<PodSampler>>,
    room: CountRoom,
    period: u64,
    /// Profiles on their way, by the period in which they arrive.
    delayed: BTreeMap<u64, Vec<Profile>>,
    ready: VecDeque<Decoded>,
    offset: i64,
}

impl Partition {
    pub(super) fn new(plan: &Arc<Plan>, partition: u32, partitions: u32) -> Self {
        let partitions = partitions.max(1);
        let owned = |pod: &usize| {
            let hash = stable_hash(plan.pods[*pod].id.as_str().as_bytes());
            !plan.settings.keyed || hash % u64::from(partitions) == u64::from(partition)
        };
        let pods: Vec<usize> = (0..plan.pods.len()).filter(owned).collect();
        Self {
            plan: Arc::clone(plan),
            source: source_name(plan).into(),
            partition,
            partitions,
            groups: pods.chunks(plan.settings.pods_per_record).map(<[usize]>::to_vec).collect(),
            samplers: plan.pods.iter().map(|_| None).collect(),
            room: CountRoom::default(),
            period: 0,
            delayed: BTreeMap::new(),
            ready: VecDeque::new(),
            offset: 0,
        }
    }

    /// Makes the records of the next period ready.
    fn advance(&mut self) {
        let plan = Arc::clone(&self.plan);
        let late = self.delayed.remove(&self.period).unwrap_or_default();
        let begin = Nanos(i64::try_from(self.period + 1).unwrap_or(i64::MAX).saturating_mul(plan.settings.period.0));
        for profiles in late.chunks(plan.settings.pods_per_record) {
            self.emit(profiles.to_vec(), plan.settings.starts_at.plus(begin));
        }
        for group in self.due_groups() {
            let profiles = self.groups[group].clone().into_iter().flat_map(|pod| self.profiles(&plan, pod)).collect();
            let last = self.groups[group].last().map_or(0, |&pod| pod);
            self.emit(profiles, plan.window(&plan.pods[last], self.period).end);
        }
        self.period += 1;
    }

    fn due_groups(&self) -> Vec<usize> {
        let turn = |group: &usize| u64::try_from(*group).unwrap_or(0) + self.period;
        let due = |group: &usize| {
            self.plan.settings.keyed || turn(group) % u64::from(self.partitions) == u64::from(self.partition)
        };
        (0..self.groups.len()).filter(due).collect()
    }

    /// What a pod sends in this period; late profiles are put aside.
    fn profiles(&mut self, plan: &Plan, pod: usize) -> Vec<Profile> {
        let (settings, key) = (&plan.settings, plan.pods[pod].key);
        let copied = |period: &u64| uniform(key, Purpose::Duplicate, *period) < settings.duplicates;
        let copy = self.period.checked_sub(1).filter(copied).and_then(|period| self.profile(plan, pod, period));
        let mut profiles: Vec<Profile> = copy.into_iter().collect();
        let delay = if uniform(key, Purpose::Late, self.period * 2) < settings.late {
            let share = 0.5 + 0.5 * uniform(key, Purpose::Late, self.period * 2 + 1);
            periods_in(settings.late_by, share, settings.period)
        } else {
            0
        };
        let lost = uniform(key, Purpose::Missing, self.period) < settings.missing;
        if let Some(profile) = self.profile(plan, pod, self.period).filter(|_| !lost) {
            match delay {
                0 => profiles.push(profile),
                _ => self.delayed.entry(self.period + delay).or_default().push(profile),
            }
        }
        profiles
    }

    fn profile(&mut self, plan: &Plan, pod: usize, period: u64) -> Option<Profile> {
        let sampler = self.samplers[pod].get_or_insert_with(|| PodSampler::new(plan, &plan.pods[pod]));
        sampler.profile(plan, &plan.pods[pod], period, &mut self.room)
    }

    fn emit(&mut self, profiles: Vec<Profile>, sent_at: Nanos) {
        if profiles.is_empty() {
            return;
        }
        let position = Position {
            source: Arc::clone(&self.source),
            partition: number(self.partition),
            offset: self.offset,
            file: None,
        };
        let parts = profiles.into_iter().map(Ok).collect();
        self.ready.push_back(Decoded {
            position,
            stamped: Stamped::ByBroker(sent_at.plus(TRANSPORT)),
            parts,
            points: Vec::new(),
        });
        self.offset += 1;
    }

    /// Copies of the last profiles come one period after them; after that only late profiles can still be on their way.
    fn has_more(&self) -> bool {
        self.period <= self.plan.periods || !self.delayed.is_empty()
    }
}

impl Iterator for Partition {
    type Item = Decoded;

    fn next(&mut self) -> Option<Decoded> {
        while self.ready.is_empty() && self.has_more() {
            self.advance();
        }
        self.ready.pop_front()
    }
}

/// The reader of some of a fleet's partitions; see [`Fleet::source`](super::Fleet::source).
#[derive(Debug)]
pub struct FleetSource {
    name: String,
    open: Vec<Reading>,
    owned: Vec<i32>,
}

#[derive(Debug)]
struct Reading {
    partition: Partition,
    is_paused: bool,
}

impl FleetSource {
    pub(super) fn new(plan: &Arc<Plan>, worker: usize, workers: usize) -> Self {
        let partitions = plan.settings.partitions;
        let owned = (0..partitions).zip((0..workers.max(1)).cycle()).filter(|(_, owner)| *owner == worker);
        let open: Vec<Reading> = owned
            .map(|(partition, _)| Reading { partition: Partition::new(plan, partition, partitions), is_paused: false })
            .collect();
        let owned = open.iter().map(|reading| number(reading.partition.partition)).collect();
        Self { name: source_name(plan), open, owned }
    }
}

impl Source for FleetSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> Vec<i32> {
        self.owned.clone()
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.open.is_empty() {
            return Ok(Polled::End);
        }
        // The partition that is furthest behind, so that partitions advance together.
        let running = self.open.iter().enumerate().filter(|(_, reading)| !reading.is_paused);
        let Some((next, _)) = running.min_by_key(|(_, reading)| (reading.partition.period, reading.partition.offset))
        else {
            return Ok(Polled::Idle);
        };
        Ok(match self.open[next].partition.next() {
            Some(record) => Polled::Record(Box::new(record)),
            None => Polled::PartitionEnd(number(self.open.remove(next).partition.partition)),
        })
    }

    fn set_paused(&mut self, partition: i32, paused: bool) {
        for reading in &mut self.open {
            if number(reading.partition.partition) == partition {
                reading.is_paused = paused;
            }
        }
    }
}

/// The source name in a fleet's records.
fn source_name(plan: &Plan) -> String {
    format!("synthetic-{}", plan.settings.seed)
}

fn number(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// `share` of a length in whole periods, rounded up, at least one.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and of hours: exact to a nanosecond"
)]
fn periods_in(length: Nanos, share: f64, period: Nanos) -> u64 {
    ((length.0 as f64 * share / period.0 as f64).ceil() as u64).max(1)
}
