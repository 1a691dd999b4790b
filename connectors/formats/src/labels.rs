//! What a transport knows about a record, and how it is joined with what the record itself says.

use std::str::FromStr;
use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{
    MAX_SAMPLES, MAX_VALUE, Profile, ProfileType, Requests, Samples, Stack, Temporality, value_of_each,
};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use crate::period::Period;
use crate::values::Values;

/// What values are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// 1e-9 s.
    Nanoseconds,
    /// 1e-6 s.
    Microseconds,
    /// 1e-3 s.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 6] =
        [Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds, Self::Bytes, Self::Count];

    /// Its name in manifests, headers and profiles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }

    /// Other names that are read, those that `go tool pprof` knows too.
    fn short_names(self) -> &'static [&'static str] {
        match self {
            Self::Nanoseconds => &["nanosecond", "ns"],
            Self::Microseconds => &["microsecond", "us", "µs"],
            Self::Milliseconds => &["millisecond", "ms"],
            Self::Seconds => &["second", "s"],
            Self::Bytes | Self::Count => &[],
        }
    }

    /// Nanoseconds in one of it, if it is a unit of time.
    pub(crate) fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Nanoseconds => Some(1),
            Self::Microseconds => Some(1_000),
            Self::Milliseconds => Some(1_000_000),
            Self::Seconds => Some(1_000_000_000),
            Self::Bytes | Self::Count => None,
        }
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|unit| unit.name() == text || unit.short_names().contains(&text));
        found.ok_or_else(|| format!("unknown unit {text:?}, expected one of {}", known()))
    }
}

/// What the transport knows about a record: a line of a manifest, or the headers of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Whose it is.
    pub identity: Arc<Identity>,
    /// What was observed.
    pub profile_type: ProfileType,
    /// Whether values are of the window or since the process began.
    pub temporality: Temporality,
    /// When, if the transport says so; it then overrules the profile's own time.
    pub window: Option<TimeRange>,
    /// The moment that stands in for a window where neither transport nor profile names one (a broker's timestamp).
    pub sent_at: Option<Nanos>,
    /// Operations served meanwhile, where they are known.
    pub requests: Option<u64>,
    /// When they were served, if that is not the window.
    pub requests_window: Option<TimeRange>,
    /// What the values are in, for files that do not say it themselves.
    pub unit: Option<Unit>,
    /// How long it is from one sample to the next, where it is declared; it then overrules the profile's own period.
    pub period: Option<Period>,
    /// Whether the first frame of each stack is the name of its thread; heeded by formats that are text.
    pub root_is_thread: bool,
}

impl Labels {
    /// What a profile says about itself, as the labels that a transport sends with a format that does not say it.
    pub fn of(profile: &Profile) -> Self {
        Self {
            identity: Arc::clone(&profile.identity),
            profile_type: profile.profile_type,
            temporality: profile.temporality,
            window: Some(profile.window),
            sent_at: None,
            requests: profile.requests.map(|requests| requests.count),
            requests_window: profile.requests.map(|requests| requests.window),
            unit: None,
            period: None,
            root_is_thread: false,
        }
    }

    /// The same for a format that holds nothing but counts of stacks: that they are counts, and for how long each sample stands, if
    /// that is the same for all. What else samples stand for (bytes, delays, measured times) is in no label.
    pub fn of_counts(profile: &Profile) -> Self {
        let each = match (&profile.samples, profile.profile_type) {
            (Samples::Stacks(stacks), ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu) => {
                value_of_each(stacks)
            }
            _ => None,
        };
        Self { unit: Some(Unit::Count), period: each.and_then(Period::of_nanoseconds), ..Self::of(profile) }
    }

    /// A rejection of this record, with its type and, where the labels hold one, its event time.
    pub fn rejection(&self, reason: Reason, detail: impl Into<String>) -> Rejection {
        self.labelled(Rejection::new(reason, detail), None)
    }

    /// The labels of what a record with these holds beside its counts, or of all that it holds: the memory in use, which is a
    /// level whatever was said, and no matter of requests.
    pub(super) fn of_level(&self) -> Self {
        Self {
            profile_type: ProfileType::LiveHeap,
            temporality: Temporality::Gauge,
            requests: None,
            requests_window: None,
            ..self.clone()
        }
    }

    /// The labels of the memory in use, if a record with these may hold it beside what was allocated.
    pub(super) fn level_beside(&self) -> Option<Self> {
        (self.profile_type == ProfileType::Heap && !self.asks_for_level()).then(|| self.of_level())
    }

    /// Whether all that is asked for is the memory in use.
    pub(super) fn asks_for_level(&self) -> bool {
        self.profile_type.is_level() || self.profile_type == ProfileType::Heap && self.temporality == Temporality::Gauge
    }

    /// Why a record with these labels cannot be counted whatever it holds: levels can be of memory alone.
    pub fn uncountable(&self) -> Option<Rejection> {
        uncountable(self.profile_type, self.temporality).map(|fault| self.labelled(fault, None))
    }

    /// Adds what is known here to a fault found in the record; `own` is the record's own window.
    pub(super) fn labelled(&self, fault: Rejection, own: Option<TimeRange>) -> Rejection {
        let at = self.window_with(own).map(|window| self.temporality.window(window).midpoint()).or(fault.at);
        Rejection { profile_type: Some(self.profile_type), at, ..fault }
    }

    fn window_with(&self, own: Option<TimeRange>) -> Option<TimeRange> {
        let sent = || self.sent_at.map(|at| TimeRange { start: at, end: at });
        self.window.or(own).or_else(sent)
    }

