//! Outputs that were made with other settings, put aside in the output folder: `generations/1` is the first of them. Each is an output
//! folder as it was when the next one was begun, and is read like any other.
//!
//! What is put aside goes into a folder with the name of a part first, which gets its own name at the end. So a run that was ended
//! meanwhile has left something that the next one completes.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::alerts::ALERTS_FILE;
use crate::archive::ARCHIVE;
use crate::checkpoints::CHECKPOINTS;
use crate::output::OutputError;
use crate::parquet::TABLES;

/// The folder of what was put aside, in an output folder.
pub const GENERATIONS: &str = "generations";
/// How the name of one ends that is not complete.
const UNFINISHED: &str = ".unfinished";

/// An output that is being put aside.
#[derive(Debug)]
pub struct Aside {
    root: PathBuf,
    number: u64,
}

impl Aside {
    /// Begins to put aside the output in a folder, of which the caller has the [lock](crate::lock).
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub fn begin(root: &Path) -> Result<Self, OutputError> {
        let all = root.join(GENERATIONS);
        let begun = || {
            fs::create_dir_all(&all)?;
            let number = numbers(&all, "")?.into_iter().max().unwrap_or(0) + 1;
            fs::create_dir(unfinished(&all, number))?;
            synced(&all)?;
            Ok(Self { root: root.to_owned(), number })
        };
        begun().map_err(|error| OutputError::unwritable(&all, &error))
    }

    /// What an earlier run has begun to put aside and has not completed.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub fn unfinished(root: &Path) -> Result<Option<Self>, OutputError> {
        let all = root.join(GENERATIONS);
        let begun = numbers(&all, UNFINISHED).map_err(|error| OutputError::unwritable(&all, &error))?;
        Ok(begun.into_iter().max().map(|number| Self { root: root.to_owned(), number }))
    }

    /// Puts it aside, and gives where it is now; `logs` are files that belong to it besides tables, archive, checkpoints and alerts.
    /// What else is in the folder stays.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub fn complete(self, logs: &[&str]) -> Result<PathBuf, OutputError> {
        let Self { root, number } = self;
        let all = root.join(GENERATIONS);
        let (part, aside) = (unfinished(&all, number), all.join(number.to_string()));
        let completed = || {
            for name in TABLES.iter().chain(&[ARCHIVE, CHECKPOINTS, ALERTS_FILE]).chain(logs) {
                match fs::rename(root.join(name), part.join(name)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
            synced(&part)?;
            fs::rename(&part, &aside)?;
            synced(&all)?;
            synced(&root)
        };
        completed().map_err(|error| OutputError::unwritable(&all, &error))?;
        Ok(aside)
    }
}

fn unfinished(all: &Path, number: u64) -> PathBuf {
    all.join(format!("{number}{UNFINISHED}"))
}

/// Numbers of the folders whose names end so.
fn numbers(all: &Path, ending: &str) -> Result<Vec<u64>, Error> {
    let entries = match fs::read_dir(all) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_suffix(ending)?.parse::<u64>().ok()));
    }
    Ok(numbers)
}

fn synced(folder: &Path) -> Result<(), Error> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LOGS: [&str; 1] = ["decisions.jsonl"];

    /// Puts something into every part of an output, and beside it.
    fn made(root: &Path, text: &str) {
        for folder in ["ledger/date=2026-03-03/hour=09", "flags", ARCHIVE, CHECKPOINTS, "receivers", "lost+found"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("1.parquet"), text).unwrap();
        }
        for file in [ALERTS_FILE, LOGS[0], ".fleetdiff.lock", "fleetdiff.toml"] {
            fs::write(root.join(file), text).unwrap();
        }
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    const PARTS: [&str; 6] = [ALERTS_FILE, ARCHIVE, CHECKPOINTS, LOGS[0], "flags", "ledger"];
    const OTHERS: [&str; 5] = [".fleetdiff.lock", "fleetdiff.toml", GENERATIONS, "lost+found", "receivers"];

    #[test]
    fn what_is_put_aside_is_whole_and_what_is_not_part_of_it_stays() {
        let root = tempfile::tempdir().unwrap();
        for (number, text) in [("1", "first"), ("2", "second")] {
            made(root.path(), text);
            let aside = Aside::begin(root.path()).unwrap().complete(&LOGS).unwrap();
            assert!(Aside::unfinished(root.path()).unwrap().is_none());
            assert_eq!(aside, root.path().join(GENERATIONS).join(number));
            assert_eq!(names(&aside), set(PARTS));
            assert_eq!(names(root.path()), set(OTHERS));
            assert_eq!(fs::read_to_string(aside.join("ledger/date=2026-03-03/hour=09/1.parquet")).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(root.path().join(GENERATIONS).join("1").join(ALERTS_FILE)).unwrap(), "first");
    }

    #[test]
    fn what_was_put_aside_in_part_is_completed() {
        for moved in 0..PARTS.len() {
            let root = tempfile::tempdir().unwrap();
            made(root.path(), "first");
            assert!(Aside::unfinished(root.path()).unwrap().is_none());
            let all = root.path().join(GENERATIONS);
            Aside::begin(root.path()).unwrap();
            let unfinished = unfinished(&all, 1);
            for part in &PARTS[..moved] {
                fs::rename(root.path().join(part), unfinished.join(part)).unwrap();
            }
            let begun = Aside::unfinished(root.path()).unwrap().unwrap();
            assert_eq!(begun.complete(&LOGS).unwrap(), all.join("1"));
            assert_eq!((names(&all.join("1")), names(root.path())), (set(PARTS), set(OTHERS)), "{moved} moved");
            assert!(Aside::unfinished(root.path()).unwrap().is_none());
        }
    }
}
