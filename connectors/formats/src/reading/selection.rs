//! Which samples of a file are read.

use fleetdiff_schemas::time::Nanos;

use super::keys::Key;
use super::naming;
use super::numbers::Numbers;
use super::query::{Percentage, Reading};
use super::run::Unread;
use crate::observed::{Frame, Observed, Sample, at};
use crate::sink::{FrameKind, SampleDetails, SampleSink};

/// Sees that the file says all that frames are to be named by.
pub(super) fn check_keys(reading: &Reading, observed: &Observed<'_>) -> Result<(), Unread> {
    reading.keys.iter().flat_map(|keys| keys.iter()).try_for_each(|key| says(observed, key))
}

/// Drops the samples that are not read; says of each other one whether the filters let it pass.
///
/// A time and a processor leave out samples altogether. The other filters leave out what they are not asked for as perf does:
/// with [`Percentage::Absolute`] it still counts.
pub(super) fn select(reading: &Reading, observed: &mut Observed<'_>) -> Result<Vec<bool>, Unread> {
    select_time(reading, observed)?;
    select_cpus(reading, observed)?;
    let asked = [
        (Key::Pid, reading.filters.pids.is_some()),
        (Key::Tid, reading.filters.tids.is_some()),
        (Key::Comm, reading.filters.comms.is_some()),
        (Key::Dso, reading.filters.dsos.is_some()),
    ];
    asked.iter().filter(|(_, asked)| *asked).try_for_each(|(key, _)| says(observed, *key))?;
    let mut passed: Vec<bool> = observed.samples.iter().map(|sample| lets_pass(reading, sample, observed)).collect();
    if reading.percentage == Percentage::Relative {
        observed.keep(|place| passed.get(place) == Some(&true));
        passed.retain(|passed| *passed);
        if passed.is_empty() {
            return Err(Unread::NothingLeft("of all samples none is of what was asked for"));
        }
    }
    Ok(passed)
}

fn select_time(reading: &Reading, observed: &mut Observed<'_>) -> Result<(), Unread> {
    let cropped = reading.crop.filter(|crop| crop.0 > 0);
    if (reading.times.is_none() && cropped.is_none()) || observed.samples.is_empty() {
        return Ok(());
    }
    let timed = observed.samples.iter().all(|sample| sample.details.at.is_some());
    let Some([first, last]) = observed.span.filter(|_| timed) else {
        // Who knows the file's window can still say whether it lies within the warm-up.
        let window_will_do = reading.times.is_none() && observed.window.is_some();
        return if window_will_do { Ok(()) } else { Err(Unread::Timeless) };
    };
    let bounds = reading.times.as_ref().map(|times| times.bounds(Nanos(first), Nanos(last)));
    let from = first.saturating_add(cropped.map_or(0, |crop| crop.0));
    observed.samples.retain(|sample| {
        let at = sample.details.at.unwrap_or(first);
        at >= from
            && bounds.as_ref().is_none_or(|bounds| bounds.iter().any(|[start, stop]| (*start..=*stop).contains(&at)))
    });
    match observed.samples.is_empty() {
        true => Err(Unread::OutOfTime { first: Nanos(first), last: Nanos(last) }),
        false => Ok(()),
    }
}

fn select_cpus(reading: &Reading, observed: &mut Observed<'_>) -> Result<(), Unread> {
    let Some(cpus) = &reading.filters.cpus else { return Ok(()) };
    says(observed, Key::Cpu)?;
    let some = !observed.samples.is_empty();
    observed.samples.retain(|sample| sample.details.cpu.is_some_and(|cpu| cpus.has(cpu)));
    if some && observed.samples.is_empty() {
        Err(Unread::NothingLeft("none is of the processors asked for"))
    } else {
        Ok(())
    }
}

fn lets_pass(reading: &Reading, sample: &Sample, observed: &Observed<'_>) -> bool {
    let SampleDetails { comm, pid, tid, .. } = sample.details;
    let filters = &reading.filters;
    let numbered = |list: &Option<Numbers>, number: Option<i64>| {
        list.as_ref().is_none_or(|list| number.is_some_and(|number| list.has(number)))
    };
    let leaf = || {
        sample
            .stack
            .frames
            .iter()
            .rev()
            .filter_map(|frame| at(&observed.frames, *frame))
            .find(|frame| frame.kind != FrameKind::Thread)
    };
    let text = |place: u32| at(&observed.texts, place).map_or("", |text| text);
    let of_comm = filters.comms.as_ref().is_none_or(|comms| comm.is_some_and(|comm| comms.contains(text(comm))));
    let of_dso = filters.dsos.as_ref().is_none_or(|dsos| {
        let dso = leaf().and_then(|frame| frame.dso).map_or(naming::UNKNOWN, text);
        dsos.contains(dso) || dsos.contains(naming::short(dso))
    });
    let is_symbol = |frame: &Frame| {
        filters.symbols.as_ref().is_some_and(|symbols| {
            symbols.contains(text(frame.symbol)) || symbols.contains(&*observed.names.name(frame.name))
        })
    };
    let of_symbol = filters.symbols.is_none() || leaf().is_some_and(is_symbol);
    numbered(&filters.pids, pid) && numbered(&filters.tids, tid) && of_comm && of_dso && of_symbol
}

/// Sees that a file says something of its samples: of each, or, of frames, of one at least.
fn says(observed: &Observed<'_>, key: Key) -> Result<(), Unread> {
    let samples = &observed.samples;
    let frames = || observed.frames.iter().filter(|frame| frame.kind != FrameKind::Thread);
    let is_known = match key {
        Key::Comm => samples.iter().all(|sample| sample.details.comm.is_some()),
        Key::Pid => samples.iter().all(|sample| sample.details.pid.is_some()),
        Key::Tid => samples.iter().all(|sample| sample.details.tid.is_some()),
        Key::Cpu => samples.iter().all(|sample| sample.details.cpu.is_some()),
        Key::Dso => frames().any(|frame| frame.dso.is_some()),
        Key::Srcline => frames().any(|frame| frame.line.is_some()),
        Key::Symbol | Key::Parent => true,
    };
    if is_known || samples.is_empty() { Ok(()) } else { Err(Unread::Missing(key)) }
}
