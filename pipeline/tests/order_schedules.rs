//! A service under a clock that the test moves, over schedules drawn at random: partitions that fall silent, come back, are added or
//! give only what is refused, records that come late or twice or are deleted before they are read, processes that are killed and started
//! again, with other workers, from a checkpoint or from the beginning. The rows that all these processes have written are those of one run
//! that reads once, with the same decisions, what was not lost.
//!
//! What runs is the service's own code; only records, disk and clock are the test's. `FLEETDIFF_SCHEDULES=5000 cargo test --release
//! --workspace --test order_schedules -- --nocapture` is the long form; `FLEETDIFF_SCHEDULE=17` runs the one that failed.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

#[path = "support/log.rs"]
mod log;
#[path = "support/timed.rs"]
mod timed;
#[path = "support/written.rs"]
mod written;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetdiff_pipeline::checkpoint::{Checkpoint, Checkpoints, Keep};
use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
use fleetdiff_pipeline::run::wall::{Moved, WallClock};
use fleetdiff_pipeline::run::{Service, SourceFactory, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Position, Samples, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::LedgerRow;
use fleetdiff_schemas::sink::Sink;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_simulation::fleet::{Cells, Fleet};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use self::log::Log;
use self::timed::{Last, Life, Partition, Retention, Topic};
use self::written::{ByHop, Output};

/// How many schedules are drawn, unless `FLEETDIFF_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 1_000;
const PARTITIONS: u32 = 3;
/// The function that costs more in the head.
const CHANGED: &str = "serialize_video_chunk";
/// One function in so many is kept besides, so that a schedule takes a moment only.
const THINNED: u32 = 16;

/// How the records of a topic are stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamps {
    Broker,
    Sender,
}

/// What happens, drawn from a seed.
struct Schedule {
    seed: u64,
    config: Config,
    topic: Topic,
    start: Nanos,
    idle_after: Duration,
    flush: u64,
}

/// One record in how many does something.
fn one_in(draws: &mut Xoshiro256PlusPlus, many: u32) -> bool {
    draws.random_range(0..many) == 0
}

fn seconds(draws: &mut Xoshiro256PlusPlus, range: Range<i64>) -> Nanos {
    Nanos::from_seconds(draws.random_range(range))
}

impl Schedule {
    fn drawn(seed: u64, draws: &mut Xoshiro256PlusPlus) -> Self {
        let config = Config {
            window: Nanos::from_seconds([60, 120, 180][draws.random_range(0..3)]),
            lateness: Nanos::from_seconds([20, 30, 60][draws.random_range(0..3)]),
            warm_up: Nanos(0),
            evaluate_every: Nanos::from_seconds([20, 60][draws.random_range(0..2)]),
            report_every: Nanos::from_seconds(120),
            history_every: Nanos::from_seconds(20),
            ..Config::default()
        };
        let fleet = Fleet::seeded(draws.random_range(0..1_000))
            .regions(["east"])
            .cohorts(["tv"])
            .pods_per_cell(3, 4)
            .samples_per_second(20.0)
            .late(0.05, Nanos::from_seconds(90))
            .duplicates(0.05)
            .restarts(1)
            .folded()
            .lasts(Nanos::from_seconds(draws.random_range(200..360)))
            .deploy_after(Nanos::from_seconds(60))
            .regress(CHANGED, Cells::all(), 8.0)
            .build();
        let time = fleet.time();
        let stamps = if one_in(draws, 2) { Stamps::Broker } else { Stamps::Sender };
        let partitions = fleet.partitions(PARTITIONS).into_iter().zip(0..);
        let partitions =
            partitions.map(|(records, number)| arriving(records, number, (time.start, time.end), stamps, draws));
        Self {
            seed,
            config,
            topic: Topic(partitions.collect()),
            start: time.start,
            idle_after: Duration::from_secs(draws.random_range(20..90)),
            flush: [1, 3, 6][draws.random_range(0..3)],
        }
    }

