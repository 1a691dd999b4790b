//! Rows and alerts into a folder, with a progress bar while they come.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetdiff_connectors::alerts::AlertLog;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::{ParquetOutput, PendingRows};
use fleetdiff_pipeline::operators::deliver::{Sink, SinkError};
use fleetdiff_schemas::alert::{Alert, AnnouncedVerdicts};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::{Hop, HopClock};
use indicatif::{ProgressBar, ProgressStyle};

/// Event time that one file spans.
const FLUSH: Duration = Duration::from_secs(600);

struct Folder {
    parquet: ParquetOutput,
    pending: PendingRows,
    alerts: AlertLog,
    verdicts: AnnouncedVerdicts,
}

impl Folder {
    fn create(root: &Path, configuration: String) -> Result<Self, OutputError> {
        let parquet = ParquetOutput::create(root, configuration, FLUSH)?;
        let pending = PendingRows::new(parquet.interval());
        Ok(Self { parquet, pending, alerts: AlertLog::create(root)?, verdicts: AnnouncedVerdicts::default() })
    }

    fn take(&mut self, hop: Hop, clock: HopClock, tables: Tables) -> Result<(), SinkError> {
        let mut alerts = tables.flags.iter().map(Alert::of_flag).collect::<Result<Vec<_>, _>>()?;
        for row in &tables.comparisons {
            if self.verdicts.is_change(row) {
                alerts.push(Alert::of_verdict(row, hop)?);
            }
        }
        alerts.sort_by(|a, b| (a.sequence, &a.key).cmp(&(b.sequence, &b.key)));
        self.pending.push(tables);
        self.parquet.write(&self.pending.take_complete(clock.end_of(hop)))?;
        self.alerts.append(&alerts)?;
        Ok(())
    }

    fn finish(mut self) -> Result<(), OutputError> {
        self.parquet.write(&self.pending.take_all())?;
        self.alerts.finish()
    }
}

/// What a command keeps of a run while it goes on.
pub struct Kept {
    folder: Option<Folder>,
    /// Rows of `comparisons` of the last look, `cells` of the last report, and all flags.
    pub tables: Tables,
    bar: ProgressBar,
}

/// A sink that a command can look into once the run is over.
#[derive(Clone)]
pub struct Keeper {
    kept: Arc<Mutex<Kept>>,
    clock: HopClock,
}

impl Keeper {
    /// Keeps the latest rows, and writes all of them to `folder` if there is one.
    pub fn new(folder: Option<&Path>, configuration: String, clock: HopClock, hops: u64) -> Result<Self, OutputError> {
        let folder = folder.map(|root| Folder::create(root, configuration)).transpose()?;
        let bar = ProgressBar::new(hops);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} hops, {eta} left") {
            bar.set_style(style);
        }
        Ok(Self { kept: Arc::new(Mutex::new(Kept { folder, tables: Tables::default(), bar })), clock })
    }

    /// Ends the output and gives what was kept.
    pub fn finish(self) -> Result<Tables, OutputError> {
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bar.finish_and_clear();
        kept.folder.take().map_or(Ok(()), Folder::finish)?;
        Ok(std::mem::take(&mut kept.tables))
    }
}

impl Sink for Keeper {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bar.inc(1);
        if !tables.cells.is_empty() {
            kept.tables.cells.clone_from(&tables.cells);
        }
        if !tables.comparisons.is_empty() {
            kept.tables.comparisons.clone_from(&tables.comparisons);
        }
        kept.tables.flags.extend(tables.flags.iter().cloned());
        kept.tables.ledger.extend(tables.ledger.iter().cloned());
        kept.tables.rejected.extend(tables.rejected.iter().cloned());
        kept.folder.as_mut().map_or(Ok(()), |folder| folder.take(hop, self.clock, tables))
    }
}
