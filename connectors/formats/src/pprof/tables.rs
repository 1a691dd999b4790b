//! First pass: the message cut into its tables, and every reference between them checked.

use std::sync::Arc;

use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::ids::Ids;
use crate::counts::Columns;
use crate::names::{Names, Naming};
use crate::pprof::proto::ValueType;
use crate::wire::{Value, fields};

/// The tables of a profile; strings, samples and lines still lie in the record's bytes.
#[derive(Default)]
pub(super) struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    /// Columns, as indexes of their type and unit.
    sample_types: Vec<ValueType>,
    pub(super) samples: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<Function>,
    period_type: ValueType,
    period: i64,
    time_nanos: i64,
    duration_nanos: i64,
    entries_left: usize,
}

#[derive(Clone, Copy, Default)]
struct Function {
    id: u64,
    name: i64,
    system_name: i64,
}

impl<'a> Tables<'a> {
    /// Cuts a message into its tables. Holds memory to a small multiple of `max_bytes`.
    pub(super) fn cut(message: &'a [u8], max_bytes: usize) -> Result<Self, Rejection> {
        // An entry of 2 bytes becomes one of up to 24.
        let mut tables = Self { entries_left: max_bytes / 32, ..Self::default() };
        let mut fields = fields(message);
        while let Some((tag, value)) = fields.next()? {
            tables.take(tag, value)?;
        }
        match tables.strings.first() {
            Some(first) if !first.is_empty() => Err(malformed("the first string is not empty")),
            _ => Ok(tables),
        }
    }

    fn take(&mut self, tag: u32, value: Value<'a>) -> Result<(), Rejection> {
        match tag {
            1 => self.sample_types.push(value_type(value)?),
            2 => self.samples.push(value.bytes()?),
            4 => self.locations.push(value.bytes()?),
            5 => self.functions.push(function(value)?),
            6 => self.strings.push(value.bytes()?),
            9 => self.time_nanos = value.signed()?,
            10 => self.duration_nanos = value.signed()?,
            11 => self.period_type = value_type(value)?,
            12 => self.period = value.signed()?,
            _ => {}
        }
        if matches!(tag, 1 | 2 | 4 | 5 | 6) { self.count_entry() } else { Ok(()) }
    }

    fn count_entry(&mut self) -> Result<(), Rejection> {
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| Rejection::new(Reason::TooLarge, "the profile has too many entries to hold"))?;
        Ok(())
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

    /// Second pass, once: the name of each function, in the order of the table, and the frames of each location.
    pub(super) fn resolve(&mut self, naming: &mut Naming) -> Result<Frames, Rejection> {
        let mut names = Names::with_capacity(naming, self.functions.len());
        let mut functions = Ids::with_capacity(self.functions.len());
        for function in &self.functions {
            let name = self.text(function.name)?;
            let name = if name.is_empty() { self.text(function.system_name)? } else { name };
            functions.push(function.id, names.index_of(name));
        }
        let functions = functions.checked("function")?;
        let mut frames = Vec::with_capacity(self.locations.len());
        let mut ids = Ids::with_capacity(self.locations.len());
        for location in std::mem::take(&mut self.locations) {
            let start = frames.len();
            let id = self.location(location, &functions, &mut names, &mut frames)?;
            ids.push(id, Span::of(start, frames.len()));
        }
        Ok(Frames { names: names.into_list(), frames, locations: ids.checked("location")? })
    }

    /// Appends the frames of one location, innermost first, and gives its id.
    fn location(
        &mut self,
        message: &[u8],
        functions: &Ids<u32>,
        names: &mut Names<'_>,
        frames: &mut Vec<u32>,
    ) -> Result<u64, Rejection> {
        let (mut id, start) = (0, frames.len());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => id = value.number()?,
                4 => {
                    self.count_entry()?;
                    let function_id = function_of_line(value.bytes()?)?;
                    let name = if function_id == 0 { names.index_of("") } else { functions.get(function_id)? };
                    frames.push(name);
                }
                _ => {}
            }
        }
        if frames.len() == start {
            frames.push(names.index_of(""));
        }
        Ok(id)
    }
}

/// Names, and the frames of each location.
pub(super) struct Frames {
    pub(super) names: Arc<[Arc<str>]>,
    frames: Vec<u32>,
    locations: Ids<Span>,
}

/// Where the frames of a location stand.
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// NB: a profile has fewer than 2^32 lines.
    pub(super) fn of(start: usize, end: usize) -> Self {
        let [start, end] = [start, end].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        Self { start, end }
    }

    /// How many frames.
    pub(super) fn len(self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }
}

impl Frames {
    /// Frames of locations that are so long.
    pub(super) fn new(names: Arc<[Arc<str>]>, frames: Vec<u32>, locations: Ids<Span>) -> Self {
        Self { names, frames, locations }
    }

    /// Where the frames of a location stand, if it is in the table.
    #[inline]
    pub(super) fn of_location(&self, id: u64) -> Option<Span> {
        self.locations.find(id)
    }

    /// Why a location has no frames.
    pub(super) fn missing(&self, id: u64) -> Rejection {
        self.locations.missing(id)
    }

    /// Frames, innermost first, as indexes into the names.
    #[inline]
    pub(super) fn of_span(&self, span: Span) -> &[u32] {
        let [start, end] = [span.start, span.end].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        self.frames.get(start..end).unwrap_or_default()
    }
}

pub(super) fn out_of_range(kind: &str, index: i64, length: usize) -> Rejection {
    Rejection::new(Reason::IndexOutOfRange, format!("{kind} {index} in a table of {length}"))
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
            _ => {}
        }
    }
    Ok(read)
}

fn function_of_line(message: &[u8]) -> Result<u64, Rejection> {
    let mut id = 0;
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        if tag == 1 {
            id = value.number()?;
        }
    }
    Ok(id)
}

#[cold]
pub(super) fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, format!("not a pprof profile: {what}"))
}