    fn service(&self, decisions: Decisions, checkpoints: Checkpoints, life: &Life) -> Service {
        let idle_after = Some(self.idle_after);
        let wall = WallClock::Moved(life.clock.clone());
        Service { stop: Arc::clone(&life.stop), idle_after, decisions, checkpoints, wall, ..Service::default() }
    }

    /// Reads the whole topic into an output, but for what was lost.
    fn to_the_end(&self, made: &[Decision], decisions: Decisions, output: &Output, workers: usize) {
        let life = Life::of_reader(Moved::at(self.topic.end().plus(Nanos::from_seconds(3_600))));
        let service = Service { idle_after: None, ..self.service(decisions, Checkpoints::default(), &life) };
        let lost = made.iter().filter_map(|decision| match decision {
            Decision::Lost { partition, offset, next_offset, .. } => Some((*partition, *offset..*next_offset)),
            _ => None,
        });
        let sources = self.topic.without(&lost.collect::<Vec<_>>()).to_its_end(&life);
        self.run(workers, sources, output.sink(1), service);
    }

    fn run(&self, workers: usize, sources: Arc<SourceFactory>, sink: impl Sink + 'static, service: Service) {
        let ended = run_service(&self.config, workers, sources, Box::new(sink), service);
        assert!(ended.is_ok(), "schedule {}: {ended:?}", self.seed);
    }

    /// The rows of one run with these decisions.
    fn at_once(&self, decisions: &[Decision], workers: usize) -> ByHop {
        let output = Output::default();
        self.to_the_end(decisions, Decisions::new(Box::new(Forgetful), decisions.to_vec()), &output, workers);
        output.written()
    }
}

/// The records of a partition with the times at which they arrive: with its sender's delay, unless the partition is cut off.
fn arriving(
    records: Vec<Decoded>,
    number: i32,
    (start, end): (Nanos, Nanos),
    stamps: Stamps,
    draws: &mut Xoshiro256PlusPlus,
) -> Partition {
    let lasts = end.since(start).0;
    let within = |draws: &mut Xoshiro256PlusPlus| start.plus(Nanos(draws.random_range(0..lasts)));
    let added_at = if number > 0 && one_in(draws, 4) { within(draws) } else { start };
    let cut_off = if one_in(draws, 2) {
        let from = within(draws);
        from..from.plus(seconds(draws, 30..240))
    } else {
        start..start
    };
    // NB: never after all that is good. A read to the end then evaluates once more at its last hop, which a service that has passed that hop
    // has not done.
    let refused = if added_at == start && one_in(draws, 3) { draws.random_range(1..40) } else { 0 };
    let refused_from = start.plus(Nanos(draws.random_range(0..lasts / 2)));
    let mut arrivals: Vec<(Nanos, Decoded)> = Vec::new();
    for record in records.into_iter().map(thinned) {
        let sent = record.parts.iter().flatten().map(|profile| profile.window.end).max().unwrap_or(start);
        arrivals.push((sent.plus(Nanos(draws.random_range(0..3_000_000_000))), record));
    }
    // A record that is late keeps its place after those that came before it.
    let mut latest = added_at;
    for (at, _) in &mut arrivals {
        let free = if cut_off.contains(at) { cut_off.end } else { *at };
        latest = latest.max(free);
        *at = latest;
    }
    for second in 0..refused {
        let at = refused_from.plus(Nanos::from_seconds(second));
        let place = arrivals.partition_point(|(other, _)| *other <= at);
        let parts = vec![Err(Rejection::new(Reason::Malformed, "no profile"))];
        let position = Position { source: "topic".into(), partition: number, offset: 0, file: None };
        arrivals.insert(place, (at, Decoded { position, stamped: Stamped::No, parts, points: Vec::new() }));
    }
    for (offset, (at, record)) in (0..).zip(&mut arrivals) {
        record.position = Position { source: "topic".into(), partition: number, offset, file: None };
        record.stamped = match stamps {
            Stamps::Broker => Stamped::ByBroker(*at),
            Stamps::Sender => Stamped::BySender(Some(*at)),
        };
    }
    Partition { added_at, records: arrivals }
}

