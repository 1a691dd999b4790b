//! How long it is from one sample to the next, as the settings of a recording say it.
//!
//! The JDK has a setting `period` of `jdk.ExecutionSample`, as in `10 ms`. async-profiler has `interval` for the event that it was
//! asked for (`event`) and `wall`, in nanoseconds; of an event that is no clock, such as `cache-misses`, the interval is no time.

use fleetdiff_schemas::rejected::Rejection;

use super::chunk::Event;
use super::constants::Constants;
use super::metadata::{Class, Classes};
use crate::budget::Budget;
use crate::period::Period;

/// The type of event that holds a setting.
const SETTING: &str = "jdk.ActiveSetting";

/// Events of async-profiler that are clocks of the processor.
const CLOCKS: [&str; 4] = ["cpu", "itimer", "ctimer", "cpu-clock"];

/// What async-profiler takes where it was told no interval.
const DEFAULT_INTERVAL: u64 = 10_000_000;
const DEFAULT_WALL: u64 = 50_000_000;

/// What the settings of all chunks so far say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    /// The period of the JDK.
    period: Option<Period>,
    /// The intervals of async-profiler, 0 if left to it.
    interval: Option<u64>,
    wall: Option<u64>,
    /// What async-profiler was asked for.
    event: AskedEvent,
    /// What async-profiler was asked for in the chunk at hand, and else in the one before it.
    asked: Asked,
    of_chunk: Asked,
}

/// What async-profiler was asked for: an event, and perhaps the clock on the wall beside it.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    event: Option<AskedEvent>,
    has_wall: bool,
}

/// What events `jdk.ExecutionSample` are samples of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Execution {
    /// Of threads that run.
    Processor,
    /// Of any thread, by the clock on the wall.
    Wall,
    /// Of both, which the state of the thread tells.
    ByState,
}

/// What async-profiler samples by its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AskedEvent {
    #[default]
    Clock,
    Wall,
    Other,
}

impl Settings {
    /// Keeps what is said in the next chunk apart from what those before it said.
    pub(super) fn begin_chunk(&mut self) {
        self.of_chunk = Asked::default();
    }

    /// What the events `jdk.ExecutionSample` of the chunk that was read are samples of.
    ///
    /// The JDK looks at threads that run. async-profiler since 3.0 (which has `profiler.Window`) gives samples of the processor a
    /// state of their own. Before that only recordings of two clocks have it; those of one clock say by their event which it is.
    pub(super) fn execution(&mut self, classes: &Classes<'_>) -> Execution {
        if !classes.are_of_async_profiler() {
            return Execution::Processor;
        }
        if self.of_chunk.event.is_some() {
            self.asked = self.of_chunk;
        }
        match self.asked {
            _ if classes.named("profiler.Window").is_some() => Execution::ByState,
            Asked { event: Some(AskedEvent::Wall), .. } => Execution::Wall,
            Asked { has_wall: true, .. } => Execution::ByState,
            Asked { .. } => Execution::Processor,
        }
    }

    /// Nanoseconds from one sample of the processor to the next, where they are known.
    pub(super) fn of_execution(&self) -> Option<Period> {
        match (self.interval, self.event) {
            (Some(0), AskedEvent::Clock) => Period::of_nanoseconds(DEFAULT_INTERVAL),
            (Some(interval), AskedEvent::Clock) => Period::of_nanoseconds(interval),
            (Some(_), _) => None,
            (None, _) => self.period,
        }
    }

    /// The same of samples by the clock on the wall.
    pub(super) fn of_wall(&self) -> Option<Period> {
        let asked = self.interval.filter(|_| self.event == AskedEvent::Wall);
        let wall = self.wall.or(asked)?;
        Period::of_nanoseconds(if wall == 0 { DEFAULT_WALL } else { wall })
    }
}

/// Nanoseconds of a setting: `200000000`, or with a unit, as in `200ms`.
fn interval_of(value: &str) -> Option<u64> {
    value.parse().ok().or_else(|| Some(value.replace(' ', "").parse::<Period>().ok()?.nanoseconds()))
}

/// Reads the settings of a chunk.
pub(super) struct SettingReader<'c, 'a> {
    classes: &'c Classes<'a>,
    setting: Option<&'c Class<'a>>,
    execution: Option<u64>,
    recording: Option<u64>,
}

impl<'c, 'a> SettingReader<'c, 'a> {
    pub(super) fn new(classes: &'c Classes<'a>) -> Self {
        let id = |name| classes.named(name).map(|class| class.id);
        let (execution, recording) = (id("jdk.ExecutionSample"), id("jdk.ActiveRecording"));
        Self { classes, setting: classes.named(SETTING), execution, recording }
    }

    /// Whether an event is a setting.
    pub(super) fn is_setting(&self, event: &Event<'_>) -> bool {
        self.setting.is_some_and(|class| class.id == event.kind)
    }

    /// Takes a setting.
    ///
    /// # Errors
    /// `malformed` if it has not the fields that it should have.
    pub(super) fn take(
        &self,
        mut event: Event<'a>,
        constants: &Constants<'_, 'a>,
        settings: &mut Settings,
        budget: &Budget,
    ) -> Result<(), Rejection> {
        let Some(class) = self.setting else { return Ok(()) };
        let [id, name, value] = self.classes.values(class, ["id", "name", "value"], &mut event.body, budget)?;
        let id = id.number();
        let (of_execution, of_recording) = (id == self.execution, id == self.recording);
        if !(of_execution || of_recording) {
            return Ok(());
        }
        let (name, value) = (constants.text(name)?, constants.text(value)?);
        match name.as_ref() {
            "period" if of_execution => settings.period = value.replace(' ', "").parse().ok(),
            "interval" if of_execution => settings.interval = value.parse().ok(),
            "wall" if of_execution || of_recording => {
                settings.wall = interval_of(&value);
                settings.of_chunk.has_wall = settings.wall.is_some();
            }
            "event" if of_recording => {
                settings.event = match value.as_ref() {
                    clock if CLOCKS.contains(&clock) => AskedEvent::Clock,
                    "wall" => AskedEvent::Wall,
                    _ => AskedEvent::Other,
                };
                settings.of_chunk.event = Some(settings.event);
            }
            _ => {}
        }
        Ok(())
    }
}
