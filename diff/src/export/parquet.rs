//! Findings as a Parquet file: one row per finding, the most important first.
//!
//! The metadata of each Arrow field holds the column's `description`, and its `unit` if it has one. The file's
//! key-value metadata holds what applies to the whole: `fleetdiff.headline`, `fleetdiff.base_samples`,
//! `fleetdiff.head_samples` (unless times are compared), `fleetdiff.program_version`, and all of it as the JSON document without findings in
//! `fleetdiff.diff`.

use std::collections::HashMap;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use fleetdiff_schemas::tables::{Kind, Value};

use super::columns::{COLUMNS, Column};
use super::{Export, NotExported, json};
use crate::compare::Finding;

/// The bytes of the file.
///
/// # Errors
/// [`NotExported::NotANumber`] for NaN.
pub fn parquet(export: &Export<'_>) -> Result<Vec<u8>, NotExported> {
    let schema = Arc::new(schema());
    let arrays =
        COLUMNS.iter().map(|column| array(column, &export.compared.findings)).collect::<Result<Vec<_>, _>>()?;
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(ParquetError::from)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(metadata(export)?))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// The Arrow schema of the file.
pub(crate) fn schema() -> Schema {
    let field = |column: &Column| {
        let data_type = match column.kind {
            Kind::Count => DataType::Int64,
            Kind::Number => DataType::Float64,
            Kind::Text | Kind::Name(_) | Kind::Instant | Kind::Texts | Kind::Counts | Kind::Truth => DataType::Utf8,
        };
        let metadata = [("description", column.description), ("unit", column.unit)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty());
        let metadata: HashMap<String, String> = metadata.map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
        Field::new(column.name, data_type, column.nullable).with_metadata(metadata)
    };
    Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>())
}

fn metadata(export: &Export<'_>) -> Result<Vec<KeyValue>, NotExported> {
    let samples = export.compared.samples;
    let counted = samples.map(|samples| {
        [("fleetdiff.base_samples", samples.base.to_string()), ("fleetdiff.head_samples", samples.head.to_string())]
    });
    let entries = [
        ("fleetdiff.program_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("fleetdiff.headline", export.headline.to_owned()),
        ("fleetdiff.diff", json::head(export)?),
    ];
    Ok(entries
        .into_iter()
        .chain(counted.into_iter().flatten())
        .map(|(key, value)| KeyValue::new(key.to_owned(), value))
        .collect())
}

fn array(column: &Column, findings: &[Finding]) -> Result<ArrayRef, NotExported> {
    let values = findings.iter().map(|finding| column.value(finding)).collect::<Result<Vec<_>, _>>()?;
    let values = values.into_iter();
    Ok(match column.kind {
        Kind::Count => Arc::new(
            values
                .map(|value| if let Value::Count(count) = value { Some(count) } else { None })
                .collect::<Int64Array>(),
        ),
        Kind::Number => Arc::new(
            values
                .map(|value| if let Value::Number(number) = value { Some(number) } else { None })
                .collect::<Float64Array>(),
        ),
        Kind::Text | Kind::Name(_) | Kind::Instant | Kind::Texts | Kind::Counts | Kind::Truth => Arc::new(
            values.map(|value| if let Value::Text(text) = value { Some(text) } else { None }).collect::<StringArray>(),
        ),
    })
}
