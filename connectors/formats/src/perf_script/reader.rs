//! The lines of a record: headers, stacks, and which event is counted.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::frame::FrameLine;
use super::header::{Header, bare_header, header, plain_event};
use crate::budget::Budget;
use crate::record::Record;
use crate::seconds::nanoseconds;
use crate::sink::{FrameDetails, FrameKind, SampleDetails, SampleSink};

/// Gives the samples of a record: those of the event that fits its profile type.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let event = Reader::new(sink, &record.budget).read(record.text)?.finish(record.measure.profile_type)?;
    if let Some(event) = event {
        // A text without events does not say what its periods are of.
        sink.weighed_in(if event.is_empty() { "period" } else { event });
    }
    Ok(())
}

/// What the name of an event is counted as.
const EVENT: usize = 64;

/// Reads line by line.
struct Reader<'s, 'a, S> {
    sink: &'s mut S,
    budget: &'s Budget,
    /// The event whose stack is being read.
    open: Option<Open<'a>>,
    /// The plain names of the events with their number.
    events: BTreeMap<&'a str, usize>,
    /// The event of each stack that was collected.
    event_of: Vec<usize>,
}

/// An event whose stack is being read.
struct Open<'a> {
    header: Header<'a>,
    root: u32,
    /// Frames as they come: the innermost first.
    frames: Vec<u32>,
    /// Where the innermost frame of the last line stands.
    last: usize,
    event: usize,
}

impl<'s, 'a, S: SampleSink> Reader<'s, 'a, S> {
    fn new(sink: &'s mut S, budget: &'s Budget) -> Self {
        Self { sink, budget, open: None, events: BTreeMap::new(), event_of: Vec::new() }
    }

    fn read(mut self, text: &'a [u8]) -> Result<Self, Rejection> {
        let mut lines = text.split_inclusive(|&byte| byte == b'\n').zip(1u64..).peekable();
        while let Some((line, number)) = lines.next() {
            let next = lines.peek().map(|(next, _)| *next);
            let at_line = |fault: Rejection| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault };
            whole_line(line).and_then(|line| self.line(line, next)).map_err(at_line)?;
        }
        self.close()?;
        Ok(self)
    }

    fn line(&mut self, line: &'a str, next: Option<&[u8]>) -> Result<(), Rejection> {
        if line.starts_with('#') {
            return Ok(());
        }
        if line.trim().is_empty() {
            return self.close();
        }
        if let Some(header) = header(line) {
            self.close()?;
            return self.begin(&header);
        }
        if let Some(header) = bare_header(line).filter(|_| self.open.is_none() && next.is_some_and(is_frame)) {
            return self.begin(&header);
        }
        match (&mut self.open, FrameLine::read(line)) {
            (Some(open), Some(frame)) => add(&frame, open, self.budget, self.sink),
            (Some(open), None) if is_source_line(line) => open.frames.get_mut(open.last).map_or(Ok(()), |frame| {
                *frame = self.sink.frame_at_line(*frame, line.trim())?;
                Ok(())
            }),
            (Some(_), None) if is_unresolved(line) => Ok(()),
            (open, _) => Err(unexpected(line, open.is_some())),
        }
    }

    fn begin(&mut self, header: &Header<'a>) -> Result<(), Rejection> {
        if header.event.starts_with("PERF_RECORD_") {
            return Ok(());
        }
        let thread = header.comm.replace(' ', "_").replace(';', ":");
        let root = self.sink.frame(&thread, FrameDetails { kind: FrameKind::Thread, ..FrameDetails::default() })?;
        let event = self.event(plain_event(header.event))?;
        let mut open = Open { header: *header, root, frames: Vec::new(), last: 0, event };
        // Without call chains the only frame stands behind the header, and nothing follows.
        let only = FrameLine::read(header.rest).filter(|_| !header.rest.is_empty());
        if let Some(frame) = &only {
            add(frame, &mut open, self.budget, self.sink)?;
        }
        self.open = Some(open);
        if only.is_some() { self.close() } else { Ok(()) }
    }

    fn event(&mut self, name: &'a str) -> Result<usize, Rejection> {
        if let Some(known) = self.events.get(name) {
            return Ok(*known);
        }
        let next = self.events.len();
        self.budget.take(EVENT)?;
        self.events.insert(name, next);
        Ok(next)
    }

    fn close(&mut self) -> Result<(), Rejection> {
        let Some(Open { header, root, mut frames, event, .. }) = self.open.take() else { return Ok(()) };
        if frames.is_empty() {
            frames.push(self.sink.frame("", FrameDetails { kind: FrameKind::Nameless, ..FrameDetails::default() })?);
        }
        self.budget.push(&mut frames, root)?;
        frames.reverse();
        self.budget.push(&mut self.event_of, event)?;
        let details = if S::KEEPS_DETAILS { details_of_header(&header, self.sink)? } else { SampleDetails::default() };
        self.sink.sample(Stack { frames, count: 1, cohort: None, value: 0 }, details)
    }

    /// Keeps the samples of the event that fits a profile type, and gives its name; none if there is no event.
    fn finish(self, kind: ProfileType) -> Result<Option<&'a str>, Rejection> {
        let Some(wanted) = chosen(&self.events, kind)? else { return Ok(None) };
        self.sink.keep(|place| self.event_of.get(place) == Some(&wanted));
        Ok(self.events.iter().find(|(_, event)| **event == wanted).map(|(name, _)| *name))
    }
}

