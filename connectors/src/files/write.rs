//! Writes a recorded fleet: one gzipped file per profile, and the manifest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::slice;

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Labels, folded, otlp, pprof};
use fleetdiff_schemas::profile::{Profile, Temporality};
use serde::Serialize;

use super::error::FleetError;
use super::manifest::MANIFEST;

/// In which format the files of a fleet are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// `profile.proto`.
    Pprof,
    /// `root;...;leaf COUNT`; cannot hold cohorts of single samples.
    Folded,
    /// A record of OTLP for each profile.
    Otlp,
}

impl FileFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Pprof => "pb.gz",
            Self::Folded => "folded.gz",
            Self::Otlp => "otlp.pb",
        }
    }

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Folded => "folded",
            Self::Otlp => "otlp",
        }
    }
}

/// Writes profiles into a folder, one after the other. The files of a pod lie in `profiles/POD`, numbered by type.
pub struct FleetWriter {
    folder: PathBuf,
    manifest: BufWriter<File>,
    format: FileFormat,
    /// Number of the next file, by folder of the pod and profile type.
    numbers: BTreeMap<(String, &'static str), usize>,
}

impl FleetWriter {
    /// Begins a fleet in a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// [`FleetError::Exists`] if the folder has a manifest already, [`FleetError::Write`] if it cannot be written.
    pub fn create(folder: impl AsRef<Path>, format: FileFormat) -> Result<Self, FleetError> {
        let folder = folder.as_ref().to_owned();
        let path = folder.join(MANIFEST);
        fs::create_dir_all(&folder).map_err(|source| FleetError::Write { path: folder.clone(), source })?;
        let manifest = File::create_new(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => FleetError::Exists { path },
            _ => FleetError::Write { path, source },
        })?;
        Ok(Self { folder, manifest: BufWriter::new(manifest), format, numbers: BTreeMap::new() })
    }

    /// Writes one profile and its line of the manifest.
    ///
    /// # Errors
    /// [`FleetError::Encode`] if it has no stacks or the format cannot hold them, [`FleetError::Write`] if it cannot be
    /// written.
    pub fn write(&mut self, profile: &Profile) -> Result<(), FleetError> {
        let file = self.next_file(profile);
        let path = self.folder.join(&file);
        let encoded = match self.format {
            FileFormat::Pprof => pprof::encode(profile),
            FileFormat::Folded => folded::encode(profile),
            FileFormat::Otlp => otlp::encode(slice::from_ref(profile), &IdentityMapping::default()),
        };
        let bytes = encoded.map_err(|source| FleetError::Encode { path: path.clone(), source })?;
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, bytes)).map_err(|source| FleetError::Write { path, source })?;
        let labels = Labels::of(profile);
        let line = ManifestLine::of(&labels, &file, self.format.name());
        self.manifest.write_all(&line.text()).map_err(|source| self.manifest_unwritable(source))
    }

    /// Ends the fleet.
    ///
    /// # Errors
    /// [`FleetError::Write`] if the end of the manifest cannot be written.
    pub fn finish(mut self) -> Result<(), FleetError> {
        self.manifest.flush().map_err(|source| self.manifest_unwritable(source))
    }

    fn manifest_unwritable(&self, source: std::io::Error) -> FleetError {
        FleetError::Write { path: self.folder.join(MANIFEST), source }
    }

    fn next_file(&mut self, profile: &Profile) -> String {
        let pod = folder_name(profile.identity.pod.as_str());
        let kind = profile.profile_type.name();
        let number = self.numbers.entry((pod.clone(), kind)).or_default();
        let file = format!("profiles/{pod}/{kind}-{number:03}.{}", self.format.extension());
        *number += 1;
        file
    }
}

/// Writes profiles as a recorded fleet and gives their number; see [`FleetWriter`].
///
/// # Errors
/// Those of [`FleetWriter`].
pub fn write_fleet<'a>(
    folder: impl AsRef<Path>,
    format: FileFormat,
    profiles: impl IntoIterator<Item = &'a Profile>,
) -> Result<usize, FleetError> {
    let mut writer = FleetWriter::create(folder, format)?;
    let mut number = 0;
    for profile in profiles {
        writer.write(profile)?;
        number += 1;
    }
    writer.finish().map(|()| number)
}

/// A pod's name as a single harmless part of a path. Pods whose names become equal share a folder, not files.
pub(super) fn folder_name(pod: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = pod.chars().map(safe).take(100).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

/// A line of the manifest; a key is absent if its value is unknown.
#[derive(Serialize)]
pub(super) struct ManifestLine<'a> {
    file: &'a str,
    format: &'a str,
    profile_type: &'a str,
    temporality: Temporality,
    service: &'a str,
    build: &'a str,
    region: &'a str,
    cohort: &'a str,
    hardware: &'a str,
    pod: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_unix_nano: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_unix_nano: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_start_unix_nano: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_start_unix_nano: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_end_unix_nano: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
}

impl<'a> ManifestLine<'a> {
    pub(super) fn of(labels: &'a Labels, file: &'a str, format: &'a str) -> Self {
        let identity = &*labels.identity;
        Self {
            file,
            format,
            profile_type: labels.profile_type.name(),
            temporality: labels.temporality,
            service: identity.service.as_str(),
            build: identity.build.as_str(),
            region: identity.region.as_str(),
            cohort: identity.cohort.as_str(),
            hardware: identity.hardware.as_str(),
            pod: identity.pod.as_str(),
            node: identity.node.as_ref().map(|node| node.as_str()),
            start_unix_nano: labels.window.map(|window| window.start.0),
            end_unix_nano: labels.window.map(|window| window.end.0),
            process_start_unix_nano: identity.process_start.map(|start| start.0),
            requests: labels.requests,
            requests_start_unix_nano: labels.requests_window.map(|window| window.start.0),
            requests_end_unix_nano: labels.requests_window.map(|window| window.end.0),
            period: labels.period.map(|period| format!("{}ns", period.nanoseconds())),
        }
    }

    /// The line with its end.
    pub(super) fn text(&self) -> Vec<u8> {
        // Texts and numbers are always JSON.
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}
