//! Findings as CSV: a header, then one row per finding, the most important first.
//!
//! Follows RFC 4180 except for line ends, which are `\n`: a field with a comma, a quote or a line end is in quotes.
//! Unknown values are empty. Numbers are written as short as possible such that they can be read back to the last bit;
//! infinite ones are `inf` and `-inf`.
//!
//! A text that a spreadsheet would take for a formula begins with `'`, as OWASP advises against CSV injection: names of functions come from
//! programs that whoever opens the file need not trust.

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

/// What makes a spreadsheet calculate a text.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

fn field(value: Value<'_>) -> String {
    match value {
        Value::Text(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Value::Text(text) => text.to_owned(),
        Value::Count(count) => count.to_string(),
        // NB: `{}` would write 1e-300 with three hundred zeros.
        Value::Number(number) => format!("{number:?}"),
        Value::Null | Value::Instant(_) | Value::Texts(_) | Value::Counts(_) | Value::Truth(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_name_is_no_formula_and_a_number_stays_one() {
        for text in ["=1+1", "+cmd|' /C calc'!A0", "-[Cart total]", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(field(Value::Text(text)), format!("'{text}"));
        }
        for text in ["main", "a=b", "'quoted", ""] {
            assert_eq!(field(Value::Text(text)), text);
        }
        assert_eq!(field(Value::Number(-1.5)), "-1.5");
        assert_eq!(field(Value::Number(f64::NEG_INFINITY)), "-inf");
    }
}
