//! The dataflow on records that are in memory already, for programs that have profiles and want rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, Stamped};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::Hop;

use super::{RunError, SourceFactory, run};

/// The name of the source of records in memory.
const NAME: &str = "memory";

/// Records that are still to be given.
type Waiting = Box<dyn Iterator<Item = Decoded> + Send>;

/// Partitions held in memory, read in turn, one record of each.
pub struct InMemory {
    /// (number, records still to give); `None` once its end has been reported.
    partitions: Vec<(i32, Option<Waiting>)>,
    next: usize,
}

impl InMemory {
    /// A source with these partitions, by number. Its records are of the partition in which they are given.
    pub fn new<R>(partitions: impl IntoIterator<Item = (i32, R)>) -> Self
    where
        R: IntoIterator<Item = Decoded, IntoIter: Send + 'static>,
    {
        let waiting = |records: R| -> Waiting { Box::new(records.into_iter()) };
        let partitions = partitions.into_iter().map(|(number, records)| (number, Some(waiting(records))));
        Self { partitions: partitions.collect(), next: 0 }
    }
}

impl Source for InMemory {
    fn name(&self) -> &str {
        NAME
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
            if let Some(mut record) = waiting.next() {
                record.position.partition = *number;
                return Ok(Polled::Record(Box::new(record)));
            }
            *records = None;
            return Ok(Polled::PartitionEnd(*number));
        }
        Ok(Polled::End)
    }

    fn set_paused(&mut self, _: i32, _: bool) {}
}

/// A source for each worker: partitions are numbered from 0 and assigned to the workers in turn. For one run.
pub fn sources(partitions: Vec<Vec<Decoded>>) -> Arc<SourceFactory> {
    let waiting: BTreeMap<i32, Vec<Decoded>> = (0..).zip(partitions).collect();
    let waiting = Mutex::new(waiting);
    Arc::new(move |worker: usize, workers: usize| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let is_own = |number: i32| usize::try_from(number).is_ok_and(|number| number % workers.max(1) == worker);
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let own = waiting.extract_if(.., |number, _| is_own(*number));
        Ok(vec![Box::new(InMemory::new(own))])
    })
}

/// The records of one partition, each with one profile, in the order given.
pub fn records(profiles: impl IntoIterator<Item = Profile>) -> Vec<Decoded> {
    each_record(profiles).collect()
}

/// [`records`], of which each is made when it is asked for.
pub fn each_record(profiles: impl IntoIterator<Item = Profile>) -> impl Iterator<Item = Decoded> {
    let record = |(offset, profile)| Decoded {
        position: Position { source: NAME.into(), partition: 0, offset, file: None },
        stamped: Stamped::No,
        parts: vec![Ok(profile)],
        points: Vec::new(),
    };
    (0..).zip(profiles).map(record)
}

/// A sink that keeps every row.
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
        tables.evidence.extend(rows.evidence);
        tables.flags.extend(rows.flags);
        tables.incidents.extend(rows.incidents);
        tables.verdicts.extend(rows.verdicts);
        tables.comparisons.extend(rows.comparisons);
        tables.scaling.extend(rows.scaling);
        tables.rings.extend(rows.rings);
        tables.heap.extend(rows.heap);
        tables.waiting.extend(rows.waiting);
        tables.stacks.extend(rows.stacks);
        tables.load_curves.extend(rows.load_curves);
        tables.heap_findings.extend(rows.heap_findings);
        tables.scaling_findings.extend(rows.scaling_findings);
        tables.ledger.extend(rows.ledger);
        tables.rejected.extend(rows.rejected);
        tables.clocks.extend(rows.clocks);
        tables.limits.extend(rows.limits);
        tables.fan_out.extend(rows.fan_out);
        tables.archived.append(rows.archived);
        Ok(())
    }
}

/// All tables of a run over these partitions with this number of workers, sorted. Rows do not depend on the number of
/// workers.
///
/// ```
/// use fleetdiff_pipeline::run::in_memory::{records, run_in_memory};
/// use fleetdiff_schemas::config::Config;
///
/// let profiles = Vec::new();
/// let tables = run_in_memory(&Config::default(), vec![records(profiles)], 1)?;
/// assert!(tables.cells.is_empty() && tables.flags.is_empty());
/// # Ok::<(), fleetdiff_pipeline::run::RunError>(())
/// ```
///
/// # Errors
/// See [`run`].
pub fn run_in_memory(config: &Config, partitions: Vec<Vec<Decoded>>, workers: usize) -> Result<Tables, RunError> {
    let collected = Collected::default();
    run(config, workers, sources(partitions), Box::new(collected.clone()))?;
    Ok(collected.tables())
}
