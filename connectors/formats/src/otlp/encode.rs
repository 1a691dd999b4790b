//! Profiles to OTLP, for tests, benches and whoever wants a record without a Collector.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use prost::Message;

use super::proto;
use crate::attributes::{PROFILE_TYPE, REQUESTS, REQUESTS_END, REQUESTS_START, TEMPORALITY};
use crate::identity::IdentityMapping;
use crate::tick::WrittenTime;
use crate::unencodable::Unencodable;

/// Writes profiles as one record, uncompressed, in the form of the Collector: one dictionary, attributes by reference, a profile
/// for each sample type. [`super::Decoder`] gives back the same profiles, but that all share one table of names. Equal profiles
/// give equal bytes.
///
/// Sample types: `samples/count` with a period of the clock for cpu, wall and off_cpu; `contentions/count` for mutex and block;
/// for heap `alloc_objects/count` and `alloc_space/bytes` with a period of 1, that is, each count an allocation. Type,
/// temporality and requests stand in attributes of the profile. Assumes names as decoders give them (none empty, none
/// `[unknown]`).
///
/// # Errors
/// [`Unencodable`] if a profile holds no stacks, stacks that are not of its names, or a window that begins before 1970.
pub fn encode(profiles: &[Profile], mapping: &IdentityMapping) -> Result<Vec<u8>, Unencodable> {
    let mut writer = Writer::new();
    let resource_profiles =
        profiles.iter().map(|profile| writer.resource(profile, mapping)).collect::<Result<_, _>>()?;
    Ok(proto::Request { resource_profiles, dictionary: Some(writer.dictionary) }.encode_to_vec())
}

/// The dictionary as it grows.
struct Writer {
    dictionary: proto::Dictionary,
    strings: BTreeMap<Arc<str>, i32>,
    /// Location of each name; function and location have the same number.
    functions: BTreeMap<Arc<str>, i32>,
    stacks: BTreeMap<Vec<i32>, i32>,
    attributes: BTreeMap<(i32, Arc<str>), i32>,
}

impl Writer {
    /// Tables with their zero values.
    fn new() -> Self {
        let dictionary = proto::Dictionary {
            location_table: vec![proto::Location::default()],
            function_table: vec![proto::Function::default()],
            string_table: vec![String::new()],
            attribute_table: vec![proto::KeyValueAndUnit::default()],
            stack_table: vec![proto::Stack::default()],
        };
        Self {
            dictionary,
            strings: BTreeMap::from([("".into(), 0)]),
            functions: BTreeMap::new(),
            stacks: BTreeMap::from([(Vec::new(), 0)]),
            attributes: BTreeMap::new(),
        }
    }

    fn resource(
        &mut self,
        profile: &Profile,
        mapping: &IdentityMapping,
    ) -> Result<proto::ResourceProfiles, Unencodable> {
        let Samples::Stacks(stacks) = &profile.samples else { return Err(Unencodable::Folded) };
        if profile.window.start.0 <= 0 {
            return Err(Unencodable::TooEarly);
        }
        let mut attributes = Vec::new();
        for (name, value) in mapping.attributes(&profile.identity) {
            let value = proto::Any::Reference(self.string(&value)?);
            let value = Some(proto::AnyValue { value: Some(value) });
            attributes.push(proto::KeyValue { key: String::new(), value, key_strindex: self.string(&name)? });
        }
        let locations = profile.names.iter().map(|name| self.location(name)).collect::<Result<Vec<_>, _>>()?;
        let profiles = self.profiles(profile, stacks, &locations, mapping)?;
        Ok(proto::ResourceProfiles {
            resource: Some(proto::Resource { attributes }),
            scope_profiles: vec![proto::ScopeProfiles { scope: None, profiles }],
        })
    }

    /// One profile of the message for each sample type.
    fn profiles(
        &mut self,
        profile: &Profile,
        stacks: &[Stack],
        locations: &[i32],
        mapping: &IdentityMapping,
    ) -> Result<Vec<proto::Profile>, Unencodable> {
        let (columns, (period_name, period_unit, period)) = columns(profile.profile_type, stacks);
        let period_type = Some(self.value_type(period_name, period_unit)?);
        let attribute_indices = self.attributes_of(profile)?;
        let window = profile.window;
        let mut written = Vec::new();
        for (name, unit, each) in columns {
            let rows = stacks.iter().map(|stack| self.sample(stack, locations, each, mapping));
            let samples = rows.collect::<Result<_, _>>()?;
            written.push(proto::Profile {
                sample_type: Some(self.value_type(name, unit)?),
                samples,
                time_unix_nano: window.start.0.unsigned_abs(),
                duration_nano: window.end.since(window.start).0.unsigned_abs(),
                period_type,
                period,
                attribute_indices: attribute_indices.clone(),
            });
        }
        Ok(written)
    }

    /// What the message has no place for.
    fn attributes_of(&mut self, profile: &Profile) -> Result<Vec<i32>, Unencodable> {
        let mut attributes = vec![(PROFILE_TYPE, profile.profile_type.name().to_owned())];
        if profile.temporality != Temporality::Delta || profile.window.start == profile.window.end {
            attributes.push((TEMPORALITY, profile.temporality.name().to_owned()));
        }
        if let Some(requests) = profile.requests {
            attributes.push((REQUESTS, requests.count.to_string()));
            if requests.window != profile.window {
                attributes.push((REQUESTS_START, requests.window.start.0.to_string()));
                attributes.push((REQUESTS_END, requests.window.end.0.to_string()));
            }
        }
        attributes.into_iter().map(|(name, value)| self.attribute(name, &value)).collect()
    }

