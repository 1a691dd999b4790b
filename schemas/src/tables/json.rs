//! A row as a JSON object: its columns by name, in the order of the table.
//!
//! Instants are RFC 3339 in UTC. JSON has no infinity: an infinite number is null there, as an unknown one is. Of an
//! inconclusive row `reason` tells the two apart: `needs_pods` says that `seconds_to_significance` is infinite.

use serde_json::Value as Json;

use super::{Column, TableError, TableRow, Value, calendar::rfc3339};

/// The row as the text of a JSON object with one member a column, null where unknown.
///
/// # Errors
/// [`TableError::NotANumber`]: the row holds NaN.
pub fn json_object<R: TableRow>(row: &R) -> Result<String, TableError> {
    let members: Result<Vec<_>, _> = R::columns().iter().map(|column| member(column, row)).collect();
    Ok(format!("{{{}}}", members?.join(",")))
}

fn member<R: TableRow>(column: &Column<R>, row: &R) -> Result<String, TableError> {
    let value = json_of(column.checked(row)?);
    Ok(format!("{}:{value}", Json::from(column.name)))
}

/// The columns by which the table is sorted as a JSON array: enough to find the row again.
pub(super) fn key_of<R: TableRow>(row: &R) -> String {
    let is_key = |column: &&Column<R>| R::SORTED_BY.contains(&column.name);
    let keys: Vec<Json> = R::columns().iter().filter(is_key).map(|column| json_of(column.value(row))).collect();
    Json::from(keys).to_string()
}

fn json_of(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => Json::from(text),
        Value::Count(count) => Json::from(count),
        // NB: serde_json turns infinity into null.
        Value::Number(number) => Json::from(number),
        Value::Instant(at) => Json::from(rfc3339(at)),
        Value::Texts(texts) => Json::from(texts),
    }
}
