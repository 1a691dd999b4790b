//! Files that are on both sides, by their path or by what they hold: nearly always a mistake of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use fleetdiff_diff::flame::Sides;

use super::arguments::is_piped;

/// A note for each file of the head that is also one of the base. What cannot be read has its own error.
pub(crate) fn notes(sides: &Sides<&[PathBuf]>) -> Vec<String> {
    sides.head.iter().filter_map(|head| sides.base.iter().find_map(|base| note(base, head))).collect()
}

fn note(base: &Path, head: &Path) -> Option<String> {
    // NB: a pipe can be read only once, so only files are opened here.
    let length = |path: &Path| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        metadata.filter(|_| !is_piped(path)).map(|metadata| metadata.len())
    };
    if length(base)? != length(head)? {
        return None;
    }
    if fs::canonicalize(base).ok()? == fs::canonicalize(head).ok()? {
        return Some(format!("{} is on both sides, as base and as head", head.display()));
    }
    (fs::read(base).ok()? == fs::read(head).ok()?)
        .then(|| format!("{} (base) and {} (head) hold the same bytes", base.display(), head.display()))
}
