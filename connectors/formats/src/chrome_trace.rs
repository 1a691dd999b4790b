//! Traces of Chrome (the Trace Event Format) with the samples of V8 in them: what the Performance panel of the developer tools
//! saves, and what Node writes with `--trace-event-categories disabled-by-default-v8.cpu_profiler`.
//!
//! A trace is a list of events of all kinds, in no order, bare or as `traceEvents`. Each thread whose samples were taken has an event
//! `Profile`, and any number of `ProfileChunk` of the same process and number: nodes of its call tree that are new, the node that
//! each tick met (`samples`), and how long ago the tick before was (`timeDeltas`). Put together that is a `.cpuprofile`, and read as
//! one; all other events are passed over. Chrome before 67 writes the whole of it as one event `CpuProfile` of the thread.
//!
//! A trace may hold ticks of a thread of whose call tree it has nothing, where its recording began before the trace: these are left
//! out, and it is said how many.

mod document;
mod events;

use std::collections::BTreeMap;

use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::document::{Chunk, Opening, Trace, thread_name};
use self::events::{Event, Kind};
use crate::budget::Budget;
use crate::cpuprofile::{self, Node, Ticked};
use crate::json;
use crate::record::Record;
use crate::sink::{SampleDetails, SampleSink};

/// What a thread is counted as besides its chunks.
const THREAD: usize = 256;

/// Gives the samples of all threads of a record.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    cpuprofile::check_type(record.measure.profile_type)?;
    let trace: Trace<'_> = json::read("trace", record.text, &record.budget)?;
    let names = names(&trace, &record.budget)?;
    let (mut timed, mut lost) = (true, 0u64);
    for thread in threads(&trace, &record.budget)? {
        let details = thread.details(&names, sink)?;
        let given = thread
            .give(record, details, sink)
            .map_err(|fault| Rejection { detail: format!("profile {}: {}", thread.number, fault.detail), ..fault })?;
        timed &= given.timed;
        lost = lost.saturating_add(given.lost);
    }
    if lost > 0 && sink.len() == 0 {
        let detail =
            format!("{lost} ticks, and none of the nodes that they met: the trace begins after its profile did");
        return Err(Rejection::new(Reason::Truncated, detail));
    }
    if lost > 0 {
        sink.lost(lost);
    }
    if timed {
        sink.weighed_in("time/nanoseconds");
    }
    Ok(())
}

/// The events that say what threads are called, by process and thread.
type Names<'t, 'a> = BTreeMap<[&'a str; 2], &'t Event<'a>>;

fn names<'t, 'a>(trace: &'t Trace<'a>, budget: &Budget) -> Result<Names<'t, 'a>, Rejection> {
    let mut names = Names::new();
    for event in trace.events().iter().filter(|event| event.kind == Kind::ThreadName) {
        budget.take(THREAD)?;
        names.insert([event.process, event.thread], event);
    }
    Ok(names)
}

/// The samples of a thread.
struct Thread<'t, 'a> {
    /// Its number in its process, as the file writes it.
    number: &'a str,
    /// The event that says which thread it is; chunks are written by another.
    opening: Option<&'t Event<'a>>,
    chunks: Vec<&'t Event<'a>>,
}

/// What was given of a thread.
struct Given {
    /// Whether it is known when each tick was.
    timed: bool,
    /// Ticks that were left out, since the trace has no node of their thread.
    lost: u64,
}

/// The threads of a trace whose samples were taken, each by its process and number.
fn threads<'t, 'a>(trace: &'t Trace<'a>, budget: &Budget) -> Result<Vec<Thread<'t, 'a>>, Rejection> {
    let mut threads: BTreeMap<[&str; 2], Thread<'t, 'a>> = BTreeMap::new();
    let mut whole = Vec::new();
    for event in trace.events() {
        let key = [event.process, event.number];
        if event.kind == Kind::ThreadName {
            continue;
        }
        if event.kind == Kind::Whole {
            budget.push(&mut whole, Thread { number: event.thread, opening: Some(event), chunks: vec![event] })?;
            continue;
        }
        if !threads.contains_key(&key) {
            budget.take(THREAD)?;
        }
        let thread =
            threads.entry(key).or_insert_with(|| Thread { number: event.number, opening: None, chunks: Vec::new() });
        match event.kind {
            Kind::Profile => thread.opening = thread.opening.or(Some(event)),
            _ => budget.push(&mut thread.chunks, event)?,
        }
    }
    if whole.is_empty() && threads.values().all(|thread| thread.chunks.is_empty()) {
        let detail = "a trace of Chrome without a CPU profile (events ProfileChunk): record in the Performance panel, or with the category disabled-by-default-v8.cpu_profiler";
        return Err(Rejection::new(Reason::UnsupportedType, detail));
    }
    let mut threads: Vec<Thread<'t, 'a>> = threads.into_values().chain(whole).collect();
    for thread in &mut threads {
        thread.chunks.sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    Ok(threads)
}

impl Thread<'_, '_> {
    /// Which thread it is.
    fn details<S: SampleSink>(&self, names: &Names<'_, '_>, sink: &mut S) -> Result<SampleDetails, Rejection> {
        let Some(opening) = self.opening else { return Ok(SampleDetails::default()) };
        let named = names.get(&[opening.process, opening.thread]);
        let comm = named.and_then(|event| thread_name(event)).map(|name| sink.text(&name)).transpose()?;
        let number = |text: &str| text.parse().ok();
        Ok(SampleDetails {
            comm,
            pid: number(opening.process),
            tid: number(opening.thread),
            ..SampleDetails::default()
        })
    }

    /// Gives its samples.
    fn give<S: SampleSink>(
        &self,
        record: &Record<'_>,
        thread: SampleDetails,
        sink: &mut S,
    ) -> Result<Given, Rejection> {
        let budget = &record.budget;
        let (mut nodes, mut met, mut deltas): (Vec<Node<'_>>, Vec<u32>, Vec<i64>) = Default::default();
        let (mut begin, mut end) = (None, None);
        for event in &self.chunks {
            let chunk = Chunk::of(event, budget)?;
            (begin, end) = (begin.or(chunk.start), chunk.end.or(end));
            for node in chunk.nodes {
                budget.push(&mut nodes, node)?;
            }
            budget.extend(&mut met, &chunk.met)?;
            budget.extend(&mut deltas, &chunk.deltas)?;
        }
        if nodes.is_empty() {
            return Ok(Given { timed: true, lost: u64::try_from(met.len()).unwrap_or(u64::MAX) });
        }
        let opened =
            self.opening.map(|opening| Opening::of(opening, budget)).transpose()?.and_then(|opening| opening.start);
        let times = match begin.or(opened) {
            Some(start) if S::KEEPS_DETAILS && deltas.len() == met.len() => {
                Some(cpuprofile::times(start, &deltas, end, budget)?)
            }
            _ => None,
        };
        let ticked = Ticked { nodes: &nodes, met: Some(&met), times: times.as_deref(), thread };
        ticked.give(record.measure.profile_type, budget, sink)?;
        Ok(Given { timed: times.is_some() || met.is_empty(), lost: 0 })
    }
}
