//! What a column holds.

use crate::time::Nanos;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of a closed list of names.
    Name(&'static [&'static str]),
    /// A whole number (int64).
    Count,
    /// A real number (float64); never NaN, may be infinite.
    Number,
    /// An instant, microseconds since the Unix epoch in UTC, rounded down.
    Instant,
    /// A list of texts, none of them null.
    Texts,
    /// A list of whole numbers (int64).
    Counts,
    /// Yes or no.
    Truth,
}

/// One value of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Unknown.
    Null,
    /// Of a [`Kind::Text`] or [`Kind::Name`] column.
    Text(&'a str),
    /// Of a [`Kind::Count`] column.
    Count(i64),
    /// Of a [`Kind::Number`] column.
    Number(f64),
    /// Of a [`Kind::Instant`] column.
    Instant(Nanos),
    /// Of a [`Kind::Texts`] column.
    Texts(&'a [String]),
    /// Of a [`Kind::Counts`] column.
    Counts(&'a [i64]),
    /// Of a [`Kind::Truth`] column.
    Truth(bool),
}

impl Value<'_> {
    /// The order of sorted tables: text by bytes, numbers by size (`-0` before `0`), null last.
    ///
    /// A column never holds values of different kinds; if it did, they would be ordered by kind.
    pub fn total_cmp(&self, other: &Value<'_>) -> std::cmp::Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Count(a), Value::Count(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
            (Value::Instant(a), Value::Instant(b)) => a.cmp(b),
            (Value::Texts(a), Value::Texts(b)) => a.cmp(b),
            (Value::Counts(a), Value::Counts(b)) => a.cmp(b),
            (Value::Truth(a), Value::Truth(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Text(_) => 0,
            Value::Count(_) => 1,
            Value::Number(_) => 2,
            Value::Instant(_) => 3,
            Value::Texts(_) => 4,
            Value::Counts(_) => 5,
            Value::Truth(_) => 6,
            Value::Null => 7,
        }
    }
}
