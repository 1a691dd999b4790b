//! The second pass: the events that were chosen, as samples.

use std::collections::HashMap;

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::chunk::{Chunk, Event};
use super::constants::Constants;
use super::events::{Kind, unit};
use super::metadata::{Class, Classes, Value};
use super::names::Frames;
use super::recording::{Recorded, Recording, kinds};
use super::settings::Execution;
use super::within;
use crate::budget::Budget;
use crate::labels::Measure;
use crate::period::Period;
use crate::sink::{SampleDetails, SampleSink};

/// What samples of one stack and thread, and what a thread, are counted as.
const ENTRY: usize = 160;
const THREAD: usize = 96;

/// The state of threads that async-profiler saw by a clock of the processor.
const ON_PROCESSOR: &str = "STATE_DEFAULT";

/// Classes that a thread parks on to take a lock. Whoever parks on anything else waits for work, or for time to pass.
const LOCKS: [&str; 2] = ["java/util/concurrent/locks/Reentrant", "java/util/concurrent/Semaphore"];

/// Gives the samples of a recording that are of a profile's type.
///
/// # Errors
/// `unit_mismatch` if it holds samples, but none of that type; `malformed` and `too_large`.
pub(super) fn samples<S: SampleSink>(
    recording: &Recording<'_>,
    measure: Measure,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), Rejection> {
    if recording.seen.is_empty() {
        return Ok(());
    }
    let chosen = recording.seen.chosen(measure.profile_type)?;
    let settings = &recording.settings;
    let period = match measure.profile_type {
        ProfileType::Cpu => measure.period.or_else(|| settings.of_execution()),
        ProfileType::Wall => measure.period.or_else(|| settings.of_wall()),
        _ => None,
    };
    for Recorded { chunk, execution } in &recording.chunks {
        let at_chunk = |fault| within(&format!("chunk at byte {}", chunk.begins), fault);
        let left = budget.left();
        let classes = chunk.metadata().and_then(|metadata| Classes::read(metadata, budget)).map_err(at_chunk)?;
        let constants = Constants::of_samples(chunk, &classes, budget).map_err(at_chunk)?;
        let held = left - budget.left();
        let is_of_async_profiler = classes.are_of_async_profiler();
        let mut reader = Reader {
            chunk,
            classes: &classes,
            constants: &constants,
            frames: Frames::new(&classes, &constants, is_of_async_profiler, budget),
            threads: HashMap::default(),
            entries: Entries::default(),
            profile_type: measure.profile_type,
            declared: measure.period.is_some(),
            period,
            execution: *execution,
            budget,
        };
        reader.read(chosen, sink).map_err(at_chunk)?;
        budget.give_back(held);
    }
    if sink.len() == 0 {
        return Err(of_another_type(measure.profile_type, chosen));
    }
    sink.weighed_in(unit(measure.profile_type));
    Ok(())
}

/// Reads the samples of a chunk.
struct Reader<'c, 'a> {
    chunk: &'c Chunk<'a>,
    classes: &'c Classes<'a>,
    constants: &'c Constants<'c, 'a>,
    frames: Frames<'c, 'a>,
    threads: HashMap<u64, Thread, foldhash::fast::RandomState>,
    entries: Entries<'a>,
    profile_type: ProfileType,
    /// Whether whoever sends the recording said the period.
    declared: bool,
    period: Option<Period>,
    execution: Execution,
    budget: &'c Budget,
}

/// A thread as samples have it.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// Its number among the constants, by which samples are kept apart whether its name is asked for or not.
    number: u64,
    comm: Option<u32>,
    tid: Option<i64>,
}

/// Samples of one stack and thread.
struct Entry<'a> {
    stack: Value<'a>,
    thread: Thread,
    count: u64,
    weight: Option<u64>,
}

/// Samples in the order in which their stacks and threads were first seen.
#[derive(Default)]
struct Entries<'a> {
    list: Vec<Entry<'a>>,
    places: HashMap<(u64, u64), usize, foldhash::fast::RandomState>,
}

impl<'a> Entries<'a> {
    fn add(&mut self, entry: Entry<'a>, budget: &Budget) -> Result<(), Rejection> {
        let key = (entry.stack.number().unwrap_or(0), entry.thread.number);
        let known = self.places.get(&key).and_then(|place| self.list.get_mut(*place));
        if let Some(known) = known {
            known.count = known.count.saturating_add(entry.count);
            known.weight = known.weight.zip(entry.weight).map(|(known, more)| known.saturating_add(more));
            return Ok(());
        }
        budget.take(ENTRY)?;
        self.places.insert(key, self.list.len());
        self.list.push(entry);
        Ok(())
    }
}

/// The fields of samples that are read: those that every one has, and what it weighs.
const FIELDS: [&str; 13] = [
    "startTime",
    "sampledThread",
    "eventThread",
    "stackTrace",
    "state",
    "samples",
    "duration",
    "samplingPeriod",
    "tlabSize",
    "allocationSize",
    "weight",
    "size",
    "parkedClass",
];

