//! The lines of a record, and what their counts show that they are.

use std::num::IntErrorKind;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::counts::{Columns, Counts, added_up_periods};
use crate::labels::Unit;
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// Gives the stacks of a record.
///
/// Counts that are all multiples of a period are refused, unless the sink divides them by it: then they weigh what is written.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    refuse_values(record.unit)?;
    let text = record.text()?;
    let mut columns = Columns::default();
    let mut counts = Counts::new(record.unit == Some(Unit::Count));
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1u64..) {
        let at_line = |fault: Rejection| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault };
        let Some(line) = line_of(line).map_err(at_line)? else { continue };
        columns.take(line.stack);
        counts.take(line.count);
        give(&line, sink).map_err(at_line)?;
    }
    if let Some(period) = counts.period().filter(|period| !sink.divide(*period)) {
        return Err(added_up_periods(period));
    }
    columns.check()
}

fn give<S: SampleSink>(line: &Line<'_>, sink: &mut S) -> Result<(), Rejection> {
    if line.count == 0 {
        return Ok(());
    }
    let frames = line.frames().map(|frame| sink.frame(frame, FrameDetails::default())).collect::<Result<_, _>>()?;
    sink.sample(Stack { frames, count: line.count, cohort: None }, SampleDetails::default())
}

fn refuse_values(unit: Option<Unit>) -> Result<(), Rejection> {
    match unit {
        None | Some(Unit::Count) => Ok(()),
        Some(unit) => {
            let detail = format!("folded stacks in {}, expected a count of samples", unit.name());
            Err(Rejection::new(Reason::UnitMismatch, detail))
        }
    }
}

/// What a line says.
struct Line<'a> {
    stack: &'a str,
    count: u64,
}

impl<'a> Line<'a> {
    /// Its frames, root first; an empty stack has none.
    fn frames(&self) -> impl Iterator<Item = &'a str> {
        let frames = (!self.stack.is_empty()).then(|| self.stack.split(';'));
        frames.into_iter().flatten()
    }
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
