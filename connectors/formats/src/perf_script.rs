//! The text of `perf script`: an event a block, its header and its stack, the leaf first.
//!
//! A sample is an event, whatever its period: a period is how many cycles or nanoseconds went by since the event
//! before, and those are no samples. If a text holds several events (`cycles` and `cache-misses`), those of the one that
//! fits the profile type are counted, for added up they would mean nothing. The root of each stack is the thread's name,
//! as flame graph tools have it; an event without a stack counts below it as a function without a symbol.
//!
//! Times count from the start of the machine, so the labels must say when the profile was taken. Comments, lines of source
//! files and records that are no samples (`PERF_RECORD_...`) are passed over; any other line that is neither a header nor
//! a frame spoils the record, and so does a last line without its end. A header may hold no more than a thread and numbers, if it
//! follows an empty line and frames follow it.
//!
//! NB: a text cut at the end of a line cannot be told from a whole one; of its last stack the callers are then missing.

mod events;
mod frame;
mod header;
mod reader;
pub(crate) mod stack;
mod write;

use self::header::header;

pub use write::encode;

pub(crate) use events::Events;
pub(crate) use frame::FrameLine;
pub(crate) use reader::read;

/// Whether a text begins as one of `perf script` does: an event with its time, or with a frame below it.
pub(crate) fn begins(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let Some(first) = lines.next().and_then(|line| header(line.trim_end())) else { return false };
    let dated = first.time.is_some() && !first.event.is_empty();
    dated || lines.next().is_some_and(|line| line.starts_with([' ', '\t']) && FrameLine::read(line).is_some())
}
