//! Adds profiles to a recorded fleet as agents give them: their bytes as they are, and a line of the manifest behind each.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use fleetdiff_formats::{Format, Labels};

use super::error::FleetError;
use super::manifest::MANIFEST;
use super::write::{ManifestLine, folder_name};

/// Adds to a fleet, whose folder may be read at any time: a line of the manifest comes after its file, whole.
#[derive(Debug)]
pub struct FleetRecorder {
    folder: PathBuf,
    manifest: File,
}

impl FleetRecorder {
    /// Begins a fleet in a folder, or continues the one that is there.
    ///
    /// # Errors
    /// [`FleetError::Write`] if the folder cannot be written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, FleetError> {
        let folder = folder.as_ref().to_owned();
        let path = folder.join(MANIFEST);
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| FleetError::Write { path, source }
        };
        fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
        let manifest = OpenOptions::new().create(true).append(true).open(&path).map_err(unwritable(&path))?;
        Ok(Self { folder, manifest })
    }

    /// Adds a profile of which this is known. Its file is `profiles/POD/TYPE-TIME.pb.gz` or of another ending, TIME being when it began in
    /// nanoseconds.
    ///
    /// # Errors
    /// [`FleetError::Write`] if it cannot be written.
    pub fn add(&mut self, labels: &Labels, format: Format, bytes: &[u8]) -> Result<(), FleetError> {
        let ending = if format == Format::Pprof { "pb.gz" } else { format.name() };
        let pod = folder_name(labels.identity.pod.as_str());
        let began = labels.window.map_or(0, |window| window.start.0);
        let file = format!("profiles/{pod}/{}-{began}.{ending}", labels.profile_type.name());
        let path = self.folder.join(&file);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, bytes)).map_err(|source| FleetError::Write { path, source })?;
        // One write, so that whoever reads meanwhile sees no part of a line.
        let written = self.manifest.write_all(&ManifestLine::of(labels, &file, format.name()).text());
        written.map_err(|source| FleetError::Write { path: self.folder.join(MANIFEST), source })
    }
}
