//! `delta`: what a process counted between two cumulative profiles.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fleetdiff_formats::Options;
use fleetdiff_formats::pprof::delta;

use crate::command::DeltaSettings;
use crate::failure::Failure;

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}", path = .path.display())]
struct FileError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Writes the delta of two profiles.
pub fn delta(settings: &DeltaSettings) -> Result<(), Failure> {
    let (before, after) = (read(&settings.before)?, read(&settings.after)?);
    let found = delta::delta(&before, &after, Options::default().max_bytes);
    let bytes = found.map_err(|error| {
        let hint = error.hint();
        Failure::with_hint(error, hint)
    })?;
    write(&settings.output, &bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| {
        Failure::with_hint(
            FileError { what: "cannot read", path: path.to_owned(), source },
            "give two pprof files, the earlier one first",
        )
    })
}

/// Creates a file; one that is there is left as it is, and must be equal.
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
