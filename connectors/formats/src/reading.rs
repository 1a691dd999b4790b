//! What of a file is read for a comparison, and as what: which samples, what names their frames, what they weigh.
//!
//! Decoders of streams ([`Decode`](super::Decode)) know one reading: every sample, frames named by their functions. Who compares
//! files asks for more, as `perf diff` offers it: for the samples of a processor, a thread or a stretch of time, for frames named
//! by libraries or lines, for whole chains of calls, and for what the profiler wrote beside its samples. So here a format gives
//! all that it knows of its samples (`reading/observed.rs`), and what is then read of them is decided once for all formats:
//! `reading/selection.rs` says which samples, `reading/naming.rs` names their frames.
//!
//! Law: the [`Reading`] that asks for nothing gives the profiles that the format's decoder gives, bit for bit.

mod keys;
mod naming;
mod numbers;
mod observed;
mod plain;
mod selection;
mod times;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use regex::Regex;

use super::labels::Contents;
use super::names::Naming;
use super::{Format, Labels, Options, cpuprofile, folded, perf_script, pprof, speedscope};

pub use keys::{Key, Keys};
pub use numbers::Numbers;
pub use times::Times;

pub(super) use observed::{About, FrameKind, Observed, Said};
pub(super) use times::nanoseconds;

/// The one frame of samples that a filter left out and that still count: see [`Percentage::Absolute`].
pub const FILTERED: &str = "[filtered]";

/// What is read of a file.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What names frames; without any, their functions, as decoders name them.
    pub keys: Option<Keys>,
    /// What a caller is called that [`Key::Parent`] looks for.
    pub parent: Parent,
    /// Which samples are looked at.
    pub filters: Filters,
    /// What becomes of the others.
    pub percentage: Percentage,
    /// Which stretches of the recording are read.
    pub times: Option<Times>,
    /// How much of the beginning is left out: the warm-up.
    pub crop: Option<Nanos>,
    /// Whether each chain of calls becomes one frame, its functions joined by `;`, so that chains are compared like functions.
    pub stream: bool,
}

/// What a caller is called that [`Key::Parent`] looks for.
#[derive(Clone, Debug)]
pub struct Parent(Option<Regex>);

impl Default for Parent {
    /// The pattern of perf: calls of the system and page faults.
    fn default() -> Self {
        Self(Regex::new("^sys_|^do_page_fault").ok())
    }
}

impl Parent {
    fn is(&self, symbol: &str) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(symbol))
    }
}

impl FromStr for Parent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Regex::new(text).map(|pattern| Self(Some(pattern))).map_err(|error| error.to_string())
    }
}

/// Which samples are looked at; all of them if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Processors. Samples of others are not read at all.
    pub cpus: Option<Numbers>,
    /// Processes.
    pub pids: Option<Numbers>,
    /// Threads.
    pub tids: Option<Numbers>,
    /// Names of threads.
    pub comms: Option<BTreeSet<Arc<str>>>,
    /// Programs and libraries, by name or path, that the leaf of a stack is of.
    pub dsos: Option<BTreeSet<Arc<str>>>,
    /// Functions that are the leaf of a stack.
    pub symbols: Option<BTreeSet<Arc<str>>>,
}

/// What shares are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percentage {
    /// Of all samples: those that a filter leaves out become [`FILTERED`].
    #[default]
    Absolute,
    /// Of the samples that the filters leave.
    Relative,
}

/// What was read of one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its raw samples.
    pub profile: Profile,
    /// What they weigh, where the file says it of every sample.
    pub weights: Option<Weights>,
    /// The window that the file itself names.
    pub window: Option<TimeRange>,
    /// Whether the file says when each sample was taken.
    pub timed: bool,
    /// What every count of the file was a multiple of, if that was taken for a period and counts are divided by it.
    pub period: Option<u64>,
}

/// What the samples of a run stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What it is, as `alloc_space/bytes` or, of perf's periods, the event.
    pub unit: Arc<str>,
    /// The stacks of the run with weights for counts.
    pub profile: Profile,
}

