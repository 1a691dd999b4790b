//! Event time: instants, windows and hops. No wall clock enters a result.

use serde::{Deserialize, Serialize};

/// Nanoseconds of an hour.
const HOUR: i64 = 3_600_000_000_000;

/// An instant (nanoseconds since the Unix epoch) or a length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// `seconds` as nanoseconds.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// This instant plus `length`, saturating.
    pub const fn plus(self, length: Nanos) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// The length from `earlier` to this instant, saturating.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The value in seconds, to the nearest float.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "rounding to the nearest float is meant")]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// The interval over which something was measured; `start <= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TimeRange {
    /// Its first instant.
    pub start: Nanos,
    /// Its last instant.
    pub end: Nanos,
}

impl TimeRange {
    /// The event time of what was measured here: the midpoint, rounded down.
    ///
    /// ```
    /// use fleetdiff_schemas::time::{Nanos, TimeRange};
    /// assert_eq!(TimeRange { start: Nanos(10), end: Nanos(21) }.midpoint(), Nanos(15));
    /// ```
    pub fn midpoint(self) -> Nanos {
        Nanos(self.start.0.midpoint(self.end.0))
    }
}

/// The number of a hop: event time divided by the hop's width, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hop(pub u64);

impl Hop {
    /// The hop `hops` later.
    pub const fn plus(self, hops: u64) -> Self {
        Self(self.0.saturating_add(hops))
    }

    /// The hop `hops` earlier, but not before the first.
    pub const fn minus(self, hops: u64) -> Self {
        Self(self.0.saturating_sub(hops))
    }
}

/// How event time is cut into hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopClock {
    /// Width of a hop in nanoseconds, at least 1.
    width: u64,
}

impl HopClock {
    /// A clock with hops of this width; a width below one nanosecond counts as one.
    pub fn new(width: Nanos) -> Self {
        Self { width: u64::try_from(width.0).unwrap_or(1).max(1) }
    }

    /// The width of a hop.
    pub fn width(self) -> Nanos {
        Nanos(i64::try_from(self.width).unwrap_or(i64::MAX))
    }

    /// The hop that holds this instant; instants before 1970 lie in the first.
    ///
    /// ```
    /// use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
    /// assert_eq!(HopClock::new(Nanos::from_seconds(10)).hop_of(Nanos::from_seconds(25)), Hop(2));
    /// ```
    pub fn hop_of(self, at: Nanos) -> Hop {
        Hop(u64::try_from(at.0).unwrap_or(0) / self.width)
    }

    /// The first instant of a hop.
    pub fn start_of(self, hop: Hop) -> Nanos {
        Nanos(i64::try_from(hop.0.saturating_mul(self.width)).unwrap_or(i64::MAX))
    }

    /// The first instant after a hop.
    pub fn end_of(self, hop: Hop) -> Nanos {
        self.start_of(hop.plus(1))
    }

    /// The UTC hour in which a hop starts, counted from 1970.
    pub fn hour_of(self, hop: Hop) -> i64 {
        self.start_of(hop).0.div_euclid(HOUR)
    }

    /// The length of `hops` hops.
    pub fn length_of(self, hops: u64) -> Nanos {
        Nanos(i64::try_from(self.width.saturating_mul(hops)).unwrap_or(i64::MAX))
    }

    /// The number of hops that cover a length of time, rounded up.
    pub fn hops_in(self, length: Nanos) -> u64 {
        u64::try_from(length.0).unwrap_or(0).div_ceil(self.width)
    }
}
