//! What was recorded: the events, how their samples are laid out, and by which numbers records name them.

use byteorder::{BigEndian, LittleEndian};
use fleetdiff_schemas::rejected::Rejection;
use linux_perf_event_reader::{
    AttrFlags, BranchSampleFormat, Endianness, HardwareEventId, PerfEventAttr, PerfEventType, RecordParseInfo,
    SampleFormat, SamplingPolicy, SoftwareCounterType,
};

use super::bytes::Bytes;
use super::recording::part;
use super::{malformed, refused, truncated};
use crate::budget::Budget;

/// What an event is counted as, and the fewest bytes that it takes in a file.
pub(super) const EVENT: usize = 512;
const ATTRIBUTE: usize = 64;

/// An event of a recording.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// As perf prints it.
    pub(super) name: Option<String>,
    /// The numbers by which records name it.
    pub(super) ids: Vec<u64>,
    /// How its records are laid out.
    pub(super) layout: RecordParseInfo,
    /// Whether samples are of a point in the kernel's code, and stand for no period.
    pub(super) is_tracepoint: bool,
    attributes: PerfEventAttr,
}

impl Event {
    fn new(attributes: PerfEventAttr, ids: Vec<u64>, order: Endianness) -> Self {
        let name = match attributes.type_ {
            PerfEventType::Hardware(HardwareEventId::CpuCycles, _) => Some("cycles"),
            PerfEventType::Software(SoftwareCounterType::CpuClock) => Some("cpu-clock"),
            PerfEventType::Software(SoftwareCounterType::TaskClock) => Some("task-clock"),
            _ => None,
        };
        Self {
            name: name.map(str::to_owned),
            ids,
            layout: RecordParseInfo::new(&attributes, order),
            is_tracepoint: matches!(attributes.type_, PerfEventType::Tracepoint(_)),
            attributes,
        }
    }

    /// What a sample stands for that does not say it.
    pub(super) fn period(&self) -> Option<u64> {
        match self.attributes.sampling_policy {
            SamplingPolicy::Period(period) => Some(period.get()),
            _ => None,
        }
    }

    pub(super) fn has_call_chains(&self) -> bool {
        self.layout.sample_format.contains(SampleFormat::CALLCHAIN)
    }

    /// What the recording holds that is not read.
    fn unread(&self) -> Option<&'static str> {
        let has = |what| self.layout.sample_format.contains(what);
        let branches = self.attributes.branch_sample_format;
        if has(SampleFormat::STACK_USER) {
            Some(" with --call-graph dwarf, whose stacks must be unwound")
        } else if has(SampleFormat::BRANCH_STACK) && branches.contains(BranchSampleFormat::CALL_STACK) {
            Some(" with --call-graph lbr, whose stacks are made of branches")
        } else if has(SampleFormat::READ) {
            Some(" whose samples hold counts of a group of events (:S)")
        } else if self.attributes.flags.contains(AttrFlags::AUX_OUTPUT) || has(SampleFormat::AUX) {
            Some(" with the trace of a processor, which must be decoded")
        } else {
            None
        }
    }
}

/// The events in the header of a file: each an attribute and the place of its numbers.
///
/// # Errors
/// `truncated`, `malformed`, `too_large`.
pub(super) fn of_file(
    text: &[u8],
    attributes: &[u8],
    size: usize,
    order: Endianness,
    budget: &Budget,
) -> Result<Vec<Event>, Rejection> {
    let length = size.checked_sub(16).filter(|length| *length >= ATTRIBUTE);
    let length = length.ok_or_else(|| malformed("its events have a length that no perf writes"))?;
    let mut events = Vec::new();
    for entry in attributes.chunks_exact(size) {
        let (attribute, place) = entry.split_at(length);
        let mut place = Bytes::new(place, order);
        let ids = place.length().zip(place.length()).and_then(|place| part(text, place));
        let ids = ids.ok_or_else(|| truncated("its parts lie beyond its end"))?;
        budget.take(EVENT + ids.len())?;
        budget.push(&mut events, Event::new(parsed(attribute, order)?, numbers(ids, order), order))?;
    }
    Ok(events)
}

/// The event that a record of a stream says: an attribute of the length that it says itself, and its numbers.
///
/// # Errors
/// `malformed`.
pub(super) fn of_record(body: &[u8], order: Endianness) -> Result<Event, Rejection> {
    let mut bytes = Bytes::new(body, order);
    let length = bytes.u32().and_then(|_| bytes.u32()).and_then(|length| usize::try_from(length).ok());
    let ids = length.and_then(|length| body.get(length..)).unwrap_or_default();
    Ok(Event::new(parsed(body, order)?, numbers(ids, order), order))
}

fn parsed(attribute: &[u8], order: Endianness) -> Result<PerfEventAttr, Rejection> {
    let parsed = match order {
        Endianness::LittleEndian => PerfEventAttr::parse::<_, LittleEndian>(attribute),
        Endianness::BigEndian => PerfEventAttr::parse::<_, BigEndian>(attribute),
    };
    parsed.map(|(parsed, _)| parsed).map_err(|fault| malformed(&format!("one of its events cannot be read ({fault})")))
}

fn numbers(bytes: &[u8], order: Endianness) -> Vec<u64> {
    let mut bytes = Bytes::new(bytes, order);
    std::iter::from_fn(|| bytes.u64()).collect()
}

/// The names of at most so many events, as a feature of the file gives them.
///
/// # Errors
/// `malformed`, `too_large`.
pub(super) fn names(
    content: &[u8],
    order: Endianness,
    most: usize,
    budget: &Budget,
) -> Result<Vec<Option<String>>, Rejection> {
    let mut names = Vec::new();
    let mut bytes = Bytes::new(content, order);
    let header = bytes.u32().zip(bytes.u32());
    let (count, size) = header.ok_or_else(|| malformed("the names of its events end early"))?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    for _ in 0..usize::try_from(count).unwrap_or(usize::MAX).min(most) {
        let Some(ids) = bytes.take(size).and_then(|_| bytes.u32()) else { break };
        let Some(name) = bytes.text() else { break };
        budget.take(EVENT + name.len())?;
        budget.push(&mut names, Some(name).filter(|name| !name.is_empty()))?;
        let ids = usize::try_from(ids).unwrap_or(usize::MAX).saturating_mul(8);
        if bytes.take(ids).is_none() {
            break;
        }
    }
    Ok(names)
}

/// Whether all that was recorded can be read.
///
/// # Errors
/// `unsupported_type` with what cannot; `malformed` if nothing was recorded.
pub(super) fn check(events: &[Event]) -> Result<(), Rejection> {
    let first = events.first().ok_or_else(|| malformed("it names no event"))?;
    if let Some(unread) = events.iter().find_map(Event::unread) {
        return Err(refused(unread));
    }
    if events.iter().any(|event| event.layout.id_parse_info != first.layout.id_parse_info) {
        return Err(refused(" of events whose records cannot be distinguished"));
    }
    if events.len() > 1 && first.layout.id_parse_info.sample_record_id_offset_from_start.is_none() {
        return Err(refused(" of several events whose samples do not say of which they are"));
    }
    Ok(())
}
