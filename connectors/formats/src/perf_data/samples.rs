//! Samples in their order: where their addresses are, and then what stacks they are of.

use std::collections::HashMap;
use std::rc::Rc;

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Rejection;
use linux_perf_event_reader::constants::{PERF_CONTEXT_HV, PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER};
use linux_perf_event_reader::{CpuMode, EventRecord, RecordType, SampleRecord};

use super::events::Event;
use super::machine::{Machine, Objects};
use super::maps::AddressSpace;
use super::recording::Recording;
use super::symbols::Found;
use super::{ByPlace, malformed};
use crate::budget::Budget;
use crate::perf_script::{Events, FrameLine, stack};
use crate::sink::{SampleDetails, SampleSink};

/// What a place is counted as.
const PLACE: usize = 64;

/// An address: the object that it is in, and where; nothing if it is in none.
type Place = Option<(u32, u64)>;

/// A sample, and whose it is.
pub(super) struct Taken<'r, 's> {
    event: &'r Event,
    sample: &'s SampleRecord<'s>,
    comm: &'s Rc<str>,
    /// The innermost first.
    places: &'s [Place],
}

/// Takes samples one by one.
pub(super) trait Visit<'r> {
    /// Takes a sample.
    ///
    /// # Errors
    /// `too_large`, and those of the sink.
    fn take(&mut self, taken: &Taken<'r, '_>) -> Result<(), Rejection>;

    /// Takes note of records that were lost while they were made.
    fn lost(&mut self, records: u64);
}

/// Takes all records in their order, and gives the objects that were mapped.
///
/// # Errors
/// `malformed` if a sample cannot be read; those of [`Visit::take`].
pub(super) fn replay<'r>(
    recording: &'r Recording<'_>,
    budget: &Budget,
    visit: &mut impl Visit<'r>,
) -> Result<Objects, Rejection> {
    let mut machine = Machine::new(budget);
    let mut places = Vec::new();
    let known = (0..recording.records.len()).filter_map(|place| recording.records.get(place, &recording.events));
    for (event, record) in known {
        match record.record_type {
            RecordType::SAMPLE => {
                let parsed = record.parse().ok();
                let (Some(EventRecord::Sample(sample)), Some(event)) = (parsed, recording.events.get(event)) else {
                    return Err(malformed("one of its samples ends early"));
                };
                let (pid, tid) = (sample.pid.unwrap_or(-1), sample.tid.unwrap_or(-1));
                let (comm, space) = (machine.comm(pid, tid)?, machine.space(pid, tid)?);
                places.clear();
                find_places(&machine, &space, event, &sample, &mut places);
                visit.take(&Taken { event, sample: &sample, comm: &comm, places: &places })?;
            }
            RecordType::LOST => {
                if let Ok(EventRecord::Lost(lost)) = record.parse() {
                    visit.lost(lost.count);
                }
            }
            _ => machine.take(&record)?,
        }
    }
    Ok(machine.objects)
}

/// Where the addresses of a sample are.
fn find_places(
    machine: &Machine<'_>,
    space: &AddressSpace,
    event: &Event,
    sample: &SampleRecord<'_>,
    places: &mut Vec<Place>,
) {
    let find = |mode: CpuMode, address: u64| match mode {
        CpuMode::Kernel => Some(machine.in_kernel(address)),
        CpuMode::User => space.find(address),
        _ => None,
    };
    let Some(chain) = sample.callchain.filter(|_| event.has_call_chains()) else {
        // Of points in the kernel's code perf prints no address.
        places.extend(sample.ip.filter(|_| !event.is_tracepoint).map(|address| find(sample.cpu_mode, address)));
        return;
    };
    let mut mode = CpuMode::User;
    for address in (0..chain.len()).filter_map(|place| chain.get(place)) {
        mode = match address {
            PERF_CONTEXT_HV => CpuMode::Hypervisor,
            PERF_CONTEXT_KERNEL => CpuMode::Kernel,
            PERF_CONTEXT_USER => CpuMode::User,
            // Of a guest, or of no known kind: perf takes the whole stack for broken.
            PERF_CONTEXT_MAX.. => return places.clear(),
            _ => {
                places.push(find(mode, address));
                mode
            }
        };
    }
}