    /// What the labels say of the values of a record.
    pub(super) fn measure(&self) -> Measure {
        Measure {
            profile_type: self.profile_type,
            unit: self.unit,
            period: self.period,
            values: Values::Samples,
            root_is_thread: self.root_is_thread,
        }
    }

    /// The profile of a record that holds one; `own` is the window that the record itself names.
    pub(super) fn profile(&self, contents: Contents, own: Option<TimeRange>) -> Result<Profile, Rejection> {
        let Some(window) = self.window_with(own) else {
            return Err(Rejection::new(Reason::Malformed, "neither the profile nor its labels say when it was taken"));
        };
        let contents = contents.checked(self.profile_type, self.temporality)?;
        let requests_window = self.requests_window.unwrap_or(window);
        Ok(Profile {
            identity: Arc::clone(&self.identity),
            profile_type: self.profile_type,
            temporality: self.temporality,
            window,
            requests: self.requests.map(|count| Requests { count, window: requests_window }),
            names: contents.names,
            samples: Samples::Stacks(contents.stacks),
        })
    }
}

/// What is said of values by whoever sends them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) profile_type: ProfileType,
    /// What the values are in, for formats that do not say it.
    pub(super) unit: Option<Unit>,
    /// How long it is from one sample to the next.
    pub(super) period: Option<Period>,
    /// Whether that must be known.
    pub(super) values: Values,
    /// Whether the first frame of each stack is the name of its thread.
    pub(super) root_is_thread: bool,
}

impl Measure {
    /// What samples of a type are, of which nothing else is said.
    pub(super) fn of(profile_type: ProfileType) -> Self {
        Self { profile_type, unit: None, period: None, values: Values::Samples, root_is_thread: false }
    }

    /// How many nanoseconds a sample stands for, if that is declared.
    pub(super) fn nanoseconds(&self) -> u64 {
        self.period.map_or(0, Period::nanoseconds)
    }
}

/// The rejection of what holds no counts.
fn uncountable(kind: ProfileType, temporality: Temporality) -> Option<Rejection> {
    if temporality != Temporality::Gauge || matches!(kind, ProfileType::Heap | ProfileType::LiveHeap) {
        return None;
    }
    let detail =
        format!("{} profile with levels at one moment (gauge), expected counts (delta or cumulative)", kind.name());
    Some(Rejection { profile_type: Some(kind), ..Rejection::new(Reason::UnsupportedType, detail) })
}

/// A profile that a format of many profiles has read, if it can be counted.
pub(super) fn countable(profile: Profile) -> Result<Profile, Rejection> {
    match profile.uncountable() {
        Some(fault) => Err(fault),
        None => Ok(profile),
    }
}

/// What a format of one profile a record reads from the bytes.
pub(super) struct Contents {
    pub(super) names: Arc<[Arc<str>]>,
    pub(super) stacks: Vec<Stack>,
}

impl Contents {
    /// Raw samples in all.
    pub(super) fn total(&self) -> u64 {
        self.stacks.iter().fold(0, |sum, stack| sum.saturating_add(stack.count))
    }

    /// These contents, if they are some and not too many. A snapshot without samples tells that the process has none yet. Samples of more
    /// years than can be are samples of no known time.
    pub(super) fn checked(mut self, kind: ProfileType, temporality: Temporality) -> Result<Self, Rejection> {
        let value = self.stacks.iter().fold(0u64, |sum, stack| sum.saturating_add(stack.value));
        if value > MAX_VALUE && !matches!(kind, ProfileType::Heap | ProfileType::LiveHeap) {
            self.stacks.iter_mut().for_each(|stack| stack.value = 0);
        } else if value > MAX_VALUE {
            let detail = format!("values of {value} in one profile, at most {MAX_VALUE}");
            return Err(Rejection::new(Reason::TooLarge, detail));
        }
        match self.total() {
            0 if temporality != Temporality::Delta => Ok(self),
            0 => Err(Rejection::new(Reason::Empty, "the profile holds no sample")),
            1..=MAX_SAMPLES => Ok(self),
            more => {
                Err(Rejection::new(Reason::TooLarge, format!("{more} samples in one profile, at most {MAX_SAMPLES}")))
            }
        }
    }
}

/// The one part of a record that holds one profile. `own` is the window that the record itself names; `read` gives its
/// samples as those of a profile type.
pub(super) fn one_profile(
    labels: &Result<Labels, Rejection>,
    own: Option<TimeRange>,
    read: impl FnOnce(Measure) -> Result<Contents, Rejection>,
) -> Result<Profile, Rejection> {
    match labels {
        Err(fault) => Err(ownerless(fault, own, read)),
        Ok(labels) => {
            let level = labels.asks_for_level().then(|| labels.of_level());
            let labels = level.as_ref().unwrap_or(labels);
            match labels.uncountable() {
                Some(fault) => Err(labels.labelled(fault, own)),
                None => read(labels.measure())
                    .and_then(|contents| labels.profile(contents, own))
                    .map_err(|fault| labels.labelled(fault, own)),
            }
        }
    }
}

/// The rejection of a record whose owner is not known, with the time and the samples that are lost by it.
fn ownerless(
    fault: &Rejection,
    own: Option<TimeRange>,
    read: impl FnOnce(Measure) -> Result<Contents, Rejection>,
) -> Rejection {
    let contents = fault.profile_type.and_then(|profile_type| read(Measure::of(profile_type)).ok());
    let kind = fault.profile_type.unwrap_or(ProfileType::Cpu);
    let countable = contents.and_then(|contents| contents.checked(kind, Temporality::Delta).ok());
    Rejection {
        at: fault.at.or_else(|| own.map(TimeRange::midpoint)),
        samples: countable.map_or(fault.samples, |contents| contents.total()),
        ..fault.clone()
    }
}