impl<'c, 'a> Reader<'c, 'a> {
    fn read<S: SampleSink>(&mut self, chosen: &[Kind], sink: &mut S) -> Result<(), Rejection> {
        let kinds = kinds(self.classes).into_iter().filter(|(_, kind)| chosen.contains(kind));
        let classes = kinds.filter_map(|(id, kind)| {
            let class = self.classes.class(self.classes.place(id)?)?;
            Some((kind, class))
        });
        let classes: Vec<(Kind, &'c Class<'a>)> = classes.collect();
        for event in self.chunk.events() {
            let event = event?;
            if let Some((kind, class)) = classes.iter().find(|(_, class)| class.id == event.kind) {
                self.event(*kind, class, event, sink)?;
            }
        }
        for entry in std::mem::take(&mut self.entries).list {
            self.give(entry, None, sink)?;
        }
        Ok(())
    }

    fn event<S: SampleSink>(
        &mut self,
        kind: Kind,
        class: &Class<'a>,
        mut event: Event<'a>,
        sink: &mut S,
    ) -> Result<(), Rejection> {
        let values = self.classes.values(class, FIELDS, &mut event.body, self.budget)?;
        let [start, sampled, thread, stack, state, samples, duration, sampling, tlab, object, weight, size, parked] =
            values;
        if kind == Kind::Execution && !self.is_of_type(state)? || kind == Kind::ThreadPark && !self.is_lock(&parked)? {
            return Ok(());
        }
        let count = if kind == Kind::WallClock { samples.number().unwrap_or(1) } else { 1 };
        let nanoseconds = |ticks: &Value<'_>| ticks.number().map(|ticks| self.chunk.nanoseconds(ticks));
        let periods = || self.period.map(|period| count.saturating_mul(period.nanoseconds()));
        let weight = match kind {
            Kind::CpuTime if !self.declared => nanoseconds(&sampling),
            Kind::CpuTime | Kind::Execution | Kind::Native | Kind::WallClock => periods(),
            Kind::AllocationInNewTlab => tlab.number().filter(|bytes| *bytes > 0).or_else(|| object.number()),
            Kind::AllocationOutsideTlab | Kind::LiveObject => object.number(),
            Kind::Allocation => weight.number(),
            Kind::Malloc => size.number(),
            Kind::MonitorEnter | Kind::ThreadPark | Kind::NativeLock => nanoseconds(&duration),
        };
        let of_thread = if matches!(sampled, Value::Missing) { thread } else { sampled };
        let entry = Entry { stack, thread: self.thread(&of_thread, sink)?, count, weight };
        if sink.wants_times() {
            let at = start.number().map(|tick| self.chunk.moment(tick));
            return self.give(entry, at, sink);
        }
        self.entries.add(entry, self.budget)
    }

    fn give<S: SampleSink>(&mut self, entry: Entry<'a>, at: Option<i64>, sink: &mut S) -> Result<(), Rejection> {
        let Entry { stack, thread: Thread { comm, tid, .. }, count, weight } = entry;
        let frames = self.frames.of(&stack, sink)?;
        let details = SampleDetails { comm, tid, at, weight, ..SampleDetails::default() };
        sink.sample(Stack { frames, count, cohort: None, value: 0 }, details)
    }

    /// The name that Java gives a thread, otherwise that of the system.
    fn thread<S: SampleSink>(&mut self, thread: &Value<'a>, sink: &mut S) -> Result<Thread, Rejection> {
        let number = thread.number().unwrap_or(0);
        if let Some(known) = self.threads.get(&number) {
            return Ok(*known);
        }
        self.budget.take(THREAD)?;
        let [java, system, tid] = self.constants.values(thread, ["javaName", "osName", "osThreadId"])?;
        let java = self.constants.text(java)?;
        let name = if java.is_empty() { self.constants.text(system)? } else { java };
        let comm = if name.is_empty() { None } else { Some(sink.text(&name)?) };
        let tid = tid.number().map(u64::cast_signed).filter(|tid| *tid > 0 && S::KEEPS_DETAILS);
        let found = Thread { number, comm, tid };
        self.threads.insert(number, found);
        Ok(found)
    }

    /// Whether a `jdk.ExecutionSample` is of the type of the profile.
    fn is_of_type(&self, state: Value<'a>) -> Result<bool, Rejection> {
        let on_processor = match self.execution {
            Execution::Processor => true,
            Execution::Wall => false,
            Execution::ByState => self.constants.text(state)? == ON_PROCESSOR,
        };
        Ok(on_processor == (self.profile_type == ProfileType::Cpu))
    }

    /// Whether what a thread parked on is a lock.
    fn is_lock(&self, parked: &Value<'a>) -> Result<bool, Rejection> {
        let [name] = self.constants.values(parked, ["name"])?;
        let name = self.constants.text(name)?.replace('.', "/");
        Ok(LOCKS.iter().any(|lock| name.starts_with(lock)))
    }
}

fn of_another_type(profile_type: ProfileType, chosen: &[Kind]) -> Rejection {
    let names: Vec<&str> = chosen.iter().map(|kind| kind.name()).collect();
    let why = match profile_type {
        ProfileType::Cpu => "are of threads that were seen by the clock on the wall",
        ProfileType::Wall => "are of threads that were seen on the processor alone",
        _ => "are of threads that wait for no lock",
    };
    Rejection::new(
        Reason::UnitMismatch,
        format!("{} profile whose events {} {why}", profile_type.name(), names.join(", ")),
    )
}
