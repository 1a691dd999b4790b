//! An output read back as rows.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use fleetdiff_schemas::rows::{Archived, Tables};
use fleetdiff_schemas::tables::{SCHEMA_VERSION, TableError, TableRow, arrow_schema_of};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::arrays::fill;
use super::encoding::{SCHEMA_VERSION_KEY, described};
use crate::folder::Folder;
use crate::output::{OutputError, READABLE_HINT};
use crate::store::Place;

/// An output that is read table by table, and some files at a time: a long run has more rows than fit into memory.
pub struct OutputReader {
    folder: Folder,
    files_found: usize,
}

impl OutputReader {
    /// Opens an output.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: there is no such folder.
    pub fn open(place: impl Into<Place>) -> Result<Self, OutputError> {
        Ok(Self { folder: Folder::open(&place.into())?, files_found: 0 })
    }

    /// Hands each file of a table to `take`, by time: its path below the folder, and its rows by key. Instants come back as
    /// they were written, cut to microseconds. A table without a folder has no files.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: a file is damaged, has other columns or a value that does not fit its column.
    /// [`OutputError::UnsupportedVersion`]: a file was written with another version of the tables.
    pub fn for_each_file<R: TableRow>(&mut self, mut take: impl FnMut(&str, Vec<R>)) -> Result<(), OutputError> {
        for paths in self.folder.files_of(R::TABLE)?.chunks(FILES_AT_A_TIME) {
            self.files_found += paths.len();
            for (path, file) in paths.iter().zip(self.folder.read_all(paths)?) {
                take(path, read_file(file, &self.folder.display(path))?);
            }
        }
        Ok(())
    }

    /// Every row of a table.
    fn rows<R: TableRow>(&mut self) -> Result<Vec<R>, OutputError> {
        let mut rows = Vec::new();
        self.for_each_file(|_, of_file| rows.extend(of_file))?;
        Ok(rows)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: none of the tables that were read has a file.
    pub fn finish(self) -> Result<(), OutputError> {
        if self.files_found > 0 {
            return Ok(());
        }
        let detail = "it holds none of fleetdiff's tables".to_owned();
        Err(OutputError::Unreadable { path: self.folder.display(""), detail, hint: READABLE_HINT })
    }
}

/// Reads every row of an output folder, by table, time of the file and key. Instants come back as they were written, cut
/// to microseconds. A table without a folder has no rows.
///
/// # Errors
/// [`OutputError::Unreadable`]: the folder is missing or holds none of the tables, or a file is damaged, has other
/// columns or a value that does not fit its column.
/// [`OutputError::UnsupportedVersion`]: a file was written with another version of the tables.
pub fn read_tables(root: &Path) -> Result<Tables, OutputError> {
    let mut reader = OutputReader::open(root)?;
    let tables = Tables {
        cells: reader.rows()?,
        evidence: reader.rows()?,
        flags: reader.rows()?,
        comparisons: reader.rows()?,
        incidents: reader.rows()?,
        verdicts: Vec::new(),
        scaling: reader.rows()?,
        rings: reader.rows()?,
        scaling_findings: Vec::new(),
        heap: reader.rows()?,
        waiting: reader.rows()?,
        stacks: reader.rows()?,
        load_curves: reader.rows()?,
        heap_findings: Vec::new(),
        ledger: reader.rows()?,
        rejected: reader.rows()?,
        clocks: reader.rows()?,
        limits: reader.rows()?,
        fan_out: Vec::new(),
        archived: Archived::default(),
    };
    reader.finish()?;
    Ok(tables)
}

/// Reads every row of one table of an output, as [`read_tables`] does; none where the table has no folder.
///
/// # Errors
/// See [`read_tables`].
pub fn read_table<R: TableRow>(place: impl Into<Place>) -> Result<Vec<R>, OutputError> {
    OutputReader::open(place)?.rows()
}

fn read_file<R: TableRow>(file: Bytes, path: &str) -> Result<Vec<R>, OutputError> {
    each_row(file, path.to_owned(), READ_ROWS)?.collect()
}

/// Rows of a file that are read a few at a time.
pub(crate) type Rows<R> = Box<dyn Iterator<Item = Result<R, OutputError>>>;

/// The rows of a file in their order, of which so many are in memory. `path` is for messages.
pub(crate) fn each_row<R: TableRow>(file: Bytes, path: String, at_a_time: usize) -> Result<Rows<R>, OutputError> {
    let unreadable = |path: &str, detail: String| {
        let (path, hint) = (path.to_owned(), READABLE_HINT);
        OutputError::Unreadable { path, detail, hint }
    };
    let footer = described(&file).ok_or_else(|| unreadable(&path, "it is not a whole Parquet file".to_owned()))?;
    check_version(footer.get(SCHEMA_VERSION_KEY), &path)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let builder = builder.map_err(|error| unreadable(&path, error.to_string()))?;
    if !has_columns_of::<R>(builder.schema()) {
        return Err(unreadable(&path, format!("its columns are not those of the table {}", R::TABLE)));
    }
    let batches = builder.with_batch_size(at_a_time).build().map_err(|error| unreadable(&path, error.to_string()))?;
    let rows = batches.flat_map(move |batch| {
        let batch = batch.map_err(|error| unreadable(&path, error.to_string()));
        match batch.and_then(|batch| rows_of::<R>(&batch, &path)) {
            Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        }
    });
    Ok(Box::new(rows))
}

/// Files of a table that are read at a time: a store takes as long for some as for one.
const FILES_AT_A_TIME: usize = 16;
/// Rows of a table that are read at a time.
const READ_ROWS: usize = 4_096;

/// Whether names, types and nulls are those of the table; the descriptions of fields may differ.
fn has_columns_of<R: TableRow>(found: &Schema) -> bool {
    let shape = |field: &Field| (field.name().clone(), field.data_type().clone(), field.is_nullable());
    let expected = arrow_schema_of::<R>();
    found.fields().iter().map(|field| shape(field)).eq(expected.fields().iter().map(|field| shape(field)))
}

fn check_version(found: Option<&String>, path: &str) -> Result<(), OutputError> {
    if found.is_some_and(|version| version == SCHEMA_VERSION) {
        return Ok(());
    }
    let found = found.map_or("none", String::as_str).to_owned();
    Err(OutputError::UnsupportedVersion { path: path.to_owned(), found, expected: SCHEMA_VERSION })
}

fn rows_of<R: TableRow>(batch: &RecordBatch, path: &str) -> Result<Vec<R>, OutputError> {
    let unfit = |error: TableError| OutputError::Unreadable {
        path: path.to_owned(),
        detail: error.to_string(),
        hint: READABLE_HINT,
    };
    let mut rows = vec![R::blank(); batch.num_rows()];
    for (column, array) in R::columns().iter().zip(batch.columns()) {
        fill(column, array, &mut rows).map_err(unfit)?;
    }
    for row in &rows {
        R::columns().iter().try_for_each(|column| column.checked(row).map(|_| ())).map_err(unfit)?;
    }
    Ok(rows)
}
