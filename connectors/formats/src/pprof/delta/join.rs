//! Columns of the same stacks that come as files of one column each, put side by side into one file.

use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::TimeRange;

use super::Counted;
use super::keys::Numbers;
use super::side::Side;
use super::write::{Kept, write};
use crate::compression::{decompress, gzip};
use crate::pprof::proto::ValueType;
use crate::wire::fields;

/// Files of one column, and what is said of the file that they become.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// The files, compressed or not; the first is the column of counts.
    pub columns: &'a [Vec<u8>],
    /// When it was taken.
    pub window: TimeRange,
    /// What passes between two samples, where it is not what the first file says; 0 if it is not known.
    pub period: Option<i64>,
    /// The most bytes of one of them without compression.
    pub max_bytes: usize,
}

/// One gzipped file of all columns, in the order of their files, those without a sample left out; nothing if the first is such a one. It has
/// the stacks of the first file, in their order, and a value of 0 where another file lacks a stack. What only other files have is left
/// out: it has no count.
///
/// # Errors
/// The [`Rejection`] of a file that cannot be read, or has no column.
pub fn join(Join { columns, window, period, max_bytes }: Join<'_>) -> Result<Option<Vec<u8>>, Rejection> {
    let mut plain = Vec::new();
    for (place, bytes) in columns.iter().enumerate() {
        let bytes = decompress(bytes, max_bytes)?;
        match (has_samples(&bytes)?, place) {
            (true, _) => plain.push(bytes),
            (false, 0) => return Ok(None),
            (false, _) => {}
        }
    }
    let mut sides = plain.iter().map(|bytes| Side::cut(bytes, max_bytes)).collect::<Result<Vec<_>, _>>()?;
    // NB: all texts of columns are known to the first file, whose table is the one that is written.
    let mut named = Vec::new();
    for side in &sides {
        for column in side.head.sample_type.iter().take(1) {
            named.push((side.text(column.r#type)?, side.text(column.unit)?));
        }
    }
    let Some((first, others)) = sides.split_first_mut() else { return Ok(None) };
    let mut numbers = Numbers::default();
    let mut head = first.head.clone();
    head.sample_type = named.into_iter().map(|(name, unit)| column(first, name, unit)).collect();
    head.default_sample_type = 0;
    head.time_nanos = window.start.0;
    head.duration_nanos = window.end.since(window.start).0;
    head.period = period.unwrap_or(head.period);
    let first = Counted::of(first, &mut numbers)?;
    let others = others.iter_mut().map(|side| Counted::of(side, &mut numbers)).collect::<Result<Vec<_>, _>>()?;
    let mut kept = Kept::default();
    for (stack, sample, counts) in first.sums.in_order() {
        let start = kept.values.len();
        let value = |sums: Option<&[i64]>| sums.and_then(|sums| sums.first().copied()).unwrap_or(0);
        kept.values.push(value(Some(counts)));
        kept.values.extend(others.iter().map(|other| value(other.sums.get(stack))));
        kept.samples.push((sample, start..kept.values.len()));
    }
    Ok(Some(gzip(&write(first.side, &first.keys, head, &kept)?)))
}

/// Whether there is any sample. NB: a file without one may name no column.
fn has_samples(message: &[u8]) -> Result<bool, Rejection> {
    let mut parts = fields(message);
    let mut any = false;
    while let Some((tag, value)) = parts.next()? {
        if tag == 2 {
            any |= !value.bytes()?.is_empty();
        }
    }
    Ok(any)
}

/// A column of these names, which are put into the file's table.
fn column<'a>(side: &mut Side<'a>, name: &'a str, unit: &'a str) -> ValueType {
    let mut index = |text| {
        side.strings.push(text);
        // NB: a table in memory has fewer than 2^63 entries.
        i64::try_from(side.strings.len() - 1).unwrap_or(i64::MAX)
    };
    ValueType { r#type: index(name), unit: index(unit) }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::time::Nanos;
    use prost::Message;

    use super::*;
    use crate::pprof::proto::{Function, Line, Location, Profile, Sample};

    /// A file of one column: `main` and its callee, by different ids and in a different order of strings in each file.
    fn file(column: [&str; 2], callee_first: bool, values: &[(&[&str], i64)]) -> Vec<u8> {
        let mut strings = vec![String::new(), column[0].to_owned(), column[1].to_owned()];
        let mut functions = Vec::new();
        let names = if callee_first { ["price", "main", "idle"] } else { ["main", "idle", "price"] };
        for (name, id) in names.into_iter().zip(1..) {
            strings.push(name.to_owned());
            let name = i64::try_from(strings.len()).unwrap() - 1;
            functions.push(Function { id, name, system_name: name, ..Function::default() });
        }
        let id = |name: &&str| u64::try_from(names.iter().position(|known| known == name).unwrap()).unwrap() + 1;
        let line = |function_id| Line { function_id, ..Line::default() };
        let file = Profile {
            sample_type: vec![ValueType { r#type: 1, unit: 2 }],
            sample: values
                .iter()
                .map(|(stack, value)| Sample {
                    location_id: stack.iter().map(id).collect(),
                    value: vec![*value],
                    ..Sample::default()
                })
                .collect(),
            location: (1..=3).map(|id| Location { id, line: vec![line(id)], ..Location::default() }).collect(),
            function: functions,
            string_table: strings,
            period: 1_000_000_000,
            ..Profile::default()
        };
        file.encode_to_vec()
    }

    fn joined(columns: &[Vec<u8>]) -> Option<Profile> {
        let window = TimeRange { start: Nanos(5), end: Nanos(12) };
        let bytes = join(Join { columns, window, period: Some(0), max_bytes: 1 << 20 }).unwrap()?;
        Some(Profile::decode(&*decompress(&bytes, 1 << 20).unwrap()).unwrap())
    }

    #[test]
    fn values_of_the_same_stack_stand_side_by_side() {
        let counts =
            file(["samples", "count"], false, &[(&["price", "main"], 3), (&["main"], 2), (&["idle", "main"], 1)]);
        let times = file(["cpu", "nanoseconds"], true, &[(&["main"], 20), (&["price", "main"], 30), (&["price"], 9)]);
        let one = joined(&[counts, times]).unwrap();
        let text = |index: i64| one.string_table[usize::try_from(index).unwrap()].as_str();
        let columns: Vec<_> = one.sample_type.iter().map(|column| (text(column.r#type), text(column.unit))).collect();
        assert_eq!(columns, [("samples", "count"), ("cpu", "nanoseconds")]);
        assert_eq!((one.time_nanos, one.duration_nanos, one.period), (5, 7, 0));
        let name = |id: &u64| {
            let location = one.location.iter().find(|location| location.id == *id).unwrap();
            let function = one.function.iter().find(|function| function.id == location.line[0].function_id).unwrap();
            text(function.name)
        };
        let samples: Vec<(Vec<&str>, &[i64])> = one
            .sample
            .iter()
            .map(|sample| (sample.location_id.iter().map(name).collect(), sample.value.as_slice()))
            .collect();
        let expected: [(Vec<&str>, &[i64]); 3] =
            [(vec!["price", "main"], &[3, 30]), (vec!["main"], &[2, 20]), (vec!["idle", "main"], &[1, 0])];
        assert_eq!(samples, expected, "the stack that has a time alone has no count");
    }

    #[test]
    fn nothing_becomes_nothing_and_what_is_no_profile_is_refused() {
        assert_eq!(joined(&[]), None);
        assert_eq!(joined(&[file(["samples", "count"], false, &[])]), None);
        let window = TimeRange { start: Nanos(0), end: Nanos(1) };
        let bytes = [b"<html>".to_vec()];
        assert!(join(Join { columns: &bytes, window, period: None, max_bytes: 1 << 20 }).is_err());
        assert_eq!(joined(&[Vec::new()]), None, "as a server answers that has nothing");
        let alone = joined(&[file(["samples", "count"], false, &[(&["main"], 2)]), Vec::new()]).unwrap();
        assert_eq!((alone.sample_type.len(), alone.sample[0].value.as_slice()), (1, &[2][..]));
    }
}
