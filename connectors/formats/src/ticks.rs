//! How many samples a value of time is: the time over the tick, if the tick is known.
//!
//! A tick is taken from whoever knows it, in this order: declared by whoever sends or reads the profile; the period of the
//! profile, if its values are multiples of it; what all values are multiples of, if that cannot well be anything else. Else
//! there is none, and the values are refused: a wrong tick makes counts of samples that nobody took.
//!
//! What all values are multiples of (their greatest common divisor, g) is a tick where four things hold:
//!
//! | what | else |
//! |---|---|
//! | 20 values or more | g is too large by chance. Samples that meet stacks at random make an even count with a chance of at most 1/2 (and multiples of d with at most 1/d), so that 20 counts share a divisor once in 2^20, a million times |
//! | one of the values is g | g is how finely a clock is read that measured 9, 10 and 18 ms |
//! | g is no power of a thousand of nanoseconds | a clock that is read in whole milliseconds has that divisor. Measured times of it are all multiples of a larger g once in 2^20 too |
//! | 10 us <= g <= 100 ms | no profiler looks more often; and threads that were seen all the time are all multiples of the recording's length |
//!
//! Off-CPU time is measured, not ticked: its values are multiples of nothing, and no tick is looked for in them.
//!
//! NB: the tick is found file by file. Small files of a fleet may not show what large ones do, so that who records a fleet
//! declares the tick.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::period::{Period, SHORTEST, length};
use crate::values::Values;

/// The fewest values that show a tick.
const ENOUGH: u64 = 20;

/// The longest tick that is found in values: 10 samples a second.
const LONGEST: u64 = 100_000_000;

/// One row in so many may not fit a period.
const ODD_ROWS: u64 = 10;

/// What is said of the tick before values are seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    pub(crate) kind: ProfileType,
    /// Nanoseconds in one of the values' unit.
    pub(crate) scale: u64,
    pub(crate) declared: Option<Period>,
    /// The profile's own period in nanoseconds; 0 if it has none.
    pub(crate) own: u64,
    /// Times are taken as they are, a nanosecond a count: no tick is needed.
    pub(crate) values: Values,
}

/// What was found in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPeriod {
    /// What all values are multiples of.
    pub period: Period,
    /// How many values showed it.
    pub values: u64,
}

impl FoundPeriod {
    /// Tells whoever runs a stream of profiles, of each period once; of the first few, if profiles are of many.
    pub(crate) fn log(self) {
        static LOGGED: Mutex<BTreeSet<Period>> = Mutex::new(BTreeSet::new());
        const MOST: usize = 16;
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MOST && logged.insert(self.period) {
            let Self { period, values } = self;
            tracing::warn!(
                "a profile of time without a usable period: all of its {values} values are multiples of {period}, which is taken \
                 for it; declare the period with the profiles, so that small ones are read too"
            );
        }
    }
}

/// Turns values of time into counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    scale: u64,
    tick: u64,
    /// Of a declared tick, the time of all values before that was not counted, half a tick ahead: so all counts together are
    /// the time of all values over the tick, however short each is.
    carried: Option<u128>,
    /// How the tick is known, if nobody said it.
    pub(crate) found: Option<FoundPeriod>,
}

impl Ticks {
    /// How many samples a value is.
    pub(crate) fn count(&mut self, value: u64) -> u64 {
        let (time, tick) = (u128::from(value) * u128::from(self.scale), u128::from(self.tick.max(1)));
        let ahead = self.carried.unwrap_or(tick / 2);
        if let Some(carried) = &mut self.carried {
            *carried = (ahead + time) % tick;
        }
        u64::try_from((ahead + time) / tick).unwrap_or(u64::MAX)
    }
}

impl Clock {
    /// The tick of these values.
    ///
    /// # Errors
    /// `unknown_period` if it is neither known nor found, `unit_mismatch` if values are too short for one that is declared.
    pub(crate) fn ticks(self, values: impl Iterator<Item = Result<u64, Rejection>>) -> Result<Ticks, Rejection> {
        let mut seen = Seen::default();
        for value in values {
            seen.take(value?, self);
        }
        let ticks = |tick, found| Ticks { scale: self.scale, tick, carried: None, found };
        if self.values == Values::Times {
            return Ok(ticks(1, None));
        }
        if let Some(declared) = self.declared {
            seen.check_declared(declared, self.kind)?;
            let carried = Some(u128::from(declared.nanoseconds() / 2));
            return Ok(Ticks { carried, ..ticks(declared.nanoseconds(), None) });
        }
        if seen.rows == 0 || seen.fit(self.own) {
            return Ok(ticks(self.own, None));
        }
        match seen.found(self.kind) {
            Some(period) => Ok(ticks(period.nanoseconds(), Some(FoundPeriod { period, values: seen.rows }))),
            None => Err(seen.tickless(self)),
        }
    }

