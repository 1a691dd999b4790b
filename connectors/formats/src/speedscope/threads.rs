//! The profiles of a file, each those of a thread: their entries as samples.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::counts::Counting;
use super::document::{Event, EventKind, File, Kind, Part};
use crate::budget::Budget;
use crate::float::nanoseconds;
use crate::json::{self, Lists};
use crate::labels::Unit;
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// What a broken profile is counted as besides its name.
const BROKEN: usize = 512;

/// A profile of a file that is broken, which spoils no other.
pub(crate) struct BrokenThread {
    /// Its place in the file, counted from 1.
    number: u64,
    name: String,
    pub(crate) fault: Rejection,
}

impl BrokenThread {
    /// What is wrong, and where.
    pub(crate) fn detail(&self) -> String {
        format!("profile {} {:?}: {}", self.number, self.name, self.fault.detail)
    }
}

/// Gives the samples of all profiles that are whole; the others become `broken`.
pub(crate) fn read<S: SampleSink>(
    record: &Record<'_>,
    sink: &mut S,
    broken: &mut Vec<BrokenThread>,
) -> Result<(), Rejection> {
    let file: File<'_> = json::read("speedscope file", record.text, &record.budget)?;
    let counting = Counting::of(&file.profiles, record.measure)?;
    let mut frames = record.budget.list(file.shared.frames.len())?;
    for frame in file.shared.frames.iter() {
        let line = if S::KEEPS_DETAILS { frame.source_line() } else { None };
        let symbol = Some(&*frame.name).filter(|name| !name.is_empty());
        let details = FrameDetails { symbol, line: line.as_deref(), ..FrameDetails::default() };
        frames.push(sink.frame(&frame.full_name(), details)?);
    }
    let labelled = record.measure.unit.filter(|_| counting == Counting::Lengths).and_then(Unit::nanoseconds);
    let scale = file.profiles.first().and_then(|part| part.unit.nanoseconds()).or(labelled);
    let entries = Entries { counting, frames: &frames, scale, budget: &record.budget };
    for (part, number) in file.profiles.iter().zip(1u64..) {
        let before = sink.len();
        match entries.take(part, sink) {
            Err(fault) if fault.reason == Reason::TooLarge => return Err(fault),
            Err(fault) => {
                sink.cut_back(before);
                record.budget.take(BROKEN + part.name.len())?;
                broken.push(BrokenThread { number, name: part.name.to_string(), fault });
            }
            Ok(()) => {}
        }
    }
    if scale.is_some() {
        sink.weighed_in("time/nanoseconds");
    }
    Ok(())
}

/// How the entries of a profile are read.
struct Entries<'n> {
    counting: Counting,
    frames: &'n [u32],
    /// Nanoseconds in one of its unit, if that is a time.
    scale: Option<i64>,
    budget: &'n Budget,
}

impl Entries<'_> {
    fn take<S: SampleSink>(&self, part: &Part<'_>, sink: &mut S) -> Result<(), Rejection> {
        let comm = if part.name.is_empty() { None } else { Some(sink.text(&part.name)?) };
        let thread = SampleDetails { comm, ..SampleDetails::default() };
        match (part.kind, &part.samples, &part.weights, &part.events) {
            (Kind::Sampled, Some(samples), Some(weights), _) => {
                let start = if S::KEEPS_DETAILS { part.begins_at() } else { 0.0 };
                self.sampled(samples, weights, start, thread, sink)
            }
            (Kind::Evented, _, _, Some(events)) => {
                self.counting.lengths()?;
                evented(events, self.frames, |frames, length| {
                    self.budget.take(size_of_val(frames))?;
                    let count = self.counting.samples(length)?;
                    let details = SampleDetails { weight: self.nanoseconds(length), ..thread };
                    sink.sample(Stack { frames: frames.to_vec(), count, cohort: None, value: 0 }, details)
                })
            }
            (Kind::Sampled, ..) => Err(malformed("a sampled profile without samples or weights")),
            (Kind::Evented, ..) => Err(malformed("an evented profile without events")),
        }
    }

    /// A length in nanoseconds, if it is of time.
    fn nanoseconds(&self, length: f64) -> Option<u64> {
        self.scale.and_then(|scale| u64::try_from(nanoseconds(length, scale)).ok())
    }

    fn sampled<S: SampleSink>(
        &self,
        samples: &Lists<u32>,
        weights: &[f64],
        start: f64,
        thread: SampleDetails,
        sink: &mut S,
    ) -> Result<(), Rejection> {
        if samples.len() != weights.len() {
            return Err(malformed(&format!("{} samples with {} weights", samples.len(), weights.len())));
        }
        let mut at = start;
        for (sample, weight) in samples.iter().zip(weights) {
            let mut frames = self.budget.list(sample.len())?;
            for frame in sample {
                frames.push(name_of(*frame, self.frames)?);
            }
            let count = self.counting.samples(*weight)?;
            let moment = self.scale.map(|scale| nanoseconds(at, scale));
            let details = SampleDetails { at: moment, weight: self.nanoseconds(*weight), ..thread };
            sink.sample(Stack { frames, count, cohort: None, value: 0 }, details)?;
            at += weight;
        }
        Ok(())
    }
}

/// The lengths of time between events, as samples of the stack that was open meanwhile.
fn evented(
    events: &[Event],
    names: &[u32],
    mut push: impl FnMut(&[u32], f64) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let mut stack: Vec<u32> = Vec::new();
    let mut last = events.first().map_or(0.0, |event| event.at);
    for (event, number) in events.iter().zip(1u64..) {
        let length = event.at - last;
        if length < 0.0 {
            return Err(malformed(&format!("event {number} lies before the one before it")));
        }
        if !stack.is_empty() {
            push(&stack, length)?;
        }
        last = event.at;
        let name = name_of(event.frame, names)?;
        match event.kind {
            EventKind::Open => stack.push(name),
            EventKind::Close if stack.pop() == Some(name) => {}
            EventKind::Close => return Err(malformed(&format!("event {number} closes what is not open"))),
        }
    }
    if stack.is_empty() { Ok(()) } else { Err(malformed(&format!("{} frames are never closed", stack.len()))) }
}

fn name_of(frame: u32, names: &[u32]) -> Result<u32, Rejection> {
    usize::try_from(frame)
        .ok()
        .and_then(|place| names.get(place))
        .copied()
        .ok_or_else(|| Rejection::new(Reason::IndexOutOfRange, format!("frame {frame} in a table of {}", names.len())))
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
