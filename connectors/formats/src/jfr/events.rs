//! Which events are samples, and which of them a profile is made of.
//!
//! | type | samples, those that are there first |
//! |---|---|
//! | cpu | `jdk.CPUTimeSample`; `jdk.ExecutionSample` |
//! | wall | `profiler.WallClockSample`; `jdk.ExecutionSample` of threads that async-profiler saw by the clock on the wall |
//! | heap | `jdk.ObjectAllocationInNewTLAB` and `OutsideTLAB`; `jdk.ObjectAllocationSample`; `profiler.Malloc` |
//! | live_heap | `profiler.LiveObject` |
//! | mutex, block | `jdk.JavaMonitorEnter`, `jdk.ThreadPark` of threads that wait for a lock, and `profiler.NativeLock`, together |
//!
//! NB: `jdk.NativeMethodSample` is none of `cpu`: it counts threads in native methods whether they run or wait there (for a socket,
//! say), and one thread at a time, so that it cannot be added to the others either.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

/// What an event is a sample of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    CpuTime,
    Execution,
    Native,
    WallClock,
    AllocationInNewTlab,
    AllocationOutsideTlab,
    Allocation,
    Malloc,
    LiveObject,
    MonitorEnter,
    ThreadPark,
    NativeLock,
}

impl Kind {
    pub(super) const ALL: [Self; 12] = [
        Self::CpuTime,
        Self::Execution,
        Self::Native,
        Self::WallClock,
        Self::AllocationInNewTlab,
        Self::AllocationOutsideTlab,
        Self::Allocation,
        Self::Malloc,
        Self::LiveObject,
        Self::MonitorEnter,
        Self::ThreadPark,
        Self::NativeLock,
    ];

    /// The name of its type of event.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CpuTime => "jdk.CPUTimeSample",
            Self::Execution => "jdk.ExecutionSample",
            Self::Native => "jdk.NativeMethodSample",
            Self::WallClock => "profiler.WallClockSample",
            Self::AllocationInNewTlab => "jdk.ObjectAllocationInNewTLAB",
            Self::AllocationOutsideTlab => "jdk.ObjectAllocationOutsideTLAB",
            Self::Allocation => "jdk.ObjectAllocationSample",
            Self::Malloc => "profiler.Malloc",
            Self::LiveObject => "profiler.LiveObject",
            Self::MonitorEnter => "jdk.JavaMonitorEnter",
            Self::ThreadPark => "jdk.ThreadPark",
            Self::NativeLock => "profiler.NativeLock",
        }
    }

    /// Its place among all.
    fn place(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or_default()
    }
}

/// How many events of each kind a recording holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen([u64; Kind::ALL.len()]);

impl Seen {
    /// Takes one more.
    pub(super) fn add(&mut self, kind: Kind) {
        self.0.get_mut(kind.place()).into_iter().for_each(|count| *count += 1);
    }

    fn holds(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| self.0.get(kind.place()).is_some_and(|count| *count > 0))
    }

    /// Whether there is none of any kind.
    pub(super) fn is_empty(&self) -> bool {
        !self.holds(&Kind::ALL)
    }

    /// The kinds of events that a profile of this type is made of.
    ///
    /// # Errors
    /// `unit_mismatch` if there are none of them.
    pub(super) fn chosen(&self, profile_type: ProfileType) -> Result<&'static [Kind], Rejection> {
        let found = candidates(profile_type).iter().copied().find(|kinds| self.holds(kinds));
        found.ok_or_else(|| self.nothing(profile_type))
    }

    /// That a recording holds nothing of a type.
    pub(super) fn nothing(&self, profile_type: ProfileType) -> Rejection {
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        let found: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| self.holds(&[*kind])).collect();
        let expected = candidates(profile_type).concat();
        let expected = match expected.as_slice() {
            [] => "another type: Flight Recorder does not sample it".to_owned(),
            kinds => names(kinds),
        };
        let detail = format!("{} profile with events {}, expected {expected}", profile_type.name(), names(&found));
        Rejection::new(Reason::UnitMismatch, detail)
    }
}

/// Kinds of events that a type may be made of: those of the first entry that are there.
fn candidates(profile_type: ProfileType) -> &'static [&'static [Kind]] {
    match profile_type {
        ProfileType::Cpu => &[&[Kind::CpuTime], &[Kind::Execution]],
        ProfileType::Wall => &[&[Kind::WallClock], &[Kind::Execution]],
        ProfileType::Heap => {
            &[&[Kind::AllocationInNewTlab, Kind::AllocationOutsideTlab], &[Kind::Allocation], &[Kind::Malloc]]
        }
        ProfileType::LiveHeap => &[&[Kind::LiveObject]],
        ProfileType::Mutex | ProfileType::Block => &[&[Kind::MonitorEnter, Kind::ThreadPark, Kind::NativeLock]],
        ProfileType::OffCpu => &[],
    }
}

/// What samples of a type weigh.
pub(super) fn unit(profile_type: ProfileType) -> &'static str {
    match profile_type {
        ProfileType::Cpu => "cpu/nanoseconds",
        ProfileType::Wall => "wall/nanoseconds",
        ProfileType::OffCpu => "off_cpu/nanoseconds",
        ProfileType::Heap => "alloc_space/bytes",
        ProfileType::LiveHeap => "inuse_space/bytes",
        ProfileType::Mutex | ProfileType::Block => "delay/nanoseconds",
    }
}
