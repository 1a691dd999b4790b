//! The lines of a record: headers, stacks, and which event is counted.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::events::Events;
use super::frame::FrameLine;
use super::header::{Header, bare_header, header};
use super::stack;
use crate::budget::Budget;
use crate::record::Record;
use crate::seconds::nanoseconds;
use crate::sink::{SampleDetails, SampleSink};

/// Gives the samples of a record: those of the event that fits its profile type.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let events = Reader::new(sink, &record.budget).read(record.text)?;
    events.keep_those_of(record.measure.profile_type, sink)
}

/// Reads line by line.
struct Reader<'s, 'a, S> {
    sink: &'s mut S,
    budget: &'s Budget,
    /// The event whose stack is being read.
    open: Option<Open<'a>>,
    events: Events<'a>,
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
        Self { sink, budget, open: None, events: Events::default() }
    }

    fn read(mut self, text: &'a [u8]) -> Result<Events<'a>, Rejection> {
        let mut lines = text.split_inclusive(|&byte| byte == b'\n').zip(1u64..).peekable();
        while let Some((line, number)) = lines.next() {
            let next = lines.peek().map(|(next, _)| *next);
            let at_line = |fault: Rejection| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault };
            whole_line(line).and_then(|line| self.line(line, next)).map_err(at_line)?;
        }
        self.close()?;
        Ok(self.events)
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
        let root = stack::root(header.comm, self.sink)?;
        let event = self.events.number(header.event, self.budget)?;
        let mut open = Open { header: *header, root, frames: Vec::new(), last: 0, event };
        // Without call chains the only frame stands behind the header, and nothing follows.
        let only = FrameLine::read(header.rest).filter(|_| !header.rest.is_empty());
        if let Some(frame) = &only {
            add(frame, &mut open, self.budget, self.sink)?;
        }
        self.open = Some(open);
        if only.is_some() { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), Rejection> {
        let Some(Open { header, root, frames, event, .. }) = self.open.take() else { return Ok(()) };
        let stack = stack::closed(frames, root, self.budget, self.sink)?;
        self.events.add_stack(event, self.budget)?;
        let details = if S::KEEPS_DETAILS { details_of_header(&header, self.sink)? } else { SampleDetails::default() };
        self.sink.sample(stack, details)
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

/// Adds the frames of a line to its event.
fn add<S: SampleSink>(
    frame: &FrameLine<'_>,
    open: &mut Open<'_>,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), Rejection> {
    open.last = open.frames.len();
    stack::add(frame, &mut open.frames, budget, sink)
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
