//! Which pods there are, and when which processes ran in them.

use std::sync::Arc;

use fleetdiff_schemas::identity::{Build, Cohort, Identity, NodeId, PodId, Region};
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::builder::{Deploy, PodCounts, Settings};
use super::error::FleetError;
use super::random::{LogNormal, Purpose, derive, generator, key_of, uniform};
use super::ring::Ring;

/// The cohort that a pod reports whose samples name their own.
const MIXED: &str = "mixed";
/// Between the end of a process and the start of the one after it.
const PAUSE: Nanos = Nanos::from_seconds(5);

/// One pod, with its random properties.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) id: PodId,
    /// The key from which every draw of this pod is derived.
    pub(super) key: u64,
    pub(super) region: Region,
    /// None if its samples name their own.
    pub(super) cohort: Option<Cohort>,
    /// Whether it has what is changed in the head.
    pub(super) is_changed: bool,
    /// ln of its requests relative to those of other pods, whatever their size.
    pub(super) ln_load: f64,
    /// Index of its kind of machine.
    pub(super) hardware: usize,
    /// Where in a period its windows begin.
    pub(super) phase: Nanos,
    /// Its samples and requests, 1 on average.
    pub(super) size: f64,
    /// Its processes, in order.
    pub(super) lives: Vec<Life>,
}

/// One process: profiles have windows within `lived`.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) identity: Arc<Identity>,
    pub(super) lived: TimeRange,
}

impl Pod {
    /// The process that lived through a whole window.
    pub(super) fn life(&self, window: TimeRange) -> Option<&Life> {
        self.lives.iter().find(|life| life.lived.start <= window.start && window.end <= life.lived.end)
    }
}

/// Every pod of the fleet, by phase, then by name.
pub(super) fn pods_of(settings: &Settings) -> Result<Vec<Pod>, FleetError> {
    check_cells(settings)?;
    let mut pods: Vec<Pod> = settings.regions.iter().flat_map(|region| pods_of_region(settings, region)).collect();
    if pods.is_empty() {
        return Err(FleetError::Empty { property: "pods_per_cell" });
    }
    if let Deploy::Rollout { after, lasts } = settings.deploy {
        replace_one_by_one(&mut pods, settings, settings.starts_at.plus(after), lasts);
    }
    stop_some(&mut pods, settings, Purpose::Restart, settings.restarts, Pod::restart_at);
    stop_some(&mut pods, settings, Purpose::Crash, settings.crashes, Pod::crash_at);
    pods.sort_by(|a, b| (a.phase, &a.id).cmp(&(b.phase, &b.id)));
    Ok(pods)
}

fn pods_of_region(settings: &Settings, region: &Region) -> Vec<Pod> {
    let mut places = Vec::new();
    for (cohort, counts) in groups(settings, region) {
        for (build, count, role) in builds(settings, counts) {
            places.extend((0..count).map(|number| Place { region, cohort, build, role, number, node: None }));
        }
    }
    if let Some(per_node) = settings.pods_per_node.and_then(|pods| usize::try_from(pods).ok()) {
        let nodes = places.len().div_ceil(per_node).max(1);
        // In turn, so that builds and cohorts share nodes.
        places.iter_mut().enumerate().for_each(|(slot, place)| place.node = Some(slot % nodes));
    }
    places.into_iter().map(|place| place.pod(settings)).collect()
}

/// The groups of pods in a region: its cells, or all its pods at once where they serve every cohort.
fn groups<'a>(settings: &'a Settings, region: &Region) -> Vec<(Option<&'a Cohort>, PodCounts)> {
    if settings.cohorts_by_request {
        return vec![(None, settings.pods)];
    }
    let counts = |cohort: &Cohort| {
        let odd = settings.odd_cells.iter().rfind(|(r, c, _)| r == region && c == cohort);
        odd.map_or(settings.pods, |(_, _, counts)| *counts)
    };
    settings.cohorts.iter().map(|cohort| (Some(cohort), counts(cohort))).collect()
}

