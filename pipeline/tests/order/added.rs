//! A partition that is added while others are read, and one that was idle when an earlier run ended: with the decisions of that run
//! the same rows are made again, and what was written already stays as it is.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
use fleetdiff_pipeline::run::in_memory::{Collected, sources};
use fleetdiff_pipeline::run::pulse::{PartitionState, Pulse};
use fleetdiff_pipeline::run::{Ended, RunError, Service, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_simulation::fleet::Fleet;

use crate::log::Log;

/// A partition of a topic, which is there from the start or is added once hops up to some time are closed. It gives its records,
/// and then nothing, or its end.
struct OfTopic {
    partition: i32,
    records: VecDeque<Decoded>,
    held: Range<i64>,
    /// When it is added.
    joins_at: Option<Nanos>,
    /// What it was asked for since it has nothing more.
    ends: bool,
    collected: Collected,
}

impl OfTopic {
    fn new(partition: i32, records: &[Decoded], collected: &Collected) -> Self {
        let held = 0..i64::try_from(records.len()).unwrap();
        let (records, collected) = (records.iter().cloned().collect(), collected.clone());
        Self { partition, records, held, joins_at: None, ends: true, collected }
    }
}

impl Source for OfTopic {
    fn name(&self) -> &str {
        "memory"
    }

    fn partitions(&self) -> Vec<i32> {
        if self.joins_at.is_some() { Vec::new() } else { vec![self.partition] }
    }

    fn may_grow(&self) -> bool {
        true
    }

    fn held(&self, _: i32) -> Option<Range<i64>> {
        Some(self.held.clone())
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if let Some(at) = self.joins_at {
            if self.collected.tables().ledger.last().is_none_or(|row| row.hop_at < at) {
                std::thread::sleep(Duration::from_millis(2));
                return Ok(Polled::Idle);
            }
            self.joins_at = None;
            return Ok(Polled::PartitionAdded(self.partition));
        }
        match self.records.pop_front() {
            Some(record) => Ok(Polled::Record(Box::new(record))),
            None if self.ends => Ok(Polled::End),
            None => {
                std::thread::sleep(Duration::from_millis(2));
                Ok(Polled::Idle)
            }
        }
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

fn fleet() -> (Fleet, Vec<Vec<Decoded>>) {
    let fleet =
        Fleet::seeded(8).regions(["eu-west-1"]).pods_per_cell(2, 3).lasts(Nanos::from_seconds(600)).restarts(3).build();
    let partitions = fleet.partitions(2);
    (fleet, partitions)
}

fn config() -> Config {
    Config { window: Nanos::from_seconds(180), report_every: Nanos::from_seconds(120), ..Config::default() }
}

fn late(tables: &Tables) -> i64 {
    tables.ledger.iter().map(|row| row.samples_late_counted + row.samples_late_dropped).sum()
}

fn received(tables: &Tables) -> i64 {
    tables.ledger.iter().map(|row| row.samples_received).sum()
}

/// One worker a partition; `of` makes the source of each.
fn run(
    of: impl Fn(i32, &Collected) -> OfTopic + Send + Sync + 'static,
    service: Service,
) -> Result<(Tables, Ended), RunError> {
    let collected = Collected::default();
    let given = collected.clone();
    let sources = move |worker: usize, _: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(of(i32::try_from(worker).unwrap(), &given))])
    };
    let ended = run_service(&config(), 2, Arc::new(sources), Box::new(collected.clone()), service)?;
    Ok((collected.tables(), ended))
}

fn deciding(log: &Log, known: Vec<Decision>) -> Service {
    Service { decisions: Decisions::new(Box::new(log.clone()), known), ..Service::default() }
}

