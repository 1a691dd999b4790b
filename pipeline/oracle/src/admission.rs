//! From records to counted samples: sections 1 and 2 of `docs/semantics.md`.

mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Cohort, PodId, Service};
use fleetdiff_schemas::profile::{Decoded, Position, Profile, ProfileType, Samples, Temporality, content_hash};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::{ClockRow, LedgerRow, RejectedRow};
use fleetdiff_schemas::time::{Hop, Nanos, TimeRange};

use self::walk::Walk;
use super::clocks::{Believed, Clocks};
use super::idle::IdleEntries;
use super::limits::Over;
use super::snapshots::{Found, Snapshots};

/// A pod that is silent for so long is seen for the first time again.
const DAY: Nanos = Nanos::from_seconds(86_400);
/// The profile type of the ledger for parts that could not be decoded.
const UNKNOWN: &str = "_unknown";

/// A counted profile, with its place in time.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub profile: Arc<Profile>,
    /// Hop at whose close it enters.
    pub applied: Hop,
    /// Hop of its event time.
    pub own: Hop,
    /// When its process started, if known.
    pub started: Nanos,
    /// What of it exceeds the limits of its service.
    pub over: Over,
}

/// Operations that became known at a hop.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The profile that reported them: gives the pod and the type.
    pub profile: Arc<Profile>,
    pub applied: Hop,
    /// Hop under which they are counted.
    pub own: Hop,
    pub count: u64,
    /// What of it exceeds the limits of its service.
    pub over: Over,
}

/// Everything that results from the records.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    pub counted: Vec<Counted>,
    pub served: Vec<Served>,
    pub ledger: Vec<LedgerRow>,
    pub rejected: Vec<RejectedRow>,
    pub clocks: Vec<ClockRow>,
    /// The largest application hop of a good profile.
    pub last: Option<Hop>,
}

/// A good profile at its application hop.
struct Applied<'a> {
    profile: Arc<Profile>,
    content: u128,
    position: &'a Position,
    part: usize,
    own: Hop,
    at: Hop,
    late: bool,
}

/// The identity by which a repetition of a profile is recognized.
type DuplicateKey = (Service, Build, PodId, Option<Nanos>, ProfileType, TimeRange, u128);
/// The identity of a process.
type ProcessKey = (Service, Build, PodId, Option<Nanos>);
/// The identity by which a repetition of requests is recognized.
type RequestsKey = (Service, Build, PodId, ProfileType, Cohort, TimeRange);