fn builds(settings: &Settings, counts: PodCounts) -> Vec<(&Build, u32, Role<'_>)> {
    let rolls_out = matches!(settings.deploy, Deploy::Rollout { .. });
    let head = if rolls_out { 0 } else { counts.head };
    let mut builds = vec![(&settings.base, counts.base, Role::Base), (&settings.head, head, Role::Head)];
    builds.extend(settings.rings.iter().map(|ring| (&ring.build, ring.pods, Role::Ring(ring))));
    builds
}

/// What a build is in its fleet.
#[derive(Clone, Copy)]
enum Role<'a> {
    Base,
    Head,
    Ring(&'a Ring),
}

impl Role<'_> {
    /// From when to when its pods live, if that is set.
    fn life(self, settings: &Settings) -> (Option<Nanos>, Nanos) {
        let at = |length| settings.starts_at.plus(length);
        match (self, settings.deploy) {
            (Self::Head, Deploy::After(after)) => (Some(at(after)), Nanos(i64::MAX)),
            (Self::Ring(ring), _) => (ring.starts.map(at), ring.ends.map_or(Nanos(i64::MAX), at)),
            (Self::Base | Self::Head, _) => (None, Nanos(i64::MAX)),
        }
    }
}

/// A cell that differs from the others must be one of the fleet's.
fn check_cells(settings: &Settings) -> Result<(), FleetError> {
    let known = |region: &Region, cohort: &Cohort| {
        !settings.cohorts_by_request && settings.regions.contains(region) && settings.cohorts.contains(cohort)
    };
    match settings.odd_cells.iter().find(|(region, cohort, _)| !known(region, cohort)) {
        Some((region, cohort, _)) => Err(FleetError::UnknownCell { cell: format!("{region}:{cohort}") }),
        None => Ok(()),
    }
}

/// Where a pod is put.
#[derive(Clone, Copy)]
struct Place<'a> {
    region: &'a Region,
    cohort: Option<&'a Cohort>,
    build: &'a Build,
    role: Role<'a>,
    number: u32,
    node: Option<usize>,
}

impl Place<'_> {
    fn pod(self, settings: &Settings) -> Pod {
        let Self { region, cohort, build, .. } = self;
        let of_cohort = cohort.map_or_else(String::new, |cohort| format!("-{cohort}"));
        let id = PodId::new(format!("{}-{build}-{region}{of_cohort}-{:03}", settings.service, self.number));
        let key = key_of(settings.seed, id.as_str());
        let hardware = index_below(settings.hardware.len(), uniform(key, Purpose::Hardware, 0));
        let within = |length| part(length, uniform(key, Purpose::Age, 0));
        let (begins, end) = self.role.life(settings);
        let start = match (begins, self.role, settings.base_starts) {
            (Some(begins), _, _) => begins.plus(within(settings.period)),
            (None, Role::Base, Some(length)) => settings.starts_at.plus(within(length)),
            (None, ..) => some_hours_before(settings.starts_at, key),
        };
        let (is_changed, load) = match self.role {
            Role::Base => (false, 1.0),
            Role::Head => (true, 1.0),
            Role::Ring(ring) => (ring.has_changes, ring.load),
        };
        let identity = Identity {
            service: settings.service.clone(),
            build: build.clone(),
            region: region.clone(),
            cohort: cohort.cloned().unwrap_or_else(|| MIXED.into()),
            hardware: settings.hardware[hardware].clone(),
            node: self.node.map(|node| NodeId::new(format!("{region}-node-{node:03}"))),
            pod: id.clone(),
            process_start: settings.process_start_known.then_some(start),
        };
        Pod {
            key,
            region: region.clone(),
            cohort: cohort.cloned(),
            is_changed,
            ln_load: libm::log(load),
            hardware,
            phase: part(settings.period, uniform(key, Purpose::Phase, 0)),
            size: LogNormal::with_cv(settings.size_cv).next(&mut generator(key, Purpose::Size, 0)),
            lives: vec![Life { identity: Arc::new(identity), lived: TimeRange { start, end } }],
            id,
        }
    }
}