/// Partition 1 is added when half of the time is closed; it holds up nobody, and its records are late.
#[test]
fn order_an_added_partition_gives_the_same_rows_again() {
    let (fleet, partitions) = fleet();
    let time = fleet.time();
    let half = time.start.plus(Nanos(time.end.since(time.start).0 / 2));
    let (log, given) = (Log::default(), partitions.clone());
    let of = move |partition: i32, collected: &Collected| {
        let own = OfTopic::new(partition, &given[usize::try_from(partition).unwrap()], collected);
        // What is late is within the window or not; partition 0 goes on only as far as it must.
        OfTopic { joins_at: (partition == 1).then_some(half), ..own }
    };
    let (tables, ended) = run(of, deciding(&log, Vec::new())).unwrap();
    assert_eq!(ended, Ended::Complete);
    let made = log.made();
    let joined = |made: &&Decision| matches!(made, Decision::Begun { partition: 1, offset: 0, from_hop, .. } if *from_hop > Hop(0));
    assert_eq!(made.iter().filter(joined).count(), 1, "{made:?}");
    assert!(late(&tables) > 0 && tables.ledger.iter().all(LedgerRow::balances));

    for workers in [1, 2, 4] {
        let collected = Collected::default();
        let service = Service { decisions: Decisions::new(Box::new(Forgetful), made.clone()), ..Service::default() };
        run_service(&config(), workers, sources(partitions.clone()), Box::new(collected.clone()), service).unwrap();
        assert!(collected.tables() == tables, "{workers} workers: other rows with the same decisions {made:?}");
    }
    let collected = Collected::default();
    run_service(&config(), 2, sources(partitions), Box::new(collected.clone()), Service::default()).unwrap();
    assert_eq!(received(&collected.tables()), received(&tables), "nothing is lost or doubled");
    assert_eq!(late(&collected.tables()), 0, "without the decisions nothing is late");
}

/// Partition 1 was added while nothing ran: hops that are written stay as they are.
#[test]
fn order_a_partition_that_was_added_meanwhile_changes_nothing_that_is_written() {
    let (fleet, partitions) = fleet();
    let time = fleet.time();
    let written = config().clock().hop_of(time.start.plus(Nanos(time.end.since(time.start).0 / 2)));
    let alone = run_alone(&partitions);
    let begun = |partition| Decision::Begun { source: "memory".to_owned(), partition, offset: 0, from_hop: Hop(0) };
    for (known, is_new) in [(vec![begun(0)], true), (vec![begun(0), begun(1)], false)] {
        let (log, given) = (Log::default(), partitions.clone());
        let of = move |partition: i32, collected: &Collected| {
            OfTopic::new(partition, &given[usize::try_from(partition).unwrap()], collected)
        };
        let service = deciding(&log, known);
        let decisions = service.decisions.clone().with_decided_before(written);
        let (tables, _) = run(of, Service { decisions, ..service }).unwrap();
        let start = config().clock().start_of(written);
        let before = |tables: &Tables| -> Vec<LedgerRow> {
            tables.ledger.iter().filter(|row| row.hop_at < start).cloned().collect()
        };
        assert!(before(&alone).len() > 10);
        assert_eq!(before(&tables) == before(&alone), is_new, "{:?}", log.made());
        assert_eq!(late(&tables) > 0, is_new);
    }
}

fn run_alone(partitions: &[Vec<Decoded>]) -> Tables {
    let collected = Collected::default();
    let only = vec![partitions[0].clone()];
    run_service(&config(), 1, sources(only), Box::new(collected.clone()), Service::default()).unwrap();
    collected.tables()
}

