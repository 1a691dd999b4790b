//! What a profiler may observe, and how it is counted.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::TimeRange;

/// What kind of event the profiler counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileType {
    /// CPU time.
    Cpu,
    /// Off-CPU time.
    OffCpu,
    /// Wall-clock time, on a CPU or off.
    Wall,
    /// Memory that was allocated.
    Heap,
    /// Memory in use: a level, whereas the others count events.
    LiveHeap,
    /// Waiting for a lock, attributed to the holder.
    Mutex,
    /// Waiting, attributed to the waiter.
    Block,
}

impl ProfileType {
    /// Every profile type, with its name in files and tables.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Cpu, "cpu"),
        (Self::OffCpu, "off_cpu"),
        (Self::Wall, "wall"),
        (Self::Heap, "heap"),
        (Self::LiveHeap, "live_heap"),
        (Self::Mutex, "mutex"),
        (Self::Block, "block"),
    ];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off_cpu",
            Self::Wall => "wall",
            Self::Heap => "heap",
            Self::LiveHeap => "live_heap",
            Self::Mutex => "mutex",
            Self::Block => "block",
        }
    }

    /// Whether its profiles are levels at a moment ([`Temporality::Gauge`]).
    pub fn is_level(self) -> bool {
        self == Self::LiveHeap
    }

    /// The unit of what samples of this type stand for.
    pub fn value_unit(self) -> &'static str {
        match self {
            Self::Heap | Self::LiveHeap => "bytes",
            Self::Cpu | Self::OffCpu | Self::Wall | Self::Mutex | Self::Block => "nanoseconds",
        }
    }

    /// The measure whose raw samples are counted for this type.
    pub fn measure(self) -> Measure {
        match self {
            Self::Cpu => Measure::Samples,
            Self::OffCpu | Self::Wall => Measure::Time,
            Self::Heap => Measure::AllocSpace,
            Self::LiveHeap => Measure::InuseSpace,
            Self::Mutex | Self::Block => Measure::Contentions,
        }
    }
}

impl FromStr for ProfileType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("unknown profile type {text:?}, expected one of {}", known.join(", "))
        })
    }
}

/// What a count represents. Whatever the measure, raw samples are counted, never bytes or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Samples of the processor.
    Samples,
    /// Samples of passing time.
    Time,
    /// Sampled allocations; the profiler samples by allocated bytes.
    AllocSpace,
    /// Sampled allocations that are still in use, seen once in each snapshot.
    InuseSpace,
    /// Observed waits.
    Contentions,
}

impl Measure {
    /// Every measure.
    pub const ALL: [Self; 5] = [Self::Samples, Self::Time, Self::AllocSpace, Self::InuseSpace, Self::Contentions];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Time => "time",
            Self::AllocSpace => "alloc_space",
            Self::InuseSpace => "inuse_space",
            Self::Contentions => "contentions",
        }
    }
}

/// How the values of a profile relate to those of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temporality {
    /// Events within the window.
    #[default]
    Delta,
    /// Events since the process began.
    Cumulative,
    /// A level at one moment.
    Gauge,
}

impl Temporality {
    /// Every temporality.
    pub const ALL: [Self; 3] = [Self::Delta, Self::Cumulative, Self::Gauge];

    /// Its name in manifests, headers and attributes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Cumulative => "cumulative",
            Self::Gauge => "gauge",
        }
    }

    /// What `window` means for such values: for a delta the whole window, for the others its last instant, the moment
    /// of the snapshot.
    ///
    /// ```
    /// use fleetdiff_schemas::{profile::Temporality, time::{Nanos, TimeRange}};
    /// let window = TimeRange { start: Nanos(10), end: Nanos(20) };
    /// assert_eq!(Temporality::Delta.window(window).midpoint(), Nanos(15));
    /// assert_eq!(Temporality::Cumulative.window(window).midpoint(), Nanos(20));
    /// ```
    pub fn window(self, window: TimeRange) -> TimeRange {
        match self {
            Self::Delta => window,
            Self::Cumulative | Self::Gauge => TimeRange { start: window.end, end: window.end },
        }
    }
}

impl FromStr for Temporality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|temporality| temporality.name() == text);
        found.ok_or_else(|| format!("{text:?}, expected delta, cumulative or gauge"))
    }
}

/// Whether a function is counted where it is the leaf, or wherever it is on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountKind {
    /// The function is the leaf.
    #[serde(rename = "self")]
    SelfCount,
    /// The function is anywhere on the stack, counted once however often it recurs.
    Total,
}

impl CountKind {
    /// Both kinds, in the order of tables.
    pub const ALL: [Self; 2] = [Self::SelfCount, Self::Total];

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SelfCount => "self",
            Self::Total => "total",
        }
    }
}

impl FromStr for CountKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("unknown count kind {text:?}, expected self or total"))
    }
}
