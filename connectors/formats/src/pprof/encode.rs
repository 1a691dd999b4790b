//! Profiles to pprof, for recorded fleets that this program makes itself.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack};
use prost::Message;

use super::proto::{Function, Label, Line, Location, Profile as Proto, Sample, ValueType};
use crate::compression::gzip;
use crate::tick::WrittenTime;
use crate::unencodable::Unencodable;

/// Writes a profile as gzipped pprof; its decoder gives back the same names, stacks, cohorts (label `cohort`)
/// and window. Equal profiles give equal bytes.
///
/// Columns: `samples/count` with their time for cpu, wall and off_cpu (at 100 Hz if it is not known); `contentions/count` and `delay` for
/// mutex and block;
/// for heap `alloc_objects/count` and `alloc_space/bytes` with a period of 1, that is, each count an allocation.
/// Assumes names as decoders give them (none empty, none `[unknown]`) and a window after 1970.
///
/// # Errors
/// [`Unencodable`] if the profile holds no stacks, or stacks that are not of its names.
pub fn encode(profile: &Profile) -> Result<Vec<u8>, Unencodable> {
    let Samples::Stacks(stacks) = &profile.samples else { return Err(Unencodable::Folded) };
    let mut strings = Strings(vec![String::new()]);
    let columns = Columns::of(profile.profile_type, stacks);
    let mut message = columns.describe(&mut strings);
    message.time_nanos = profile.window.start.0;
    message.duration_nanos = profile.window.end.since(profile.window.start).0;
    for (name, id) in profile.names.iter().zip(1u64..) {
        let name = strings.push(name);
        let line = Line { function_id: id, ..Line::default() };
        message.function.push(Function { id, name, system_name: name, ..Function::default() });
        message.location.push(Location { id, line: vec![line], ..Location::default() });
    }
    let cohorts = labels(stacks, &mut strings);
    for stack in stacks {
        let label = stack.cohort.as_ref().and_then(|cohort| cohorts.get(cohort)).copied();
        message.sample.push(sample(stack, profile.names.len(), &columns, label)?);
    }
    message.string_table = strings.0;
    Ok(gzip(&message.encode_to_vec()))
}

/// The columns written for a profile type: the raw count, and beside it a value of so much a sample, or the stack's own.
struct Columns {
    count: &'static str,
    value: Option<(&'static str, &'static str, Option<i64>)>,
    period: i64,
}

impl Columns {
    fn of(kind: ProfileType, stacks: &[Stack]) -> Self {
        let timed = |name| {
            let each = match WrittenTime::of(stacks) {
                WrittenTime::Period(each) => Some(each),
                WrittenTime::Own => None,
            };
            Self { count: "samples", value: Some((name, "nanoseconds", each)), period: each.unwrap_or(1) }
        };
        match kind {
            ProfileType::Cpu => timed("cpu"),
            ProfileType::Wall => timed("time"),
            ProfileType::OffCpu => timed("off_cpu"),
            ProfileType::Mutex | ProfileType::Block => {
                Self { count: "contentions", value: Some(("delay", "nanoseconds", None)), period: 1 }
            }
            ProfileType::Heap => {
                Self { count: "alloc_objects", value: Some(("alloc_space", "bytes", None)), period: 1 }
            }
            ProfileType::LiveHeap => {
                Self { count: "inuse_objects", value: Some(("inuse_space", "bytes", None)), period: 1 }
            }
        }
    }

    fn describe(&self, strings: &mut Strings) -> Proto {
        let mut column = |name, unit| ValueType { r#type: strings.push(name), unit: strings.push(unit) };
        let count = column(self.count, "count");
        let value = self.value.map(|(name, unit, _)| column(name, unit));
        Proto {
            sample_type: std::iter::once(count).chain(value).collect(),
            period_type: Some(value.unwrap_or(count)),
            period: self.period,
            ..Proto::default()
        }
    }
}

fn sample(stack: &Stack, names: usize, columns: &Columns, label: Option<Label>) -> Result<Sample, Unencodable> {
    let count = i64::try_from(stack.count).map_err(|_| Unencodable::OutOfRange)?;
    let known = |frame: &u32| usize::try_from(*frame).is_ok_and(|frame| frame < names);
    if !stack.frames.iter().all(known) {
        return Err(Unencodable::OutOfRange);
    }
    let own = i64::try_from(stack.value).map_err(|_| Unencodable::OutOfRange)?;
    let value = columns.value.map(|(_, _, each)| each.map_or(own, |each| count.saturating_mul(each)));
    Ok(Sample {
        location_id: stack.frames.iter().rev().map(|&frame| u64::from(frame) + 1).collect(),
        value: std::iter::once(count).chain(value).collect(),
        label: label.into_iter().collect(),
    })
}

/// The label of each cohort that the stacks name.
fn labels<'a>(stacks: &'a [Stack], strings: &mut Strings) -> BTreeMap<&'a Cohort, Label> {
    let mut labels: BTreeMap<_, _> =
        stacks.iter().filter_map(|stack| stack.cohort.as_ref()).map(|cohort| (cohort, Label::default())).collect();
    if !labels.is_empty() {
        let key = strings.push("cohort");
        for (cohort, label) in &mut labels {
            *label = Label { key, str: strings.push(cohort.as_str()), ..Label::default() };
        }
    }
    labels
}

/// The string table; its first string is empty.
struct Strings(Vec<String>);

impl Strings {
    fn push(&mut self, text: &str) -> i64 {
        if text.is_empty() {
            return 0;
        }
        self.0.push(text.to_owned());
        // NB: a table in memory has fewer than 2^63 entries.
        i64::try_from(self.0.len() - 1).unwrap_or(i64::MAX)
    }
}
