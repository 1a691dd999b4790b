//! The formats by name, and the decoder of each.

use std::str::FromStr;

use crate::decode::{Decode, Options};
use crate::one_profile::{self, OneProfile};
use crate::perf_data::Symbols;
use crate::{
    chrome_trace, cpuprofile, delta, folded, foreign, gecko, heapprofile, jfr, otlp, perf_data, perf_script, pprof,
    pyroscope, speedscope, stackprof,
};

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `profile.proto` of the pprof tool, one profile a record.
    Pprof,
    /// Folded stacks, `root;...;leaf COUNT` a line, one profile a record.
    Folded,
    /// The text of `perf script`, one profile a record.
    PerfScript,
    /// The recordings of `perf record`, one profile a record; refused unless [`Options::symbols`] says where functions are looked up.
    PerfData,
    /// The JSON of speedscope, one profile a record.
    Speedscope,
    /// The `.cpuprofile` of V8, one profile a record.
    Cpuprofile,
    /// Traces of Chrome with the samples of V8 in them, one profile a record.
    ChromeTrace,
    /// The `.heapprofile` of V8, one profile a record.
    Heapprofile,
    /// The JSON of stackprof, one profile a record.
    Stackprof,
    /// What Firefox's profiler and samply write, one profile a record.
    Gecko,
    /// The JSON of a flame graph of Pyroscope, one profile a record.
    Pyroscope,
    /// The columnar delta, many profiles of many pods a record.
    Delta,
    /// Profiles of OpenTelemetry, many profiles of many pods a record.
    Otlp,
    /// Recordings of the JDK's Flight Recorder, one profile a record.
    Jfr,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 14] = [
        Self::Pprof,
        Self::Folded,
        Self::PerfScript,
        Self::PerfData,
        Self::Speedscope,
        Self::Cpuprofile,
        Self::ChromeTrace,
        Self::Heapprofile,
        Self::Stackprof,
        Self::Gecko,
        Self::Pyroscope,
        Self::Delta,
        Self::Otlp,
        Self::Jfr,
    ];

    /// Its name in manifests and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Folded => "folded",
            Self::PerfScript => "perf_script",
            Self::PerfData => "perf_data",
            Self::Speedscope => "speedscope",
            Self::Cpuprofile => "cpuprofile",
            Self::ChromeTrace => "chrome_trace",
            Self::Heapprofile => "heapprofile",
            Self::Stackprof => "stackprof",
            Self::Gecko => "gecko",
            Self::Pyroscope => "pyroscope",
            Self::Delta => "delta",
            Self::Otlp => "otlp",
            Self::Jfr => "jfr",
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
        let one_profile = |read: one_profile::Read| -> Box<dyn Decode> { Box::new(OneProfile::new(options, read)) };
        let decoder: Box<dyn Decode> = match self {
            Self::Pprof => Box::new(pprof::Decoder::new(options)),
            Self::Folded => one_profile(|record, collected| folded::read(record, collected)),
            Self::PerfScript => one_profile(|record, collected| perf_script::read(record, collected)),
            Self::PerfData => one_profile(match options.symbols {
                Symbols::Nowhere => |record, collected| perf_data::read(record, Symbols::Nowhere, collected),
                Symbols::ThisMachine => |record, collected| perf_data::read(record, Symbols::ThisMachine, collected),
            }),
            Self::Speedscope => Box::new(speedscope::Decoder::new(options)),
            Self::Cpuprofile => one_profile(|record, collected| cpuprofile::read(record, collected)),
            Self::ChromeTrace => one_profile(|record, collected| chrome_trace::read(record, collected)),
            Self::Heapprofile => one_profile(|record, collected| heapprofile::read(record, collected)),
            Self::Stackprof => one_profile(|record, collected| stackprof::read(record, collected)),
            Self::Gecko => one_profile(|record, collected| gecko::read(record, collected)),
            Self::Pyroscope => Box::new(pyroscope::Decoder::new(options)),
            Self::Delta => Box::new(delta::Decoder::new(options)),
            Self::Otlp => Box::new(otlp::Decoder::new(options)),
            Self::Jfr => Box::new(jfr::Decoder::new(options)),
        };
        Box::new(foreign::Naming { format: self, decoder })
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