/// Whether a line that is still to come is a frame.
fn is_frame(line: &[u8]) -> bool {
    whole_line(line).is_ok_and(|line| line.starts_with([' ', '\t']) && FrameLine::read(line).is_some())
}

/// A line without its end; the last one, if it has none, was cut.
fn whole_line(line: &[u8]) -> Result<&str, Rejection> {
    let line = line.strip_suffix(b"\n").ok_or_else(|| {
        Rejection::new(Reason::Truncated, "has no end; perf script ends every line, so the text was cut")
    })?;
    let line = std::str::from_utf8(line).map_err(|_| Rejection::new(Reason::Malformed, "not UTF-8"))?;
    Ok(line.trim_end())
}

/// What a header says of its sample.
///
/// A lone number before the time is the thread's, as `perf script` prints it unless asked for the process (`-F +pid`).
fn details_of_header<S: SampleSink>(header: &Header<'_>, sink: &mut S) -> Result<SampleDetails, Rejection> {
    let (pid, tid) = header.thread.split_once('/').map_or((None, header.thread), |(pid, tid)| (Some(pid), tid));
    let number = |text: &str| text.parse::<i64>().ok();
    Ok(SampleDetails {
        comm: Some(sink.text(header.comm)?),
        pid: pid.and_then(number),
        tid: number(tid),
        cpu: header.cpu.and_then(|cpu| number(cpu.trim_matches(['[', ']']))),
        at: header.time.and_then(|time| nanoseconds(time.trim_end_matches(':'))),
        weight: header.period.and_then(|period| period.parse().ok()),
    })
}

/// What a line says of one of its frames.
fn details_of_line<'a>(line: &'a FrameLine<'_>, name: &'a str) -> FrameDetails<'a> {
    let marked = name.strip_suffix("_[i]").unwrap_or(name);
    let symbol = Some(marked.strip_suffix("_[k]").unwrap_or(marked));
    match line.module() {
        _ if line.has_no_symbol() => {
            FrameDetails { symbol, dso: line.dso(), kind: FrameKind::Nameless, ..FrameDetails::default() }
        }
        Some("inlined") => FrameDetails { symbol, kind: FrameKind::Inlined, ..FrameDetails::default() },
        _ => FrameDetails { symbol, dso: line.dso(), ..FrameDetails::default() },
    }
}

/// Adds the frames of a line to its event.
fn add<S: SampleSink>(
    frame: &FrameLine<'_>,
    open: &mut Open<'_>,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), Rejection> {
    let first = open.frames.len();
    frame.each_name(|name| -> Result<(), Rejection> {
        budget.push(&mut open.frames, sink.frame(name, details_of_line(frame, name))?)
    })?;
    open.last = first;
    // The frames of one line come outermost first, those of a stack innermost first.
    open.frames.get_mut(first..).unwrap_or_default().reverse();
    Ok(())
}

/// `file.c:123`, printed below a frame if asked for.
fn is_source_line(line: &str) -> bool {
    let number = line.rsplit_once(':').map(|(_, number)| number);
    line.starts_with([' ', '\t']) && number.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `[module][address]`, printed instead of a line of source that could not be found.
fn is_unresolved(line: &str) -> bool {
    let address = line.trim().strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    address.is_some_and(|(module, address)| line.starts_with([' ', '\t']) && !module.is_empty() && hexadecimal(address))
}

fn unexpected(line: &str, within: bool) -> Rejection {
    let found: String = line.trim().chars().take(60).collect();
    let expected =
        if within { "a frame (address symbol (module)) or the next event" } else { "an event (comm pid time: event:)" };
    Rejection::new(Reason::Malformed, format!("{found:?}, expected {expected}"))
}

/// The number of the event that a profile of this type is made of; nothing if there is no event at all.
///
/// A single event is taken at the labels' word. Of several the first that measures the type is taken, in the order below.
fn chosen(events: &BTreeMap<&str, usize>, kind: ProfileType) -> Result<Option<usize>, Rejection> {
    let measures: &[&str] = match kind {
        ProfileType::Cpu => &["cycles", "cpu-clock", "task-clock"],
        ProfileType::OffCpu => &["sched:sched_switch"],
        _ => &[],
    };
    let only = events.keys().next().filter(|_| events.len() == 1);
    let event = only.or_else(|| measures.iter().find(|measure| events.contains_key(*measure)));
    match event {
        None if events.is_empty() => Ok(None),
        Some(&"offcpu-time") => {
            Err(unit_mismatch("offcpu-time holds time that was added up, expected an event a sample"))
        }
        Some(event) => Ok(events.get(event).copied()),
        None => Err(several(events, kind, measures)),
    }
}

fn several(events: &BTreeMap<&str, usize>, kind: ProfileType, measures: &[&str]) -> Rejection {
    let found: Vec<&str> = events.keys().copied().take(8).collect();
    let or = if measures.is_empty() { String::new() } else { format!(" or among them {}", measures.join(", ")) };
    unit_mismatch(&format!("{} profile with the events {}, expected a single one{or}", kind.name(), found.join(", ")))
}

fn unit_mismatch(detail: &str) -> Rejection {
    Rejection::new(Reason::UnitMismatch, detail)
}
