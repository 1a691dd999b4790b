//! The clock on the wall. What is decided by it is logged before it takes effect, so that rows do not depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use fleetdiff_schemas::time::Nanos;

/// How long a worker with nothing to do sleeps at most before it polls its sources again.
const NAP: Duration = Duration::from_millis(2);

/// The clock by which a run finds that nothing comes.
#[derive(Clone, Debug, Default)]
pub enum WallClock {
    /// That of the system.
    #[default]
    System,
    /// One that moves only when it is moved, for a simulation of months in seconds.
    Moved(Moved),
}

/// A clock that stands until it is moved.
#[derive(Clone, Debug)]
pub struct Moved {
    began_at: Instant,
    start: Nanos,
    passed: Arc<AtomicU64>,
}

impl Moved {
    /// A clock that shows this time.
    pub fn at(start: Nanos) -> Self {
        Self { began_at: Instant::now(), start, passed: Arc::default() }
    }

    /// Lets time pass.
    pub fn forward(&self, time: Duration) {
        self.passed.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// The time that it shows.
    pub fn now(&self) -> Nanos {
        self.start.plus(Nanos(i64::try_from(self.passed.load(Ordering::Acquire)).unwrap_or(i64::MAX)))
    }
}

impl WallClock {
    /// For differences of time.
    pub(super) fn instant(&self) -> Instant {
        match self {
            Self::System => Instant::now(),
            Self::Moved(clock) => clock.began_at + Duration::from_nanos(clock.passed.load(Ordering::Acquire)),
        }
    }

    /// The time that it shows.
    pub(super) fn now(&self) -> Nanos {
        match self {
            Self::System => wall_now(),
            Self::Moved(clock) => clock.now(),
        }
    }

    /// How long a worker with nothing to do sleeps at most.
    pub(super) fn nap(&self) -> Duration {
        match self {
            Self::System => NAP,
            Self::Moved(_) => Duration::ZERO,
        }
    }
}

/// The system's time.
pub fn wall_now() -> Nanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