/// Partition 1 gave a third of its records and was idle at the end of the log. It is not waited for again, however long silent
/// partitions are waited for; and what comes of it then is applied after what is written.
#[test]
fn order_a_partition_that_was_idle_at_the_end_is_not_waited_for_again() {
    let (fleet, partitions) = fleet();
    let third = partitions[1].len() / 3;
    let offset = Some(partitions[1][third].position.offset);
    let idle = Decision::Idle { source: "memory".to_owned(), partition: 1, from_hop: Hop(0), offset };
    for (is_known, given) in [(true, third), (false, third), (true, partitions[1].len())] {
        let (log, records) = (Log::default(), [partitions[0].clone(), partitions[1][..given].to_vec()]);
        let stop = Arc::new(AtomicBool::new(false));
        let of = move |partition: i32, collected: &Collected| {
            let own = OfTopic::new(partition, &records[usize::try_from(partition).unwrap()], collected);
            OfTopic { ends: false, ..own }
        };
        let service = deciding(&log, if is_known { vec![idle.clone()] } else { Vec::new() });
        let written = config().clock().hop_of(fleet.time().end);
        let service = Service {
            decisions: service.decisions.with_decided_before(written),
            idle_after: Some(Duration::from_secs(3600)),
            stop: Arc::clone(&stop),
            ..service
        };
        let (pulse, within) = (service.pulse.clone(), Duration::from_secs(if is_known { 60 } else { 1 }));
        let watching = std::thread::spawn(move || {
            let begun = Instant::now();
            let holds = |pulse: &Pulse| {
                pulse.read().partitions.iter().any(|((_, number), found)| *number == 1 && is_past(found.state, written))
            };
            while begun.elapsed() < within && !holds(&pulse) {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Release);
            holds(&pulse)
        });
        run(of, service).unwrap();
        let (holds, made) = (watching.join().unwrap(), log.made());
        assert_eq!(holds, is_known, "known: {is_known}, {given} records: {made:?}");
        let back = made.iter().find_map(|made| match made {
            Decision::Back { partition: 1, offset, applied_from, .. } => Some((Some(*offset), *applied_from)),
            _ => None,
        });
        assert_eq!(back, (is_known && given > third).then_some((offset, written)), "{made:?}");
        assert!(!made.iter().any(|made| matches!(made, Decision::Idle { .. })), "it is in the log already: {made:?}");
    }
}

/// Idle, or applied after what is written.
fn is_past(state: PartitionState, written: Hop) -> bool {
    match state {
        PartitionState::Idle => true,
        PartitionState::Watermark(hop) => hop >= written,
        PartitionState::Silent | PartitionState::Ended => false,
    }
}

/// The records of which rows were made are gone, or are others: the run says so instead of making other rows.
#[test]
fn records_that_are_gone_or_others_end_the_run_with_what_to_do() {
    let (_, partitions) = fleet();
    let (log, given) = (Log::default(), partitions.clone());
    let plain = move |partition: i32, collected: &Collected| {
        OfTopic::new(partition, &given[usize::try_from(partition).unwrap()], collected)
    };
    run(plain.clone(), deciding(&log, Vec::new())).unwrap();
    let made = log.made();
    let firsts = made.iter().filter(|made| matches!(made, Decision::First { .. })).count();
    assert_eq!((made.len(), firsts), (4, 2), "{made:?}");

    let written = |known: &[Decision]| {
        let service = deciding(&Log::default(), known.to_vec());
        Service { decisions: service.decisions.with_decided_before(Hop(5)), ..service }
    };
    run(plain.clone(), written(&made)).expect("the same records");
    let mut other = made.clone();
    for decision in &mut other {
        if let Decision::First { partition: 1, stamped_at, .. } = decision {
            *stamped_at = Some(Nanos(7));
        }
    }
    let failed = |known: &[Decision], from: usize| {
        let given = partitions.clone();
        let of = move |partition: i32, collected: &Collected| {
            let records = &given[usize::try_from(partition).unwrap()][if partition == 1 { from } else { 0 }..];
            let start = records[0].position.offset;
            let own = OfTopic::new(partition, records, collected);
            OfTopic { held: start..start + own.held.end, ..own }
        };
        match run(of, written(known)) {
            Err(RunError::Source(failure)) => failure.to_string(),
            other => panic!("{:?}", other.map(|(_, ended)| ended)),
        }
    };
    let said = failed(&other, 0);
    assert!(said.contains("partition 1 holds other records") && said.contains("new output folder"), "{said}");
    let said = failed(&made, 3);
    assert!(said.contains("the records before it are deleted") && said.contains("new output folder"), "{said}");
}
