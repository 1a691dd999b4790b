//! What a sample is of, in numbers that hold in both files.

use std::collections::HashMap;

use fleetdiff_schemas::rejected::Rejection;

use super::numbers::{Rows, Texts, place, words};
use super::side::Side;
use crate::pprof::faults::out_of_range;
use crate::pprof::ids::Ids;
use crate::pprof::proto::{Function, Label, Line, Mapping};
use crate::wire::{Value, fields};

/// Numbers of both files' entries.
#[derive(Default)]
pub(super) struct Numbers<'a> {
    texts: Texts<'a>,
    /// Name, linker's name, file, first line.
    functions: Rows,
    /// Program counters: for each function its number, line and column; then file, build and offset of the mapping, the
    /// address within that, and whether functions were merged.
    counters: Rows,
    /// Stacks (how many program counters, and which, leaf first) with labels (key, text, number, unit; in ascending order).
    pub(super) stacks: Rows,
}

/// An entry of a file: where it stands in its table, and its number.
#[derive(Clone, Copy)]
pub(super) struct TableEntry {
    place: u32,
    number: u32,
}

impl TableEntry {
    pub(super) fn place(self) -> usize {
        place(self.place)
    }
}

/// The numbers of one file's entries, by its own indexes and ids.
pub(super) struct Keys {
    texts: Vec<u32>,
    empty: u32,
    pub(super) functions: Ids<TableEntry>,
    pub(super) locations: Ids<TableEntry>,
    /// Numbers of locations by id, where ids are small: every frame of every sample asks for one.
    counters: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<'a> Numbers<'a> {
    /// Numbers the entries of a file, and makes room for its samples.
    pub(super) fn of(&mut self, side: &mut Side<'a>) -> Result<Keys, Rejection> {
        let texts = self.texts.of(&side.strings);
        let empty = self.texts.number("");
        let mut functions = Ids::with_capacity(side.functions.len());
        let text = |index: i64| text_number(&texts, empty, index);
        self.functions.reserve(side.functions.len(), side.functions.len() * 5);
        for (function, place) in side.functions.iter().zip(0..) {
            let Function { id, name, system_name, filename, start_line } = *function;
            let [low, high] = words(start_line.cast_unsigned());
            let number = self.functions.number(&[text(name)?, text(system_name)?, text(filename)?, low, high]);
            functions.push(id, TableEntry { place, number });
        }
        let mut keys = Keys {
            texts,
            empty,
            functions: functions.checked("function")?,
            locations: Ids::with_capacity(0),
            counters: Vec::new(),
        };
        keys.locations = self.locations(side, &keys)?;
        keys.counters = small(&keys.locations);
        // A frame is a byte or two.
        self.stacks.reserve(side.samples.len(), side.samples.iter().map(|sample| sample.len()).sum::<usize>() / 2);
        Ok(keys)
    }

    fn locations(&mut self, side: &mut Side<'a>, keys: &Keys) -> Result<Ids<TableEntry>, Rejection> {
        let mappings: HashMap<u64, Mapping> = side.mappings.iter().map(|mapping| (mapping.id, *mapping)).collect();
        let mut ids = Ids::with_capacity(side.locations.len());
        let mut row = Vec::new();
        self.counters.reserve(side.locations.len(), side.locations.len() * 12);
        for (message, place) in std::mem::take(&mut side.locations).into_iter().zip(0..) {
            row.clear();
            let head = location(message, |line| {
                side.count_entry()?;
                keys.line(line, &mut row)
            })?;
            let mapping = mappings.get(&head.mapping_id).copied().unwrap_or_default();
            row.extend([keys.text(mapping.filename)?, keys.text(mapping.build_id)?]);
            row.extend(words(mapping.file_offset));
            row.extend(words(head.address.wrapping_sub(mapping.memory_start)));
            row.push(u32::from(head.is_folded) * 2 + u32::from(head.address < mapping.memory_start));
            ids.push(head.id, TableEntry { place, number: self.counters.number(&row) });
            side.locations.push(message);
        }
        ids.checked("location")
    }
}

impl Keys {
    /// The number of a location.
    #[inline]
    pub(super) fn counter(&self, id: u64) -> Option<u32> {
        match usize::try_from(id).ok().and_then(|id| self.counters.get(id)) {
            Some(&counter) if counter != ABSENT => Some(counter),
            _ => self.locations.find(id).map(|entry| entry.number),
        }
    }

    pub(super) fn label(&self, label: &Label) -> Result<[u32; 5], Rejection> {
        let [low, high] = words(label.num.cast_unsigned());
        Ok([self.text(label.key)?, self.text(label.str)?, low, high, self.text(label.num_unit)?])
    }

    /// NB: 0 is no function, so numbers of functions are moved up by one.
    fn line(&self, line: Line, row: &mut Vec<u32>) -> Result<(), Rejection> {
        let function =
            if line.function_id == 0 { 0 } else { self.functions.get(line.function_id)?.number.saturating_add(1) };
        row.push(function);
        row.extend(words(line.line.cast_unsigned()));
        row.extend(words(line.column.cast_unsigned()));
        Ok(())
    }

    fn text(&self, index: i64) -> Result<u32, Rejection> {
        text_number(&self.texts, self.empty, index)
    }
}

/// Entries by id as far as ids are not much larger than their number.
fn small(locations: &Ids<TableEntry>) -> Vec<u32> {
    let mut counters = vec![ABSENT; locations.len() * 2 + 1];
    for (id, entry) in locations.iter() {
        if let Some(counter) = usize::try_from(id).ok().and_then(|id| counters.get_mut(id)) {
            *counter = entry.number;
        }
    }
    counters
}

fn text_number(texts: &[u32], empty: u32, index: i64) -> Result<u32, Rejection> {
    let found = usize::try_from(index).ok().and_then(|index| texts.get(index));
    match found {
        Some(number) => Ok(*number),
        None if index == 0 => Ok(empty),
        None => Err(out_of_range("string", index, texts.len())),
    }
}

/// A location without its lines.
#[derive(Default)]
pub(super) struct LocationHead {
    id: u64,
    mapping_id: u64,
    address: u64,
    is_folded: bool,
}

/// Reads a location and calls `each` with its lines, innermost function first.
pub(super) fn location(
    message: &[u8],
    mut each: impl FnMut(Line) -> Result<(), Rejection>,
) -> Result<LocationHead, Rejection> {
    let mut head = LocationHead::default();
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => head.id = value.number()?,
            2 => head.mapping_id = value.number()?,
            3 => head.address = value.number()?,
            4 => each(line(value)?)?,
            5 => head.is_folded = value.number()? != 0,
            _ => {}
        }
    }
    Ok(head)
}

fn line(value: Value<'_>) -> Result<Line, Rejection> {
    let mut read = Line::default();
    let mut parts = fields(value.bytes()?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.function_id = value.number()?,
            2 => read.line = value.signed()?,
            3 => read.column = value.signed()?,
            _ => {}
        }
    }
    Ok(read)
}