    fn sample(
        &mut self,
        stack: &Stack,
        locations: &[i32],
        each: Option<i64>,
        mapping: &IdentityMapping,
    ) -> Result<proto::Sample, Unencodable> {
        let location = |frame: &u32| usize::try_from(*frame).ok().and_then(|frame| locations.get(frame)).copied();
        let frames: Option<Vec<i32>> = stack.frames.iter().rev().map(location).collect();
        let count = i64::try_from(stack.count).map_err(|_| Unencodable::OutOfRange)?;
        let own = i64::try_from(stack.value).map_err(|_| Unencodable::OutOfRange)?;
        let label = mapping.cohort.first().map_or("cohort", String::as_str);
        let cohort = stack.cohort.as_ref().map(|cohort| self.attribute(label, cohort.as_str())).transpose()?;
        Ok(proto::Sample {
            stack_index: self.stack(frames.ok_or(Unencodable::OutOfRange)?)?,
            attribute_indices: cohort.into_iter().collect(),
            values: vec![each.map_or(own, |each| count.saturating_mul(each))],
            timestamps_unix_nano: Vec::new(),
        })
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Result<proto::ValueType, Unencodable> {
        Ok(proto::ValueType { type_strindex: self.string(name)?, unit_strindex: self.string(unit)? })
    }

    fn string(&mut self, text: &str) -> Result<i32, Unencodable> {
        if let Some(&known) = self.strings.get(text) {
            return Ok(known);
        }
        let index = push(&mut self.dictionary.string_table, text.to_owned())?;
        self.strings.insert(text.into(), index);
        Ok(index)
    }

    fn location(&mut self, name: &Arc<str>) -> Result<i32, Unencodable> {
        if let Some(&known) = self.functions.get(name) {
            return Ok(known);
        }
        let name_strindex = self.string(name)?;
        let function = proto::Function { name_strindex, system_name_strindex: name_strindex };
        let function_index = push(&mut self.dictionary.function_table, function)?;
        let lines = vec![proto::Line { function_index, line: 0 }];
        let index = push(&mut self.dictionary.location_table, proto::Location { address: 0, lines })?;
        self.functions.insert(Arc::clone(name), index);
        Ok(index)
    }

    fn stack(&mut self, location_indices: Vec<i32>) -> Result<i32, Unencodable> {
        if let Some(&known) = self.stacks.get(&location_indices) {
            return Ok(known);
        }
        let stack = proto::Stack { location_indices: location_indices.clone() };
        let index = push(&mut self.dictionary.stack_table, stack)?;
        self.stacks.insert(location_indices, index);
        Ok(index)
    }

    fn attribute(&mut self, name: &str, value: &str) -> Result<i32, Unencodable> {
        let key_strindex = self.string(name)?;
        let key = (key_strindex, Arc::from(value));
        if let Some(&known) = self.attributes.get(&key) {
            return Ok(known);
        }
        let value = Some(proto::AnyValue { value: Some(proto::Any::Text(value.to_owned())) });
        let entry = proto::KeyValueAndUnit { key_strindex, value, unit_strindex: 0 };
        let index = push(&mut self.dictionary.attribute_table, entry)?;
        self.attributes.insert(key, index);
        Ok(index)
    }
}

/// Name, unit and value of a raw sample; the stack's own value if that is `None`.
type Column = (&'static str, &'static str, Option<i64>);
/// Name and unit of what passes between two samples, and how much of it.
type Period = (&'static str, &'static str, i64);

/// The sample types written for a profile type, and the period.
fn columns(kind: ProfileType, stacks: &[Stack]) -> (Vec<Column>, Period) {
    let timed = |name| {
        let samples = ("samples", "count", Some(1));
        match WrittenTime::of(stacks) {
            WrittenTime::Period(each) => (vec![samples], (name, "nanoseconds", each)),
            WrittenTime::Own => (vec![samples, (name, "nanoseconds", None)], (name, "nanoseconds", 1)),
        }
    };
    let weighed = |count, value, (name, unit)| (vec![(count, "count", Some(1)), (value, unit, None)], (name, unit, 1));
    match kind {
        ProfileType::Cpu => timed("cpu"),
        ProfileType::Wall => timed("wall"),
        ProfileType::OffCpu => timed("off_cpu"),
        ProfileType::Mutex | ProfileType::Block if stacks.iter().all(|stack| stack.value == 0) => {
            (vec![("contentions", "count", Some(1))], ("contentions", "count", 1))
        }
        ProfileType::Mutex | ProfileType::Block => weighed("contentions", "delay", ("contentions", "nanoseconds")),
        ProfileType::Heap => weighed("alloc_objects", "alloc_space", ("space", "bytes")),
        ProfileType::LiveHeap => weighed("inuse_objects", "inuse_space", ("space", "bytes")),
    }
}

/// Appends to a table and gives the index.
fn push<T>(table: &mut Vec<T>, entry: T) -> Result<i32, Unencodable> {
    let index = i32::try_from(table.len()).map_err(|_| Unencodable::OutOfRange)?;
    table.push(entry);
    Ok(index)
}
