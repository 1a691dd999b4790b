//! What a sender says of a profile under names of our own, since OpenTelemetry has none for it: in headers of a record, or in
//! attributes of a resource.

use std::str::FromStr;

use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use crate::identity::Lookup;
use crate::labels::Unit;
use crate::period::Period;

/// Profile type (`cpu`, `off_cpu`, `wall`, `heap`, `mutex`, `block`).
pub const PROFILE_TYPE: &str = "fleetdiff.profile_type";
/// `delta`, `cumulative` or `gauge`.
pub const TEMPORALITY: &str = "fleetdiff.temporality";
/// What the values are in, where the format does not say it.
pub const UNIT: &str = "fleetdiff.unit";
/// How long it is from one sample to the next, as `10ms`; overrules the period of the profile.
pub const PERIOD: &str = "fleetdiff.period";
/// `thread` if the first frame of each stack is the name of its thread, `function` if it is none.
pub const FIRST_FRAME: &str = "fleetdiff.first_frame";
/// Start of the profile's window, nanoseconds since the Unix epoch; needs [`WINDOW_END`].
pub const WINDOW_START: &str = "fleetdiff.window_start_unix_nano";
/// End of the profile's window.
pub const WINDOW_END: &str = "fleetdiff.window_end_unix_nano";
/// Operations that the pod served.
pub const REQUESTS: &str = "fleetdiff.requests";
/// Start of the time in which it served them, if not the profile's window; needs [`REQUESTS_END`].
pub const REQUESTS_START: &str = "fleetdiff.requests_start_unix_nano";
/// End of that time.
pub const REQUESTS_END: &str = "fleetdiff.requests_end_unix_nano";

/// Reads these names through a lookup; each fault names what is wrong.
pub struct OwnAttributes<'a> {
    /// What the names stand in, for faults: `header`, `attribute`.
    pub what: &'static str,
    /// The values by name.
    pub lookup: &'a Lookup<'a>,
}

impl OwnAttributes<'_> {
    /// The profile type, where it is said.
    ///
    /// # Errors
    /// [`Reason::UnsupportedType`] if it is none that we know.
    pub fn profile_type(&self) -> Result<Option<ProfileType>, Rejection> {
        let name = (self.lookup)(PROFILE_TYPE);
        let kind = name.map(|name| ProfileType::from_str(&name)).transpose();
        kind.map_err(|detail| self.fault(Reason::UnsupportedType, PROFILE_TYPE, &detail))
    }

    /// The temporality, where it is said.
    ///
    /// # Errors
    /// [`Reason::UnsupportedType`] if it is none that we know.
    pub fn temporality(&self) -> Result<Option<Temporality>, Rejection> {
        let name = (self.lookup)(TEMPORALITY);
        let temporality = name.map(|name| Temporality::from_str(&name)).transpose();
        temporality.map_err(|detail| self.fault(Reason::UnsupportedType, TEMPORALITY, &detail))
    }

    /// What the values are in, where it is said.
    ///
    /// # Errors
    /// [`Reason::UnitMismatch`] if it is none that we know.
    pub fn unit(&self) -> Result<Option<Unit>, Rejection> {
        let unit = (self.lookup)(UNIT).map(|name| Unit::from_str(&name)).transpose();
        unit.map_err(|detail| self.fault(Reason::UnitMismatch, UNIT, &detail))
    }

    /// How long it is from one sample to the next, where it is said.
    ///
    /// # Errors
    /// [`Reason::UnitMismatch`] if it is no period.
    pub fn period(&self) -> Result<Option<Period>, Rejection> {
        let period = (self.lookup)(PERIOD).map(|text| Period::from_str(text.trim())).transpose();
        period.map_err(|detail| self.fault(Reason::UnitMismatch, PERIOD, &detail))
    }

    /// Whether the first frame of each stack is the name of its thread.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if it is neither that nor a function.
    pub fn root_is_thread(&self) -> Result<bool, Rejection> {
        let is_thread = (self.lookup)(FIRST_FRAME).map_or(Ok(false), |text| names_thread(&text));
        is_thread.map_err(|detail| self.fault(Reason::Malformed, FIRST_FRAME, &detail))
    }

    /// The number of requests, where it is said.
    ///
    /// # Errors
    /// [`Reason::Malformed`], [`Reason::NegativeValue`] or, beyond 2^64, [`Reason::TooLarge`].
    pub fn requests(&self) -> Result<Option<u64>, Rejection> {
        let Some(count) = self.number::<i128>(REQUESTS)? else { return Ok(None) };
        let reason = if count < 0 { Reason::NegativeValue } else { Reason::TooLarge };
        u64::try_from(count).map(Some).map_err(|_| self.fault(reason, REQUESTS, &format!("{count} requests")))
    }

    /// A window that two names give, where both are said.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if one of them is missing or the end lies before the start.
    pub fn window(&self, start: &str, end: &str) -> Result<Option<TimeRange>, Rejection> {
        match (self.number(start)?, self.number(end)?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) if from <= to => Ok(Some(TimeRange { start: Nanos(from), end: Nanos(to) })),
            (Some(_), Some(_)) => Err(self.fault(Reason::Malformed, end, "the window ends before it starts")),
            (Some(_), None) => Err(self.fault(Reason::Malformed, end, "it is needed beside the window's start")),
            (None, Some(_)) => Err(self.fault(Reason::Malformed, start, "it is needed beside the window's end")),
        }
    }

    /// A rejection that says which of the names is at fault.
    pub fn fault(&self, reason: Reason, name: &str, detail: &str) -> Rejection {
        Rejection::new(reason, format!("{} {name}: {detail}", self.what))
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Rejection> {
        let Some(text) = (self.lookup)(name) else { return Ok(None) };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| self.fault(Reason::Malformed, name, &format!("{text:?} is no whole number")))
    }
}

/// Whether what is said of first frames is that they are names of threads.
///
/// # Errors
/// What was expected.
pub fn names_thread(text: &str) -> Result<bool, String> {
    match text.trim() {
        "thread" => Ok(true),
        "function" => Ok(false),
        other => Err(format!("{other:?}, expected thread or function")),
    }
}
