//! The text of `perf script`: an event a block, its header and its stack, the leaf first.
//!
//! A sample is an event, whatever its period: a period is how many cycles or nanoseconds went by since the event
//! before, and those are no samples. If a text holds several events (`cycles` and `cache-misses`), those of the one that
//! fits the profile type are counted, for added up they would mean nothing. The root of each stack is the thread's name,
//! as flame graph tools have it; an event without a stack counts below it as a function without a symbol.
//!
//! Times count from the start of the machine, so the labels must say when the profile was taken. Comments, lines of source
//! files and records that are no samples (`PERF_RECORD_...`) are passed over; any other line that is neither a header nor
//! a frame spoils the record, and so does a last line without its end.
//!
//! NB: a text cut at the end of a line cannot be told from a whole one; of its last stack the callers are then missing.

mod frame;
mod header;

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::frame::FrameLine;
use self::header::{header, plain_event};
use super::collected::{Collected, Collector};
use super::labels::{Contents, one_profile};
use super::{Decode, Labels, Options};

/// Decodes the text of `perf script`.
#[derive(Debug)]
pub struct Decoder(Collector);

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub fn new(options: &Options) -> Self {
        Self(Collector::new(options))
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let part = one_profile(labels, None, |kind, _| {
            let text = self.0.text(bytes)?;
            let reader = Reader::new(self.0.begin());
            reader.read(&text)?.finish(kind)
        });
        vec![part]
    }
}

/// Reads line by line.
struct Reader<'n, 'a> {
    collected: Collected<'n>,
    /// The event whose stack is being read.
    open: Option<Open>,
    /// The plain names of the events with their number.
    events: BTreeMap<&'a str, usize>,
    /// The event of each stack that was collected.
    event_of: Vec<usize>,
}

/// An event whose stack is being read.
struct Open {
    root: u32,
    /// Frames as they come: the innermost first.
    frames: Vec<u32>,
    event: usize,
}

impl<'n, 'a> Reader<'n, 'a> {
    fn new(collected: Collected<'n>) -> Self {
        Self { collected, open: None, events: BTreeMap::new(), event_of: Vec::new() }
    }

    fn read(mut self, text: &'a [u8]) -> Result<Self, Rejection> {
        let mut lines = text.split_inclusive(|&byte| byte == b'\n').zip(1u64..);
        lines.try_for_each(|(line, number)| {
            let at_line = |fault: Rejection| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault };
            whole_line(line).and_then(|line| self.line(line)).map_err(at_line)
        })?;
        self.close()?;
        Ok(self)
    }

    fn line(&mut self, line: &'a str) -> Result<(), Rejection> {
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
        match (&mut self.open, FrameLine::read(line)) {
            (Some(open), Some(frame)) => add(&frame, open, &mut self.collected),
            (Some(_), None) if is_source_line(line) => Ok(()),
            (open, _) => Err(unexpected(line, open.is_some())),
        }
    }

    fn begin(&mut self, header: &header::Header<'a>) -> Result<(), Rejection> {
        if header.event.starts_with("PERF_RECORD_") {
            return Ok(());
        }
        let root = self.collected.name(&header.comm.replace(' ', "_").replace(';', ":"))?;
        let event = self.event(plain_event(header.event));
        let mut open = Open { root, frames: Vec::new(), event };
        // Without call chains the only frame stands behind the header, and nothing follows.
        let only = FrameLine::read(header.rest).filter(|_| !header.rest.is_empty());
        if let Some(frame) = &only {
            add(frame, &mut open, &mut self.collected)?;
        }
        self.open = Some(open);
        if only.is_some() { self.close() } else { Ok(()) }
    }

    fn event(&mut self, name: &'a str) -> usize {
        let next = self.events.len();
        *self.events.entry(name).or_insert(next)
    }

    fn close(&mut self) -> Result<(), Rejection> {
        let Some(Open { root, mut frames, event }) = self.open.take() else { return Ok(()) };
        if frames.is_empty() {
            frames.push(self.collected.name("")?);
        }
        frames.push(root);
        frames.reverse();
        self.event_of.push(event);
        self.collected.push(frames, 1)
    }

    /// The samples of the event that fits a profile type.
    fn finish(mut self, kind: ProfileType) -> Result<Contents, Rejection> {
        if let Some(wanted) = chosen(&self.events, kind)? {
            self.collected.keep(|place| self.event_of.get(place) == Some(&wanted));
        }
        Ok(self.collected.finish())
    }
}

/// A line without its end; the last one, if it has none, was cut.
fn whole_line(line: &[u8]) -> Result<&str, Rejection> {
    let line = line.strip_suffix(b"\n").ok_or_else(|| {
        Rejection::new(Reason::Truncated, "has no end; perf script ends every line, so the text was cut")
    })?;
    let line = std::str::from_utf8(line).map_err(|_| Rejection::new(Reason::Malformed, "not UTF-8"))?;
    Ok(line.trim_end())
}

/// Adds the frames of a line to its event.
fn add(frame: &FrameLine<'_>, open: &mut Open, collected: &mut Collected<'_>) -> Result<(), Rejection> {
    let first = open.frames.len();
    frame.each_name(|name| -> Result<(), Rejection> {
        open.frames.push(collected.name(name)?);
        Ok(())
    })?;
    // The frames of one line come outermost first, those of a stack innermost first.
    open.frames.get_mut(first..).unwrap_or_default().reverse();
    Ok(())
}

/// `file.c:123`, printed below a frame if asked for.
fn is_source_line(line: &str) -> bool {
    let number = line.rsplit_once(':').map(|(_, number)| number);
    line.starts_with([' ', '\t']) && number.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unexpected(line: &str, within: bool) -> Rejection {
    let found: String = line.trim().chars().take(60).collect();
    let expected = if within { "a frame (address symbol (module)) or the next event" } else { "an event (comm pid time: event:)" };
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
        Some(&"offcpu-time") => Err(unit_mismatch("offcpu-time holds time that was added up, expected an event a sample")),
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
