//! Checkpoints in a local folder.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::{About, CHECKPOINTS, ENDING, Found, KEPT, State, file};
use crate::crash::CrashPoint;
use crate::output::OutputError;

/// The name of a file that is being written.
const UNFINISHED: &str = ".unfinished";
/// What to do about a file that cannot be used.
const DAMAGED_HINT: &str = "remove this file to go on from the checkpoint before it, or the folder of checkpoints to read the topic from its beginning";

pub(super) struct LocalCheckpoints {
    root: PathBuf,
}

impl LocalCheckpoints {
    pub(super) fn of(output: &Path) -> Self {
        Self { root: output.join(CHECKPOINTS) }
    }

    pub(super) fn last(&self) -> Result<Option<Found>, OutputError> {
        let Some((_, path)) = self.files()?.pop() else { return Ok(None) };
        let bytes = fs::read(&path).map_err(|error| damaged(&path, error.to_string()))?;
        Found::opened(&bytes.into(), path.display().to_string(), DAMAGED_HINT).map(Some)
    }

    pub(super) fn last_about(&self) -> Result<Option<About>, OutputError> {
        let Some((_, path)) = self.files()?.pop() else { return Ok(None) };
        let about = File::open(&path).and_then(file::about);
        about.map(Some).map_err(|error| damaged(&path, error.to_string()))
    }

    pub(super) fn last_through(&self) -> Result<Option<i64>, OutputError> {
        Ok(self.files()?.pop().map(|(seconds, _)| seconds))
    }

    pub(super) fn write(&self, about: &About, state: State<'_>) -> Result<u64, OutputError> {
        let path = self.root.join(format!("{}{ENDING}", about.through.0.div_euclid(1_000_000_000)));
        let refused = |error: std::io::Error| OutputError::unwritable(&path, &error);
        CrashPoint::CheckpointTaken.reached();
        let size = self.put(&path, about, state).map_err(refused)?;
        CrashPoint::CheckpointNamed.reached();
        let files = self.files()?;
        for (_, old) in files.iter().take(files.len().saturating_sub(KEPT)) {
            fs::remove_file(old).map_err(refused)?;
        }
        CrashPoint::CheckpointDone.reached();
        Ok(size)
    }

    fn put(&self, path: &Path, about: &About, state: State<'_>) -> std::io::Result<u64> {
        fs::create_dir_all(&self.root)?;
        let unfinished = self.root.join(UNFINISHED);
        let written = file::write(BufWriter::new(File::create(&unfinished)?), about, state)?;
        // NB: in this order. A name without its bytes must never be seen, not after a loss of power either.
        let written = written.into_inner()?;
        written.sync_all()?;
        let size = written.metadata()?.len();
        CrashPoint::CheckpointUnfinished.reached();
        fs::rename(&unfinished, path)?;
        File::open(&self.root)?.sync_all()?;
        Ok(size)
    }

    /// Complete files by time, each with the seconds since 1970 through which everything is in it.
    fn files(&self) -> Result<Vec<(i64, PathBuf)>, OutputError> {
        let refused = |error: std::io::Error| OutputError::Unreadable {
            path: self.root.display().to_string(),
            detail: error.to_string(),
            hint: DAMAGED_HINT,
        };
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(refused(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(refused)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(at) = name.and_then(|name| name.strip_suffix(ENDING)?.parse::<i64>().ok()) {
                files.push((at, path));
            }
        }
        files.sort();
        Ok(files)
    }
}

fn damaged(path: &Path, detail: String) -> OutputError {
    OutputError::Unreadable { path: path.display().to_string(), detail, hint: DAMAGED_HINT }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::time::Nanos;

    use super::*;

    fn about(minutes: i64) -> About {
        About::new(3, "{}".to_owned(), Nanos::from_seconds(60 * minutes))
    }

    #[test]
    fn the_last_one_is_read_and_the_one_before_it_is_kept() {
        let output = tempfile::tempdir().unwrap();
        let folder = LocalCheckpoints::of(output.path());
        assert!(folder.last().unwrap().is_none() && folder.last_about().unwrap().is_none());
        for minutes in [5, 10, 15, 100] {
            folder.write(&about(minutes), &mut |to| to.write_all(&[u8::try_from(minutes).unwrap(); 1000])).unwrap();
            let found = folder.last().unwrap().unwrap();
            assert_eq!(found.about, about(minutes));
            assert_eq!(found.state().unwrap(), [u8::try_from(minutes).unwrap(); 1000]);
            assert_eq!(folder.last_about().unwrap(), Some(about(minutes)));
        }
        assert_eq!(folder.files().unwrap().len(), 2);
        assert_eq!(folder.last_through().unwrap(), Some(6000));
        fs::write(folder.root.join(UNFINISHED), "half").unwrap();
        fs::remove_file(&folder.files().unwrap()[1].1).unwrap();
        assert_eq!(folder.last().unwrap().unwrap().about, about(15), "as the message says");
    }

    #[test]
    fn a_state_of_any_size_is_read_as_it_was_written() {
        let output = tempfile::tempdir().unwrap();
        let folder = LocalCheckpoints::of(output.path());
        for (minutes, size) in (5..).zip([0, 1, 4 << 20, (4 << 20) + 1, 33_333_333]) {
            let state: Vec<u8> = (0u64..).flat_map(|n| (n * n).to_le_bytes()).take(size).collect();
            // NB: written in parts that are no pieces of the file.
            folder
                .write(&about(minutes), &mut |to| state.chunks(1_234_567).try_for_each(|part| to.write_all(part)))
                .unwrap();
            assert!(folder.last().unwrap().unwrap().state().unwrap() == state, "{size} bytes");
        }
    }

    #[test]
    fn a_file_of_which_any_byte_is_another_is_refused_and_named() {
        let output = tempfile::tempdir().unwrap();
        let folder = LocalCheckpoints::of(output.path());
        folder.write(&about(5), &mut |to| to.write_all(b"state")).unwrap();
        let (_, path) = folder.files().unwrap().remove(0);
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let error = folder.last().unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            fs::write(&path, &whole[..place]).unwrap();
            assert_eq!(folder.last().unwrap_err().code(), "unreadable_output", "cut at {place}");
        }
    }
}
