//! The columns of findings: one list that decides names, order, types and nulls of JSON, CSV and Parquet.
//!
//! Names and meanings are those of the table `cells` of fleets, if it has the column: `adjusted_ratio` is after the
//! normalization factor, and `ln_p_row` the p-value that decides.

use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::tables::{Kind, Value};
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use super::NotExported;
use crate::compare::Finding;
use crate::sides::Sides;

/// One column of findings.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in JSON, CSV and Parquet.
    pub name: &'static str,
    /// What it holds: text, one of a list of names, a count or a number.
    pub kind: Kind,
    /// Whether it can be unknown.
    pub nullable: bool,
    /// The unit of its values; `1` for plain numbers, nothing for text.
    pub unit: &'static str,
    /// What it says.
    pub description: &'static str,
    read: fn(&Finding) -> Value<'_>,
}

impl Column {
    /// The value of this column; infinite numbers stay infinite.
    ///
    /// # Errors
    /// [`NotExported::NotANumber`] for NaN.
    pub fn value<'f>(&self, finding: &'f Finding) -> Result<Value<'f>, NotExported> {
        match (self.read)(finding) {
            Value::Number(number) if number.is_nan() => {
                Err(NotExported::NotANumber { column: self.name, function: finding.function.to_string() })
            }
            value => Ok(value),
        }
    }

    const fn new(
        name: &'static str,
        kind: Kind,
        unit: &'static str,
        description: &'static str,
        read: fn(&Finding) -> Value<'_>,
    ) -> Self {
        Self { name, kind, nullable: false, unit, description, read }
    }

    const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }
}

const KINDS: &[&str] = &["self", "total"];

/// Every column, in the order of files.
pub const COLUMNS: [Column; 19] = [
    Column::new("function", Kind::Text, "", "Name of the function; _rare stands for all below the floor of samples or time, _unsymbolised for frames without a symbol.", |row| Value::Text(&row.function)),
    Column::new("base_function", Kind::Text, "", "Its name in the base, where that is another: renamed, moved or renumbered between the sides, and compared as one.", |row| text(row.base_function.as_deref())).or_null(),
    Column::new("functions", Kind::Count, "functions", "For _rare: how many functions it stands for.", |row| row.functions.map_or(Value::Null, Value::Count)).or_null(),
    Column::new("count_kind", Kind::Name(KINDS), "", "Where on a stack the function is counted: at its leaf (self) or anywhere, once (total).", |row| Value::Text(row.count_kind.name())),
    Column::new("base_count", Kind::Count, "samples", "Samples of all runs of the base; null where times without a period are compared.", |row| count(row, |sides| sides.base)).or_null(),
    Column::new("head_count", Kind::Count, "samples", "Samples of all runs of the head; null where times without a period are compared.", |row| count(row, |sides| sides.head)).or_null(),
    Column::new("base_weight", Kind::Count, "weights_unit", "What the base's samples stand for, where every run says it; tests look at samples alone, unless times without a period are compared.", |row| weight(row, |sides| sides.base)).or_null(),
    Column::new("head_weight", Kind::Count, "weights_unit", "What the head's samples stand for, where every run says it; tests look at samples alone, unless times without a period are compared.", |row| weight(row, |sides| sides.head)).or_null(),
    Column::new("base_share", Kind::Number, "1", "Share of the base's samples or time, 0 to 1. Of _rare among total counts the sum over its functions, which may be more.", |row| Value::Number(row.share.base)),
    Column::new("head_share", Kind::Number, "1", "Share of the head's samples or time, 0 to 1. Of _rare among total counts the sum over its functions, which may be more.", |row| Value::Number(row.share.head)),
    Column::new("adjusted_ratio", Kind::Number, "1", "Head's share over base's share after the normalization factor; null where a side lacks the function or nothing was tested.", |row| ratio(row, |ratio| ratio.value)).or_null(),
    Column::new("adjusted_ratio_low", Kind::Number, "1", "Lower end of its 95 % interval.", |row| ratio(row, |ratio| ratio.low)).or_null(),
    Column::new("adjusted_ratio_high", Kind::Number, "1", "Upper end of its 95 % interval.", |row| ratio(row, |ratio| ratio.high)).or_null(),
    Column::new("ln_p_row", Kind::Number, "1", "Natural logarithm of the p-value that decides: that the change is not larger than min_effect either way, over all admissible normalization factors; at most 0, null where nothing was tested.", |row| number(row.ln_p)).or_null(),
    Column::new("q_value", Kind::Number, "1", "Smallest false-discovery rate at which the row is significant or stands out, 0 to 1; null where nothing was tested, or the method controls none.", |row| number(row.q_value)).or_null(),
    Column::new("verdict", Kind::Name(Verdict::NAMES), "", "Verdict; regressed and improved are significant, stands_out is all that one run a side can show.", |row| Value::Text(row.verdict.name())),
    Column::new("reason", Kind::Name(RowReason::NAMES), "", "Why, where there is more to say.", |row| row.reason.map_or(Value::Null, |reason| Value::Text(reason.name()))).or_null(),
    Column::new("cause", Kind::Text, "", "The function whose change moved this one.", |row| text(row.cause.as_deref())).or_null(),
    Column::new("detail", Kind::Text, "", "More, in words.", |row| text(row.detail.as_deref())).or_null(),
];

/// Numbers above the range of int64 are written as its largest number, as in every table.
pub(super) fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn whole(count: u64) -> Value<'static> {
    Value::Count(saturated(count))
}

fn count(finding: &Finding, of: fn(Sides<u64>) -> u64) -> Value<'static> {
    finding.count.map_or(Value::Null, |sides| whole(of(sides)))
}

fn weight(finding: &Finding, of: fn(Sides<u64>) -> u64) -> Value<'static> {
    finding.weight.map_or(Value::Null, |sides| whole(of(sides)))
}

fn ratio(finding: &Finding, end: fn(Interval) -> f64) -> Value<'static> {
    number(finding.ratio.map(end))
}

fn number(number: Option<f64>) -> Value<'static> {
    number.map_or(Value::Null, Value::Number)
}

fn text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Null, Value::Text)
}
