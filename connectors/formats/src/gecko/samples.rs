//! The samples of the threads of a file.

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::value::RawValue;

use super::document::{File, Meta, Samples, Tables, Thread};
use super::tables::Known;
use crate::budget::Budget;
use crate::float::{nanoseconds, whole};
use crate::json::{self, Text};
use crate::record::Record;
use crate::sink::{SampleDetails, SampleSink};

/// Nanoseconds in a millisecond, the unit of the form.
const MILLISECOND: i64 = 1_000_000;

/// Gives the samples of a record. Where times are not asked for, those of a stack are one entry a thread.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let file: File<'_> = json::read("profile of Firefox's profiler", record.text, &record.budget)?;
    let kind = record.measure.profile_type;
    check(&file.meta, kind)?;
    let mut threads = Threads { file: &file, kind, budget: &record.budget, shared: None };
    for (text, number) in file.threads.iter().zip(1u64..) {
        let place = |fault: Rejection| Rejection { detail: format!("thread {number}: {}", fault.detail), ..fault };
        threads.give(text, sink).map_err(place)?;
    }
    Ok(())
}

/// Whether the file has samples of a type.
fn check(meta: &Meta<'_>, kind: ProfileType) -> Result<(), Rejection> {
    if meta.preprocessed_profile_version.is_none() {
        let detail = "a raw profile of Firefox; open it at profiler.firefox.com, and give what that saves";
        return Err(Rejection::new(Reason::UnsupportedType, detail));
    }
    let unit = meta.sample_units.as_ref().and_then(|units| units.time.as_ref());
    if let Some(unit) = unit.filter(|unit| unit.0 != "ms") {
        let detail = format!("samples by {:?}, expected ms: a profile of what a file consists of", unit.0);
        return Err(Rejection::new(Reason::UnsupportedType, detail));
    }
    match kind {
        ProfileType::Wall => Ok(()),
        ProfileType::Cpu if !is_of_firefox(meta) => Ok(()),
        ProfileType::Cpu => {
            let detail = "Firefox samples its threads whether they run or not: these samples are of wall, not of cpu";
            Err(Rejection::new(Reason::UnitMismatch, detail))
        }
        _ => {
            let detail = format!("samples of threads labelled {}, expected cpu or wall", kind.name());
            Err(Rejection::new(Reason::UnitMismatch, detail))
        }
    }
}

/// Whether Firefox recorded itself. Older ones do not write what they were asked to record.
fn is_of_firefox(meta: &Meta<'_>) -> bool {
    meta.configuration.is_some() || meta.product.as_ref().is_some_and(|product| product.0 == "Firefox")
}

struct Threads<'t, 'a> {
    file: &'t File<'a>,
    kind: ProfileType,
    budget: &'t Budget,
    /// The places of the frames that all threads share, once one needed them.
    shared: Option<Vec<u32>>,
}

impl Threads<'_, '_> {
    fn give<S: SampleSink>(&mut self, text: &RawValue, sink: &mut S) -> Result<(), Rejection> {
        let text = text.get().as_bytes();
        let thread: Thread<'_> = json::read("thread", text, self.budget)?;
        let samples = &thread.samples;
        samples.check()?;
        let mut met = self.met(samples)?;
        if met.is_empty() {
            return Ok(());
        }
        let own: Tables<'_> = json::read("thread", text, self.budget)?;
        let known = Known::of(&own, &self.file.shared, &self.file.libs)?;
        let is_shared = !own.names_frames();
        let frames = match self.shared.take_if(|_| is_shared) {
            Some(frames) => frames,
            None => known.places(self.budget, sink)?,
        };
        let comm = if thread.name.is_empty() { None } else { Some(sink.text(&thread.name)?) };
        let about = SampleDetails { comm, pid: id(thread.pid), tid: id(thread.tid), ..SampleDetails::default() };
        if !sink.wants_times() {
            met.iter_mut().for_each(|sample| sample.at = None);
            met.sort_unstable_by_key(|sample| sample.stack);
        }
        let same = |one: &Met, other: &Met| one.stack == other.stack && one.at.is_none() && other.at.is_none();
        for alike in met.chunk_by(same) {
            let Some(Met { stack, at, .. }) = alike.first() else { continue };
            let count = alike.iter().fold(0u64, |sum, sample| sum.saturating_add(sample.count));
            let path = stack.map_or(Ok(Vec::new()), |stack| known.path(stack, &frames, self.budget))?;
            sink.sample(Stack { frames: path, count, cohort: None, value: 0 }, SampleDetails { at: *at, ..about })?;
        }
        if is_shared {
            self.shared = Some(frames);
        }
        Ok(())
    }

    /// The samples that are some of the type.
    fn met(&self, samples: &Samples<'_>) -> Result<Vec<Met>, Rejection> {
        let mut met = Vec::new();
        let mut elapsed = 0.0;
        for (place, stack) in samples.stack.iter().enumerate() {
            elapsed += number(samples.time_deltas.as_deref(), place).unwrap_or(0.0);
            let weight = samples.weight.as_deref().map_or(Some(Some(1.0)), |weights| weights.get(place).copied());
            let count = whole(weight.flatten().unwrap_or(0.0))
                .map_err(|fault| Rejection { detail: format!("sample {place}: {}", fault.detail), ..fault })?;
            let rested = place > 0 && samples.ran.as_deref().and_then(|ran| ran.get(place)).copied() == Some(Some(0.0));
            if count == 0 || (rested && self.kind == ProfileType::Cpu) {
                continue;
            }
            let at = number(samples.time.as_deref(), place).or_else(|| samples.time_deltas.as_ref().map(|_| elapsed));
            self.budget.push(&mut met, Met { stack: *stack, count, at: at.map(|at| nanoseconds(at, MILLISECOND)) })?;
        }
        Ok(met)
    }
}

/// A sample.
struct Met {
    stack: Option<u32>,
    count: u64,
    /// When it was taken, in nanoseconds.
    at: Option<i64>,
}

impl Samples<'_> {
    /// Whether its columns are of one length and its weights are samples.
    fn check(&self) -> Result<(), Rejection> {
        if let Some(unit) = self.weight_type.as_ref().filter(|unit| unit.0 != "samples") {
            let detail = format!("weights in {}, expected samples", unit.0);
            return Err(Rejection::new(Reason::UnitMismatch, detail));
        }
        let lengths = [
            ("weight", self.weight.as_deref().map(<[_]>::len)),
            ("threadCPUDelta", self.ran.as_deref().map(<[_]>::len)),
            ("time", self.time.as_deref().map(<[_]>::len)),
            ("timeDeltas", self.time_deltas.as_deref().map(<[_]>::len)),
        ];
        for (column, length) in lengths {
            if let Some(length) = length.filter(|length| *length != self.stack.len()) {
                let detail = format!("{} samples with {length} entries of {column:?}", self.stack.len());
                return Err(Rejection::new(Reason::Malformed, detail));
            }
        }
        Ok(())
    }
}

fn number(column: Option<&[f64]>, place: usize) -> Option<f64> {
    column.and_then(|column| column.get(place)).copied()
}

/// The number of a process or thread, of a number or of a text that begins with one.
fn id(raw: Option<&RawValue>) -> Option<i64> {
    let text: Text<'_> = match serde_json::from_str(raw?.get()) {
        Ok(text) => text,
        Err(_) => return serde_json::from_str(raw?.get()).ok(),
    };
    text.0.split('.').next()?.parse().ok()
}
