//! Folded stacks: a line a stack, `root;...;leaf COUNT`, as flame graph tools write them.
//!
//! The count is what follows the last space, so frames may hold spaces. Lines that are blank or begin with `#` are
//! skipped. Nothing before the count is an empty stack. Frames stand as they are (`[libc.so.6]`, `read_[k]`), save that
//! `[unknown]` and empty ones have no symbol. Counts are taken as raw samples: a file whose unit is known to be another
//! is refused, for without a period bytes or nanoseconds cannot be turned into samples.

use std::num::IntErrorKind;

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::compression::{decompress, gzip};
use super::labels::{Contents, one_profile};
use super::names::Names;
use super::{Decode, Labels, Options, Unencodable, Unit};

/// Decodes folded stacks.
#[derive(Debug)]
pub struct Decoder {
    max_bytes: usize,
}

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub fn new(options: &Options) -> Self {
        Self { max_bytes: options.max_bytes }
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let part = one_profile(labels, None, |_, unit| {
            refuse_values(unit)?;
            let text = decompress(bytes, self.max_bytes)?;
            read(&text, self.max_bytes)
        });
        vec![part]
    }
}

/// Writes a profile as gzipped folded stacks; [`Decoder`] gives back the same stacks. The window is not written.
/// Equal profiles give equal bytes.
///
/// # Errors
/// [`Unencodable`] if the profile holds no stacks, stacks that are not of its names, or text that would be read as
/// something else.
pub fn encode(profile: &Profile) -> Result<Vec<u8>, Unencodable> {
    let Samples::Stacks(stacks) = &profile.samples else { return Err(Unencodable::Folded) };
    let mut text = String::new();
    for stack in stacks {
        if let Some(cohort) = &stack.cohort {
            return Err(Unencodable::Text(cohort.to_string()));
        }
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
        let count = i64::try_from(stack.count).map_err(|_| Unencodable::OutOfRange)?;
        text.push_str(&format!(" {count}\n"));
    }
    Ok(gzip(text.as_bytes()))
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

fn read(text: &[u8], max_bytes: usize) -> Result<Contents, Rejection> {
    let mut names = Names::default();
    let mut stacks = Vec::new();
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1u64..) {
        let Some((frames, count)) = line_of(line, number)? else { continue };
        // A line of 3 bytes becomes a stack of some 50: what is built stays within a small multiple of the limit.
        if stacks.len().max(names.len()) > max_bytes / 32 {
            return Err(Rejection::new(Reason::TooLarge, format!("line {number}: too many stacks or names to hold")));
        }
        let frames = if frames.is_empty() {
            Vec::new()
        } else {
            frames.split(';').map(|frame| names.index_of(frame)).collect()
        };
        stacks.push(Stack { frames, count, cohort: None });
    }
    Ok(Contents { names: names.into_list(), stacks })
}

/// The frames and the count of a line; nothing if it holds no samples.
fn line_of(line: &[u8], number: u64) -> Result<Option<(&str, u64)>, Rejection> {
    let malformed = |what: &str| Rejection::new(Reason::Malformed, format!("line {number}: {what}"));
    let line = std::str::from_utf8(line).map_err(|_| malformed("not UTF-8"))?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (frames, count) =
        line.rsplit_once(' ').ok_or_else(|| malformed("no count, expected root;...;leaf COUNT"))?;
    match count.parse::<i64>() {
        Ok(0) => Ok(None),
        Ok(count) => u64::try_from(count).map(|count| Some((frames, count))).map_err(|_| negative(number, count)),
        Err(error) => Err(match error.kind() {
            IntErrorKind::PosOverflow => {
                Rejection::new(Reason::TooLarge, format!("line {number}: a count of {count} samples"))
            }
            IntErrorKind::NegOverflow => negative(number, count),
            _ => malformed(&format!("{count:?} is not a count")),
        }),
    }
}

fn negative(number: u64, count: impl std::fmt::Display) -> Rejection {
    Rejection::new(Reason::NegativeValue, format!("line {number}: a count of {count}"))
}
