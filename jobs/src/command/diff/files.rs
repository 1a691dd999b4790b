//! The files of both sides, decoded.

mod reader;
mod warm_up;

use std::path::PathBuf;

use fleetdiff_diff::compare::Recording;
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Period;
use fleetdiff_formats::reading::Unread;
use fleetdiff_schemas::rejected::Reason;

use self::reader::{Declared, Reader, Unreadable};
use super::arguments::FileArgs;
use crate::failure::Failure;

/// What was read.
pub(crate) struct Read {
    /// The runs of each side.
    pub(crate) sides: Sides<Vec<Recording>>,
    /// Notes on the files.
    pub(crate) notes: Vec<String>,
}

/// Reads all files. If no type is requested, the first file decides what is compared.
pub(crate) fn read(args: &FileArgs, period: Option<Period>) -> Result<Read, Failure> {
    let readings = args.reading.of_files(args.base.len(), args.head.len())?;
    let mut reader = Reader::new(args.profile_type, Declared { period, unit: args.unit });
    let mut side = |name: &str, paths: &[PathBuf], readings: &[_]| -> Result<Vec<Recording>, Failure> {
        let mut runs = Vec::new();
        for (path, reading) in paths.iter().zip(readings) {
            runs.extend(reader.runs(path, reading).map_err(explained)?);
        }
        if let Some(crop) = args.reading.crop {
            reader.notes.extend(warm_up::leave_out(name, &mut runs, crop)?);
        }
        Ok(runs.into_iter().map(|run| run.recording).collect())
    };
    let base = side("base", &args.base, &readings.base)?;
    let head = side("head", &args.head, &readings.head)?;
    Ok(Read { sides: Sides { base, head }, notes: reader.notes })
}

fn explained(fault: Unreadable) -> Failure {
    let hint = match &fault {
        Unreadable::File { .. } => {
            "give profiles in pprof, folded stacks, perf script's text, or the JSON of speedscope, V8 or Pyroscope"
        }
        Unreadable::PerfData { .. } => {
            "write its text: perf script -F +pid,+cpu,+period -i perf.data > run.perf_script"
        }
        Unreadable::Profile { fault, .. } => match fault {
            Unread::Rejected(fault) if fault.reason == Reason::UnitMismatch && fault.detail.contains("--period") => {
                "say how long it is from one sample to the next with --period, as in --period 10ms"
            }
            Unread::Rejected(fault) if fault.reason == Reason::UnitMismatch => {
                "choose the type with --profile-type: cpu, wall, off_cpu, heap, live_heap, mutex, block"
            }
            Unread::Rejected(fault) if fault.reason == Reason::Empty => {
                "check how it was recorded: a program that slept, or a sampler without permission, leaves no samples"
            }
            Unread::Rejected(_) => {
                "the format is recognised by the name (.pb.gz, .folded, .perf_script, .speedscope, .cpuprofile, .pyroscope) or by the bytes"
            }
            Unread::Missing(_) => {
                "write the text with more fields, as in perf script -F +pid,+cpu,+srcline, or do not ask for this (--sort, --cpu, --pid, --tid, --comms, --dsos)"
            }
            Unread::Timeless => {
                "--time and --crop need a format with times: perf script, OTLP, cpuprofile, speedscope in a unit of time; --crop also takes many files per side that each have a time, as pprof does"
            }
            Unread::OutOfTime { .. } => "choose a range within these times with --time, or crop less with --crop",
            Unread::NothingLeft(_) => {
                "check that --cpu, --pid, --tid, --comms, --dsos and --symbols name what the file holds; with --percentage absolute a side may have none of it"
            }
        },
    };
    Failure::with_hint(fault, hint)
}
