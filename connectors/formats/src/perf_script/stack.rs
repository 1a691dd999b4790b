//! A stack as perf has it, the leaf first, and what becomes of it: the root first, and that is the thread.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use super::frame::FrameLine;
use crate::budget::Budget;
use crate::sink::{FrameDetails, FrameKind, SampleSink};

/// The frame of a thread by its name, the root of its stacks.
///
/// # Errors
/// `too_large` if there are too many frames.
pub(crate) fn root<S: SampleSink>(comm: &str, sink: &mut S) -> Result<u32, Rejection> {
    let thread = comm.replace(' ', "_").replace(';', ":");
    sink.frame(&thread, FrameDetails { kind: FrameKind::Thread, ..FrameDetails::default() })
}

/// Adds the frames of a line, of which all but the last were inlined by a JIT compiler.
///
/// # Errors
/// `too_large` if there are too many frames.
pub(crate) fn add<S: SampleSink>(
    line: &FrameLine<'_>,
    frames: &mut Vec<u32>,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), Rejection> {
    let first = frames.len();
    line.each_name(|name| -> Result<(), Rejection> {
        budget.push(frames, sink.frame(name, details_of_line(line, name))?)
    })?;
    // The frames of one line come outermost first, those of a stack innermost first.
    frames.get_mut(first..).unwrap_or_default().reverse();
    Ok(())
}

/// The stack of a sample whose frames came innermost first; without any it has one that has no symbol.
///
/// # Errors
/// `too_large` if there are too many frames.
pub(crate) fn closed<S: SampleSink>(
    mut frames: Vec<u32>,
    root: u32,
    budget: &Budget,
    sink: &mut S,
) -> Result<Stack, Rejection> {
    if frames.is_empty() {
        frames.push(sink.frame("", FrameDetails { kind: FrameKind::Nameless, ..FrameDetails::default() })?);
    }
    budget.push(&mut frames, root)?;
    frames.reverse();
    Ok(Stack { frames, count: 1, cohort: None, value: 0 })
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
