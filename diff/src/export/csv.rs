//! Findings as CSV: a header, then one row per finding, the most important first.
//!
//! Follows RFC 4180 except for line ends, which are `\n`: a field with a comma, a quote or a line end is in quotes.
//! Unknown values are empty. Numbers are written as short as possible such that they can be read back to the last bit;
//! infinite ones are `inf` and `-inf`.

use fleetdiff_schemas::tables::Value;

use super::NotExported;
use super::columns::COLUMNS;
use crate::compare::Finding;

/// The table of these findings.
///
/// # Errors
/// [`NotExported::NotANumber`] for NaN.
pub fn csv(findings: &[Finding]) -> Result<Vec<u8>, NotExported> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.map(|column| column.name))?;
    for finding in findings {
        for column in &COLUMNS {
            writer.write_field(field(column.value(finding)?))?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.into_inner().map_err(|failure| NotExported::Csv(failure.into_error().into()))
}

fn field(value: Value<'_>) -> String {
    match value {
        Value::Text(text) => text.to_owned(),
        Value::Count(count) => count.to_string(),
        // NB: `{}` would write 1e-300 with three hundred zeros.
        Value::Number(number) => format!("{number:?}"),
        Value::Null | Value::Instant(_) | Value::Texts(_) | Value::Truth(_) => String::new(),
    }
}
