//! The message of a delta: its samples, what they refer to, and nothing else.

use std::ops::Range;

use fleetdiff_schemas::rejected::Rejection;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, int64, message, uint64};

use super::keys::{Keys, location};
use super::sample::Sample;
use super::side::Side;
use crate::pprof::proto::{Function, Label, Mapping, Profile, ValueType};

/// The samples of a delta.
#[derive(Default)]
pub(super) struct Kept<'a> {
    /// For each a sample of the later file with its stack and labels, and where its values stand.
    pub(super) samples: Vec<(&'a [u8], Range<usize>)>,
    pub(super) values: Vec<i64>,
}

/// Writes the samples of a delta with what of the later file they refer to, below `head`. Locations and functions keep their
/// ids, strings are numbered anew in their old order. Mappings stay, since the first of them names the program.
pub(super) fn write(side: &Side<'_>, keys: &Keys, head: Profile, kept: &Kept<'_>) -> Result<Vec<u8>, Rejection> {
    let used = Used::of(side, keys, &head, kept)?;
    let strings = Numbered::of(&used.strings);
    let rest = strings.head(head);
    let columns = Profile { sample_type: rest.sample_type.clone(), ..Profile::default() };
    let mut out = Vec::with_capacity(kept.samples.iter().map(|(sample, _)| sample.len() + 16).sum());
    out.extend(columns.encode_to_vec());
    samples(kept, &strings, &mut out)?;
    side.mappings.iter().for_each(|mapping| message::encode(3, &strings.mapping(*mapping), &mut out));
    let of = |message: &[u8], tag: u32, out: &mut Vec<u8>| {
        encode_key(tag, WireType::LengthDelimited, out);
        put(message, out);
    };
    chosen(&side.locations, &used.locations).for_each(|location| of(location, 4, &mut out));
    chosen(&side.functions, &used.functions)
        .for_each(|function| message::encode(5, &strings.function(*function), &mut out));
    chosen(&side.strings, &used.strings).for_each(|text| of(text.as_bytes(), 6, &mut out));
    out.extend(Profile { sample_type: Vec::new(), ..rest }.encode_to_vec());
    Ok(out)
}

fn samples(kept: &Kept<'_>, strings: &Numbered, out: &mut Vec<u8>) -> Result<(), Rejection> {
    let (mut sample, mut whole) = (Sample::default(), Vec::new());
    for (message, values) in &kept.samples {
        sample.read(message)?;
        whole.clear();
        uint64::encode_packed(1, &sample.locations, &mut whole);
        int64::encode_packed(2, kept.values.get(values.clone()).unwrap_or_default(), &mut whole);
        sample.labels.iter().for_each(|label| message::encode(3, &strings.label(*label), &mut whole));
        encode_key(2, WireType::LengthDelimited, out);
        put(&whole, out);
    }
    Ok(())
}

/// Bytes behind their length.
fn put(bytes: &[u8], out: &mut Vec<u8>) {
    encode_varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX), out);
    out.extend_from_slice(bytes);
}

fn chosen<'a, T>(table: &'a [T], used: &'a [bool]) -> impl Iterator<Item = &'a T> {
    table.iter().zip(used).filter(|(_, used)| **used).map(|(entry, _)| entry)
}

/// What is referred to, by place in its table.
struct Used {
    locations: Vec<bool>,
    functions: Vec<bool>,
    strings: Vec<bool>,
}

impl Used {
    fn of(side: &Side<'_>, keys: &Keys, head: &Profile, kept: &Kept<'_>) -> Result<Self, Rejection> {
        let none = |entries: usize| vec![false; entries];
        let mut used = Self {
            locations: none(side.locations.len()),
            functions: none(side.functions.len()),
            strings: none(side.strings.len()),
        };
        used.strings(&[0, head.drop_frames, head.keep_frames, head.default_sample_type]);
        used.strings(&head.comment);
        head.sample_type.iter().chain(&head.period_type).for_each(|column| used.strings(&[column.r#type, column.unit]));
        side.mappings.iter().for_each(|mapping| used.strings(&[mapping.filename, mapping.build_id]));
        let mut sample = Sample::default();
        for (message, _) in &kept.samples {
            sample.read(message)?;
            for id in &sample.locations {
                mark(&mut used.locations, keys.locations.get(*id)?.place());
            }
            sample.labels.iter().for_each(|label| used.strings(&[label.key, label.str, label.num_unit]));
        }
        for message in chosen(&side.locations, &used.locations) {
            location(message, |line| {
                if line.function_id != 0 {
                    mark(&mut used.functions, keys.functions.get(line.function_id)?.place());
                }
                Ok(())
            })?;
        }
        let strings = &mut used.strings;
        for function in chosen(&side.functions, &used.functions) {
            [function.name, function.system_name, function.filename]
                .into_iter()
                .for_each(|index| mark_index(strings, index));
        }
        Ok(used)
    }

    fn strings(&mut self, indexes: &[i64]) {
        indexes.iter().for_each(|index| mark_index(&mut self.strings, *index));
    }
}

fn mark_index(used: &mut [bool], index: i64) {
    if let Ok(place) = usize::try_from(index) {
        mark(used, place);
    }
}

fn mark(used: &mut [bool], place: usize) {
    if let Some(used) = used.get_mut(place) {
        *used = true;
    }
}

/// The new indexes of strings.
struct Numbered(Vec<i64>);

impl Numbered {
    fn of(used: &[bool]) -> Self {
        let next = |next: &mut i64, used: &bool| {
            let index = *next;
            *next += i64::from(*used);
            Some(index)
        };
        Self(used.iter().scan(0, next).collect())
    }

    /// NB: an index outside of the table is the empty string.
    fn of_index(&self, index: i64) -> i64 {
        usize::try_from(index).ok().and_then(|index| self.0.get(index)).copied().unwrap_or(0)
    }

    fn head(&self, head: Profile) -> Profile {
        let of = |index: i64| self.of_index(index);
        let column = |column: ValueType| ValueType { r#type: of(column.r#type), unit: of(column.unit) };
        Profile {
            sample_type: head.sample_type.into_iter().map(column).collect(),
            drop_frames: of(head.drop_frames),
            keep_frames: of(head.keep_frames),
            period_type: head.period_type.map(column),
            comment: head.comment.into_iter().map(of).collect(),
            default_sample_type: of(head.default_sample_type),
            ..head
        }
    }

    fn mapping(&self, mapping: Mapping) -> Mapping {
        Mapping { filename: self.of_index(mapping.filename), build_id: self.of_index(mapping.build_id), ..mapping }
    }

    fn function(&self, function: Function) -> Function {
        let [name, system_name, filename] =
            [function.name, function.system_name, function.filename].map(|index| self.of_index(index));
        Function { name, system_name, filename, ..function }
    }

    fn label(&self, label: Label) -> Label {
        let [key, str, num_unit] = [label.key, label.str, label.num_unit].map(|index| self.of_index(index));
        Label { key, str, num_unit, ..label }
    }
}
