//! Tables as Parquet files: one file per table and flush interval.
//!
//! `<table>/date=YYYY-MM-DD/hour=HH/<start of the interval in Unix seconds>.parquet`, filed by event time
//! ([`TableRow::filed_at`]), sorted totally. Name and bytes depend only on rows, configuration and version, so that the
//! same rows give the same bytes. A file is only ever created; an existing file must be equal, otherwise the run stops
//! with [`OutputError::Nondeterministic`].
//!
//! The interval in which a run begins has a file of every table, without rows if there are none, so that readers find
//! all tables and their columns. Infinite numbers are stored as infinities, unknown ones as null; NaN never
//! occurs.

use std::time::Duration;

use fleetdiff_schemas::rows::{
    CellRow, ClockRow, ComparisonRow, EvidenceRow, FlagRow, HeapRow, IncidentRow, LedgerRow, LimitRow, LoadCurveRow,
    RejectedRow, RingRow, ScalingRow, StackRow, Tables, WaitingRow,
};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Nanos;

use crate::crash::CrashPoint;
use crate::folder::Folder;
use crate::output::OutputError;
use crate::store::Place;

mod arrays;
pub(crate) mod encoding;
mod intervals;
pub(crate) mod reading;

pub use intervals::{FlushInterval, PendingRows};
pub use reading::{OutputReader, read_table, read_tables};

use encoding::FileMetadata;

/// Names of the tables that an output has.
pub const TABLES: [&str; 15] = [
    CellRow::TABLE,
    EvidenceRow::TABLE,
    FlagRow::TABLE,
    ComparisonRow::TABLE,
    IncidentRow::TABLE,
    ScalingRow::TABLE,
    RingRow::TABLE,
    HeapRow::TABLE,
    WaitingRow::TABLE,
    StackRow::TABLE,
    LoadCurveRow::TABLE,
    LedgerRow::TABLE,
    RejectedRow::TABLE,
    ClockRow::TABLE,
    LimitRow::TABLE,
];

/// The Parquet files of one run.
///
/// Methods block; they must not be called from within an asynchronous task.
pub struct ParquetOutput {
    folder: Folder,
    interval: FlushInterval,
    metadata: FileMetadata,
    begun: bool,
}

/// What one call of [`ParquetOutput::write`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files, by table and time.
    pub files: Vec<WrittenFile>,
}

/// One file of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Path below the output folder.
    pub path: String,
    /// Rows in it.
    pub rows: usize,
    /// Whether it is new; otherwise it already existed with equal bytes.
    pub created: bool,
}

impl ParquetOutput {
    /// An output in an object store, or in a local folder, which is created if it does not exist. `configuration` is the run's, as
    /// JSON; it is written into every file.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`]: the folder cannot be created or written.
    /// [`OutputError::FlushInterval`]: `flush` does not divide an hour.
    pub fn create(place: impl Into<Place>, configuration: String, flush: Duration) -> Result<Self, OutputError> {
        let interval = FlushInterval::new(flush)?;
        let metadata = FileMetadata::of_this_program(configuration);
        Ok(Self { folder: Folder::create(&place.into())?, interval, metadata, begun: false })
    }

    /// Goes on after an earlier run: the interval in which that began has a file of every table already.
    pub fn go_on(&mut self) {
        self.begun = true;
    }

    /// The interval that a file spans.
    pub fn interval(&self) -> FlushInterval {
        self.interval
    }

    /// The end of the last interval of which an earlier run wrote the ledger; `None` in an empty folder.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the folder cannot be listed.
    pub fn written_through(&self) -> Result<Option<Nanos>, OutputError> {
        let last = self.folder.files_of(LedgerRow::TABLE)?.pop();
        Ok(last.and_then(|path| self.interval.end_of(&path)))
    }

    /// Makes sure that what an earlier run wrote has this configuration, before anything is written beside it.
    ///
    /// # Errors
    /// [`OutputError::OtherSettings`]: it has another one. [`OutputError::Unreadable`]: the folder cannot be read.
    pub fn refuse_other_settings(&self) -> Result<(), OutputError> {
        let Some(path) = self.folder.files_of(LedgerRow::TABLE)?.pop() else { return Ok(()) };
        let existing = self.folder.read(&path)?;
        self.metadata.refuse_other_settings(&self.folder.display(&path), &existing)
    }

    /// Writes the rows of one or more flush intervals, in any order. They must be all the rows of these intervals;
    /// [`PendingRows`] holds rows back until they are complete. Does nothing if there are no rows.
    ///
    /// # Errors
    /// [`OutputError::Nondeterministic`]: a file already exists and differs. [`OutputError::Unwritable`]: the store
    /// refused. [`OutputError::Row`]: a row holds NaN.
    pub fn write(&mut self, tables: &[Tables]) -> Result<Written, OutputError> {
        let first = if self.begun { None } else { self.interval.first_of(tables) };
        let mut files = self.write_table(tables.iter().flat_map(|of| &of.cells), first)?;
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.evidence), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.flags), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.comparisons), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.incidents), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.scaling), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.rings), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.heap), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.waiting), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.stacks), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.load_curves), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.ledger), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.rejected), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.clocks), first)?);
        files.extend(self.write_table(tables.iter().flat_map(|of| &of.limits), first)?);
        self.begun |= first.is_some();
        if !files.is_empty() {
            CrashPoint::TablesWritten.reached();
        }
        Ok(Written { files })
    }

    /// Writes one table, with a file for the interval `first` even if it has no rows there.
    fn write_table<'r, R: TableRow>(
        &self,
        rows: impl Iterator<Item = &'r R>,
        first: Option<i64>,
    ) -> Result<Vec<WrittenFile>, OutputError> {
        let mut by_interval = self.interval.split(rows);
        if let Some(first) = first {
            by_interval.entry(first).or_default();
        }
        by_interval.into_iter().map(|(start, rows)| self.write_file(start, rows)).collect()
    }

    fn write_file<R: TableRow>(&self, start: i64, mut rows: Vec<&R>) -> Result<WrittenFile, OutputError> {
        fleetdiff_schemas::tables::sort_rows(&mut rows);
        let path = intervals::path_of::<R>(start);
        let bytes = encoding::encode(&rows, &self.metadata, &self.folder.display(&path))?;
        CrashPoint::TableComplete.reached();
        let created = self.folder.create_once(&path, bytes)?;
        CrashPoint::TableWritten.reached();
        tracing::debug!(path, rows = rows.len(), created, "table written");
        Ok(WrittenFile { path, rows: rows.len(), created })
    }
}
