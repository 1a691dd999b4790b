//! Where the rows of a service go.

use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_pipeline::run::RunError;
use fleetdiff_pipeline::run::wall::wall_now;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;

use super::console::Console;
use super::metrics::Latencies;
use crate::output::Output;

/// The sink of a service; keeps nothing that is written.
#[derive(Clone)]
pub(crate) struct Service {
    output: Arc<Mutex<Option<Output>>>,
    console: Arc<Console>,
    latencies: Latencies,
    look_hops: u64,
}

impl Service {
    /// Writes to this output. There is a look every `look_hops`.
    pub(crate) fn new(output: Output, console: Arc<Console>, latencies: Latencies, look_hops: u64) -> Self {
        Self { output: Arc::new(Mutex::new(Some(output))), console, latencies, look_hops }
    }

    /// Writes the remaining rows and ends the output. Without it, they are left to the next run.
    pub(crate) fn finish(&self) -> Result<(), RunError> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.map_or(Ok(Vec::new()), Output::finish).map(drop).map_err(RunError::Sink)
    }
}

impl Sink for Service {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        let clock = self.console.terms().clock;
        let said = self.console.done().take(hop, &tables, self.look_hops);
        said.iter().for_each(|said| tracing::warn!("{said}"));
        for incident in &tables.incidents {
            tracing::info!("incident {} ({}): {}", incident.state, incident.severity, incident.summary);
        }
        let Some(output) = &mut *self.output.lock().unwrap_or_else(PoisonError::into_inner) else { return Ok(()) };
        let sent = output.take(hop, clock, tables)?;
        self.console.done().sent(&sent, wall_now());
        if sent.files > 0 {
            self.console.pulse().flushed();
        }
        let evaluation = self.console.pulse().writing().and_then(|writing| writing.evaluation);
        self.latencies.closed(wall_now().since(clock.end_of(hop)), evaluation);
        Ok(())
    }

    fn save(&mut self, boundary: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        let through = self.console.terms().clock.start_of(boundary);
        let Some(output) = &mut *self.output.lock().unwrap_or_else(PoisonError::into_inner) else { return Ok(None) };
        let (sent, saved) = output.save(through)?;
        self.console.done().sent(&sent, wall_now());
        if sent.files > 0 {
            self.console.pulse().flushed();
        }
        Ok(saved)
    }

    fn resume(&mut self, saved: &[u8]) -> Result<(), SinkError> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.as_mut().map_or(Ok(()), |output| output.resume(saved))
    }
}
