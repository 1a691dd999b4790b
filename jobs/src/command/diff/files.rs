//! The files of both sides, decoded.

mod reader;
mod warm_up;

use std::io::{self, Read as _};
use std::path::PathBuf;

use fleetdiff_diff::compare::FEWEST_RUNS;
use fleetdiff_diff::compare::Recording;
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Options;
use fleetdiff_formats::Period;
use fleetdiff_formats::Values;
use fleetdiff_formats::reading::Unread as Fault;
use fleetdiff_schemas::rejected::Reason;

use self::reader::{Declared, Reader, Unreadable};
use super::arguments::{FileArgs, is_piped};
use super::same;
use crate::configuration::Configuration;
use crate::failure::Failure;

/// What was read.
pub(crate) struct Read {
    /// The runs of each side.
    pub(crate) sides: Sides<Vec<Recording>>,
    /// Notes on the files.
    pub(crate) notes: Vec<String>,
}

/// Reads all files. If no type is requested, the first file decides what is compared.
///
/// If the period of any is not known, all are read as times, so that both sides are measured in the same way: for that, each side needs
/// [`FEWEST_RUNS`] runs.
pub(crate) fn read(args: &FileArgs, period: Option<Period>) -> Result<Read, Failure> {
    let configuration = Configuration::load(None, &args.names).map_err(Failure::of_configuration)?;
    let sides = args.sides()?;
    let piped = if sides.base.iter().chain(sides.head).any(|path| is_piped(path)) { Some(piped()?) } else { None };
    let notes = same::notes(&sides);
    let files = Files { args, sides, piped, period, options: configuration.of_files() };
    let mut read = match files.read_as(Values::Samples) {
        Err(Unread::File(fault)) if fault.is_of_unknown_period() => {
            files.read_times(&fault).unwrap_or_else(|| Err(explained(fault)))
        }
        other => other.map_err(Failure::from),
    }?;
    read.notes.splice(..0, notes);
    Ok(read)
}

/// All of standard input.
fn piped() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files of both sides, and how they are read.
struct Files<'a> {
    args: &'a FileArgs,
    sides: Sides<&'a [PathBuf]>,
    /// Standard input, if it is one of the files: it is needed again if all files are read as times.
    piped: Option<Vec<u8>>,
    /// How long it is from one sample to the next, as declared.
    period: Option<Period>,
    options: Options,
}

impl Files<'_> {
    /// All files as times; nothing if they are too few.
    fn read_times(&self, unknown: &Unreadable) -> Option<Result<Read, Failure>> {
        let enough = |base: usize, head: usize| base.min(head) >= FEWEST_RUNS;
        match self.read_as(Values::Times) {
            Ok(read) => enough(read.sides.base.len(), read.sides.head.len()).then_some(Ok(read)),
            Err(_) if !enough(self.sides.base.len(), self.sides.head.len()) => None,
            Err(Unread::File(fault)) => Some(Err(Failure::with_hint(
                Unequal { fault, unknown: unknown.to_string() },
                "both sides must be measured in the same way: give files with times on both sides, or say how long it is from one sample to the next with --period",
            ))),
            Err(Unread::Other(failure)) => Some(Err(failure)),
        }
    }

    fn read_as(&self, values: Values) -> Result<Read, Unread> {
        let args = self.args;
        let readings =
            args.reading.of_files(self.sides.base.len(), self.sides.head.len(), values).map_err(Unread::Other)?;
        let declared = Declared { period: self.period, unit: args.unit };
        let mut reader = Reader::new(args.profile_type, declared, values, &self.options, self.piped.as_deref());
        let mut side = |name: &'static str, paths: &[PathBuf], readings: &[_]| -> Result<Vec<Recording>, Unread> {
            let mut runs = Vec::new();
            for (path, reading) in paths.iter().zip(readings) {
                runs.extend(reader.runs(name, path, reading).map_err(Unread::File)?);
            }
            if let Some(crop) = args.reading.crop {
                reader.notes.extend(warm_up::leave_out(name, &mut runs, crop).map_err(Unread::Other)?);
            }
            Ok(runs.into_iter().map(|run| run.recording).collect())
        };
        let base = side("base", self.sides.base, &readings.base)?;
        let head = side("head", self.sides.head, &readings.head)?;
        Ok(Read { sides: Sides { base, head }, notes: reader.notes })
    }
}

