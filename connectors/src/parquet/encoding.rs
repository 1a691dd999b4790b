//! Rows as the bytes of one Parquet file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use fleetdiff_schemas::rows::FunctionNameRow;
use fleetdiff_schemas::tables::{Kind, SCHEMA_VERSION, TableRow, arrow_schema_of};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnPath;

use super::arrays::array_of;
use crate::output::{OutputError, WRITABLE_HINT};
use crate::settings;

/// Rows of a row group: few enough that readers can skip most groups of a large file by the statistics of sorted keys,
/// and enough that small files have one group (guess).
const ROW_GROUP_ROWS: usize = 131_072;

/// Rows that are turned into columns at a time, so that a large report is not in memory twice (guess).
const BATCH_ROWS: usize = 4_096;

/// The key of a file's schema version.
pub(super) const SCHEMA_VERSION_KEY: &str = "fleetdiff.schema_version";
const PROGRAM_VERSION_KEY: &str = "fleetdiff.program_version";
const CONFIGURATION_KEY: &str = "fleetdiff.configuration";

/// What a file says about how it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    program_version: String,
    configuration: String,
}

impl FileMetadata {
    /// Made by this version of the program under this configuration (JSON).
    pub(crate) fn of_this_program(configuration: String) -> Self {
        Self { program_version: env!("CARGO_PKG_VERSION").to_owned(), configuration }
    }

    fn key_values(&self) -> Vec<KeyValue> {
        let entries = [
            (SCHEMA_VERSION_KEY, SCHEMA_VERSION),
            (PROGRAM_VERSION_KEY, &self.program_version),
            (CONFIGURATION_KEY, &self.configuration),
        ];
        entries.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned())).to_vec()
    }

    /// How two files differ, in words.
    pub(crate) fn difference(existing: &Bytes, new: &Bytes) -> String {
        let (Some(existing), Some(new)) = (described(existing), described(new)) else {
            return "it is not a whole Parquet file".to_owned();
        };
        for key in [SCHEMA_VERSION_KEY, PROGRAM_VERSION_KEY] {
            let (old, new) = (existing.get(key), new.get(key));
            if old != new {
                return format!("it was written with {key} {}, now it is {}", text(old), text(new));
            }
        }
        let (was, is) = (text(existing.get(CONFIGURATION_KEY)), text(new.get(CONFIGURATION_KEY)));
        if was != is {
            return format!("it was written with other settings: {}", settings::changes(was, is));
        }
        if existing.rows == new.rows {
            return format!("its {} rows are others", new.rows);
        }
        format!("it has {} rows, now there are {}", existing.rows, new.rows)
    }

    /// Refuses a file that was written with another configuration than this one.
    pub(super) fn refuse_other_settings(&self, path: &str, existing: &Bytes) -> Result<(), OutputError> {
        let written = described(existing).and_then(|footer| footer.get(CONFIGURATION_KEY).cloned());
        written.map_or(Ok(()), |was| OutputError::refuse_other_settings(path, &was, &self.configuration))
    }
}

fn text(value: Option<&String>) -> &str {
    value.map_or("unknown", String::as_str)
}

/// The contents of a file's footer.
pub(super) struct Footer {
    pub(super) rows: i64,
    key_values: Vec<KeyValue>,
}

impl Footer {
    /// The value of a key of the file's metadata.
    pub(super) fn get(&self, key: &str) -> Option<&String> {
        self.key_values.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_ref())
    }
}

/// The footer of a file; `None` if it has none.
pub(super) fn described(file: &Bytes) -> Option<Footer> {
    let reader = SerializedFileReader::new(file.clone()).ok()?;
    let metadata = reader.metadata().file_metadata();
    let key_values = metadata.key_value_metadata().cloned().unwrap_or_default();
    Some(Footer { rows: metadata.num_rows(), key_values })
}

