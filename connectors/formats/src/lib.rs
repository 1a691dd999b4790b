//! Bytes to profiles: each format is a file here behind [`Decode`], and none of them knows what carried the bytes.
//!
//! What the transport knows about a record (whose it is, when, of which type) comes as [`Labels`]; a format adds what
//! the bytes themselves say. Every count that leaves here is a number of raw samples, never bytes or nanoseconds.
//! A bad record becomes a [`Rejection`]; nothing here panics, and memory is bounded by [`Options::max_bytes`].

pub mod attributes;
mod collected;
pub mod compression;
mod counts;
pub mod cpuprofile;
pub mod delta;
pub mod folded;
pub mod identity;
mod json;
mod labels;
pub mod names;
pub mod otlp;
pub mod perf_script;
pub mod pprof;
pub mod pyroscope;
pub mod reading;
mod recognition;
pub mod speedscope;
mod wire;

use std::str::FromStr;
use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::Rejection;

use crate::identity::IdentityMapping;

pub use labels::{Labels, Unit};
use names::Rewrites;
pub use recognition::format_of;

/// Turns the bytes of one record into profiles.
pub trait Decode: Send {
    /// Gives the parts of one record, each a profile or the reason why it is none; at least one part.
    ///
    /// `labels` is what the transport knows, or why it does not know whose the record is. A format whose records
    /// carry their own identities ignores it. The bytes may be compressed.
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>>;
}

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `profile.proto` of the pprof tool, one profile a record.
    Pprof,
    /// Folded stacks, `root;...;leaf COUNT` a line, one profile a record.
    Folded,
    /// The text of `perf script`, one profile a record.
    PerfScript,
    /// The JSON of speedscope, one profile a record.
    Speedscope,
    /// The `.cpuprofile` of V8, one profile a record.
    Cpuprofile,
    /// The JSON of a flame graph of Pyroscope, one profile a record.
    Pyroscope,
    /// The columnar delta, many profiles of many pods a record.
    Delta,
    /// Profiles of OpenTelemetry, many profiles of many pods a record.
    Otlp,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 8] = [
        Self::Pprof,
        Self::Folded,
        Self::PerfScript,
        Self::Speedscope,
        Self::Cpuprofile,
        Self::Pyroscope,
        Self::Delta,
        Self::Otlp,
    ];

    /// Its name in manifests and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Folded => "folded",
            Self::PerfScript => "perf_script",
            Self::Speedscope => "speedscope",
            Self::Cpuprofile => "cpuprofile",
            Self::Pyroscope => "pyroscope",
            Self::Delta => "delta",
            Self::Otlp => "otlp",
        }
    }

    /// A decoder of this format; it keeps its buffers from record to record.
    ///
    /// ```
    /// use fleetdiff_formats::{Format, Options};
    /// let mut decoder = "folded".parse::<Format>().unwrap().decoder(&Options::default());
    /// # let labels = Err(fleetdiff_schemas::rejected::Rejection::new(fleetdiff_schemas::rejected::Reason::MissingIdentity, "no pod"));
    /// assert_eq!(decoder.decode(b"main;work 3", &labels)[0], Err(labels.unwrap_err()));
    /// ```
    pub fn decoder(self, options: &Options) -> Box<dyn Decode> {
        match self {
            Self::Pprof => Box::new(pprof::Decoder::new(options)),
            Self::Folded => Box::new(folded::Decoder::new(options)),
            Self::PerfScript => Box::new(perf_script::Decoder::new(options)),
            Self::Speedscope => Box::new(speedscope::Decoder::new(options)),
            Self::Cpuprofile => Box::new(cpuprofile::Decoder::new(options)),
            Self::Pyroscope => Box::new(pyroscope::Decoder::new(options)),
            Self::Delta => Box::new(delta::Decoder::new(options)),
            Self::Otlp => Box::new(otlp::Decoder::new(options)),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("unknown format {text:?}, expected one of {}", known()))
    }
}

/// What holds for every format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Largest record after decompression in bytes; what a decoder builds from it in memory is held to a small
    /// multiple. Default 256 MiB (a guess, far above the largest recorded profile).
    pub max_bytes: usize,
    /// The label of a sample that names its cohort. Default `cohort`.
    pub cohort_label: Arc<str>,
    /// Rewrites of function names. Default none.
    pub rewrites: Rewrites,
    /// Which attributes say whose a profile is, for formats that carry attributes and no identity.
    pub identity: IdentityMapping,
    /// What profiles of contention are if nothing says whether they are of holding a lock (mutex) or of waiting (block).
    /// Default mutex (a guess: who holds a lock can be changed).
    pub contention: ProfileType,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            cohort_label: "cohort".into(),
            rewrites: Rewrites::default(),
            identity: IdentityMapping::default(),
            contention: ProfileType::Mutex,
        }
    }
}

/// A profile that cannot be written in a format of stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unencodable {
    /// Its stacks were folded away.
    #[error("the profile holds counts by function, but this format holds stacks")]
    Folded,
    /// A frame or a count that the format has no place for.
    #[error("a stack refers to a name beyond the table, or its count exceeds 2^63 - 1")]
    OutOfRange,
    /// Folded stacks have no place for it: a frame with `;` or a line end, a root with `#`, a cohort of its own.
    #[error("folded stacks cannot hold {0:?}; pprof can")]
    Text(String),
}
