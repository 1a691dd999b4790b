//! CSV and Parquet, read back by their own readers.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use fleetdiff_diff::compare::{Compared, Finding, Settings};
use fleetdiff_diff::export::columns::COLUMNS;
use fleetdiff_diff::export::csv::csv;
use fleetdiff_diff::export::json::json;
use fleetdiff_diff::export::parquet::parquet;
use fleetdiff_schemas::tables::{Kind, Value};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::examples::{HEADLINE, export, findings, found, sides, weighed_sides};

/// The header and the rows of a table.
fn read(bytes: &[u8]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = ::csv::Reader::from_reader(bytes);
    let fields = |record: &::csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let header = fields(reader.headers().unwrap());
    (header, reader.records().map(|record| fields(&record.unwrap())).collect())
}

/// Whether a field of a table is a value of a finding.
fn is(field: &str, value: Value<'_>) -> bool {
    match value {
        Value::Null => field.is_empty(),
        // What a spreadsheet would calculate has an apostrophe before it.
        Value::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
            field.strip_prefix('\'') == Some(text)
        }
        Value::Text(text) => field == text,
        Value::Count(count) => field.parse() == Ok(count),
        Value::Number(number) => field.parse::<f64>().is_ok_and(|read| read.to_bits() == number.to_bits()),
        Value::Instant(_) | Value::Texts(_) | Value::Counts(_) | Value::Truth(_) => false,
    }
}

proptest! {
    /// The law: a row holds the values of its finding, to the last bit, whatever names contain.
    #[test]
    fn csv_there_and_back(findings in proptest::collection::vec(findings(), 0..8)) {
        let (header, rows) = read(&csv(&findings).unwrap());
        prop_assert_eq!(header, COLUMNS.map(|column| column.name.to_owned()));
        prop_assert_eq!(rows.len(), findings.len());
        for (row, finding) in rows.iter().zip(&findings) {
            for (field, column) in row.iter().zip(&COLUMNS) {
                prop_assert!(is(field, column.value(finding).unwrap()), "{}: {:?} of {:?}", column.name, field, finding);
            }
        }
    }

    /// The same of Parquet.
    #[test]
    fn parquet_there_and_back(findings in proptest::collection::vec(findings(), 0..8)) {
        let settings = Settings::default();
        let compared = Compared { findings, ..found(&sides(), &settings) };
        let (batch, _) = batch(&parquet(&export(&compared, &settings)).unwrap());
        prop_assert_eq!(batch.num_rows(), compared.findings.len());
        for (place, finding) in compared.findings.iter().enumerate() {
            prop_assert!(same(&batch, place, finding), "{:?}", finding);
        }
    }
}

/// All rows of a file, and its key-value metadata.
fn batch(bytes: &[u8]) -> (RecordBatch, HashMap<String, String>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).unwrap();
    let entries = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let entries = entries.into_iter().filter_map(|entry| Some((entry.key, entry.value?))).collect();
    let schema = builder.schema().clone();
    let mut batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    // Tables as small as these are one batch.
    assert!(batches.len() <= 1);
    (batches.pop().unwrap_or_else(|| RecordBatch::new_empty(schema)), entries)
}

fn same(batch: &RecordBatch, row: usize, finding: &Finding) -> bool {
    COLUMNS.iter().zip(batch.columns()).all(|(column, array)| match column.value(finding).unwrap() {
        Value::Null => array.is_null(row),
        Value::Text(text) => array.as_string::<i32>().value(row) == text,
        Value::Count(count) => array.as_primitive::<Int64Type>().value(row) == count,
        Value::Number(number) => array.as_primitive::<Float64Type>().value(row).to_bits() == number.to_bits(),
        Value::Instant(_) | Value::Texts(_) | Value::Counts(_) | Value::Truth(_) => false,
    })
}

#[test]
fn fields_of_parquet_say_what_they_are() {
    let settings = Settings::default();
    let compared = found(&weighed_sides(), &settings);
    let bytes = parquet(&export(&compared, &settings)).unwrap();
    assert_eq!(bytes, parquet(&export(&compared, &settings)).unwrap(), "equal findings give equal bytes");
    let (batch, entries) = batch(&bytes);
    for (column, field) in COLUMNS.iter().zip(batch.schema().fields()) {
        assert_eq!((field.name().as_str(), field.is_nullable()), (column.name, column.nullable));
        assert_eq!(field.metadata().get("description").unwrap(), column.description);
        assert_eq!(field.metadata().get("unit").map_or("", String::as_str), column.unit, "{}", column.name);
        assert_eq!(column.unit.is_empty(), matches!(column.kind, Kind::Text | Kind::Name(_)), "{}", column.name);
    }
    assert_eq!(entries["fleetdiff.headline"], HEADLINE);
    assert_eq!([&entries["fleetdiff.base_samples"], &entries["fleetdiff.head_samples"]], ["25620", "27120"]);
    let document: serde_json::Value = serde_json::from_str(&json(&export(&compared, &settings)).unwrap()).unwrap();
    let mut head: serde_json::Value = serde_json::from_str(&entries["fleetdiff.diff"]).unwrap();
    assert!(head.get("findings").is_none());
    head["findings"] = document["findings"].clone();
    assert_eq!(head, document);
}

/// Golden: a table as a spreadsheet gets it, except for figures of tests.
#[test]
fn csv_is_plain() {
    let settings = Settings::default();
    let text = String::from_utf8(csv(&found(&weighed_sides(), &settings).findings).unwrap()).unwrap();
    let mut lines = text.lines();
    let header = "function,base_function,functions,count_kind,base_count,head_count,base_weight,head_weight,base_share,head_share,adjusted_ratio,adjusted_ratio_low,\
                  adjusted_ratio_high,ln_p_row,q_value,verdict,reason,cause,detail";
    assert_eq!(lines.next(), Some(header));
    let legacy = lines.find(|line| line.starts_with("legacy,")).unwrap();
    assert!(legacy.starts_with("legacy,,,self,1500,0,750375000,0,0.0585480093676815,0.0,,,,-"), "{legacy}");
    assert!(legacy.ends_with(",improved,only_in_base,,"), "{legacy}");
}
