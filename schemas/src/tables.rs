//! The tables that fleetdiff writes: one list of columns per table decides names, order, types and nulls.
//!
//! A row type implements [`TableRow`] by giving its [`Column`]s, each with a way to read its field and one to write it.
//! Everything that leaves the program is made from these lists: the Arrow schema ([`arrow_schema_of`]), the columns of
//! a Parquet file, the JSON of an alert ([`json_object`]). A table and an alert therefore cannot disagree.
//!
//! Laws: columns of one table have distinct names; a column that is not nullable is never read as [`Value::Null`]; if
//! the values read from a row are written into [`TableRow::blank`], the result is that row (with instants cut to
//! microseconds).

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value as Json;

use self::json::json_of;
use crate::rows::Tables;
use crate::time::Nanos;

mod archived;
pub mod calendar;
mod cells;
mod clocks;
mod comparisons;
mod evidence;
mod field;
mod flags;
mod heap;
mod incidents;
mod json;
mod ledger;
mod limits;
mod load_curves;
mod rejected;
mod rings;
mod scaling;
mod stacks;
mod value;
mod waiting;

pub use self::value::{Kind, Value};

/// Version of the tables' columns, written into every file; it grows when a column changes its name or meaning.
pub const SCHEMA_VERSION: &str = "3";

/// The key of a field's metadata, in Arrow and in Parquet files, that holds [`Column::description`].
pub const DESCRIPTION_KEY: &str = "description";

/// The key of a field's metadata that holds [`Column::unit`], if the column has one.
pub const UNIT_KEY: &str = "unit";

/// A value could not be written into, or taken from, a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The row holds NaN: a calculation went wrong before the row was made, since unknown values are null and never
    /// NaN.
    #[error("{table}.{column} is not a number in the row {row}")]
    NotANumber {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key, as JSON.
        row: String,
    },
    /// A value does not fit its column.
    #[error("{table}.{column} cannot hold {found}")]
    Unfit {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// What was found.
        found: String,
    },
}

impl TableError {
    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotANumber { .. } => "not_a_number",
            Self::Unfit { .. } => "unfit_value",
        }
    }
}

/// One column of the table of `R`.
pub struct Column<R> {
    /// Its name in files, in alerts and in the Arrow schema.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether its value can be unknown.
    pub nullable: bool,
    /// One to three plain sentences for readers of the table: what it holds, its range, what decides it, and when it is
    /// null.
    pub description: &'static str,
    /// The unit of its numbers: `samples`, `s`, `nats`, or `1` for plain ratios; `None` for texts and instants.
    pub unit: Option<&'static str>,
    read: fn(&R) -> Value<'_>,
    write: fn(&mut R, Value<'_>) -> Option<()>,
}

impl<R: TableRow> Column<R> {
    /// The value of this column in `row`.
    pub fn value<'a>(&self, row: &'a R) -> Value<'a> {
        (self.read)(row)
    }

    /// The value of this column in `row`, unless it is NaN.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row holds NaN here.
    pub fn checked<'a>(&self, row: &'a R) -> Result<Value<'a>, TableError> {
        match self.value(row) {
            Value::Number(number) if number.is_nan() => {
                Err(TableError::NotANumber { table: R::TABLE, column: self.name, row: key_of(row) })
            }
            value => Ok(value),
        }
    }

    /// Sets this column of `row`.
    ///
    /// # Errors
    /// [`TableError::Unfit`]: the value is of another kind, not one of the column's names, or null although the column
    /// is not nullable.
    pub fn set(&self, row: &mut R, value: Value<'_>) -> Result<(), TableError> {
        let unfit = || TableError::Unfit { table: R::TABLE, column: self.name, found: format!("{value:?}") };
        (self.write)(row, value).ok_or_else(unfit)
    }
}

/// A row of one of the tables.
pub trait TableRow: Clone + PartialEq + Send + Sync + 'static {
    /// Name of the table and of its folder.
    const TABLE: &'static str;
    /// The columns by which files are sorted. Rows that are equal in all of them are sorted by the other columns.
    const SORTED_BY: &'static [&'static str];

    /// The columns, in the order of files.
    fn columns() -> &'static [Column<Self>];

    /// A row to write columns into.
    fn blank() -> Self;

    /// The event time by which the row is filed under a date and an hour; the Unix epoch if it has none.
    fn filed_at(&self) -> Nanos;
}

