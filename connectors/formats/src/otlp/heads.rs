//! Third pass: a profile of the message without its samples, which stay slices, and what its sample type says of it.
//!
//! A profile of the message holds one sample type; those of one process and window together are what fleetdiff calls a profile.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::dictionary::{Dictionary, of_other_version};
use super::values::Attributes;
use crate::budget::Budget;
use crate::counts::ALLOCATION_SAMPLES;
use crate::labels::Unit;
use crate::wire::{Value, WireFault, fields};

/// What the values of a sample type count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Samples of a clock; of which one, if the name says so.
    Sampled(Option<ProfileType>),
    /// Allocations since the process began, or within the window.
    Allocated,
    /// What is allocated at the moment.
    Live,
    /// Waits, whoever was seen waiting.
    Contended,
}

/// A `Profile` of the message.
#[derive(Clone, Debug)]
pub(super) struct ProfileHead<'a> {
    /// Its number in its scope.
    pub(super) number: usize,
    pub(super) family: Family,
    /// Name and unit of its values, by the names of pprof.
    pub(super) kind: (&'a str, &'a str),
    pub(super) samples: Vec<&'a [u8]>,
    /// `None` if it does not say when it was taken.
    pub(super) window: Option<TimeRange>,
    pub(super) period_type: (&'a str, &'a str),
    pub(super) period: i64,
    pub(super) attributes: Attributes<'a>,
}

impl<'a> ProfileHead<'a> {
    /// Reads the `Profile` of that number.
    pub(super) fn read(
        number: usize,
        message: &'a [u8],
        dictionary: &Dictionary<'a>,
        budget: &Budget,
    ) -> Result<Self, Rejection> {
        let mut raw = Raw::default();
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                2 => budget.push(&mut raw.samples, value.bytes().map_err(of_other_version)?)?,
                11 => value.each(|index| budget.push(&mut raw.attributes, index))?,
                _ => raw.take(tag, value).map_err(of_other_version)?,
            }
        }
        let kind = canonical(texts(raw.kind, dictionary)?);
        let mut attributes = Attributes::default();
        for index in raw.attributes {
            attributes.add_of_table(index, dictionary, budget)?;
        }
        Ok(Self {
            number,
            family: family(kind).ok_or_else(|| unknown(kind))?,
            kind,
            samples: raw.samples,
            window: window(raw.time, raw.duration),
            period_type: canonical(texts(raw.period_type, dictionary)?),
            period: raw.period,
            attributes,
        })
    }
}

/// The fields as they stand.
#[derive(Default)]
struct Raw<'a> {
    kind: (u64, u64),
    samples: Vec<&'a [u8]>,
    time: u64,
    duration: u64,
    period_type: (u64, u64),
    period: i64,
    attributes: Vec<u64>,
}

impl<'a> Raw<'a> {
    fn take(&mut self, tag: u32, value: Value<'a>) -> Result<(), WireFault> {
        match tag {
            1 => self.kind = value_type(value.bytes()?)?,
            3 => self.time = value.fixed()?,
            4 => self.duration = value.number()?,
            5 => self.period_type = value_type(value.bytes()?)?,
            6 => self.period = value.signed()?,
            _ => {}
        }
        Ok(())
    }
}

fn value_type(message: &[u8]) -> Result<(u64, u64), WireFault> {
    let mut read = (0, 0);
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => read.0 = value.number()?,
            2 => read.1 = value.number()?,
            _ => {}
        }
    }
    Ok(read)
}

fn texts<'a>((name, unit): (u64, u64), dictionary: &Dictionary<'a>) -> Result<(&'a str, &'a str), Rejection> {
    Ok((dictionary.text(name)?, dictionary.text(unit)?))
}

fn window(time: u64, duration: u64) -> Option<TimeRange> {
    let start = Nanos(i64::try_from(time).ok().filter(|time| *time > 0)?);
    let length = Nanos(i64::try_from(duration).unwrap_or(i64::MAX));
    Some(TimeRange { start, end: start.plus(length) })
}

/// The names that pprof has for what others call otherwise: OpenTelemetry's own examples, and async-profiler, which names the engine that took
/// the samples.
fn canonical<'a>((name, unit): (&'a str, &'a str)) -> (&'a str, &'a str) {
    let name = match (name, unit) {
        ("allocated_objects", _) => "alloc_objects",
        ("allocated_space", _) => "alloc_space",
        ("sample", _) | ("itimer" | "ctimer" | "perf_events" | "cpu", "count") => "samples",
        ("itimer" | "ctimer" | "perf_events", "ns") => "cpu",
        ("j9_wall", _) => "wall",
        ("alloc_tracer" | "object_sampler" | "j9_object_sampler" | "malloc_tracer", "count") => ALLOCATION_SAMPLES,
        ("alloc_tracer" | "object_sampler" | "j9_object_sampler" | "malloc_tracer", "bytes") => "alloc_space",
        ("lock_tracer" | "native_lock_tracer", "count") => "contentions",
        ("lock_tracer" | "native_lock_tracer", "ns") => "delay",
        (other, _) => other,
    };
    (name, unit)
}

/// What a sample type counts; `None` for types that cannot be counted.
fn family((name, unit): (&str, &str)) -> Option<Family> {
    let time = || unit.parse::<Unit>().ok().and_then(Unit::nanoseconds).is_some();
    match (name, unit) {
        ("samples", "count") => Some(Family::Sampled(None)),
        ("alloc_objects" | ALLOCATION_SAMPLES, "count") | ("alloc_space", "bytes") => Some(Family::Allocated),
        ("inuse_objects", "count") | ("inuse_space", "bytes") => Some(Family::Live),
        ("contentions", "count") => Some(Family::Contended),
        ("delay", _) if time() => Some(Family::Contended),
        // The eBPF profiler called off_cpu events before it had profiles of other events.
        ("events", _) if time() => Some(Family::Sampled(Some(ProfileType::OffCpu))),
        (name, "count") => clock(name).map(|clock| Family::Sampled(Some(clock))),
        (name, _) if time() => clock(name).map(|clock| Family::Sampled(Some(clock))),
        _ => None,
    }
}

/// The clock of that name.
pub(super) fn clock(name: &str) -> Option<ProfileType> {
    match name {
        "cpu" => Some(ProfileType::Cpu),
        "wall" | "time" => Some(ProfileType::Wall),
        "off_cpu" | "off-cpu" | "offcpu" => Some(ProfileType::OffCpu),
        _ => None,
    }
}

fn unknown((name, unit): (&str, &str)) -> Rejection {
    let detail = format!(
        "sample type {name}/{unit}, expected one of samples, cpu, wall, off_cpu, alloc_objects, alloc_space, inuse_objects, \
         inuse_space, contentions, delay",
    );
    Rejection::new(Reason::UnsupportedType, detail)
}
