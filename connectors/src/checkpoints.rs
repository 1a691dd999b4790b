//! Checkpoints of a service, in `checkpoints` of its output: one file each, of which the last two are kept.
//!
//! A file is complete as soon as it has its name, or is committed in an object store. It begins with what it is, in words: one line of
//! JSON, which says of which layout and configuration it is, then the state, compressed, then a hash of all that. What is damaged, or
//! of another layout or configuration, is never read in part.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use self::local::LocalCheckpoints;
use self::stored::StoredCheckpoints;
use crate::output::OutputError;
use crate::store::Place;

mod file;
mod local;
mod stored;

/// Name of the folder in an output.
pub const CHECKPOINTS: &str = "checkpoints";
const ENDING: &str = ".checkpoint";
/// How many are kept.
const KEPT: usize = 2;

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

/// A checkpoint that was found, whole.
#[derive(Debug)]
pub struct Found {
    /// What it is.
    pub about: About,
    pieces: Bytes,
    /// How messages name its file, and what to do about it.
    path: String,
    hint: &'static str,
}

impl Found {
    fn opened(file: &Bytes, path: String, hint: &'static str) -> Result<Self, OutputError> {
        match file::opened(file) {
            Ok((about, pieces)) => Ok(Self { about, pieces, path, hint }),
            Err(detail) => Err(OutputError::Unreadable { path, detail, hint }),
        }
    }

    /// Its state.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: it was written as something else.
    pub fn state(self) -> Result<Vec<u8>, OutputError> {
        let Self { pieces, path, hint, .. } = self;
        file::state_of(&pieces).map_err(|detail| OutputError::Unreadable { path, detail, hint })
    }
}

/// Writes a state.
type State<'a> = &'a mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>;

/// The checkpoints of one output.
pub struct CheckpointFolder(Kind);

enum Kind {
    Local(LocalCheckpoints),
    Stored(StoredCheckpoints),
}

impl CheckpointFolder {
    /// Those of this output, which one run at a time may use.
    pub fn of(place: impl Into<Place>) -> Self {
        Self(match place.into() {
            Place::Folder(root) => Kind::Local(LocalCheckpoints::of(&root)),
            Place::Store(store) => Kind::Stored(StoredCheckpoints::of(store)),
        })
    }

    /// The last checkpoint.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the folder or the file cannot be read, or the file is damaged.
    pub fn last(&self) -> Result<Option<Found>, OutputError> {
        match &self.0 {
            Kind::Local(folder) => folder.last(),
            Kind::Stored(store) => store.last(),
        }
    }

    /// What the last checkpoint of an output folder is, of which only the beginning is read.
    ///
    /// # Errors
    /// As [`Self::last`].
    pub fn last_about(root: &Path) -> Result<Option<About>, OutputError> {
        LocalCheckpoints::of(root).last_about()
    }

    /// Up to where everything is in the last checkpoint, by the name of its file.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the folder cannot be read.
    pub fn last_through(&self) -> Result<Option<Nanos>, OutputError> {
        let seconds = match &self.0 {
            Kind::Local(folder) => folder.last_through()?,
            Kind::Stored(store) => store.last_through(),
        };
        Ok(seconds.map(Nanos::from_seconds))
    }

    /// Writes a checkpoint, whose state `state` writes; it is on disk, or committed, when this returns. Older ones are removed, except
    /// the one before it.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`]: the disk or the store refused; nothing has changed then. [`OutputError::Superseded`]: a newer run
    /// has taken the store.
    pub fn write(
        &self,
        about: &About,
        mut state: impl FnMut(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<u64, OutputError> {
        match &self.0 {
            Kind::Local(folder) => folder.write(about, &mut state),
            Kind::Stored(store) => store.write(about, &mut state),
        }
    }
}
