//! A partition that falls silent and comes back: event time goes on without it, and with the decisions of that run the
//! same rows are written whenever the records are read again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
use fleetdiff_pipeline::run::in_memory::{Collected, InMemory, sources};
use fleetdiff_pipeline::run::{Ended, Service, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Profile, Stamped};
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Fleet;

use crate::log::Log;

/// Silence that counts as idle; short, because the test waits for it.
const IDLE_AFTER: Duration = Duration::from_millis(50);

fn has_idle(log: &Log, partition: i32) -> bool {
    log.made().iter().any(|made| matches!(made, Decision::Idle { partition: of, .. } if *of == partition))
}

/// A partition that gives some records, is silent until it was declared idle and others have gone on without it, and
/// then gives the rest.
struct Faltering {
    partition: i32,
    records: VecDeque<Decoded>,
    silent_at: usize,
    log: Log,
    collected: Collected,
    goes_on_at: Nanos,
}

impl Faltering {
    fn is_silent(&self) -> bool {
        self.records.len() == self.silent_at
            && !(has_idle(&self.log, self.partition) && self.closed() >= self.goes_on_at)
    }

    /// The last hop that has rows.
    fn closed(&self) -> Nanos {
        self.collected.tables().ledger.last().map_or(Nanos(0), |row| row.hop_at)
    }
}

impl Source for Faltering {
    fn name(&self) -> &str {
        "memory"
    }