impl Tables {
    /// The earliest time by which a row is filed, in any table.
    pub fn filed_from(&self) -> Option<Nanos> {
        let firsts = [
            earliest(&self.cells),
            earliest(&self.evidence),
            earliest(&self.flags),
            earliest(&self.comparisons),
            earliest(&self.incidents),
            earliest(&self.scaling),
            earliest(&self.rings),
            earliest(&self.heap),
            earliest(&self.waiting),
            earliest(&self.stacks),
            earliest(&self.load_curves),
            earliest(&self.ledger),
            earliest(&self.rejected),
            earliest(&self.clocks),
            earliest(&self.limits),
        ];
        firsts.into_iter().flatten().min()
    }
}

fn earliest<R: TableRow>(rows: &[R]) -> Option<Nanos> {
    rows.iter().map(TableRow::filed_at).min()
}

/// The columns of `R` in the order in which rows are sorted: those of the key first.
pub(crate) fn sort_order<R: TableRow>() -> Vec<&'static Column<R>> {
    let keys = R::SORTED_BY.iter().filter_map(|key| R::columns().iter().find(|column| column.name == *key));
    let others = R::columns().iter().filter(|column| !R::SORTED_BY.contains(&column.name));
    keys.chain(others).collect()
}

/// The order of rows by the columns by which the table is sorted.
pub fn by_key<R: TableRow>(one: &R, other: &R) -> std::cmp::Ordering {
    let keys = R::SORTED_BY.iter().filter_map(|key| R::columns().iter().find(|column| column.name == *key));
    let mut by_column = keys.map(|column| column.value(one).total_cmp(&column.value(other)));
    by_column.find(|ordering| ordering.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

/// Sorts rows totally: by key, then by every other column, so that only equal rows can change places.
pub fn sort_rows<R: TableRow>(rows: &mut [&R]) {
    let columns = sort_order::<R>();
    rows.sort_by(|a, b| {
        let mut by_column = columns.iter().map(|column| column.value(a).total_cmp(&column.value(b)));
        by_column.find(|ordering| ordering.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
}

/// The row as the text of a JSON object with one member per column, in the order of the table, null where unknown.
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

/// The values of the columns by which the table is sorted, as the text of a JSON array: enough to find the row again.
///
/// ```
/// use fleetdiff_schemas::{rows::LedgerRow, tables::{TableRow, key_of}};
/// let row = LedgerRow { profile_type: "cpu".to_owned(), ..LedgerRow::blank() };
/// assert_eq!(key_of(&row), r#"["1970-01-01T00:00:00Z","cpu"]"#);
/// ```
pub fn key_of<R: TableRow>(row: &R) -> String {
    let is_key = |column: &&Column<R>| R::SORTED_BY.contains(&column.name);
    let keys: Vec<Json> = R::columns().iter().filter(is_key).map(|column| json_of(column.value(row))).collect();
    Json::from(keys).to_string()
}

/// The Arrow schema of the table of `R`; timestamps are microseconds in UTC, the field of list items is `element`. Each field
/// carries its column's description and unit as metadata.
///
/// ```
/// use fleetdiff_schemas::{rows::LedgerRow, tables::{UNIT_KEY, arrow_schema_of}};
/// let schema = arrow_schema_of::<LedgerRow>();
/// assert_eq!(schema.field(0).name(), "hop_at");
/// assert_eq!(schema.field_with_name("samples_counted").unwrap().metadata()[UNIT_KEY], "samples");
/// ```
pub fn arrow_schema_of<R: TableRow>() -> arrow_schema::Schema {
    use arrow_schema::{DataType, Field, TimeUnit};
    let fields: Vec<Field> = R::columns()
        .iter()
        .map(|column| {
            let data_type = match column.kind {
                Kind::Text | Kind::Name(_) => DataType::Utf8,
                Kind::Count => DataType::Int64,
                Kind::Number => DataType::Float64,
                Kind::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                Kind::Texts => DataType::List(Field::new("element", DataType::Utf8, false).into()),
                Kind::Counts => DataType::List(Field::new("element", DataType::Int64, false).into()),
                Kind::Truth => DataType::Boolean,
            };
            let description = (DESCRIPTION_KEY.to_owned(), column.description.to_owned());
            let unit = column.unit.map(|unit| (UNIT_KEY.to_owned(), unit.to_owned()));
            let metadata: HashMap<_, _> = std::iter::once(description).chain(unit).collect();
            Field::new(column.name, data_type, column.nullable).with_metadata(metadata)
        })
        .collect();
    arrow_schema::Schema::new(fields)
}

/// Columns that are made once, on first use.
type Columns<R> = LazyLock<Vec<Column<R>>>;

/// A row that contains a part `P`, or is one.
trait Holds<P> {
    fn part(&self) -> &P;
    fn part_mut(&mut self) -> &mut P;
}

impl<P> Holds<P> for P {
    fn part(&self) -> &P {
        self
    }

    fn part_mut(&mut self) -> &mut P {
        self
    }
}

/// Lists the columns of a part `$part` of a row, each with its description, and with its unit if it holds numbers:
/// `name: field => description` or `name in unit: field => description` for a field, `name in unit +-: field =>
/// description` for an `Option<Interval>`, which becomes `name`, `name_low` and `name_high`. A column without a
/// description does not compile.
macro_rules! columns_of {
    ($part:ty: $($list:tt)+) => {{
        let mut columns = Vec::new();
        crate::tables::columns_of!(@each columns $part, $($list)+);
        columns
    }};
    (@each $columns:ident $part:ty,
        $name:literal $(in $unit:literal)?: $($field:ident).+ => $description:literal, $($rest:tt)*
    ) => {
        let (kind, nullable) = crate::tables::field::shape_of(|part: &$part| &part.$($field).+);
        $columns.push(crate::tables::Column {
            name: $name,
            kind,
            nullable,
            description: $description,
            unit: crate::tables::columns_of!(@unit $($unit)?),
            read: |row| {
                let part: &$part = crate::tables::Holds::part(row);
                crate::tables::field::Field::value(&part.$($field).+)
            },
            write: |row, value| {
                let part: &mut $part = crate::tables::Holds::part_mut(row);
                part.$($field).+ = crate::tables::field::Field::from_value(value)?;
                Some(())
            },
        });
        crate::tables::columns_of!(@each $columns $part, $($rest)*);
    };
    (@each $columns:ident $part:ty,
        $name:literal in $unit:literal +-: $($field:ident).+ => $description:literal, $($rest:tt)*
    ) => {
        crate::tables::columns_of!(@end $columns $part, $name, $unit, $description, $($field).+, value);
        crate::tables::columns_of!(
            @end $columns $part, concat!($name, "_low"), $unit,
            concat!("Lower end of the 95 % interval of `", $name, "`; null where that is null."), $($field).+, low
        );
        crate::tables::columns_of!(
            @end $columns $part, concat!($name, "_high"), $unit,
            concat!("Upper end of the 95 % interval of `", $name, "`; null where that is null."), $($field).+, high
        );
        crate::tables::columns_of!(@each $columns $part, $($rest)*);
    };
    (@end
        $columns:ident $part:ty, $name:expr, $unit:literal, $description:expr, $($field:ident).+, $end:ident
    ) => {
        $columns.push(crate::tables::Column {
            name: $name,
            kind: crate::tables::Kind::Number,
            nullable: true,
            description: $description,
            unit: Some($unit),
            read: |row| {
                let part: &$part = crate::tables::Holds::part(row);
                crate::tables::field::end_of(part.$($field).+.as_ref(), |interval| interval.$end)
            },
            write: |row, value| {
                let part: &mut $part = crate::tables::Holds::part_mut(row);
                crate::tables::field::set_end(&mut part.$($field).+, value, |interval| &mut interval.$end)
            },
        });
    };
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
    (@each $columns:ident $part:ty,) => {};
}
use columns_of;
