//! Stacks of each side as a pprof file: a pair for `go tool pprof -diff_base BASE HEAD`.
//!
//! Both files have the same columns: the sum of the raw samples of all runs, and their weights if every run has them.
//! The period is one sample, which is right whatever the profilers' periods were: `go tool pprof` and fleetdiff's own
//! decoder read counts as counts. Times and labels are not written, since a side has many of them.
//!
//! | type | samples are |
//! |---|---|
//! | cpu, wall, off_cpu | `samples/count` |
//! | mutex, block | `contentions/count` |
//! | heap | `alloc_objects/count`, and `alloc_space/bytes`, 0 where it is unknown |
//! | live_heap | `inuse_objects/count`, and `inuse_space/bytes`, 0 where it is unknown |
//!
//! Times without a period are one column, `cpu/nanoseconds` and the like, again without a period.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_formats::Values;
use fleetdiff_formats::compression::gzip;
use fleetdiff_formats::pprof::proto::{Function, Line, Location, Profile, Sample, ValueType};
use fleetdiff_schemas::profile::ProfileType;
use prost::Message;

use super::{Export, NotExported};
use crate::compare::{Compared, Recording};
use crate::sides::Sides;
use crate::stacks::{self, Path};

/// The gzipped file of each side.
///
/// # Errors
/// [`NotExported::NoStacks`] for a run that came without stacks, [`NotExported::TooLarge`] for a sum beyond 2^63 - 1.
pub fn pprof(sides: &Sides<Vec<Recording>>, export: &Export<'_>) -> Result<Sides<Vec<u8>>, NotExported> {
    let columns = Columns::of(export.compared);
    Ok(Sides { base: columns.file("base", &sides.base)?, head: columns.file("head", &sides.head)? })
}

/// What the columns of both files are.
struct Columns<'a> {
    /// Type and unit of the column of samples, or of times that nobody can count.
    samples: (&'static str, &'static str),
    /// Whether the values of that are samples, so that a period of one sample is right.
    counted: bool,
    /// Type and unit of the column beside it.
    beside: Option<(&'a str, &'a str)>,
    /// Whether values for it are known.
    weighed: bool,
}

impl<'a> Columns<'a> {
    fn of(compared: &'a Compared) -> Self {
        if compared.values() == Values::Times {
            let times = (compared.profile_type.name(), "nanoseconds");
            return Self { samples: times, counted: false, beside: None, weighed: false };
        }
        let (samples, space) = match compared.profile_type {
            ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu => ("samples", None),
            ProfileType::Mutex | ProfileType::Block => ("contentions", None),
            ProfileType::Heap => ("alloc_objects", Some(("alloc_space", "bytes"))),
            ProfileType::LiveHeap => ("inuse_objects", Some(("inuse_space", "bytes"))),
        };
        let weights =
            compared.weights.as_ref().map(|weights| weights.unit.split_once('/').unwrap_or((&weights.unit, "count")));
        Self { samples: (samples, "count"), counted: true, beside: weights.or(space), weighed: weights.is_some() }
    }

    fn file(&self, side: &str, runs: &[Recording]) -> Result<Vec<u8>, NotExported> {
        let counts = stacks::of_side(runs)?;
        let weights = if self.weighed { stacks::weights_of_side(runs)? } else { BTreeMap::new() };
        let mut writing = Writing::default();
        let mut message = self.describe(&mut writing.strings);
        let comment =
            format!("fleetdiff: {side}, {} run{} added up", runs.len(), if runs.len() == 1 { "" } else { "s" });
        message.comment = vec![writing.strings.place(&comment)];
        for path in counts.keys().chain(weights.keys()).collect::<BTreeSet<_>>() {
            let of = |sums: &BTreeMap<Path<'_>, u64>| signed(sums.get(path).copied().unwrap_or(0));
            let mut value = vec![of(&counts)?];
            if self.beside.is_some() {
                value.push(of(&weights)?);
            }
            let location_id = path.iter().rev().map(|name| writing.location(name)).collect();
            message.sample.push(Sample { location_id, value, label: Vec::new() });
        }
        (message.function, message.location) = (writing.functions, writing.locations);
        message.string_table = writing.strings.list;
        Ok(gzip(&message.encode_to_vec()))
    }

    fn describe(&self, strings: &mut Strings) -> Profile {
        let mut column = |name: &str, unit: &str| ValueType { r#type: strings.place(name), unit: strings.place(unit) };
        let samples = column(self.samples.0, self.samples.1);
        let beside = self.beside.map(|(name, unit)| column(name, unit));
        // A viewer shows the last column first unless the file names another; an empty column must not be shown first.
        let shown = beside.filter(|_| self.weighed).unwrap_or(samples);
        Profile {
            sample_type: std::iter::once(samples).chain(beside).collect(),
            period_type: self.counted.then_some(samples),
            period: i64::from(self.counted),
            default_sample_type: shown.r#type,
            ..Profile::default()
        }
    }
}

fn signed(value: u64) -> Result<i64, NotExported> {
    i64::try_from(value).map_err(|_| NotExported::TooLarge { value })
}

/// The tables of a file that grows.
#[derive(Default)]
struct Writing {
    strings: Strings,
    ids: BTreeMap<String, u64>,
    functions: Vec<Function>,
    locations: Vec<Location>,
}

impl Writing {
    /// The location of a function; it has no other.
    fn location(&mut self, name: &str) -> u64 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = u64::try_from(self.functions.len()).unwrap_or(u64::MAX).saturating_add(1);
        let text = self.strings.place(name);
        self.functions.push(Function { id, name: text, system_name: text, ..Function::default() });
        self.locations.push(Location {
            id,
            line: vec![Line { function_id: id, ..Line::default() }],
            ..Location::default()
        });
        self.ids.insert(name.to_owned(), id);
        id
    }
}

/// The string table; its first string is empty.
struct Strings {
    list: Vec<String>,
    places: BTreeMap<String, i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { list: vec![String::new()], places: BTreeMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    fn place(&mut self, text: &str) -> i64 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        // NB: a table in memory has fewer than 2^63 entries.
        let place = i64::try_from(self.list.len()).unwrap_or(i64::MAX);
        self.list.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}
