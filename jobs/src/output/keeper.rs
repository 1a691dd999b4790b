//! The rows that a command prints once its run is over.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetdiff_connectors::lock::FolderLock;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_pipeline::run::RunError;
use fleetdiff_report::AaCheckRate;
use fleetdiff_schemas::fan_out::FanOutRow;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::{Hop, HopClock, TimeRange};
use indicatif::ProgressBar;

use super::guidance::GuidanceLog;
use super::{AlertTarget, Output};
use crate::configuration::Configuration;
use crate::progress::bar_of_hops;

/// Event time that one file of a bounded run spans.
const FLUSH: Duration = Duration::from_secs(600);

/// What a command keeps of a run.
struct Kept {
    output: Option<Output>,
    /// Rows of `comparisons` of the last look, `cells`, `scaling` and `heap` of the last report, the current fan-out, and all flags and incidents.
    tables: Tables,
    /// The rate of false positives so far.
    aa_check: AaCheckRate,
    bar: ProgressBar,
    first: Hop,
}

/// A sink that a command can look into once the run is over.
#[derive(Clone)]
pub(crate) struct Keeper {
    kept: Arc<Mutex<Kept>>,
    clock: HopClock,
}

impl Keeper {
    /// Keeps the latest rows, and writes all rows to `folder` if there is one. The progress bar covers the hops of
    /// `span`.
    pub(crate) fn new(
        folder: Option<&Path>,
        configuration: String,
        clock: HopClock,
        span: TimeRange,
    ) -> Result<Self, OutputError> {
        let output = folder.map(|root| {
            let output = Output::create(FolderLock::take(root)?, configuration, FLUSH)?;
            Ok::<_, OutputError>(output.alerting(AlertTarget::file(root)?))
        });
        let output = output.transpose()?;
        Ok(Self::of(output, clock, span))
    }

    /// The same with what the configuration adds to alerts.
    pub(crate) fn guided(self, guidance: GuidanceLog) -> Self {
        {
            let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.output = kept.output.take().map(|output| output.guided(guidance));
        }
        self
    }

    /// The same with the archive that the configuration asks for.
    pub(crate) fn archived(self, configuration: &Configuration, as_json: String) -> Result<Self, OutputError> {
        {
            let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.output = kept.output.take().map(|output| output.archived(configuration, as_json)).transpose()?;
        }
        Ok(self)
    }

    /// The same with receivers.
    pub(crate) fn announced_to(self, receivers: Receivers) -> Self {
        {
            let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.output = kept.output.take().map(|output| output.announced_to(receivers));
        }
        self
    }

    /// [`Self::new`] for rows that send no alerts.
    pub(crate) fn without_alerts(
        folder: &Path,
        configuration: String,
        clock: HopClock,
        span: TimeRange,
    ) -> Result<Self, OutputError> {
        Ok(Self::of(Some(Output::create(FolderLock::take(folder)?, configuration, FLUSH)?), clock, span))
    }

    fn of(output: Option<Output>, clock: HopClock, span: TimeRange) -> Self {
        let first = clock.hop_of(span.start);
        let bar = bar_of_hops(clock.hop_of(span.end).0.saturating_sub(first.0) + 1);
        Self {
            kept: Arc::new(Mutex::new(Kept {
                output,
                tables: Tables::default(),
                aa_check: AaCheckRate::default(),
                bar,
                first,
            })),
            clock,
        }
    }

    /// Ends the output and gives what was kept.
    pub(crate) fn finish(self) -> Result<(Tables, AaCheckRate), RunError> {
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bar.finish_and_clear();
        let rest = kept.output.take().map_or(Ok(Vec::new()), Output::finish).map_err(RunError::Sink)?;
        rest.into_iter().for_each(|rows| kept.keep(rows));
        Ok((std::mem::take(&mut kept.tables), kept.aa_check))
    }
}

impl Kept {
    /// Takes the rows of the next hop. The large tables come back once they are written, so that no report is there twice.
    fn take(&mut self, hop: Hop, clock: HopClock, mut tables: Tables) -> Result<(), SinkError> {
        // NB: hops without rows are not delivered, so the hop shows the progress, not the number of calls.
        self.bar.set_position((hop.0 + 1).saturating_sub(self.first.0));
        self.aa_check.take(&tables.comparisons);
        self.take_fan_out(std::mem::take(&mut tables.fan_out));
        if !tables.cells.is_empty() {
            self.tables.cells = Vec::new();
        }
        match &mut self.output {
            Some(output) => output.take(hop, clock, tables)?.rows.into_iter().for_each(|rows| self.keep(rows)),
            None => self.keep(tables),
        }
        Ok(())
    }

    /// The current rows of a function replace its earlier ones.
    fn take_fan_out(&mut self, rows: Vec<FanOutRow>) {
        let function = |row: &FanOutRow| (row.comparison.clone(), row.count_kind, row.function.clone());
        self.tables.fan_out.retain(|old| !rows.iter().any(|new| function(new) == function(old)));
        self.tables.fan_out.extend(rows);
    }

    /// Keeps rows that are later than those before.
    fn keep(&mut self, rows: Tables) {
        let tables = &mut self.tables;
        keep_latest(&mut tables.cells, rows.cells);
        keep_latest(&mut tables.heap, rows.heap);
        keep_latest(&mut tables.waiting, rows.waiting);
        keep_latest(&mut tables.scaling, rows.scaling);
        keep_latest(&mut tables.rings, rows.rings);
        keep_latest(&mut tables.comparisons, rows.comparisons);
        tables.flags.extend(rows.flags);
        tables.incidents.extend(rows.incidents);
        tables.ledger.extend(rows.ledger);
        tables.rejected.extend(rows.rejected);
        tables.limits.extend(rows.limits);
    }
}

/// Keeps the later rows, if there are any.
fn keep_latest<R>(kept: &mut Vec<R>, later: Vec<R>) {
    if !later.is_empty() {
        *kept = later;
    }
}

impl Sink for Keeper {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take(hop, self.clock, tables)
    }
}
