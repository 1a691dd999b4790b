//! First pass: the message cut into its tables.

use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::faults::{malformed, out_of_range};
use crate::budget::Budget;
use crate::counts::Columns;
use crate::pprof::proto::ValueType;
use crate::wire::{Value, WireFault, fields};

/// The tables of a profile; strings, samples and lines still lie in the record's bytes.
pub(super) struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    /// Columns, as indexes of their type and unit.
    sample_types: Vec<ValueType>,
    pub(super) samples: Vec<&'a [u8]>,
    pub(super) locations: Vec<&'a [u8]>,
    pub(super) function_table: Vec<Function>,
    period_type: ValueType,
    period: i64,
    time_nanos: i64,
    duration_nanos: i64,
    /// What may still be built of the record.
    pub(super) budget: Budget,
}

/// A function of the table, its texts as indexes of strings.
#[derive(Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) id: u64,
    name: i64,
    system_name: i64,
    /// Of its source.
    pub(super) file: i64,
}

impl<'a> Tables<'a> {
    /// Cuts a message into its tables, which are charged to this budget.
    pub(super) fn cut(message: &'a [u8], budget: &Budget) -> Result<Self, Rejection> {
        let mut tables = Self::empty(budget.clone());
        let mut fields = fields(message);
        while let Some((tag, value)) = fields.next()? {
            tables.take(tag, value)?;
        }
        match tables.strings.first() {
            Some(first) if !first.is_empty() => Err(malformed("the first string is not empty")),
            _ => Ok(tables),
        }
    }

    fn empty(budget: Budget) -> Self {
        Self {
            strings: Vec::new(),
            sample_types: Vec::new(),
            samples: Vec::new(),
            locations: Vec::new(),
            function_table: Vec::new(),
            period_type: ValueType::default(),
            period: 0,
            time_nanos: 0,
            duration_nanos: 0,
            budget,
        }
    }

    fn take(&mut self, tag: u32, value: Value<'a>) -> Result<(), Rejection> {
        let budget = &self.budget;
        match tag {
            1 => budget.push(&mut self.sample_types, value_type(value)?)?,
            2 => budget.push(&mut self.samples, value.bytes()?)?,
            4 => budget.push(&mut self.locations, value.bytes()?)?,
            5 => budget.push(&mut self.function_table, function(value)?)?,
            6 => budget.push(&mut self.strings, value.bytes()?)?,
            9 => self.time_nanos = value.signed()?,
            10 => self.duration_nanos = value.signed()?,
            11 => self.period_type = value_type(value)?,
            12 => self.period = value.signed()?,
            _ => {}
        }
        Ok(())
    }

    /// The values of a column, row by row; 0 where a row is too short.
    pub(super) fn values(&self, column: usize) -> impl Iterator<Item = Result<i64, Rejection>> {
        self.samples.iter().map(move |sample| value_of(sample, column))
    }

    /// How many functions there are.
    pub(super) fn functions(&self) -> usize {
        self.function_table.len()
    }

    /// The name of a function: the one for people, else the one for the linker; empty if it has none.
    pub(super) fn name_of(&self, function: &Function) -> Result<&'a str, Rejection> {
        let name = self.text(function.name)?;
        if name.is_empty() { self.text(function.system_name) } else { Ok(name) }
    }

    /// Whether it has neither samples nor says what they would be.
    pub(super) fn says_nothing(&self) -> bool {
        self.samples.is_empty() && self.sample_types.is_empty()
    }

    /// Whether there is a column of memory in use.
    pub(super) fn holds_level(&self) -> bool {
        let both = [("inuse_objects", "count"), ("inuse_space", "bytes")];
        self.columns().is_ok_and(|columns| both.iter().all(|column| columns.contains(column)))
    }

    /// The window that the profile itself names; nothing without a time.
    pub(super) fn window(&self) -> Option<TimeRange> {
        let start = Nanos(self.time_nanos);
        (start.0 > 0).then(|| TimeRange { start, end: start.plus(Nanos(self.duration_nanos.max(0))) })
    }

    /// Type and unit of each column.
    pub(super) fn columns(&self) -> Result<Vec<(&'a str, &'a str)>, Rejection> {
        self.sample_types.iter().map(|column| self.texts(*column)).collect()
    }

    /// What the columns and the period mean.
    pub(super) fn meaning(&self) -> Result<Columns<'a>, Rejection> {
        let period_type = self.texts(self.period_type).ok();
        Ok(Columns { kinds: self.columns()?, period_type, period: self.period })
    }

    fn texts(&self, of: ValueType) -> Result<(&'a str, &'a str), Rejection> {
        Ok((self.text(of.r#type)?, self.text(of.unit)?))
    }

    /// A string of the table; index 0 is the empty one even where the table is missing.
    pub(super) fn text(&self, index: i64) -> Result<&'a str, Rejection> {
        if index == 0 {
            return Ok("");
        }
        let found = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        let bytes = found.ok_or_else(|| out_of_range("string", index, self.strings.len()))?;
        std::str::from_utf8(bytes).map_err(|_| malformed(&format!("string {index} is not UTF-8")))
    }
}

/// The value of a sample in a column.
fn value_of(sample: &[u8], column: usize) -> Result<i64, Rejection> {
    let (mut place, mut found) = (0, 0);
    let mut parts = fields(sample);
    while let Some((tag, value)) = parts.next()? {
        if tag == 2 {
            value.each(|number| {
                if place == column {
                    found = number.cast_signed();
                }
                place += 1;
                Ok::<(), WireFault>(())
            })?;
        }
    }
    Ok(found)
}

pub(super) fn value_type(value: Value<'_>) -> Result<ValueType, Rejection> {
    let mut read = ValueType::default();
    let mut parts = fields(value.bytes()?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.r#type = value.signed()?,
            2 => read.unit = value.signed()?,
            _ => {}
        }
    }
    Ok(read)
}

fn function(value: Value<'_>) -> Result<Function, Rejection> {
    let mut read = Function::default();
    let mut parts = fields(value.bytes()?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.id = value.number()?,
            2 => read.name = value.signed()?,
            3 => read.system_name = value.signed()?,
            // Only who asks for lines looks at it, so that it spoils nothing if it is no number.
            4 => read.file = value.signed().unwrap_or_default(),
            _ => {}
        }
    }
    Ok(read)
}
