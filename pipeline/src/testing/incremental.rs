//! The dataflow on records in memory, for tests that hold it against the batch truth.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Hop;

use crate::run::{RunError, run};
use crate::testing::fleet::Fleet;

/// Partitions held in memory.
pub struct InMemory {
    /// (number, records still to give); `None` once its end was told.
    partitions: Vec<(i32, Option<VecDeque<Decoded>>)>,
    next: usize,
}

impl InMemory {
    /// The partitions that worker `worker` of `workers` reads.
    pub fn of(partitions: &[Vec<Decoded>], worker: usize, workers: usize) -> Self {
        let numbered = (0i32..).zip(partitions);
        let own = numbered.skip(worker).step_by(workers.max(1));
        Self {
            partitions: own.map(|(number, records)| (number, Some(records.iter().cloned().collect()))).collect(),
            next: 0,
        }
    }
}

impl Source for InMemory {
    fn name(&self) -> &str {
        "memory"
    }

    fn partitions(&self) -> Vec<i32> {
        self.partitions.iter().map(|(number, _)| *number).collect()
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        for _ in 0..self.partitions.len() {
            let at = self.next % self.partitions.len();
            self.next += 1;
            let (number, records) = &mut self.partitions[at];
            let Some(waiting) = records else { continue };
            if let Some(record) = waiting.pop_front() {
                return Ok(Polled::Record(Box::new(record)));
            }
            *records = None;
            return Ok(Polled::PartitionEnd(*number));
        }
        Ok(Polled::End)
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// Keeps every row.
#[derive(Clone, Default)]
pub struct Collected {
    tables: Arc<Mutex<Tables>>,
}

impl Collected {
    /// All rows so far, sorted.
    pub fn tables(&self) -> Tables {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tables.sort();
        tables
    }
}

impl Sink for Collected {
    fn take(&mut self, _: Hop, rows: Tables) -> Result<(), SinkError> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.cells.extend(rows.cells);
        tables.flags.extend(rows.flags);
        tables.comparisons.extend(rows.comparisons);
        tables.ledger.extend(rows.ledger);
        tables.rejected.extend(rows.rejected);
        tables.fan_out.extend(rows.fan_out);
        Ok(())
    }
}

/// All tables of a run over these partitions with so many workers, sorted.
///
/// # Errors
/// See [`run`].
pub fn incremental(config: &Config, partitions: &[Vec<Decoded>], workers: usize) -> Result<Tables, RunError> {
    let collected = Collected::default();
    let partitions = partitions.to_vec();
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(InMemory::of(&partitions, worker, workers))])
    };
    run(config, workers, Arc::new(sources), Box::new(collected.clone()))?;
    Ok(collected.tables())
}

/// All tables of a synthetic fleet on one worker, sorted. Profiles are made as they are read.
///
/// # Errors
/// See [`run`].
pub fn of_fleet(config: &Config, fleet: &Fleet) -> Result<Tables, RunError> {
    let collected = Collected::default();
    let readers = fleet.clone();
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(readers.source(worker, workers))])
    };
    run(config, 1, Arc::new(sources), Box::new(collected.clone()))?;
    Ok(collected.tables())
}