    /// What a value is held against.
    fn tick(self) -> u64 {
        self.declared.map_or(self.own, Period::nanoseconds)
    }
}

/// Values as they come, in nanoseconds.
#[derive(Default)]
pub(crate) struct Seen {
    rows: u64,
    divisor: u64,
    least: u64,
    most: u64,
    /// Rows that are no multiples of the tick at hand.
    odd: u64,
    /// Rows shorter than half of it.
    short: u64,
}

impl Seen {
    fn take(&mut self, value: u64, clock: Clock) {
        self.add(value.saturating_mul(clock.scale));
        let tick = clock.tick();
        if value > 0 && tick > 0 {
            let time = u128::from(value) * u128::from(clock.scale);
            self.short += u64::from(2 * time < u128::from(tick));
            self.odd += u64::from(!is_multiple(time, u128::from(tick), u128::from(clock.scale)));
        }
    }

    /// Takes a value; zeroes say nothing.
    pub(crate) fn add(&mut self, value: u64) {
        if value == 0 {
            return;
        }
        self.least = if self.rows == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.rows += 1;
        let (mut a, mut b) = (self.divisor, value);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        self.divisor = a;
    }

    /// What all values are multiples of, if enough show it: see the first two rows of the table above.
    pub(crate) fn divisor(&self) -> Option<u64> {
        (self.rows >= ENOUGH && self.least == self.divisor).then_some(self.divisor)
    }

    /// How many values, zeroes apart.
    pub(crate) fn values(&self) -> u64 {
        self.rows
    }

    /// What all values are multiples of, shown or by chance; 0 if there are none.
    pub(crate) fn multiples_of(&self) -> u64 {
        self.divisor
    }

    /// Whether the values are all the same.
    pub(crate) fn are_equal(&self) -> bool {
        self.least == self.most
    }

    /// The tick that the values show.
    fn found(&self, kind: ProfileType) -> Option<Period> {
        let ticked = matches!(kind, ProfileType::Cpu | ProfileType::Wall);
        let divisor = self.divisor().filter(|divisor| ticked && *divisor <= LONGEST && *divisor != 1_000_000)?;
        Period::of_nanoseconds(divisor)
    }

    /// Whether the values are multiples of the profile's own period.
    fn fit(&self, own: u64) -> bool {
        own >= SHORTEST && self.odd * ODD_ROWS <= self.rows
    }

    /// Refuses a declared tick that is too long for what was seen. Off-CPU time may be as short as it likes.
    fn check_declared(&self, declared: Period, kind: ProfileType) -> Result<(), Rejection> {
        if kind == ProfileType::OffCpu || self.short * ODD_ROWS <= self.rows {
            return Ok(());
        }
        let Self { short, rows, .. } = self;
        let detail = format!(
            "{short} of {rows} values are shorter than half of the declared period of {declared}: declare the right one, \
             with period in the manifest or fleetdiff diff --period"
        );
        Err(Rejection::new(Reason::UnitMismatch, detail))
    }

    /// Why the values cannot be counted. They can still be compared as weights: see
    /// [`Values`].
    fn tickless(&self, clock: Clock) -> Rejection {
        let Self { rows, odd, .. } = self;
        let own = match clock.own {
            0 => "the profile names no period".to_owned(),
            own @ 1..SHORTEST => format!("its period of {} is no profiler's", length(own)),
            own => format!("{odd} of {rows} values are no multiples of its period of {}", length(own)),
        };
        let detail = format!(
            "{} in {rows} values from {} to {}: {own}, and they do not show one (all are multiples of {}); declare it, with \
             period in the manifest, as in \"period\": \"10ms\", or fleetdiff diff --period",
            clock.kind.name(),
            length(self.least),
            length(self.most),
            length(self.divisor),
        );
        Rejection::new(Reason::UnknownPeriod, detail)
    }
}

/// Whether a time is a multiple of a tick, but for a hundredth of the tick and for how roughly each tick is written.
fn is_multiple(time: u128, tick: u128, scale: u128) -> bool {
    let ticks = (time + tick / 2) / tick;
    let rough = if scale > 1 { ticks * scale } else { 0 };
    ticks > 0 && time.abs_diff(ticks * tick) <= tick / 100 + rough
}