/// The same record with few of its functions.
fn thinned(mut record: Decoded) -> Decoded {
    for profile in record.parts.iter_mut().flatten() {
        let names = Arc::clone(&profile.names);
        let is_kept = |name: u32| name.is_multiple_of(THINNED) || &*names[usize::try_from(name).unwrap()] == CHANGED;
        let Samples::Folded { cohorts, .. } = &mut profile.samples else { panic!("the fleet is folded") };
        for cohort in cohorts {
            cohort.functions.retain(|function| is_kept(function.name));
            cohort.samples = cohort.functions.iter().map(|function| function.own).sum();
        }
    }
    record
}

impl Keep for Last {
    fn keep(&mut self, checkpoint: Checkpoint) {
        *self.0.lock().unwrap() = Some(checkpoint);
    }
}

/// How often things happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Process,
    FromCheckpoint,
    Idle,
    Back,
    Added,
    Refused,
    Lost,
    /// A hop that was written before the last process read to the end.
    LiveHop,
    Hop,
    Flag,
    /// A hop with incidents, which were announced at its close.
    Announced,
    LateHop,
    /// A schedule whose rows are others without the decisions.
    Decided,
}

impl Thing {
    const ALL: [Self; 13] = [
        Self::Process,
        Self::FromCheckpoint,
        Self::Idle,
        Self::Back,
        Self::Added,
        Self::Refused,
        Self::Lost,
        Self::LiveHop,
        Self::Hop,
        Self::Flag,
        Self::Announced,
        Self::LateHop,
        Self::Decided,
    ];
}

#[derive(Debug, Default)]
struct Occurred(BTreeMap<Thing, usize>);

impl Occurred {
    fn times(&mut self, thing: Thing, times: usize) {
        *self.0.entry(thing).or_default() += times;
    }

    fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(thing, times)| self.times(*thing, *times));
    }

    fn count(&mut self, decisions: &[Decision], written: &ByHop) {
        for decision in decisions {
            match decision {
                Decision::Idle { .. } => self.times(Thing::Idle, 1),
                Decision::Back { .. } => self.times(Thing::Back, 1),
                Decision::Begun { from_hop, .. } if *from_hop > Hop(0) => self.times(Thing::Added, 1),
                Decision::Refused { .. } => self.times(Thing::Refused, 1),
                Decision::Lost { .. } => self.times(Thing::Lost, 1),
                _ => {}
            }
        }
        let ledger = || written.values().flat_map(|tables| &tables.ledger);
        self.times(Thing::Hop, written.len());
        self.times(Thing::Flag, written.values().map(|tables| tables.flags.len()).sum());
        let late = ledger().filter(|row| row.samples_late_counted + row.samples_late_dropped > 0);
        self.times(Thing::LateHop, late.count());
    }
}

