//! Checkpoints of a service, in the folder `checkpoints` of its output: one file each, of which the last two are kept.
//!
//! A file is complete as soon as it has its name. It begins with what it is, in words: one line of JSON, which says of which layout
//! and configuration it is, then the state, compressed, then a hash of all that. What is damaged, or of another layout or
//! configuration, is never read in part.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::crash::CrashPoint;
use crate::output::{OutputError, WRITABLE_HINT};

/// Name of the folder in an output folder.
pub const CHECKPOINTS: &str = "checkpoints";
const ENDING: &str = ".checkpoint";
/// The name of a file that is being written.
const UNFINISHED: &str = ".unfinished";
/// How many are kept.
const KEPT: usize = 2;
/// Fast, and a third of the size.
const LEVEL: i32 = 1;
const HASH_BYTES: usize = 8;
/// What to do about a file that cannot be used.
const DAMAGED_HINT: &str = "remove this file to go on from the checkpoint before it, or the folder of checkpoints to read the topic from its beginning";

/// What a checkpoint is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Always `fleetdiff checkpoint`.
    file: String,
    /// The layout of the state.
    pub format: u32,
    /// The program that wrote it.
    pub program: String,
    /// The settings that decide rows, as JSON.
    pub configuration: String,
    /// Everything before this instant is in it.
    pub through: Nanos,
}

impl About {
    /// A checkpoint of this program.
    pub fn new(format: u32, configuration: String, through: Nanos) -> Self {
        let program = format!("fleetdiff {}", env!("CARGO_PKG_VERSION"));
        Self { file: "fleetdiff checkpoint".to_owned(), format, program, configuration, through }
    }
}

/// The checkpoints of one output folder.
#[derive(Debug)]
pub struct CheckpointFolder {
    root: PathBuf,
}

impl CheckpointFolder {
    /// Those of this output folder, which one run at a time may use.
    pub fn of(output: &Path) -> Self {
        Self { root: output.join(CHECKPOINTS) }
    }

    /// The last checkpoint: what it is, and its state.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the folder or the file cannot be read, or the file is damaged.
    pub fn last(&self) -> Result<Option<(About, Vec<u8>)>, OutputError> {
        let Some((_, path)) = self.files()?.pop() else { return Ok(None) };
        let damaged =
            |detail: String| OutputError::Unreadable { path: path.display().to_string(), detail, hint: DAMAGED_HINT };
        let bytes = fs::read(&path).map_err(|error| damaged(error.to_string()))?;
        opened(&bytes).map(Some).map_err(damaged)
    }

    /// Up to where everything is in the last checkpoint, by the name of its file.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the folder cannot be read.
    pub fn last_through(&self) -> Result<Option<Nanos>, OutputError> {
        Ok(self.files()?.pop().map(|(seconds, _)| Nanos::from_seconds(seconds)))
    }

    /// Writes a checkpoint, whose state `state` writes; it is on disk when this returns. Older ones are removed, except the one before it.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`]: the disk refused; nothing has changed then.
    pub fn write(
        &self,
        about: &About,
        state: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<u64, OutputError> {
        let path = self.root.join(format!("{}{ENDING}", about.through.0.div_euclid(1_000_000_000)));
        let refused = |error: std::io::Error| OutputError::Unwritable {
            path: path.display().to_string(),
            detail: error.to_string(),
            hint: WRITABLE_HINT,
        };
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

    fn put(
        &self,
        path: &Path,
        about: &About,
        state: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> std::io::Result<u64> {
        fs::create_dir_all(&self.root)?;
        let unfinished = self.root.join(UNFINISHED);
        let mut hashed = Hashed { to: BufWriter::new(File::create(&unfinished)?), hash: XxHash3_64::new() };
        hashed.write_all(&serde_json::to_vec(about)?)?;
        hashed.write_all(b"\n")?;
        let mut compressed = zstd::stream::Encoder::new(hashed, LEVEL)?;
        state(&mut compressed)?;
        let Hashed { mut to, hash } = compressed.finish()?;
        to.write_all(&hash.finish().to_le_bytes())?;
        // NB: in this order. A name without its bytes must never be seen, not after a loss of power either.
        let file = to.into_inner()?;
        file.sync_all()?;
        let size = file.metadata()?.len();
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

/// Hashes what it writes.
struct Hashed<W> {
    to: W,
    hash: XxHash3_64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.write(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// The parts of a file, or what is wrong with it.
fn opened(bytes: &[u8]) -> Result<(About, Vec<u8>), String> {
    let cut = || "it ends too early".to_owned();
    let (held, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or_else(cut)?;
    if XxHash3_64::oneshot(held).to_le_bytes() != *hash {
        return Err("its bytes are not those that were written".to_owned());
    }
    let end = held.iter().position(|&byte| byte == b'\n').ok_or_else(cut)?;
    let (line, rest) = held.split_at(end);
    let about = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let state = zstd::stream::decode_all(rest.get(1..).unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok((about, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(minutes: i64) -> About {
        About::new(3, "{}".to_owned(), Nanos::from_seconds(60 * minutes))
    }

    #[test]
    fn the_last_one_is_read_and_the_one_before_it_is_kept() {
        let output = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::of(output.path());
        assert_eq!(folder.last().unwrap(), None);
        for minutes in [5, 10, 15, 100] {
            folder.write(&about(minutes), |to| to.write_all(&[u8::try_from(minutes).unwrap(); 1000])).unwrap();
            assert_eq!(folder.last().unwrap(), Some((about(minutes), vec![u8::try_from(minutes).unwrap(); 1000])));
        }
        assert_eq!(folder.files().unwrap().len(), 2);
        assert_eq!(folder.last_through().unwrap(), Some(about(100).through));
        fs::write(folder.root.join(UNFINISHED), "half").unwrap();
        fs::remove_file(&folder.files().unwrap()[1].1).unwrap();
        assert_eq!(folder.last().unwrap().unwrap().0, about(15), "as the message says");
    }

    #[test]
    fn a_file_of_which_any_byte_is_another_is_refused_and_named() {
        let output = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::of(output.path());
        folder.write(&about(5), |to| to.write_all(b"state")).unwrap();
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
