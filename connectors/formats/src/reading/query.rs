//! What is asked of a file.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use fleetdiff_schemas::time::Nanos;
use regex::Regex;

use super::keys::Keys;
use super::numbers::Numbers;
use super::times::Times;
use crate::values::Values;

/// The one frame of samples that a filter left out and that still count: see [`Percentage::Absolute`].
pub const FILTERED: &str = "[filtered]";

/// What is read of a file.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What names frames; without any, their functions, as decoders name them.
    pub keys: Option<Keys>,
    /// Which callers [`Key::Parent`](super::Key::Parent) looks for, by a pattern.
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
    /// What is counted.
    pub values: Values,
    /// Whether it is asked in which stretch of the recording each sample was taken ([`Run::slices`](super::Run::slices)).
    pub sliced: bool,
}

/// Which callers [`Key::Parent`](super::Key::Parent) looks for, by a pattern.
#[derive(Clone, Debug)]
pub struct Parent(Option<Regex>);

impl Default for Parent {
    /// The pattern of perf: calls of the system and page faults.
    fn default() -> Self {
        Self(Regex::new("^sys_|^do_page_fault").ok())
    }
}

impl Parent {
    pub(super) fn is(&self, symbol: &str) -> bool {
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

impl Reading {
    /// Whether it matters when each sample was taken.
    pub(super) fn wants_times(&self) -> bool {
        self.times.is_some() || self.crop.is_some() || self.sliced
    }

    /// Whether it is the reading of decoders.
    pub(super) fn asks_for_nothing(&self) -> bool {
        self.keys.is_none()
            && self.filters == Filters::default()
            && self.times.is_none()
            && self.crop.is_none()
            && !self.stream
            && self.values == Values::Samples
    }
}