/// Why a profile cannot be read so; each says what `FILE ...` does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is no profile that can be counted.
    #[error("is no profile that can be compared ({reason}): {detail}", reason = .0.reason.name(), detail = .0.detail)]
    Rejected(Rejection),
    /// It has not what is asked for.
    #[error("does not say {what}", what = .0.unsaid())]
    Unsaid(Key),
    /// It has no times of samples.
    #[error("does not say when its samples were taken")]
    Timeless,
    /// All of its samples lie outside of the time asked for.
    #[error("holds no sample in the time asked for: its first is at {first:.6} s and its last at {last:.6} s", first = .first.as_seconds(), last = .last.as_seconds())]
    OutOfTime {
        /// When its first sample was taken.
        first: Nanos,
        /// When its last sample was taken.
        last: Nanos,
    },
    /// The filters leave nothing of it.
    #[error("holds no sample that the filters leave ({0})")]
    NothingLeft(&'static str),
}

/// Gives what a format knows of the samples of one record.
type Observe = fn(&[u8], &Labels, &Options, &mut Observed<'_>) -> Result<(), Rejection>;

impl From<Rejection> for Unread {
    fn from(fault: Rejection) -> Self {
        Self::Rejected(fault)
    }
}

impl Reading {
    /// Reads the profiles of one record; at least one part. `labels` are as for [`Decode::decode`](super::Decode::decode); the type
    /// that they name is the only one that is read of a file of several columns.
    pub fn runs(&self, format: Format, bytes: &[u8], labels: &Labels, options: &Options) -> Vec<Result<Run, Unread>> {
        let observe: Observe = match format {
            Format::PerfScript => perf_script::observe,
            Format::Pprof => pprof::observe,
            Format::Folded => folded::observe,
            Format::Speedscope => speedscope::observe,
            Format::Cpuprofile => cpuprofile::observe,
            Format::Pyroscope | Format::Delta | Format::Otlp => {
                return self.plain_runs(format, bytes, labels, options);
            }
        };
        let level = labels.asks_for_level().then(|| labels.of_level());
        let labels = level.as_ref().unwrap_or(labels);
        let mut naming = Naming::new(options);
        let run = match labels.uncountable() {
            Some(fault) => Err(fault.into()),
            None => {
                let mut observed = Observed::new(&mut naming, options);
                observed.times_wanted = self.times.is_some() || self.crop.is_some();
                observe(bytes, labels, options, &mut observed)
                    .map_err(Unread::from)
                    .and_then(|()| self.run(observed, |contents, own| labels.profile(contents, own)))
            }
        };
        vec![run.map_err(|fault| match fault {
            Unread::Rejected(fault) => labels.labelled(fault, None).into(),
            other => other,
        })]
    }

    /// Chooses samples, names frames, and makes profiles of both.
    fn run(
        &self,
        mut observed: Observed<'_>,
        profile: impl FnOnce(Contents, Option<TimeRange>) -> Result<Profile, Rejection>,
    ) -> Result<Run, Unread> {
        let (timed, window, period) = (observed.span.is_some(), observed.window, observed.period);
        self.check_keys(&observed)?;
        let passed = self.select(&mut observed)?;
        let unit = observed.unit.take().filter(|_| observed.samples.iter().all(|sample| sample.about.weight.is_some()));
        let weights: Vec<u64> =
            unit.iter().flat_map(|_| observed.samples.iter().filter_map(|sample| sample.about.weight)).collect();
        let contents = self.named(observed, &passed)?;
        let profile = profile(contents, window)?;
        let weights = unit.map(|unit| Weights { unit, profile: weighed(&profile, &weights) });
        Ok(Run { profile, weights, window, timed, period })
    }
}

/// A profile with these for counts, in the order of its stacks; what weighs nothing is left out.
fn weighed(profile: &Profile, weights: &[u64]) -> Profile {
    let stacks = match &profile.samples {
        Samples::Stacks(stacks) => stacks.as_slice(),
        Samples::Folded { .. } => &[],
    };
    let with = |(stack, &count): (&Stack, &u64)| (count > 0).then(|| Stack { count, ..stack.clone() });
    Profile { samples: Samples::Stacks(stacks.iter().zip(weights).filter_map(with).collect()), ..profile.clone() }
}

/// Something of a table by its place.
fn at<T>(table: &[T], place: u32) -> Option<&T> {
    usize::try_from(place).ok().and_then(|place| table.get(place))
}

fn too_long() -> Rejection {
    Rejection::new(Reason::TooLarge, "the names of the frames are too long to hold")
}