/// The bytes of a file with these rows in this order. Equal rows and metadata give equal bytes. `path` is for messages.
pub(crate) fn encode<R: TableRow>(rows: &[&R], metadata: &FileMetadata, path: &str) -> Result<Bytes, OutputError> {
    let mut file = Streamed::begin(metadata, path.to_owned())?;
    for batch in rows.chunks(BATCH_ROWS) {
        file.write(batch)?;
    }
    file.finish()
}

/// Rows that are pushed before they are turned into columns: each may have thousands of numbers.
const PUSHED_ROWS: usize = 16;

/// A file whose rows come one after the other.
pub(crate) struct Streamed<R> {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    path: String,
    pushed: Vec<R>,
}

impl<R: TableRow> Streamed<R> {
    /// Without rows. `path` is for messages.
    pub(crate) fn begin(metadata: &FileMetadata, path: String) -> Result<Self, OutputError> {
        let schema: SchemaRef = Arc::new(arrow_schema_of::<R>());
        let properties = properties_of::<R>(metadata);
        let writer = properties.and_then(|known| ArrowWriter::try_new(Vec::new(), schema.clone(), Some(known)));
        let writer = writer.map_err(|error| unwritable(&path, &error))?;
        Ok(Self { writer, schema, path, pushed: Vec::new() })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: R) -> Result<(), OutputError> {
        self.pushed.push(row);
        if self.pushed.len() >= PUSHED_ROWS { self.write_pushed() } else { Ok(()) }
    }

    fn write_pushed(&mut self) -> Result<(), OutputError> {
        let pushed = std::mem::take(&mut self.pushed);
        self.write(&pushed.iter().collect::<Vec<_>>())
    }

    fn write(&mut self, rows: &[&R]) -> Result<(), OutputError> {
        let batch = batch_of(rows, &self.schema, &self.path)?;
        self.writer.write(&batch).map_err(|error| unwritable(&self.path, &error))
    }

    /// Its bytes.
    pub(crate) fn finish(mut self) -> Result<Bytes, OutputError> {
        if !self.pushed.is_empty() {
            self.write_pushed()?;
        }
        self.writer.into_inner().map(Bytes::from).map_err(|error| unwritable(&self.path, &error))
    }
}

fn unwritable(path: &str, error: &ParquetError) -> OutputError {
    OutputError::Unwritable { path: path.to_owned(), detail: error.to_string(), hint: WRITABLE_HINT }
}

fn batch_of<R: TableRow>(rows: &[&R], schema: &Arc<Schema>, path: &str) -> Result<RecordBatch, OutputError> {
    let arrays: Result<Vec<_>, _> = R::columns().iter().map(|column| array_of(column, rows)).collect();
    let arrays = arrays.map_err(|source| OutputError::Row { path: path.to_owned(), source })?;
    RecordBatch::try_new(schema.clone(), arrays).map_err(|error| OutputError::Unwritable {
        path: path.to_owned(),
        detail: error.to_string(),
        hint: "this is an error in fleetdiff, please report it",
    })
}

fn properties_of<R: TableRow>(metadata: &FileMetadata) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(Some(metadata.key_values()))
        .set_sorting_columns(Some(sorting_columns::<R>()));
    for column in R::columns().iter().filter(|column| column.kind == Kind::Number) {
        builder = builder.set_column_dictionary_enabled(ColumnPath::from(column.name), false);
    }
    // Names in their order share their beginnings, which are written once.
    if R::TABLE == FunctionNameRow::TABLE {
        let name = ColumnPath::from("name");
        builder = builder.set_column_dictionary_enabled(name.clone(), false);
        builder = builder.set_column_encoding(name, Encoding::DELTA_BYTE_ARRAY);
    }
    Ok(builder.build())
}

/// NB: the position among leaves is the position among columns, since no column before the keys is nested.
fn sorting_columns<R: TableRow>() -> Vec<SortingColumn> {
    let position_of = |key: &&str| R::columns().iter().position(|column| column.name == *key);
    let positions = R::SORTED_BY.iter().filter_map(position_of).filter_map(|position| i32::try_from(position).ok());
    positions.map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: false }).collect()
}