/// The ledger while it is written.
#[derive(Default)]
struct Ledger(BTreeMap<(Hop, &'static str), LedgerRow>);

impl Ledger {
    fn at(&mut self, hop: Hop, profile_type: Option<ProfileType>) -> &mut LedgerRow {
        self.0.entry((hop, profile_type.map_or(UNKNOWN, ProfileType::name))).or_default()
    }

    fn rows(self, config: &Config) -> Vec<LedgerRow> {
        let row = |((hop, name), row): ((Hop, &str), LedgerRow)| LedgerRow {
            hop_at: config.clock().start_of(hop),
            profile_type: name.to_owned(),
            ..row
        };
        self.0.into_iter().map(row).collect()
    }
}

/// Decides about every record of every partition.
pub(super) fn admit(config: &Config, partitions: &[Vec<Decoded>]) -> Admitted {
    let mut admitted = Admitted::default();
    let mut ledger = Ledger::default();
    let mut applied = Vec::new();
    let mut clocks = Clocks::default();
    for records in partitions {
        let walk = Walk {
            config,
            believed: Believed::default(),
            watermark: None,
            early: Vec::new(),
            waiting: Vec::new(),
            applied: &mut applied,
            ledger: &mut ledger,
            rejected: &mut admitted.rejected,
            clocks: &mut clocks,
        };
        walk.whole(records);
    }
    admitted.clocks = clocks.rows(config.clock());
    let alive = sightings(config, &applied);
    admitted.last = applied.iter().map(|profile| profile.at).max();
    applied.retain(|profile| {
        let row = ledger.at(profile.at, Some(profile.profile.profile_type));
        row.records_consumed += 1;
        row.records_decoded += 1;
        row.samples_received += samples(profile.profile.total());
        let dropped = profile.own.plus(config.window_hops()) <= profile.at;
        if dropped {
            row.samples_late_dropped += samples(profile.profile.total());
        }
        !dropped
    });
    applied.sort_by(|a, b| order(a).cmp(&order(b)));
    by_pod(config, &applied, &alive, &mut ledger, &mut admitted);
    admitted.ledger = ledger.rows(config);
    admitted
}

/// The order in which the profiles of all hops are decided.
fn order<'a>(p: &'a Applied<'_>) -> impl Ord + use<'a> {
    let profile = &p.profile;
    let position = (p.position.partition, p.position.offset, p.part, &p.position.source);
    (p.at, &profile.identity.pod, profile.profile_type, profile.window, p.content, position)
}

/// The number of hops that a profile waits, to see whether its process goes on.
fn held_back(config: &Config, profile: &Profile) -> u64 {
    let next = match profile.temporality {
        Temporality::Delta => profile.window.end.since(profile.window.start),
        _ => Nanos(config.lateness.0 * 2),
    };
    if config.drain == Nanos(0) { 0 } else { config.clock().hops_in(Nanos(config.drain.0 + next.0)) }
}

/// When processes are known to have been alive: the hop at which that is reported, and the instant.
fn sightings(config: &Config, applied: &[Applied<'_>]) -> BTreeMap<ProcessKey, Vec<(Hop, Nanos)>> {
    let mut alive: BTreeMap<ProcessKey, Vec<(Hop, Nanos)>> = BTreeMap::new();
    for one in applied {
        let reported = Hop(one.at.0 - held_back(config, &one.profile));
        alive.entry(process(&one.profile)).or_default().push((reported, one.profile.window.end));
    }
    alive
}

fn process(profile: &Profile) -> ProcessKey {
    let id = &profile.identity;
    (id.service.clone(), id.build.clone(), id.pod.clone(), id.process_start)
}

/// A rejected part in the ledger and in its table.
fn book(config: &Config, hop: Option<Hop>, mut row: RejectedRow, ledger: &mut Ledger, rejected: &mut Vec<RejectedRow>) {
    let entry = ledger.at(hop.unwrap_or_default(), row.rejection.profile_type);
    entry.records_consumed += 1;
    entry.records_rejected += 1;
    entry.samples_received += samples(row.rejection.samples);
    entry.samples_rejected += samples(row.rejection.samples);
    row.hop_at = hop.map(|hop| config.clock().start_of(hop));
    rejected.push(row);
}

/// Accepts only events within a window, or whole stacks since the process began, whose moment is the last instant of
/// the window.
fn countable(profile: Profile) -> Result<Profile, Rejection> {
    let end = profile.window.end;
    match (profile.temporality, &profile.samples) {
        (Temporality::Gauge, _) if profile.profile_type == ProfileType::LiveHeap => {
            Ok(Profile { window: TimeRange { start: end, end }, ..profile })
        }
        (Temporality::Delta, _) if profile.profile_type != ProfileType::LiveHeap => Ok(profile),
        (Temporality::Cumulative, Samples::Stacks(_)) if profile.profile_type != ProfileType::LiveHeap => {
            Ok(Profile { window: TimeRange { start: end, end }, ..profile })
        }
        _ => Err(Rejection {
            profile_type: Some(profile.profile_type),
            samples: profile.total(),
            at: Some(end),
            ..Rejection::new(Reason::UnsupportedType, "neither counts of a window nor stacks since the process began")
        }),
    }
}

fn content_of(profile: &Profile) -> u128 {
    match &profile.samples {
        Samples::Stacks(stacks) => content_hash(&profile.names, stacks),
        Samples::Folded { content, .. } => *content,
    }
}

/// Section 2: duplicates, warm-up, counted profiles and requests, in the order of all application hops.
fn by_pod(
    config: &Config,
    applied: &[Applied<'_>],
    alive: &BTreeMap<ProcessKey, Vec<(Hop, Nanos)>>,
    ledger: &mut Ledger,
    admitted: &mut Admitted,
) {
    let window = config.window_hops();
    let mut seen: BTreeMap<DuplicateKey, Hop> = BTreeMap::new();
    let mut sights: BTreeMap<(Service, Build, PodId), Vec<(Hop, Nanos)>> = BTreeMap::new();
    let mut requests: BTreeMap<RequestsKey, Vec<(Hop, u64)>> = BTreeMap::new();
    let mut snapshots = Snapshots::default();
    let mut idle = IdleEntries::new(config);
    for one in applied {
        let (profile, id) = (&one.profile, &*one.profile.identity);
        let total = samples(profile.total());
        let row = ledger.at(one.at, Some(profile.profile_type));
        let pod = (id.service.clone(), id.build.clone(), id.pod.clone());
        let key = duplicate_key(one);
        if seen.get(&key).is_some_and(|hop| hop.plus(window) > one.at) {
            row.samples_duplicate += total;
            continue;
        }
        seen.insert(key, one.at);
        let start = id.process_start.unwrap_or_else(|| {
            let sights = sights.entry(pod).or_default();
            sights.push((one.at, profile.window.start));
            first_sight(config, sights)
        });
        let (profile, interval) = match profile.temporality {
            Temporality::Delta | Temporality::Gauge => (Arc::clone(profile), profile.window),
            Temporality::Cumulative => match snapshots.find(config, profile) {
                Found::New(new, interval) => (new, interval),
                Found::First => {
                    row.samples_carried_over += total;
                    continue;
                }
                Found::Superseded => {
                    row.samples_superseded += total;
                    continue;
                }
            },
        };
        let new = samples(profile.total());
        row.samples_carried_over += total - new;
        if interval.midpoint() < start.plus(config.warm_up) {
            row.samples_warm_up += new;
            continue;
        }
        let until = alive
            .get(&process(&profile))
            .and_then(|seen| seen.iter().filter(|(hop, _)| *hop <= one.at).map(|(_, at)| *at).max());
        if config.drain > Nanos(0) && until.is_none_or(|until| until < interval.midpoint().plus(config.drain)) {
            row.samples_drain += new;
            continue;
        }
        let profile = idle.without_idle(&profile);
        count(row, new, samples(profile.total()), one.late);
        admitted.counted.push(Counted {
            profile,
            applied: one.at,
            own: one.own,
            started: start,
            over: Over::default(),
        });
        admitted.served.extend(served(config, one, &mut requests));
    }
}

/// Books a counted profile: of its samples, those of stacks that are not idle were added to counters.
fn count(row: &mut LedgerRow, all: i64, busy: i64, late: bool) {
    row.samples_idle += all - busy;
    row.samples_counted += busy;
    row.samples_late_counted += if late { busy } else { 0 };
}

fn duplicate_key(one: &Applied<'_>) -> DuplicateKey {
    let (profile, id) = (&one.profile, &*one.profile.identity);
    let (service, build, pod) = (id.service.clone(), id.build.clone(), id.pod.clone());
    (service, build, pod, id.process_start, profile.profile_type, profile.window, one.content)
}

/// The start of the first profile after the last time that the pod was silent for a day.
fn first_sight(config: &Config, sights: &[(Hop, Nanos)]) -> Nanos {
    let silent = |pair: &[(Hop, Nanos)]| pair[1].0.0 - pair[0].0.0 >= config.clock().hops_in(DAY);
    let first = sights.windows(2).rposition(silent).map_or(0, |place| place + 1);
    sights[first].1
}

/// What a counted profile adds to the known requests of its pod.
fn served(config: &Config, one: &Applied<'_>, known: &mut BTreeMap<RequestsKey, Vec<(Hop, u64)>>) -> Option<Served> {
    let (id, requests) = (&one.profile.identity, one.profile.requests?);
    let own = config.clock().hop_of(requests.window.midpoint()).min(one.at);
    let window = config.window_hops();
    if own.plus(window) <= one.at {
        return None;
    }
    let key = (
        id.service.clone(),
        id.build.clone(),
        id.pod.clone(),
        one.profile.profile_type,
        id.cohort.clone(),
        requests.window,
    );
    let values = known.entry(key).or_default();
    let largest =
        values.iter().filter(|(hop, _)| hop.plus(window) > one.at).map(|(_, value)| *value).max().unwrap_or(0);
    values.push((one.at, requests.count));
    let more = requests.count.checked_sub(largest).filter(|more| *more > 0)?;
    Some(Served { profile: Arc::clone(&one.profile), applied: one.at, own, count: more, over: Over::default() })
}

/// Samples of one cohort: their number, and self and total by function.
pub(super) type FoldedCohort = (u64, BTreeMap<Arc<str>, [u64; 2]>);

/// Samples of each cohort of a profile.
pub(super) fn folded(profile: &Profile) -> BTreeMap<Cohort, FoldedCohort> {
    let mut cohorts: BTreeMap<Cohort, FoldedCohort> = BTreeMap::new();
    match &profile.samples {
        Samples::Stacks(stacks) => {
            // By the place of a name in the profile first: looking for names takes far longer.
            let mut places: BTreeMap<&Cohort, (u64, Vec<[u64; 2]>)> = BTreeMap::new();
            for stack in stacks.iter().filter(|stack| stack.count > 0) {
                let cohort = stack.cohort.as_ref().unwrap_or(&profile.identity.cohort);
                let (all, functions) = places.entry(cohort).or_insert_with(|| (0, vec![[0; 2]; profile.names.len()]));
                *all += stack.count;
                for function in on_stack(profile, &stack.frames) {
                    functions[function][1] += stack.count;
                }
                if let Some(leaf) = leaf(profile, &stack.frames) {
                    functions[leaf][0] += stack.count;
                }
            }
            for (cohort, (all, functions)) in places {
                let named = profile.names.iter().cloned().zip(functions).filter(|(_, [_, total])| *total > 0);
                cohorts.insert(cohort.clone(), (all, named.collect()));
            }
        }
        Samples::Folded { cohorts: parts, .. } => {
            for part in parts {
                let (all, functions) = cohorts.entry(part.cohort.clone()).or_default();
                *all += part.samples;
                for entry in &part.functions {
                    if let Some(place) = place(profile, entry.name) {
                        let counts = functions.entry(Arc::clone(&profile.names[place])).or_default();
                        counts[0] += entry.own;
                        counts[1] += entry.total;
                    }
                }
            }
        }
    }
    cohorts
}

/// What is known of the names on a stack, root first, by what is known of each of the profile's names.
pub(super) fn at_frames<'a, T>(of_names: &'a [T], frames: &'a [u32]) -> impl Iterator<Item = &'a T> {
    frames.iter().filter_map(|&frame| of_names.get(usize::try_from(frame).ok()?))
}

/// The functions on a stack, each once, by their places among the profile's names.
pub(super) fn on_stack(profile: &Profile, frames: &[u32]) -> BTreeSet<usize> {
    frames.iter().filter_map(|&frame| place(profile, frame)).collect()
}

/// The function that ran, by its place among the profile's names.
pub(super) fn leaf(profile: &Profile, frames: &[u32]) -> Option<usize> {
    frames.last().and_then(|&frame| place(profile, frame))
}

fn place(profile: &Profile, frame: u32) -> Option<usize> {
    usize::try_from(frame).ok().filter(|&place| place < profile.names.len())
}

fn samples(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn index(part: usize) -> i64 {
    i64::try_from(part).unwrap_or(i64::MAX)
}
