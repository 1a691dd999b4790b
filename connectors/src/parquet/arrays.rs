//! Columns of rows as Arrow arrays, and back.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field};
use fleetdiff_schemas::tables::{Column, Kind, TableError, TableRow, Value};
use fleetdiff_schemas::time::Nanos;

const NANOS_A_MICROSECOND: i64 = 1_000;

/// One column of `rows` as an array of the type that the table's Arrow schema gives it.
pub(super) fn array_of<R: TableRow>(column: &Column<R>, rows: &[&R]) -> Result<ArrayRef, TableError> {
    let values: Vec<Value<'_>> = rows.iter().map(|row| column.checked(row)).collect::<Result<_, _>>()?;
    let values = values.into_iter();
    Ok(match column.kind {
        Kind::Text | Kind::Name(_) => Arc::new(values.map(text_of).collect::<StringArray>()),
        Kind::Count => Arc::new(values.map(count_of).collect::<Int64Array>()),
        Kind::Number => Arc::new(values.map(number_of).collect::<Float64Array>()),
        Kind::Instant => {
            Arc::new(values.map(microseconds_of).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        Kind::Texts => Arc::new(lists_of(values)),
        Kind::Counts => Arc::new(lists_of_counts(values)),
        Kind::Truth => Arc::new(values.map(truth_of).collect::<BooleanArray>()),
    })
}

fn text_of(value: Value<'_>) -> Option<&str> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn count_of(value: Value<'_>) -> Option<i64> {
    if let Value::Count(count) = value { Some(count) } else { None }
}

fn number_of(value: Value<'_>) -> Option<f64> {
    if let Value::Number(number) = value { Some(number) } else { None }
}

fn truth_of(value: Value<'_>) -> Option<bool> {
    if let Value::Truth(truth) = value { Some(truth) } else { None }
}

fn microseconds_of(value: Value<'_>) -> Option<i64> {
    if let Value::Instant(at) = value { Some(at.0.div_euclid(NANOS_A_MICROSECOND)) } else { None }
}

fn lists_of<'a>(values: impl Iterator<Item = Value<'a>>) -> arrow_array::ListArray {
    let element = Arc::new(Field::new("element", DataType::Utf8, false));
    let mut lists = ListBuilder::new(StringBuilder::new()).with_field(element);
    for value in values {
        let texts = if let Value::Texts(texts) = value { texts } else { &[] };
        texts.iter().for_each(|text| lists.values().append_value(text));
        lists.append(true);
    }
    lists.finish()
}

fn lists_of_counts<'a>(values: impl Iterator<Item = Value<'a>>) -> arrow_array::ListArray {
    let element = Arc::new(Field::new("element", DataType::Int64, false));
    let mut lists = ListBuilder::new(Int64Builder::new()).with_field(element);
    for value in values {
        lists.values().append_slice(if let Value::Counts(counts) = value { counts } else { &[] });
        lists.append(true);
    }
    lists.finish()
}

/// Writes an array into one column of `rows`, one element per row.
///
/// # Errors
/// [`TableError::Unfit`]: an element does not fit the column.
///
/// # Panics
/// If the array is not of the type that the table's Arrow schema gives the column.
pub(super) fn fill<R: TableRow>(column: &Column<R>, array: &dyn Array, rows: &mut [R]) -> Result<(), TableError> {
    for (index, row) in rows.iter_mut().enumerate() {
        if array.is_null(index) {
            column.set(row, Value::Null)?;
            continue;
        }
        match column.kind {
            Kind::Text | Kind::Name(_) => column.set(row, Value::Text(array.as_string::<i32>().value(index)))?,
            Kind::Count => column.set(row, Value::Count(array.as_primitive::<Int64Type>().value(index)))?,
            Kind::Number => column.set(row, Value::Number(array.as_primitive::<Float64Type>().value(index)))?,
            Kind::Instant => {
                let microseconds = array.as_primitive::<TimestampMicrosecondType>().value(index);
                column.set(row, Value::Instant(Nanos(microseconds.saturating_mul(NANOS_A_MICROSECOND))))?;
            }
            Kind::Truth => column.set(row, Value::Truth(array.as_boolean().value(index)))?,
            Kind::Texts => {
                let list = array.as_list::<i32>().value(index);
                let texts: Vec<String> = list.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
                column.set(row, Value::Texts(&texts))?;
            }
            Kind::Counts => {
                let list = array.as_list::<i32>().value(index);
                column.set(row, Value::Counts(list.as_primitive::<Int64Type>().values()))?;
            }
        }
    }
    Ok(())
}