fn some_hours_before(instant: Nanos, key: u64) -> Nanos {
    let age = 1.0 + 47.0 * uniform(key, Purpose::Age, 0);
    Nanos(instant.0.saturating_sub(part(Nanos::from_seconds(3600), age).0))
}

/// A roll-out: the pods of the base end one after the other in random order, and each is followed at once by a pod of
/// the head.
fn replace_one_by_one(pods: &mut Vec<Pod>, settings: &Settings, begins: Nanos, lasts: Nanos) {
    let mut order: Vec<usize> = (0..pods.len()).filter(|&pod| *pods[pod].build() == settings.base).collect();
    order.sort_by_key(|&pod| derive(pods[pod].key, Purpose::Order, 0));
    for (turn, &leaving) in order.iter().enumerate() {
        let at = begins.plus(part(lasts, ratio(turn, order.len().saturating_sub(1).max(1))));
        let arriving = pods[leaving].followed_by_head(settings, at);
        pods[leaving].end_at(at);
        pods.push(arriving);
    }
}

/// Randomly chosen pods end their process at a moment between a tenth and nine tenths of its observed time.
fn stop_some(pods: &mut [Pod], settings: &Settings, purpose: Purpose, many: u32, stop: fn(&mut Pod, Nanos)) {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_key(|&pod| derive(pods[pod].key, purpose, 0));
    let many = usize::try_from(many).unwrap_or(usize::MAX);
    let ends_at = settings.starts_at.plus(settings.lasts);
    for index in order.into_iter().take(many) {
        let pod = &mut pods[index];
        let Some(life) = pod.lives.last() else { continue };
        let (from, until) = (life.lived.start.max(settings.starts_at), life.lived.end.min(ends_at));
        let moment = 0.1 + 0.8 * uniform(pod.key, purpose, 1);
        stop(pod, from.plus(part(until.since(from), moment)));
    }
}

impl Pod {
    pub(super) fn build(&self) -> &Build {
        &self.lives[0].identity.build
    }

    fn end_at(&mut self, instant: Nanos) {
        if let Some(life) = self.lives.last_mut() {
            life.lived.end = instant;
        }
    }

    fn restart_at(&mut self, instant: Nanos) {
        let Some(mut next) = self.lives.last().cloned() else { return };
        self.end_at(instant);
        next.lived.start = instant.plus(PAUSE);
        let mut identity = (*next.identity).clone();
        identity.process_start = identity.process_start.map(|_| next.lived.start);
        next.identity = Arc::new(identity);
        self.lives.push(next);
    }

    fn crash_at(&mut self, instant: Nanos) {
        let Some(mut next) = self.lives.last().cloned() else { return };
        self.end_at(instant);
        next.lived.start = instant.plus(PAUSE);
        self.lives.push(next);
    }

    /// The pod of the head that takes this one's place.
    fn followed_by_head(&self, settings: &Settings, at: Nanos) -> Self {
        let old = &self.lives[0].identity;
        let number = old.pod.as_str().rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let place = Place {
            region: &self.region,
            cohort: self.cohort.as_ref(),
            build: &settings.head,
            role: Role::Head,
            number,
            node: None,
        };
        let mut pod = place.pod(settings);
        for life in &mut pod.lives {
            let mut identity = (*life.identity).clone();
            identity.node = old.node.clone();
            identity.process_start = identity.process_start.map(|_| at);
            *life = Life { identity: Arc::new(identity), lived: TimeRange { start: at, end: Nanos(i64::MAX) } };
        }
        pod
    }
}

/// A fraction of a length of time.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "lengths here are of hours: exact to a nanosecond"
)]
fn part(length: Nanos, fraction: f64) -> Nanos {
    Nanos((length.0 as f64 * fraction) as i64)
}

fn ratio(part: usize, whole: usize) -> f64 {
    length_float(part) / length_float(whole)
}

/// One of `0..count` from a number in [0, 1).
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a product below a number of kinds of machine"
)]
fn index_below(count: usize, uniform: f64) -> usize {
    ((count as f64 * uniform) as usize).min(count.saturating_sub(1))
}
