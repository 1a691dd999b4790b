//! Records that are all refused reach the tables although nothing good comes, and with the decisions of that run the same rows
//! are written whenever the records are read again. A worker that panics ends the run for all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
use fleetdiff_pipeline::run::in_memory::{Collected, sources};
use fleetdiff_pipeline::run::{Ended, RunError, Service, SourceFactory, run, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Position, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::Fleet;

use crate::log::Log;

/// Silence that counts as idle; short, because the test waits for it.
const IDLE_AFTER: Duration = Duration::from_millis(50);

/// Refused records, over so many seconds.
const REFUSED: i64 = 60;

/// Those of them that come after the partition was declared idle.
const WHILE_IDLE: usize = 5;

/// A partition that gives its refused records, waits until they are all in the tables, and then gives good ones.
struct RefusedFirst {
    records: VecDeque<Decoded>,
    good: usize,
    log: Log,
    collected: Collected,
}

impl RefusedFirst {
    fn waits(&self) -> bool {
        let left = self.records.len().saturating_sub(self.good);
        let is_idle = || self.log.made().iter().any(|made| matches!(made, Decision::Idle { .. }));
        let booked = || self.collected.tables().rejected.len() == usize::try_from(REFUSED).unwrap();
        (left == WHILE_IDLE && !is_idle()) || (self.records.len() == self.good && !booked())
    }
}

impl Source for RefusedFirst {
    fn name(&self) -> &str {
        "memory"
    }

    fn partitions(&self) -> Vec<i32> {
        vec![0]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.waits() {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(Polled::Idle);
        }
        Ok(self.records.pop_front().map_or(Polled::End, |record| Polled::Record(Box::new(record))))
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// A refused record for each of the fleet's first seconds, then the fleet.
fn records() -> (Vec<Decoded>, usize) {
    let fleet = Fleet::seeded(4).regions(["eu-west-1"]).pods_per_cell(2, 3).lasts(Nanos::from_seconds(240)).build();
    let TimeRange { start, .. } = fleet.time();
    let good: Vec<Decoded> = fleet.partitions(1).into_iter().next().unwrap();
    let source = good.first().unwrap().position.source.clone();
    let refused = (0..REFUSED).map(|second| Decoded {
        position: Position { source: source.clone(), partition: 0, offset: second, file: None },
        stamped: Stamped::BySender(Some(start.plus(Nanos::from_seconds(second)))),
        parts: vec![Err(Rejection::new(Reason::Malformed, "no profile"))],
        points: Vec::new(),
    });
    let moved = good.iter().cloned().map(|record| Decoded {
        position: Position { offset: record.position.offset + REFUSED, ..record.position },
        ..record
    });
    (refused.chain(moved).collect(), good.len())
}

fn config() -> Config {
    Config { window: Nanos::from_seconds(180), report_every: Nanos::from_seconds(120), ..Config::default() }
}

fn live(records: &[Decoded], good: usize) -> (Tables, Vec<Decision>) {
    let (log, collected) = (Log::default(), Collected::default());
    let given = (records.to_vec(), log.clone(), collected.clone());
    let sources = move |worker: usize, _: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let (records, log, collected) = given.clone();
        let source = RefusedFirst { records: records.into(), good, log, collected };
        Ok(if worker == 0 { vec![Box::new(source)] } else { Vec::new() })
    };
    let decisions = Decisions::new(Box::new(log.clone()), Vec::new());
    let service = Service { idle_after: Some(IDLE_AFTER), decisions, ..Service::default() };
    let ended = run_service(&config(), 2, Arc::new(sources), Box::new(collected.clone()), service).unwrap();
    assert_eq!(ended, Ended::Complete);
    let made = log.made();
    (collected.tables(), made)
}

fn again(records: &[Decoded], known: &[Decision], workers: usize) -> Tables {
    let collected = Collected::default();
    let service = Service { decisions: Decisions::new(Box::new(Forgetful), known.to_vec()), ..Service::default() };
    run_service(&config(), workers, sources(vec![records.to_vec()]), Box::new(collected.clone()), service).unwrap();
    collected.tables()
}

/// The source gives nothing good until every refused record is in the tables, so this ends only if they get there.
#[test]
fn order_refused_records_reach_the_tables_before_anything_good_and_are_there_again() {
    let (records, good) = records();
    let (tables, decisions) = live(&records, good);
    let of_end = |made: &Decision| matches!(made, Decision::Refused { partition: 0, offset: REFUSED, .. });
    assert!(decisions.iter().any(of_end), "{decisions:?}");
    let returns = decisions.iter().filter(|made| matches!(made, Decision::Back { offset, .. } if *offset < REFUSED));
    assert_eq!(returns.count(), 0, "a refused record is no return: {decisions:?}");
    assert_eq!(tables.rejected.len(), usize::try_from(REFUSED).unwrap());
    assert!(tables.rejected.iter().all(|row| row.hop_at.is_some()));
    assert!(tables.ledger.iter().any(|row| row.samples_counted > 0), "what is good then counts");
    for workers in [1, 2] {
        let same = again(&records, &decisions, workers);
        assert!(same == tables, "{workers} workers: other rows with the same decisions {decisions:?}");
    }
    assert_ne!(again(&records, &[], 2).ledger, tables.ledger, "without the decisions less is late");
}

/// The others have nothing to read, and wait for what this one says.
#[test]
fn regression_a_worker_that_panics_ends_the_run() {
    let sources: Arc<SourceFactory> = Arc::new(|worker: usize, _| {
        assert_ne!(worker, 1, "no sources for");
        Ok(Vec::new())
    });
    let ended = run(&Config::default(), 3, sources, Box::new(Collected::default()));
    assert!(matches!(ended, Err(RunError::Panic)), "{ended:?}");
}
