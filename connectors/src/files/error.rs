//! Why a folder could not be read or written at all.

use std::io;
use std::path::PathBuf;

use fleetdiff_formats::Unencodable;

/// A recorded fleet as a whole cannot be read or written. A single bad file or line is a rejection instead.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no such folder.
    #[error("no recorded fleet at {}", path.display())]
    Folder {
        /// The folder to open.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The folder has no manifest that can be read.
    #[error("cannot read the manifest {}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The folder to write already contains a fleet.
    #[error("{} exists already", path.display())]
    Exists {
        /// Its manifest.
        path: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path to write.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// A profile cannot be written in the requested format.
    #[error("cannot write {}", path.display())]
    Encode {
        /// The path to write.
        path: PathBuf,
        /// Why not.
        source: Unencodable,
    },
}

impl FleetError {
    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "fleet_folder_unreadable",
            Self::Manifest { .. } => "fleet_manifest_unreadable",
            Self::Exists { .. } => "fleet_exists",
            Self::Write { .. } => "fleet_unwritable",
            Self::Encode { .. } => "fleet_profile_unencodable",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "name the folder that holds manifest.jsonl",
            Self::Manifest { .. } => "a recorded fleet has a readable manifest.jsonl with one line a profile file",
            Self::Exists { .. } => "name a new folder, or remove this one first",
            Self::Write { .. } => "check that the folder may be written and that the disk has room",
            Self::Encode { .. } => "write the fleet as pprof, from profiles that hold stacks",
        }
    }
}
