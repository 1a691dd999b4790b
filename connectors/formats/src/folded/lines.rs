//! The lines of a record, and what their counts show that they are.

use std::num::IntErrorKind;

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::austin::Header;
use super::counts::{Columns, Counts, added_up_periods};
use crate::labels::{Measure, Unit};
use crate::recognition::BYTE_ORDER_MARK;
use crate::record::Record;
use crate::sink::{FrameDetails, FrameKind, SampleDetails, SampleSink};
use crate::ticks::Clock;

/// Gives the stacks of a record.
///
/// Counts that are all multiples of a period are refused, unless the sink divides them by it: then they weigh what is written.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let header = Header::of(record.text).filter(|_| record.measure.unit.is_none());
    if let Some(header) = header {
        let (measure, unit) = header.measure(record.measure)?;
        let clock = clock(measure, unit).ok_or_else(|| no_samples(unit))?;
        return timed(record, clock, sink);
    }
    match record.measure.unit {
        None | Some(Unit::Count) => counted(record, record.measure.unit.is_some(), sink),
        Some(unit) => match clock(record.measure, unit) {
            Some(clock) => timed(record, clock, sink),
            None => Err(no_samples(unit)),
        },
    }
}

/// The stacks of a text of counts; `meant`: the labels say that it is one.
fn counted<S: SampleSink>(record: &Record<'_>, meant: bool, sink: &mut S) -> Result<(), Rejection> {
    let mut columns = Columns::default();
    let mut counts = Counts::new(meant);
    let mut stacks = Stacks::default();
    for (line, number) in lines(record.text) {
        let Some(line) = line_of(line).map_err(at(number))? else { continue };
        columns.take(line.stack);
        counts.take(line.count);
        stacks.give((line.stack, line.count), SampleDetails::default(), record, sink).map_err(at(number))?;
    }
    if let Some(period) = counts.period().filter(|period| !(counts.show_it() && sink.divide(*period))) {
        return Err(added_up_periods(period));
    }
    columns.check()
}

/// The stacks of a text of time, each a sample a tick.
fn timed<S: SampleSink>(record: &Record<'_>, clock: Clock, sink: &mut S) -> Result<(), Rejection> {
    let values = lines(record.text).filter_map(|(line, number)| {
        line_of(line).map(|line| line.map(|line| line.count)).map_err(at(number)).transpose()
    });
    let mut ticks = clock.ticks(values)?;
    let (mut columns, mut stacks) = (Columns::default(), Stacks::default());
    for (line, number) in lines(record.text) {
        let Some(line) = line_of(line).map_err(at(number))? else { continue };
        columns.take(line.stack);
        let details =
            SampleDetails { weight: Some(line.count.saturating_mul(clock.scale)), ..SampleDetails::default() };
        let count = ticks.count(line.count);
        stacks.give((line.stack, count), details, record, sink).map_err(at(number))?;
    }
    sink.weighed_in("time/nanoseconds");
    if let Some(found) = ticks.found {
        sink.ticked(found);
    }
    columns.check()
}

/// Lines with their number, counted from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).split(|&byte| byte == b'\n').zip(1u64..)
}

fn at(number: u64) -> impl Fn(Rejection) -> Rejection {
    move |fault| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault }
}

/// Stacks line by line. Most tools sort lines, so that a stack begins as the one before it: what both share is looked up once.
#[derive(Default)]
struct Stacks<'t> {
    /// The text of the last stack, and its frames.
    text: &'t str,
    frames: Vec<u32>,
}

impl<'t> Stacks<'t> {
    /// Gives so many samples of a stack; of one without samples not even its frames.
    fn give<S: SampleSink>(
        &mut self,
        (text, count): (&'t str, u64),
        details: SampleDetails,
        record: &Record<'_>,
        sink: &mut S,
    ) -> Result<(), Rejection> {
        if count == 0 {
            return Ok(());
        }
        let frames = self.frames(text, record, sink)?;
        sink.sample(Stack { frames, count, cohort: None, value: 0 }, details)
    }

    /// The frames of a stack, root first; an empty stack has none.
    fn frames<S: SampleSink>(
        &mut self,
        text: &'t str,
        record: &Record<'_>,
        sink: &mut S,
    ) -> Result<Vec<u32>, Rejection> {
        let common = in_common(self.text.as_bytes(), text.as_bytes());
        let known = text.as_bytes()[..common].iter().rposition(|byte| *byte == b';').map_or(0, |place| place + 1);
        self.frames.truncate(separators(&text.as_bytes()[..known]));
        self.text = text;
        let new = text.get(known..).filter(|_| !text.is_empty());
        for frame in new.into_iter().flat_map(|new| new.split(';')) {
            let is_thread = self.frames.is_empty() && record.measure.root_is_thread;
            let kind = if is_thread { FrameKind::Thread } else { FrameKind::Function };
            let frame = sink.frame(frame, FrameDetails { kind, ..FrameDetails::default() })?;
            record.budget.push(&mut self.frames, frame)?;
        }
        let mut frames = record.budget.list(self.frames.len())?;
        frames.extend_from_slice(&self.frames);
        Ok(frames)
    }
}

/// How many bytes two texts begin with alike.
fn in_common(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let alike = 8 * words.take_while(|(one, other)| one == other).count();
    alike + one[alike..].iter().zip(&other[alike..]).take_while(|(one, other)| one == other).count()
}

fn separators(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b';').count()
}

/// What is said of the tick, if the unit is one of time and the type one of clocks.
fn clock(measure: Measure, unit: Unit) -> Option<Clock> {
    let Measure { profile_type: kind, period: declared, values, .. } = measure;
    let ticked = matches!(kind, ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu);
    let scale = unit.nanoseconds().filter(|_| ticked)?.unsigned_abs();
    Some(Clock { kind, scale, declared, own: 0, values })
}

fn no_samples(unit: Unit) -> Rejection {
    let detail = format!("folded stacks in {}, expected a count of samples", unit.name());
    Rejection::new(Reason::UnitMismatch, detail)
}

/// What a line says.
struct Line<'a> {
    stack: &'a str,
    count: u64,
}

/// The stack and the count of a line; nothing if it holds none.
fn line_of(line: &[u8]) -> Result<Option<Line<'_>>, Rejection> {
    let line = std::str::from_utf8(line).map_err(|_| malformed("not UTF-8"))?;
    let line = line.trim_end_matches(|character: char| character.is_ascii_whitespace());
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (stack, count) =
        line.rsplit_once([' ', '\t']).ok_or_else(|| malformed("no count, expected root;...;leaf COUNT"))?;
    Ok(Some(Line { stack, count: count_of(count)? }))
}

fn count_of(text: &str) -> Result<u64, Rejection> {
    let refused = |reason, detail: String| Err(Rejection::new(reason, detail));
    match text.parse::<i64>() {
        Ok(count) => u64::try_from(count).or_else(|_| refused(Reason::NegativeValue, format!("a count of {count}"))),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => refused(Reason::TooLarge, format!("a count of {text} samples")),
            IntErrorKind::NegOverflow => refused(Reason::NegativeValue, format!("a count of {text}")),
            _ if is_decimal(text) => {
                refused(Reason::UnitMismatch, format!("{text} is no whole number; time or weights are not samples"))
            }
            _ => refused(Reason::Malformed, format!("{text:?} is not a count")),
        },
    }
}

fn is_decimal(text: &str) -> bool {
    text.starts_with(|character: char| character.is_ascii_digit()) && text.parse().is_ok_and(f64::is_finite)
}

fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, what)
}