/// Processes one after another, until everything has arrived, and one that reads to the end; the rows that they wrote, and the decisions
/// that they made.
fn lived(schedule: &Schedule, draws: &mut Xoshiro256PlusPlus, occurred: &mut Occurred) -> (ByHop, Vec<Decision>) {
    let (log, output, last) = (Log::default(), Output::default(), Last::default());
    let (retention, loses) = (Retention::default(), one_in(draws, 4));
    let clock = Moved::at(schedule.start);
    // Long enough for a partition to be found silent twice over.
    let quiet = schedule.topic.end().plus(Nanos::from_seconds(400));
    while clock.now() < quiet {
        // Sometimes its folder was removed, which is no good idea once records are gone.
        if one_in(draws, 6) && !retention.has_deleted() {
            *last.0.lock().unwrap() = None;
        }
        let begun_with = last.0.lock().unwrap().clone();
        occurred.times(Thing::Process, 1);
        occurred.times(Thing::FromCheckpoint, usize::from(begun_with.is_some()));
        let life = Life::new(clock.clone(), draws.random_range(0..u64::MAX / 64), &last, &retention, loses);
        let dies_at = if one_in(draws, 3) { quiet } else { clock.now().plus(seconds(draws, 5..200)) };
        let begun_from = begun_with.as_ref().map_or(Hop(0), |checkpoint| checkpoint.hop);
        let checkpoints = Checkpoints::default().taken(draws.random_range(1..6), Box::new(last.clone()));
        let checkpoints = begun_with.into_iter().fold(checkpoints, Checkpoints::begun_with);
        let decisions = Decisions::new(Box::new(log.clone()), log.made());
        let decisions = decisions.with_decided_before(output.decided_before().max(begun_from));
        let service = schedule.service(decisions, checkpoints, &life);
        let sources = schedule.topic.until(dies_at.min(quiet)..quiet, &life);
        let workers = if one_in(draws, 4) { 2 } else { 1 };
        schedule.run(workers, sources, output.sink(schedule.flush), service);
        if std::env::var_os("FLEETDIFF_SCHEDULE").is_some() {
            println!(
                "from {begun_from:?} until {:?}, {workers} workers, written before {:?}",
                clock.now(),
                output.before()
            );
            println!("  {:?}", log.made());
        }
        clock.forward(Duration::from_secs(draws.random_range(0..90)));
    }
    occurred.times(Thing::LiveHop, output.written().len());
    let decisions = Decisions::new(Box::new(log.clone()), log.made()).with_decided_before(output.decided_before());
    schedule.to_the_end(&log.made(), decisions, &output, 1);
    occurred.times(Thing::Announced, output.announced());
    (output.written(), log.made())
}

fn tried(seed: u64, occurred: &mut Occurred) {
    let draws = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let schedule = Schedule::drawn(seed, draws);
    let (written, decisions) = lived(&schedule, draws, occurred);
    let expected = schedule.at_once(&decisions, 1 + usize::try_from(seed % 2).unwrap());
    for (hop, tables) in &expected {
        let got =
            written.get(hop).unwrap_or_else(|| panic!("schedule {seed}: {hop:?} was never written: {decisions:?}"));
        assert_eq!(got.ledger, tables.ledger, "schedule {seed}: {hop:?} with the decisions {decisions:?}");
        assert!(got == tables, "schedule {seed}: {hop:?} has other rows with the decisions {decisions:?}");
    }
    assert_eq!(written.len(), expected.len(), "schedule {seed}: hops with the decisions {decisions:?}");
    let mut ledger = written.values().flat_map(|tables| &tables.ledger);
    assert!(ledger.all(LedgerRow::balances), "schedule {seed}");
    if seed.is_multiple_of(8) {
        let undecided = schedule.at_once(&[], 1);
        let differs = written.iter().any(|(hop, tables)| undecided.get(hop) != Some(tables));
        occurred.times(Thing::Decided, usize::from(differs));
    }
    occurred.count(&decisions, &written);
}

#[test]
fn order_processes_of_any_schedule_write_the_rows_of_one() {
    if let Ok(one) = std::env::var("FLEETDIFF_SCHEDULE") {
        return tried(one.parse().unwrap(), &mut Occurred::default());
    }
    let schedules = std::env::var("FLEETDIFF_SCHEDULES").map_or(SCHEDULES, |number| number.parse().unwrap());
    let occurred = Mutex::new(Occurred::default());
    let next = AtomicU64::new(1);
    let tries = || {
        let mut own = Occurred::default();
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed <= schedules
        {
            tried(seed, &mut own);
        }
        occurred.lock().unwrap().add(&own);
    };
    std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(tries));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let occurred = occurred.into_inner().unwrap();
    println!("{schedules} schedules: {occurred:?}");
    let never = Thing::ALL.into_iter().filter(|thing| !occurred.0.contains_key(thing) || occurred.0[thing] == 0);
    assert_eq!(never.collect::<Vec<_>>(), [], "never happened");
}
