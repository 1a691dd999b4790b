//! Where the rows of a service go, and what it logs during the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Hop, HopClock};

use super::done::Done;
use super::metrics::Metrics;
use crate::output::Output;

/// Shortest wall-clock time between two lines of progress in the log.
const LOG_EVERY: Duration = Duration::from_secs(10);

struct State {
    output: Option<Output>,
    receivers: Receivers,
    metrics: Option<Metrics>,
    done: Done,
    logged_at: Instant,
    logged_rejected: u64,
}

/// The sink of a service; keeps nothing that is written.
#[derive(Clone)]
pub(crate) struct Service {
    state: Arc<Mutex<State>>,
    clock: HopClock,
}

impl Service {
    /// Writes to this output, and its metrics, with those of receivers, to a file.
    pub(crate) fn new(output: Output, receivers: Receivers, metrics: Option<Metrics>, clock: HopClock) -> Self {
        let state = State {
            output: Some(output),
            receivers,
            metrics,
            done: Done::default(),
            logged_at: Instant::now(),
            logged_rejected: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), clock }
    }

    /// Writes the remaining rows and ends the output.
    pub(crate) fn finish(&self) -> Result<Done, RunError> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.output.take().map_or(Ok(()), Output::finish).map_err(RunError::Sink)?;
        state.write_metrics(self.clock);
        Ok(state.done.clone())
    }

    /// Leaves rows that are not written yet to the next run.
    pub(crate) fn leave(&self) -> Done {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_metrics(self.clock);
        state.done.clone()
    }
}

impl Sink for Service {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count(hop, &tables);
        state.log_progress(self.clock);
        let Some(output) = &mut state.output else { return Ok(()) };
        output.take(hop, self.clock, tables)
    }
}

impl State {
    fn count(&mut self, hop: Hop, tables: &Tables) {
        self.done.hops += 1;
        self.done.through = hop;
        self.done.decoded += tables.ledger.iter().map(|row| row.records_decoded).sum::<i64>();
        self.done.aa_check.take(&tables.comparisons);
        for row in &tables.rejected {
            *self.done.rejected.entry(row.rejection.reason).or_default() += 1;
        }
        for said in tables.clocks.iter().filter_map(|row| self.done.clocks.take(row)) {
            tracing::warn!("{said}");
        }
        self.done.flags += u64::try_from(tables.flags.len()).unwrap_or(0);
        for incident in &tables.incidents {
            tracing::info!("incident {} ({}): {}", incident.state, incident.severity, incident.summary);
        }
    }

    fn log_progress(&mut self, clock: HopClock) {
        if self.logged_at.elapsed() < LOG_EVERY {
            return;
        }
        self.logged_at = Instant::now();
        self.write_metrics(clock);
        let Done { through, decoded, flags, rejected, .. } = &self.done;
        tracing::info!(
            "closed through {}: {decoded} profiles, {flags} changes of flags",
            rfc3339(clock.end_of(*through))
        );
        let all: u64 = rejected.values().sum();
        if all > self.logged_rejected {
            self.logged_rejected = all;
            tracing::warn!("rejected so far: {}", by_reason(rejected));
        }
    }

    /// Rows matter more than metrics: if the file cannot be written, the run continues.
    fn write_metrics(&self, clock: HopClock) {
        if let Some(Err(error)) = self.metrics.as_ref().map(|metrics| metrics.write(&self.done, &self.receivers, clock))
        {
            tracing::warn!("the metrics could not be written: {error}");
        }
    }
}

/// Counts of rejected records in words.
pub(crate) fn by_reason(rejected: &BTreeMap<Reason, u64>) -> String {
    let parts = rejected.iter().map(|(reason, count)| format!("{count} {}", reason.name()));
    parts.collect::<Vec<_>>().join(", ")
}