/// Why nothing was read.
enum Unread {
    /// A file.
    File(Unreadable),
    /// Something else.
    Other(Failure),
}

impl From<Unread> for Failure {
    fn from(fault: Unread) -> Self {
        match fault {
            Unread::File(fault) => explained(fault),
            Unread::Other(failure) => failure,
        }
    }
}

/// A file that cannot be read as times, while another can be read as nothing else.
#[derive(Debug, thiserror::Error)]
#[error("{fault}; but {unknown}")]
struct Unequal {
    fault: Unreadable,
    unknown: String,
}

fn explained(fault: Unreadable) -> Failure {
    let hint = match &fault {
        Unreadable::File { .. } => {
            "give profiles in pprof, folded stacks, perf.data, perf script's text, or the JSON of speedscope, V8 (.cpuprofile, .heapprofile), Chrome's traces, Firefox's profiler, stackprof or Pyroscope"
        }
        Unreadable::OtherType { .. } => {
            "give files of one type, or choose one that both sides hold with --profile-type: cpu, wall, off_cpu, heap, live_heap, mutex, block"
        }
        Unreadable::Foreign { kind, .. } => kind.instead,
        Unreadable::Profile { fault, .. } => match fault {
            Fault::Rejected(fault) if fault.reason == Reason::UnknownPeriod && fault.detail.contains("--period") => {
                "say how long it is from one sample to the next with --period, as in --period 10ms, or give at least 5 runs of each side: then their times are compared as weights"
            }
            Fault::Rejected(fault) if fault.reason == Reason::UnknownPeriod => {
                "give a format that counts samples, or give at least 5 runs of each side: then their times are compared as weights"
            }
            Fault::Rejected(fault) if fault.reason == Reason::UnitMismatch && fault.detail.contains("--period") => {
                "say how long it is from one sample to the next with --period, as in --period 10ms"
            }
            Fault::Rejected(fault) if fault.reason == Reason::UnitMismatch => {
                "choose the type with --profile-type: cpu, wall, off_cpu, heap, live_heap, mutex, block"
            }
            Fault::Rejected(fault) if fault.reason == Reason::UnsupportedType && fault.detail.contains("only both") => {
                "give the profile as the program serves it, as Go's /debug/pprof/heap does; of what Pyroscope has stored, fleetdiff pull pyroscope:URL puts both together"
            }
            Fault::Rejected(fault)
                if fault.reason == Reason::UnsupportedType && fault.detail.contains("no samples of") =>
            {
                "give a profile of samples: of the processor (cpu), of passing time (wall), of memory (heap) or of locks (mutex)"
            }
            Fault::Rejected(fault) if fault.detail.starts_with("a recording of perf (perf.data)") => {
                "perf script resolves what the recording needs on the machine on which it was made; give the text that it writes"
            }
            Fault::Rejected(fault) if fault.reason == Reason::Empty => {
                "check how it was recorded: a program that slept, or a sampler without permission, leaves no samples"
            }
            Fault::Rejected(fault)
                if fault.reason == Reason::UnsupportedVersion && fault.detail.contains("opentelemetry-proto") =>
            {
                "use a version of the profiler that writes opentelemetry-proto 1.10, or another of its formats: async-profiler's -o jfr or -o collapsed"
            }
            Fault::Rejected(_) => {
                "the format is recognised by the name (.pb.gz, .folded, .perf_script, .speedscope, .cpuprofile, .pyroscope) or by the bytes"
            }
            Fault::Missing(_) => {
                "write the text with more fields, as in perf script -F +pid,+cpu,+srcline, or do not ask for this (--sort, --cpu, --pid, --tid, --comms, --dsos)"
            }
            Fault::Timeless => {
                "--time and --crop need a format with times: perf script, OTLP, cpuprofile, Chrome's traces, Firefox's profiler, stackprof, speedscope in a unit of time; --crop also takes many files per side that each have a time, as pprof does"
            }
            Fault::OutOfTime { .. } => "choose a range within these times with --time, or crop less with --crop",
            Fault::NothingLeft(_) => {
                "check that --cpu, --pid, --tid, --comms, --dsos and --symbols name what the file holds; with --percentage absolute a side may have none of it"
            }
        },
    };
    Failure::with_hint(fault, hint)
}
