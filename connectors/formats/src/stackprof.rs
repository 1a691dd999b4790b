//! The JSON of stackprof, a sampling profiler of Ruby: `StackProf.results` as JSON, or what `stackprof --json` makes of a dump.
//!
//! `raw` is a list of stacks, one after the other: how many frames, the frames from the root by their addresses, and how many
//! samples in a row met that stack. `frames` says what the addresses are, and how often each was met; without `raw` (`raw: true` of
//! `StackProf.run`) there is nothing else, and no stack.
//!
//! A method with its class or module has a name of its own; blocks and what stands outside of any have it together with their file.
//!
//! NB: `interval` is how often samples were asked for, not how long each stands for: the timer of a processor ticks no faster than
//! the kernel, so that samples of 1 ms may come every 4 to 10 ms. So samples stand for a time only if a period is declared.
//!
//! Checked against stackprof 0.2.21: `report.rb` (`print_stackcollapse`), `stackprof.c`.

mod document;
mod raw;

use std::collections::HashMap;

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::document::{Document, Frame};
use self::raw::{Entry, entries};
use crate::budget::Budget;
use crate::json;
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// What a frame is counted as besides what the file says of it: its place by its address.
const FRAME: usize = 32;

/// Gives the samples of a record.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let document: Document<'_> = json::read("stackprof profile", record.text, &record.budget)?;
    check_mode(&document.mode, record.measure.profile_type)?;
    let Some(raw) = &document.raw else {
        let detail = "stackprof's counts by method, without stacks: record with raw: true, as in StackProf.run(mode: :cpu, raw: true)";
        return Err(Rejection::new(Reason::UnsupportedType, detail));
    };
    let budget = &record.budget;
    let known = Known::of(&document, budget, sink)?;
    let times = document.timestamps.as_deref().filter(|_| S::KEEPS_DETAILS && sink.wants_times());
    let mut times = Times::of(raw, times)?;
    let tick = record.measure.nanoseconds();
    for (entry, number) in entries(raw).zip(1u64..) {
        let place = |fault: Rejection| Rejection { detail: format!("stack {number}: {}", fault.detail), ..fault };
        let Entry { frames, samples } = entry.map_err(place)?;
        let mut times = times.next(samples);
        let (each, rounds) = if times.is_some() { (1, samples) } else { (samples, 1) };
        for _ in 0..rounds {
            let mut stack = budget.list(frames.len())?;
            for address in frames {
                stack.push(known.place(*address).map_err(place)?);
            }
            let at = times.as_mut().and_then(Iterator::next);
            let weight = (tick > 0).then(|| each.saturating_mul(tick));
            let details = SampleDetails { at, weight, ..SampleDetails::default() };
            sink.sample(Stack { frames: stack, count: each, cohort: None, value: 0 }, details)?;
        }
    }
    if tick > 0 && record.measure.profile_type != ProfileType::Heap {
        sink.weighed_in("time/nanoseconds");
    }
    Ok(())
}

/// Whether a mode of stackprof takes samples of a type.
fn check_mode(mode: &str, kind: ProfileType) -> Result<(), Rejection> {
    let taken = match mode {
        "cpu" => kind == ProfileType::Cpu,
        "wall" => kind == ProfileType::Wall,
        "object" => kind == ProfileType::Heap,
        _ => {
            let detail = format!("a stackprof profile of the mode {mode:?}, expected cpu, wall or object");
            return Err(Rejection::new(Reason::UnsupportedType, detail));
        }
    };
    if taken {
        return Ok(());
    }
    let kind = kind.name();
    let detail =
        format!("a stackprof profile of the mode {mode:?}, labelled {kind}: modes are cpu, wall and object (heap)");
    Err(Rejection::new(Reason::UnitMismatch, detail))
}

/// The frames of a file by their addresses.
struct Known(HashMap<u64, u32, foldhash::fast::RandomState>);

impl Known {
    fn of<S: SampleSink>(document: &Document<'_>, budget: &Budget, sink: &mut S) -> Result<Self, Rejection> {
        budget.take(document.frames.len() * FRAME)?;
        let mut known = Self(HashMap::default());
        known.0.reserve(document.frames.len());
        for (address, frame) in document.frames.iter() {
            let line = if S::KEEPS_DETAILS { frame.source_line() } else { None };
            let details = FrameDetails { symbol: Some(&frame.name), line: line.as_deref(), ..FrameDetails::default() };
            let place = sink.frame(&frame.full_name(), details)?;
            if known.0.insert(*address, place).is_some() {
                return Err(Rejection::new(Reason::Malformed, format!("two frames with the address {address}")));
            }
        }
        Ok(known)
    }

    fn place(&self, address: u64) -> Result<u32, Rejection> {
        self.0.get(&address).copied().ok_or_else(|| {
            let detail = format!("frame {address} is none of the {} frames", self.0.len());
            Rejection::new(Reason::IndexOutOfRange, detail)
        })
    }
}

/// When samples were taken, one after the other.
struct Times<'t>(Option<&'t [u64]>);

impl<'t> Times<'t> {
    /// Those of a file, if it says it of each sample.
    fn of(raw: &[u64], times: Option<&'t [u64]>) -> Result<Self, Rejection> {
        let Some(times) = times else { return Ok(Self(None)) };
        let mut samples = 0u64;
        for entry in entries(raw) {
            samples = samples.saturating_add(entry?.samples);
        }
        Ok(Self(Some(times).filter(|times| u64::try_from(times.len()) == Ok(samples))))
    }

    /// The moments of the next so many samples, in nanoseconds.
    fn next(&mut self, samples: u64) -> Option<impl Iterator<Item = i64> + use<'t>> {
        let (these, rest) = self.0?.split_at_checked(usize::try_from(samples).ok()?)?;
        self.0 = Some(rest);
        let nanoseconds = |time: &u64| i64::try_from(*time).unwrap_or(i64::MAX).saturating_mul(1_000);
        Some(these.iter().map(nanoseconds))
    }
}

impl Frame<'_> {
    /// The name, with the file where it is not that of a method.
    fn full_name(&self) -> String {
        match self.file() {
            Some(file) if !self.name.contains(['#', '.']) => format!("{} ({file})", self.name),
            _ => self.name.to_string(),
        }
    }

    fn source_line(&self) -> Option<String> {
        Some(format!("{}:{}", self.file()?, self.line?))
    }

    /// Its file; methods of C have none.
    fn file(&self) -> Option<&str> {
        self.file.as_ref().map(|file| &*file.0).filter(|file| !["", "<cfunc>"].contains(file))
    }
}
