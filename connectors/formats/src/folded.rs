//! Folded stacks: a line a stack, `root;...;leaf COUNT`, as flame graph tools write them.
//!
//! The count is what follows the last space or tab, so frames may hold spaces. Lines that are blank or begin with `#`
//! are skipped, white space at the end of a line is no part of it. Nothing before the count is an empty stack. Frames go
//! through [`names`](super::names) like those of every format.
//!
//! Counts are taken as raw samples. What cannot be that is refused: a file whose unit is known to be another, for without
//! a period bytes or nanoseconds cannot be turned into samples; a count that is no whole number; a file in which every
//! line ends in two counts, as tools write that compare two profiles; and one whose counts are all multiples of a large
//! number, which is then a period: some tools add up the periods of `perf script` instead of its events. Stacks of Austin, which its
//! comments tell (`# austin: 4.0.0`), are times.

mod austin;
mod counts;
mod lines;

use fleetdiff_schemas::profile::{Profile, Samples};

use self::counts::Columns;
use crate::compression::gzip;
use crate::unencodable::Unencodable;

pub(crate) use lines::read;

/// How the format is called in messages.
const FORMAT: &str = "folded";

/// Writes a profile as gzipped folded stacks; the decoder gives back the same stacks if the names are
/// as all [rules](super::names::NameRules) leave them. The window is not written. Equal profiles give equal bytes.
///
/// NB: counts that are all multiples of 1,000 or more are read back only where the labels' unit is `count`
/// ([`Labels::of_counts`](crate::Labels::of_counts)).
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
            return Err(Unencodable::Cohort { format: FORMAT, cohort: cohort.to_string() });
        }
        let start = text.len();
        for (place, frame) in stack.frames.iter().enumerate() {
            let name = usize::try_from(*frame).ok().and_then(|frame| profile.names.get(frame));
            let name = name.ok_or(Unencodable::OutOfRange)?;
            let comment = place == 0 && name.starts_with('#');
            if comment || name.is_empty() || name.contains([';', '\n']) {
                return Err(Unencodable::Text { format: FORMAT, text: name.to_string() });
            }
            text.push_str(if place == 0 { "" } else { ";" });
            text.push_str(name);
        }
        columns.take(text.get(start..).unwrap_or_default());
        let count = i64::try_from(stack.count).map_err(|_| Unencodable::OutOfRange)?;
        text.push_str(&format!(" {count}\n"));
    }
    match columns.are_two() {
        Some(line) => Err(Unencodable::Text { format: FORMAT, text: line }),
        None => Ok(gzip(text.as_bytes())),
    }
}
