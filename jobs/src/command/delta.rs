//! `delta`: what a process counted between two cumulative profiles.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use fleetdiff_formats::Options;
use fleetdiff_formats::pprof::delta;

use crate::failure::Failure;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff delta mutex-1.pb.gz mutex-2.pb.gz -o mutex.delta.pb.gz
  fleetdiff delta heap-1.pb.gz heap-2.pb.gz --output heap.delta.pb.gz
  go tool pprof -sample_index=alloc_space -top heap.delta.pb.gz";

/// Arguments of `delta`.
#[derive(Debug, Args)]
pub(crate) struct DeltaArgs {
    /// The earlier profile
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// The later profile of the same process
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
    /// File for the delta; an existing file is never overwritten
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}", path = .path.display())]
struct FileError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Writes the delta of two profiles.
pub(crate) fn run(args: &DeltaArgs) -> Result<(), Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let found = delta::delta(&before, &after, Options::default().max_bytes);
    let bytes = found.map_err(|error| {
        let hint = error.hint();
        Failure::with_hint(error, hint)
    })?;
    write(&args.output, &bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| {
        Failure::with_hint(
            FileError { what: "cannot read", path: path.to_owned(), source },
            "give two pprof files, the earlier one first",
        )
    })
}

/// Creates a file; an existing file is not changed, and must be equal.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| file.write_all(bytes));
    match created {
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && fs::read(path).is_ok_and(|found| found == bytes) =>
        {
            Ok(())
        }
        Err(source) => {
            let hint = match source.kind() {
                io::ErrorKind::AlreadyExists => "it holds something else; give a file that is not there",
                _ => "see that its folder is there and may be written to",
            };
            Err(Failure::with_hint(FileError { what: "cannot write", path: path.to_owned(), source }, hint))
        }
        Ok(()) => Ok(()),
    }
}
