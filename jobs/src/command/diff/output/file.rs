//! Files for results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes a file; an existing file is overwritten.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|source| {
        Failure::with_hint(Unwritable { path: path.to_owned(), source }, "check that its folder exists and is writable")
    })
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}", path = .path.display())]
struct Unwritable {
    path: PathBuf,
    source: io::Error,
}
