//! What a sample is of, in words that hold in both files.

use std::collections::HashMap;

use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::formats::pprof::proto::{Function, Label, Location, Mapping, Profile, Sample};

/// Stack (places by number, leaf first) and labels (ascending) of a sample.
pub(super) type Key<'a> = (Vec<usize>, Vec<LabelKey<'a>>);
/// Key, text, number, unit.
pub(super) type LabelKey<'a> = [Part<'a>; 4];
/// A program counter: file, build and offset of its mapping; its address within that; whether its functions were
/// merged; for each function name, linker's name, file, first line, line and column.
type Place<'a> = Vec<Part<'a>>;

/// A piece of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part<'a> {
    /// A string of the table.
    Text(&'a str),
    /// A number.
    Number(i128),
}

/// The strings of a profile.
#[derive(Clone, Copy)]
pub(super) struct Names<'a>(pub(super) &'a Profile);

impl<'a> Names<'a> {
    pub(super) fn text(self, index: i64) -> Result<&'a str, Rejection> {
        let found = usize::try_from(index).ok().and_then(|index| self.0.string_table.get(index));
        match found {
            Some(text) => Ok(text),
            None if index == 0 => Ok(""),
            None => Err(out_of_range("string", index.into(), self.0.string_table.len())),
        }
    }

    fn part(self, index: i64) -> Result<Part<'a>, Rejection> {
        self.text(index).map(Part::Text)
    }

    /// A stack for people: its leaf, and how many locations it has.
    pub(super) fn stack(self, sample: &Sample) -> String {
        let leaf = sample.location_id.first().and_then(|id| self.0.location.iter().find(|location| location.id == *id));
        let function = leaf.and_then(|leaf| leaf.line.first()).and_then(|line| self.0.function.iter().find(|function| function.id == line.function_id));
        let name = function.and_then(|function| self.text(function.name).ok()).unwrap_or("a frame without a name");
        format!("{name} (a stack of {})", sample.location_id.len())
    }
}

/// The program counters of both files, numbered together.
#[derive(Default)]
pub(super) struct Stacks<'a> {
    places: HashMap<Place<'a>, usize>,
}

impl<'a> Stacks<'a> {
    /// Numbers the locations of a profile.
    pub(super) fn of(&mut self, profile: &'a Profile) -> Result<Keys<'a>, Rejection> {
        let names = Names(profile);
        let functions: HashMap<u64, &Function> = profile.function.iter().map(|function| (function.id, function)).collect();
        let mappings: HashMap<u64, &Mapping> = profile.mapping.iter().map(|mapping| (mapping.id, mapping)).collect();
        let mut locations = HashMap::with_capacity(profile.location.len());
        for location in &profile.location {
            let place = place(location, names, &functions, &mappings)?;
            let next = self.places.len();
            locations.insert(location.id, *self.places.entry(place).or_insert(next));
        }
        Ok(Keys { names, locations })
    }
}

fn place<'a>(location: &Location, names: Names<'a>, functions: &HashMap<u64, &Function>, mappings: &HashMap<u64, &Mapping>) -> Result<Place<'a>, Rejection> {
    let mapping = mappings.get(&location.mapping_id).copied().copied().unwrap_or_default();
    let offset = Part::Number(i128::from(location.address) - i128::from(mapping.memory_start));
    let mut place = vec![names.part(mapping.filename)?, names.part(mapping.build_id)?, Part::Number(mapping.file_offset.into()), offset];
    place.push(Part::Number(i128::from(location.is_folded)));
    for line in &location.line {
        // NB: that it is there was checked when the tables were cut; 0 is no function.
        let function = functions.get(&line.function_id).copied().copied().unwrap_or_default();
        place.extend([names.part(function.name)?, names.part(function.system_name)?, names.part(function.filename)?]);
        place.extend([function.start_line, line.line, line.column].map(|number| Part::Number(number.into())));
    }
    Ok(place)
}

/// The keys of one profile's samples.
pub(super) struct Keys<'a> {
    names: Names<'a>,
    locations: HashMap<u64, usize>,
}

impl<'a> Keys<'a> {
    pub(super) fn key(&self, sample: &Sample) -> Result<Key<'a>, Rejection> {
        let number = |id: &u64| self.locations.get(id).copied().ok_or_else(|| out_of_range("location", i128::from(*id), self.locations.len()));
        let stack = sample.location_id.iter().map(number).collect::<Result<_, _>>()?;
        let mut labels = sample.label.iter().map(|label| self.label(label)).collect::<Result<Vec<_>, _>>()?;
        labels.sort_unstable();
        Ok((stack, labels))
    }

    fn label(&self, label: &Label) -> Result<LabelKey<'a>, Rejection> {
        let names = self.names;
        Ok([names.part(label.key)?, names.part(label.str)?, Part::Number(label.num.into()), names.part(label.num_unit)?])
    }
}

fn out_of_range(kind: &str, index: i128, length: usize) -> Rejection {
    Rejection::new(Reason::IndexOutOfRange, format!("{kind} {index} in a table of {length}"))
}
