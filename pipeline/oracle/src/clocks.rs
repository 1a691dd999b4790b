//! Up to which event time the pods of a partition agree, where records are stamped by their senders: section 1.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Build, Identity, PodId, Service};
use fleetdiff_schemas::profile::{Position, Profile};
use fleetdiff_schemas::rows::ClockRow;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

/// An event further than this ahead is too early.
pub(super) const FUTURE: Nanos = Nanos::from_seconds(60);
/// Pods further apart than this contradict each other.
pub(super) const HOUR: Nanos = Nanos::from_seconds(3600);
/// A pod is silent after so many records of another one.
const MANY: usize = 30;

type Pod = (Service, PodId);

/// What was heard of each pod, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Believed {
    heard: BTreeMap<Pod, Vec<(u64, Nanos)>>,
    pub silent: u64,
    pub records: u64,
    pub agreed: Option<Nanos>,
    pub moved_with: u64,
}

impl Believed {
    /// A record whose times are vouched for.
    pub(super) fn vouched(&mut self, at: Nanos) {
        self.records += 1;
        self.move_to(at);
    }

    /// A record stamped by its sender, with the pod and event time of each good profile.
    pub(super) fn claimed(&mut self, needed: u64, claims: impl Iterator<Item = (Pod, Nanos)>) {
        self.records += 1;
        for (pod, at) in claims {
            let heard = self.heard.entry(pod).or_default();
            match heard.last_mut().filter(|(number, _)| *number == self.records) {
                Some((_, latest)) => *latest = at.max(*latest),
                None => heard.push((self.records, at)),
            }
        }
        let enough =
            self.heard.values().filter_map(|heard| heard.len().checked_sub(MANY).map(|before| heard[before].0));
        self.silent = enough.max().unwrap_or(0).max(self.silent);
        let (silent, agreed) = (self.silent, self.agreed);
        self.heard.retain(|_, heard| {
            let (number, at) = heard[heard.len() - 1];
            number > silent && agreed.is_none_or(|agreed| agreed.since(at) <= HOUR)
        });
        self.decide(needed, self.silent > 0);
    }

    /// The largest time that enough pods have reached and that at most half of them contradict.
    pub(super) fn decide(&mut self, needed: u64, known: bool) {
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        let mut times: Vec<Nanos> = self.heard.values().map(|heard| heard[heard.len() - 1].1).collect();
        times.sort_by_key(|at| std::cmp::Reverse(*at));
        let agreed = times.iter().find(|&&at| {
            let reached = times.iter().filter(|other| **other >= at).count();
            let near = times.iter().filter(|other| at.since(**other) <= HOUR).count();
            let enough = reached >= needed || known && 2 * reached > near;
            enough && times.len() - near <= near
        });
        agreed.into_iter().for_each(|&at| self.move_to(at));
    }

    fn move_to(&mut self, at: Nanos) {
        if self.agreed.is_none_or(|agreed| agreed < at) {
            self.agreed = Some(at);
            self.moved_with = self.records;
        }
    }
}

/// A profile that waits for its time.
#[derive(Clone, Debug)]
pub(super) struct Early<'a> {
    pub profile: Profile,
    pub position: &'a Position,
    pub part: usize,
    pub came_with: u64,
    /// The agreed time when it came, or the first one.
    pub since: Option<Nanos>,
    /// How far ahead it was seen to be.
    pub lead: Option<Nanos>,
}

/// What becomes of it.
pub(super) enum Fate {
    Waits,
    Applied,
    Rejected(Nanos),
}

impl Early<'_> {
    pub(super) fn pod(&self) -> Pod {
        (self.profile.identity.service.clone(), self.profile.identity.pod.clone())
    }

    /// After the agreed time has moved.
    pub(super) fn fate(&mut self, agreed: Nanos, known: bool) -> Fate {
        let ahead = self.profile.window.midpoint().since(agreed);
        let length = self.profile.window.end.since(self.profile.window.start);
        let since = self.since.unwrap_or(agreed);
        self.since = Some(since);
        let others_went_on = known && agreed.since(since) > FUTURE;
        if ahead > FUTURE && others_went_on && self.lead.is_none() && ahead > FUTURE.plus(length) {
            self.lead = Some(ahead);
        }
        match ahead {
            _ if ahead <= FUTURE => Fate::Applied,
            _ if ahead > HOUR && others_went_on => Fate::Rejected(ahead),
            _ => Fate::Waits,
        }
    }

    /// When the partition has ended.
    pub(super) fn last_fate(&self, agreed: Nanos, is_disputed: bool) -> Fate {
        match self.profile.window.midpoint().since(agreed) {
            ahead if ahead <= FUTURE || ahead <= HOUR && !is_disputed => Fate::Applied,
            ahead => Fate::Rejected(ahead),
        }
    }
}

/// The table `clocks` while it is written.
#[derive(Debug, Default)]
pub(super) struct Clocks(BTreeMap<(Hop, String, i32, Service, Build, PodId), ClockRow>);

impl Clocks {
    /// Adds what one profile of this many samples shows, and gives its row.
    pub(super) fn shown(
        &mut self,
        hop: Hop,
        position: &Position,
        identity: &Identity,
        ahead: Nanos,
        samples: i64,
    ) -> &mut ClockRow {
        let pod = (identity.service.clone(), identity.build.clone(), identity.pod.clone());
        let key = (hop, position.source.to_string(), position.partition, pod.0, pod.1, pod.2);
        let row = self.0.entry(key).or_insert_with_key(|(_, source, partition, service, build, pod)| ClockRow {
            hop_at: Nanos(0),
            source: source.as_str().into(),
            partition: *partition,
            service: service.clone(),
            build: build.clone(),
            pod: pod.clone(),
            ahead: 0,
            profiles: 0,
            samples: 0,
            samples_waited: 0,
            samples_rejected: 0,
            samples_late_dropped: 0,
        });
        let larger = ahead.0.unsigned_abs() > row.ahead.unsigned_abs();
        if larger || ahead.0 == -row.ahead && ahead.0 > 0 {
            row.ahead = ahead.0;
        }
        row.profiles += 1;
        row.samples += samples;
        row
    }

    pub(super) fn rows(self, clock: HopClock) -> Vec<ClockRow> {
        self.0.into_iter().map(|((hop, ..), row)| ClockRow { hop_at: clock.start_of(hop), ..row }).collect()
    }
}