/// The places of all samples.
pub(super) struct Places<'b> {
    pub(super) found: ByPlace<()>,
    budget: &'b Budget,
}

impl<'b> Places<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Self { found: ByPlace::default(), budget }
    }
}

impl<'r> Visit<'r> for Places<'_> {
    fn take(&mut self, taken: &Taken<'r, '_>) -> Result<(), Rejection> {
        for place in taken.places.iter().flatten() {
            if self.found.insert(*place, ()).is_none() {
                self.budget.take(PLACE)?;
            }
        }
        Ok(())
    }

    fn lost(&mut self, _: u64) {}
}

/// Makes stacks of samples, and gives them to a sink.
pub(super) struct Frames<'r, 's, S> {
    found: Found,
    sink: &'s mut S,
    budget: &'s Budget,
    events: Events<'r>,
    /// The frames of each place, innermost first, as a part of the list.
    known: HashMap<Place, (usize, usize), foldhash::fast::RandomState>,
    frames: Vec<u32>,
    lost: u64,
}

impl<'r, 's, S: SampleSink> Frames<'r, 's, S> {
    pub(super) fn new(found: Found, sink: &'s mut S, budget: &'s Budget) -> Self {
        let (events, known) = (Events::default(), HashMap::default());
        Self { found, sink, budget, events, known, frames: Vec::new(), lost: 0 }
    }

    /// Keeps the samples of the event that fits a profile type.
    ///
    /// # Errors
    /// `unit_mismatch` if there is none.
    pub(super) fn finish(self, kind: ProfileType) -> Result<(), Rejection> {
        if self.lost > 0 {
            tracing::warn!("{} records were lost while a recording of perf was made", self.lost);
        }
        self.events.keep_those_of(kind, self.sink)
    }

    /// The frames of a place as a part of the list.
    fn part(&mut self, place: Place) -> Result<(usize, usize), Rejection> {
        if let Some(part) = self.known.get(&place) {
            return Ok(*part);
        }
        let line = FrameLine::of(
            place.and_then(|place| self.found.symbol(place)),
            place.and_then(|(object, _)| self.found.object(object)),
        );
        let start = self.frames.len();
        stack::add(&line, &mut self.frames, self.budget, self.sink)?;
        let part = (start, self.frames.len());
        self.budget.take(PLACE)?;
        self.known.insert(place, part);
        Ok(part)
    }

    fn details(&mut self, taken: &Taken<'r, '_>) -> Result<SampleDetails, Rejection> {
        if !S::KEEPS_DETAILS {
            return Ok(SampleDetails::default());
        }
        let sample = taken.sample;
        Ok(SampleDetails {
            comm: Some(self.sink.text(taken.comm)?),
            pid: sample.pid.map(i64::from),
            tid: sample.tid.map(i64::from),
            cpu: sample.cpu.map(i64::from),
            at: sample.timestamp.and_then(|time| time.try_into().ok()),
            weight: sample.period.or_else(|| taken.event.period()).filter(|_| !taken.event.is_tracepoint),
        })
    }
}

impl<'r, S: SampleSink> Visit<'r> for Frames<'r, '_, S> {
    fn take(&mut self, taken: &Taken<'r, '_>) -> Result<(), Rejection> {
        let root = stack::root(taken.comm, self.sink)?;
        let event = self.events.number(taken.event.name.as_deref().unwrap_or_default(), self.budget)?;
        let mut frames = self.budget.list(taken.places.len() + 1)?;
        for place in taken.places {
            let (start, end) = self.part(*place)?;
            self.budget.extend(&mut frames, self.frames.get(start..end).unwrap_or_default())?;
        }
        let stack = stack::closed(frames, root, self.budget, self.sink)?;
        self.events.add_stack(event, self.budget)?;
        let details = self.details(taken)?;
        self.sink.sample(stack, details)
    }

    fn lost(&mut self, records: u64) {
        self.lost = self.lost.saturating_add(records);
    }
}