    fn partitions(&self) -> Vec<i32> {
        vec![self.partition]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.is_silent() {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(Polled::Idle);
        }
        Ok(self.records.pop_front().map_or(Polled::End, |record| Polled::Record(Box::new(record))))
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// Two partitions of a fleet of ten minutes.
fn partitions() -> (Fleet, Vec<Vec<Decoded>>) {
    let fleet =
        Fleet::seeded(4).regions(["eu-west-1"]).pods_per_cell(2, 3).lasts(Nanos::from_seconds(600)).restarts(3).build();
    let partitions = fleet.partitions(2);
    (fleet, partitions)
}

fn config() -> Config {
    Config { window: Nanos::from_seconds(180), report_every: Nanos::from_seconds(120), ..Config::default() }
}

/// Partition 1 gives a third of its records, falls silent, and gives the rest once hops of three quarters are closed.
fn live(fleet: &Fleet, partitions: &[Vec<Decoded>]) -> (Tables, Vec<Decision>) {
    let (log, collected) = (Log::default(), Collected::default());
    let whole = fleet.time();
    let goes_on_at = whole.start.plus(Nanos(whole.end.since(whole.start).0 / 4 * 3));
    let given = (partitions.to_vec(), log.clone(), collected.clone());
    let sources = move |worker: usize, _: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let (partitions, log, collected) = &given;
        if worker == 0 {
            return Ok(vec![Box::new(InMemory::new([(0, partitions[0].clone())]))]);
        }
        let records: VecDeque<Decoded> = partitions[1].iter().cloned().collect();
        let silent_at = records.len() / 3 * 2;
        let (log, collected) = (log.clone(), collected.clone());
        Ok(vec![Box::new(Faltering { partition: 1, records, silent_at, log, collected, goes_on_at })])
    };
    let decisions = Decisions::new(Box::new(log.clone()), Vec::new());
    let service = Service { idle_after: Some(IDLE_AFTER), decisions, ..Service::default() };
    let ended = run_service(&config(), 2, Arc::new(sources), Box::new(collected.clone()), service).unwrap();
    assert_eq!(ended, Ended::Complete);
    (collected.tables(), log.made())
}

/// The same records as fast as they can be read, by `workers` workers, with the decisions of the first run.
fn again(partitions: &[Vec<Decoded>], known: &[Decision], workers: usize) -> Tables {
    let collected = Collected::default();
    let service = Service { decisions: Decisions::new(Box::new(Forgetful), known.to_vec()), ..Service::default() };
    run_service(&config(), workers, sources(partitions.to_vec()), Box::new(collected.clone()), service).unwrap();
    collected.tables()
}

#[test]
fn order_decisions_made_live_make_the_same_rows_again() {
    let (fleet, partitions) = partitions();
    let (tables, decisions) = live(&fleet, &partitions);
    let back: Vec<_> = decisions.iter().filter(|made| matches!(made, Decision::Back { partition: 1, .. })).collect();
    assert_eq!(back.len(), 1, "{decisions:?}");
    assert!(matches!(decisions.first(), Some(Decision::Idle { partition: 1, .. })), "{decisions:?}");
    let late = tables.ledger.iter().map(|row| row.samples_late_counted + row.samples_late_dropped).sum::<i64>();
    assert!(late > 0 && tables.ledger.iter().all(fleetdiff_schemas::rows::LedgerRow::balances));
    for workers in [1, 2, 4] {
        let same = again(&partitions, &decisions, workers);
        assert!(same == tables, "{workers} workers: other rows with the same decisions {decisions:?}");
    }
    assert_ne!(again(&partitions, &[], 2).ledger, tables.ledger, "without the decisions nothing is late");
}

/// The second partition has one pod, whose sender stamps its records: what it gives before it falls silent waits until it is
/// clear that it is alone.
fn of_one_sender(mut partitions: Vec<Vec<Decoded>>) -> Vec<Vec<Decoded>> {
    let mut parts = partitions[1].iter().flat_map(|record| &record.parts).flatten();
    let pod = parts.next().unwrap().identity.pod.clone();
    for record in &mut partitions[1] {
        record.parts.retain(|part| part.as_ref().is_ok_and(|profile| profile.identity.pod == pod));
        record.stamped = Stamped::BySender(record.stamped.time());
    }
    partitions[1].retain(|record| !record.parts.is_empty());
    partitions
}

#[test]
fn order_decisions_hold_for_what_waits_for_the_clocks_of_others() {
    let (fleet, partitions) = partitions();
    let partitions = of_one_sender(partitions);
    assert!((45..90).contains(&partitions[1].len()), "a third of {} is too little to tell", partitions[1].len());
    let (tables, decisions) = live(&fleet, &partitions);
    assert!(matches!(decisions.first(), Some(Decision::Idle { partition: 1, .. })), "{decisions:?}");
    let back = decisions.iter().filter(|made| matches!(made, Decision::Back { partition: 1, .. })).count();
    assert!(back > 0, "{decisions:?}");
    let sum = |column: fn(&LedgerRow) -> i64| tables.ledger.iter().map(column).sum::<i64>();
    let sent = partitions.iter().flatten().flat_map(|record| &record.parts).flatten().map(Profile::total).sum::<u64>();
    assert_eq!(u64::try_from(sum(|row| row.samples_received)).unwrap(), sent);
    assert!(sum(|row| row.samples_late_counted + row.samples_late_dropped) > 0);
    assert!(tables.rejected.is_empty() && tables.ledger.iter().all(LedgerRow::balances));
    for workers in [1, 2, 4] {
        let same = again(&partitions, &decisions, workers);
        assert!(same == tables, "{workers} workers: other rows with the same decisions {decisions:?}");
    }
    let waited_for = again(&partitions, &[], 2);
    let late = waited_for.ledger.iter().map(|row| row.samples_late_counted + row.samples_late_dropped).sum::<i64>();
    assert_eq!(late, 0, "where nobody goes on without it, what has waited is in time");
}

/// The twin: a partition whose transport reports in time that there is nothing more is waited for.
#[test]
fn order_without_a_limit_a_silent_partition_is_waited_for() {
    let (_, partitions) = partitions();
    let collected = Collected::default();
    let stop = Arc::new(AtomicBool::new(false));
    let given = (partitions, collected.clone(), Arc::clone(&stop));
    let sources = move |_: usize, _: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let (partitions, collected, stop) = given.clone();
        let records: VecDeque<Decoded> = partitions[1].iter().cloned().collect();
        let silent_at = records.len();
        let never =
            Faltering { partition: 1, records, silent_at, log: Log::default(), collected, goes_on_at: Nanos(i64::MAX) };
        Ok(vec![
            Box::new(InMemory::new([(0, partitions[0].clone())])),
            Box::new(StopsAfter { inner: never, begun: Instant::now(), stop }),
        ])
    };
    let service = Service { stop, ..Service::default() };
    let ended = run_service(&config(), 1, Arc::new(sources), Box::new(collected.clone()), service).unwrap();
    assert_eq!(ended, Ended::Stopped);
    assert_eq!(collected.tables(), Tables::default(), "no hop may close before the silent partition has spoken");
}

/// Stops the run after a while.
struct StopsAfter {
    inner: Faltering,
    begun: Instant,
    stop: Arc<AtomicBool>,
}

impl Source for StopsAfter {
    fn name(&self) -> &str {
        "other"
    }

    fn partitions(&self) -> Vec<i32> {
        self.inner.partitions()
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.begun.elapsed() > IDLE_AFTER * 4 {
            self.stop.store(true, std::sync::atomic::Ordering::Release);
        }
        self.inner.poll()
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}
