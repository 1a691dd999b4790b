//! Where figures come from: a row of a table, or a count or sum over rows, each with the statement that selects it in the
//! output folder.

use std::collections::BTreeMap;

use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::tables::{TableRow, Value};
use fleetdiff_schemas::time::Nanos;
use serde::Serialize;

use crate::records::Filed;

/// The number of a reference, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Citation(pub usize);

/// A row, or a count or sum over rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// Its number, from 1.
    pub number: Citation,
    /// The table.
    pub table: &'static str,
    /// The file with the row, below the output folder; a pattern where rows of all files are counted or summed.
    pub file: String,
    /// What it selects, in a word.
    pub selects: String,
    /// What rows have in common: all key columns where it is a single row.
    #[serde(skip)]
    pub filter: Vec<(&'static str, Literal)>,
    /// What is taken of them.
    #[serde(skip)]
    pub takes: Takes,
    /// The statement for DuckDB, in the output folder.
    pub sql: String,
}

/// What a reference takes of the rows that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The only row.
    Row,
    /// Their number.
    Count,
    /// The sum of a column.
    Sum(&'static str),
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A text.
    Text(String),
    /// A whole number.
    Count(i64),
    /// An instant.
    Instant(Nanos),
    /// Yes or no.
    Truth(bool),
    /// Unknown.
    Null,
}

impl Literal {
    /// The value of a column. Keys hold no numbers with decimals and no lists, which have no exact literal.
    pub(crate) fn of(value: Value<'_>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Count(count) => Self::Count(count),
            Value::Instant(at) => Self::Instant(at),
            Value::Truth(truth) => Self::Truth(truth),
            Value::Null | Value::Number(_) | Value::Texts(_) | Value::Counts(_) => Self::Null,
        }
    }

    /// As a condition on a column.
    fn condition(&self, column: &str) -> String {
        match self {
            Self::Text(text) => format!("{column} = '{}'", text.replace('\'', "''")),
            Self::Count(count) => format!("{column} = {count}"),
            Self::Instant(at) => format!("{column} = TIMESTAMPTZ '{}'", rfc3339(*at)),
            Self::Truth(truth) => format!("{column} = {truth}"),
            Self::Null => format!("{column} IS NULL"),
        }
    }
}

/// The references of one report.
#[derive(Debug, Default)]
pub(crate) struct References {
    entries: Vec<Reference>,
    by_statement: BTreeMap<String, Citation>,
}

impl References {
    /// Cites a row.
    pub(crate) fn row<R: TableRow>(&mut self, filed: &Filed<R>) -> Citation {
        let key = R::SORTED_BY.iter().filter_map(|key| R::columns().iter().find(|column| column.name == *key));
        let filter = key.map(|column| (column.name, Literal::of(column.value(&filed.row)))).collect();
        self.cite(R::TABLE, filed.file.to_string(), filter, Takes::Row)
    }

    /// Cites the number of rows with these values, in all files.
    pub(crate) fn count<R: TableRow>(&mut self, filter: Vec<(&'static str, Literal)>) -> Citation {
        self.cite(R::TABLE, every_file(R::TABLE), filter, Takes::Count)
    }

    /// Cites the sum of a column over the rows with these values, in all files.
    pub(crate) fn sum<R: TableRow>(&mut self, column: &'static str, filter: Vec<(&'static str, Literal)>) -> Citation {
        self.cite(R::TABLE, every_file(R::TABLE), filter, Takes::Sum(column))
    }

    /// All of them, in order.
    pub(crate) fn into_entries(self) -> Vec<Reference> {
        self.entries
    }

    fn cite(
        &mut self,
        table: &'static str,
        file: String,
        filter: Vec<(&'static str, Literal)>,
        takes: Takes,
    ) -> Citation {
        let (selects, taken) = match takes {
            Takes::Row => ("one row".to_owned(), "*".to_owned()),
            Takes::Count => ("a number of rows".to_owned(), "count(*)".to_owned()),
            Takes::Sum(column) => (format!("the sum of {column}"), format!("sum({column})")),
        };
        let conditions: Vec<String> = filter.iter().map(|(column, literal)| literal.condition(column)).collect();
        let conditions =
            if conditions.is_empty() { String::new() } else { format!("\nWHERE {}", conditions.join("\n  AND ")) };
        let sql = format!("SELECT {taken} FROM read_parquet('{}'){conditions};", file.replace('\'', "''"));
        let next = Citation(self.entries.len() + 1);
        *self.by_statement.entry(sql.clone()).or_insert_with(|| {
            self.entries.push(Reference { number: next, table, file, selects, filter, takes, sql });
            next
        })
    }
}

/// The pattern of all files of a table.
fn every_file(table: &str) -> String {
    format!("{table}/**/*.parquet")
}
