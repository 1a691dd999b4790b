//! Folded stacks: a line a stack, `root;...;leaf COUNT`, as flame graph tools write them.
//!
//! The count is what follows the last space or tab, so frames may hold spaces. Lines that are blank or begin with `#`
//! are skipped, white space at the end of a line is no part of it. Nothing before the count is an empty stack. Frames go
//! through [`names`](super::names) like those of every format.
//!
//! Counts are taken as raw samples. What cannot be that is refused: a file whose unit is known to be another, for without
//! a period bytes or nanoseconds cannot be turned into samples; a count that is no whole number; a file in which every
//! line ends in two counts, as tools write that compare two profiles; and one whose counts are all multiples of a large
//! number, which is then a period: some tools add up the periods of `perf script` instead of its events.

mod counts;
mod observe;

use std::num::IntErrorKind;

use fleetdiff_schemas::profile::{Profile, Samples};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::counts::{Columns, Counts};
use super::collected::{Collected, Collector};
use super::compression::gzip;
use super::labels::{Contents, one_profile};
use super::{Decode, Labels, Options, Unencodable, Unit};

pub(super) use observe::observe;

/// Decodes folded stacks.
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
        let part = one_profile(labels, None, |_, unit| {
            refuse_values(unit)?;
            let text = self.0.text(bytes)?;
            let counts = Counts::new(unit == Some(Unit::Count));
            read(&text, counts, self.0.begin())
        });
        vec![part]
    }
}

/// Writes a profile as gzipped folded stacks; [`Decoder`] gives back the same stacks if the names are
/// [normalised](super::names::normalised). The window is not written. Equal profiles give equal bytes.
///
/// NB: counts that are all multiples of 1,000 or more are read back only where the labels' unit is `count`.
///
/// # Errors
/// [`Unencodable`] if the profile holds no stacks, stacks that are not of its names, or text that would be read as
/// something else.
pub fn encode(profile: &Profile) -> Result<Vec<u8>, Unencodable> {
    let Samples::Stacks(stacks) = &profile.samples else { return Err(Unencodable::Folded) };
    let mut text = String::new();
    let mut columns = Columns::default();
    for stack in stacks {
        if let Some(cohort) = &stack.cohort {
            return Err(Unencodable::Text(cohort.to_string()));
        }
        let start = text.len();
        for (place, frame) in stack.frames.iter().enumerate() {
            let name = usize::try_from(*frame).ok().and_then(|frame| profile.names.get(frame));
            let name = name.ok_or(Unencodable::OutOfRange)?;
            let comment = place == 0 && name.starts_with('#');
            if comment || name.is_empty() || name.contains([';', '\n']) {
                return Err(Unencodable::Text(name.to_string()));
            }
            text.push_str(if place == 0 { "" } else { ";" });
            text.push_str(name);
        }
        columns.take(text.get(start..).unwrap_or_default());
        let count = i64::try_from(stack.count).map_err(|_| Unencodable::OutOfRange)?;
        text.push_str(&format!(" {count}\n"));
    }
    match columns.are_two() {
        Some(line) => Err(Unencodable::Text(line)),
        None => Ok(gzip(text.as_bytes())),
    }
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

fn read(text: &[u8], counts: Counts, mut collected: Collected<'_>) -> Result<Contents, Rejection> {
    let (counts, columns) = lines(text, counts, |line| stack(line, &mut collected))?;
    counts.check()?;
    columns.check()?;
    Ok(collected.finish())
}

/// Takes each line that holds a stack; gives what its counts are like.
fn lines<'a>(
    text: &'a [u8],
    mut counts: Counts,
    mut take: impl FnMut(&Line<'a>) -> Result<(), Rejection>,
) -> Result<(Counts, Columns), Rejection> {
    let mut columns = Columns::default();
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1u64..) {
        let at_line = |fault: Rejection| Rejection { detail: format!("line {number}: {}", fault.detail), ..fault };
        let Some(line) = line_of(line).map_err(at_line)? else { continue };
        columns.take(line.stack);
        counts.take(line.count);
        take(&line).map_err(at_line)?;
    }
    Ok((counts, columns))
}

/// What a line says.
struct Line<'a> {
    stack: &'a str,
    count: u64,
}

fn stack(line: &Line<'_>, collected: &mut Collected<'_>) -> Result<(), Rejection> {
    if line.count == 0 {
        return Ok(());
    }
    let frames = line.frames().map(|frame| collected.name(frame)).collect::<Result<_, _>>()?;
    collected.push(frames, line.count)
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
