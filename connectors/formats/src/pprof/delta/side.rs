//! One of the two files, cut into its tables; samples and locations still lie in its bytes.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::pprof::faults::{malformed, out_of_range};
use crate::pprof::proto::{Function, Label, Mapping, Profile};
use crate::pprof::tables::value_type;
use crate::wire::{Value, fields};

/// A file's tables.
#[derive(Default)]
pub(super) struct Side<'a> {
    /// All that is no table: sample types, period, time, comments.
    pub(super) head: Profile,
    pub(super) strings: Vec<&'a str>,
    pub(super) samples: Vec<&'a [u8]>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<&'a [u8]>,
    pub(super) functions: Vec<Function>,
    /// Entries that may still come; a few bytes would else become many.
    entries_left: usize,
    /// The same of mappings, labels and comments.
    more_left: usize,
}

impl<'a> Side<'a> {
    /// Cuts a message. Holds memory to a small multiple of `max_bytes`.
    pub(super) fn cut(message: &'a [u8], max_bytes: usize) -> Result<Self, Rejection> {
        let mut side = Self { entries_left: max_bytes / 32, more_left: max_bytes / 32, ..Self::default() };
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            side.take(tag, value)?;
        }
        if side.strings.first().is_some_and(|first| !first.is_empty()) {
            return Err(malformed("the first string is not empty"));
        }
        if side.head.sample_type.is_empty() {
            return Err(Rejection::new(Reason::UnitMismatch, "no sample type says what its values are"));
        }
        Ok(side)
    }

    fn take(&mut self, tag: u32, value: Value<'a>) -> Result<(), Rejection> {
        let head = &mut self.head;
        match tag {
            1 => head.sample_type.push(value_type(value)?),
            2 => self.samples.push(value.bytes()?),
            3 => self.mappings.push(mapping(value)?),
            4 => self.locations.push(value.bytes()?),
            5 => self.functions.push(function(value)?),
            6 => self.strings.push(text(value)?),
            7 => head.drop_frames = value.signed()?,
            8 => head.keep_frames = value.signed()?,
            9 => head.time_nanos = value.signed()?,
            10 => head.duration_nanos = value.signed()?,
            11 => head.period_type = Some(value_type(value)?),
            12 => head.period = value.signed()?,
            13 => value.each(|index| self.comment(index))?,
            14 => head.default_sample_type = value.signed()?,
            _ => {}
        }
        match tag {
            1 | 2 | 4 | 5 | 6 => self.count_entry(),
            3 => self.count_more(1),
            _ => Ok(()),
        }
    }

    fn comment(&mut self, index: u64) -> Result<(), Rejection> {
        self.head.comment.push(index.cast_signed());
        self.count_more(1)
    }

    pub(super) fn count_entry(&mut self) -> Result<(), Rejection> {
        let left = self.entries_left.checked_sub(1);
        self.entries_left =
            left.ok_or_else(|| Rejection::new(Reason::TooLarge, "the profile has too many entries to hold"))?;
        Ok(())
    }

    pub(super) fn count_more(&mut self, entries: usize) -> Result<(), Rejection> {
        let left = self.more_left.checked_sub(entries);
        let full =
            || Rejection::new(Reason::TooLarge, "the profile has too many mappings, labels and comments to hold");
        self.more_left = left.ok_or_else(full)?;
        Ok(())
    }

    /// A string of the table; index 0 is the empty one even where the table is missing.
    pub(super) fn text(&self, index: i64) -> Result<&'a str, Rejection> {
        let found = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        match found {
            Some(text) => Ok(text),
            None if index == 0 => Ok(""),
            None => Err(out_of_range("string", index, self.strings.len())),
        }
    }
}

fn text(value: Value<'_>) -> Result<&str, Rejection> {
    std::str::from_utf8(value.bytes()?).map_err(|_| malformed("a string is not UTF-8"))
}

fn mapping(value: Value<'_>) -> Result<Mapping, Rejection> {
    let mut read = Mapping::default();
    let mut parts = fields(value.bytes()?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.id = value.number()?,
            2 => read.memory_start = value.number()?,
            3 => read.memory_limit = value.number()?,
            4 => read.file_offset = value.number()?,
            5 => read.filename = value.signed()?,
            6 => read.build_id = value.signed()?,
            7 => read.has_functions = value.number()? != 0,
            8 => read.has_filenames = value.number()? != 0,
            9 => read.has_line_numbers = value.number()? != 0,
            10 => read.has_inline_frames = value.number()? != 0,
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
            4 => read.filename = value.signed()?,
            5 => read.start_line = value.signed()?,
            _ => {}
        }
    }
    Ok(read)
}

pub(super) fn label(value: Value<'_>) -> Result<Label, Rejection> {
    let mut read = Label::default();
    let mut parts = fields(value.bytes()?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.key = value.signed()?,
            2 => read.str = value.signed()?,
            3 => read.num = value.signed()?,
            4 => read.num_unit = value.signed()?,
            _ => {}
        }
    }
    Ok(read)
}
