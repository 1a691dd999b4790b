//! What can go wrong when results are written or read back.

use std::path::Path;

use fleetdiff_schemas::tables::TableError;

use crate::settings;

/// A result could not be written or read back.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or folder cannot be created or written.
    #[error("cannot write {path}: {detail}; {hint}")]
    Unwritable {
        /// Which one.
        path: String,
        /// The store's message.
        detail: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// Another run writes into the folder.
    #[error(
        "{path} is in use: another run of fleetdiff writes into it ({holder}); stop that one, or name another folder"
    )]
    InUse {
        /// The folder.
        path: String,
        /// Which process that is, in words.
        holder: String,
    },
    /// A newer run has taken the object store.
    #[error("{path} belongs to {by} now; this run ends, and what it has not committed is made again by that one")]
    Superseded {
        /// The store.
        path: String,
        /// Which process that is, in words.
        by: String,
    },
    /// The same interval was written before and came out differently.
    #[error("{path} exists and differs: {difference}; {hint}")]
    Nondeterministic {
        /// The file.
        path: String,
        /// In what they differ.
        difference: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The output was made with other settings, on which rows depend.
    #[error("{path} was made with other settings: {changes}; {hint}")]
    OtherSettings {
        /// The output, or a part of it.
        path: String,
        /// The settings that differ, each with its values.
        changes: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A file or folder is not what this program writes.
    #[error("cannot read {path}: {detail}; {hint}")]
    Unreadable {
        /// Which one.
        path: String,
        /// What was found.
        detail: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A file was written with another version of the tables.
    #[error("{path} has schema version {found}, this program reads version {expected}; use the program that wrote it")]
    UnsupportedVersion {
        /// The file.
        path: String,
        /// Its version, `none` without one.
        found: String,
        /// The version that is read.
        expected: &'static str,
    },
    /// The length of a flush interval does not divide an hour.
    #[error("a flush interval of {seconds} s does not divide an hour; choose whole seconds, such as 60, 600 or 3600")]
    FlushInterval {
        /// The requested length in seconds.
        seconds: f64,
    },
    /// A row cannot be written.
    #[error("cannot write {path}: {source}; this is an error in fleetdiff, please report it")]
    Row {
        /// The file it belongs to.
        path: String,
        /// What is wrong with it.
        source: TableError,
    },
}

impl OutputError {
    /// Refuses an output that was made with these settings, if they are not those of now; both are JSON.
    ///
    /// # Errors
    /// [`OutputError::OtherSettings`].
    pub fn refuse_other_settings(path: impl ToString, was: &str, is: &str) -> Result<(), Self> {
        let changes = settings::changes(was, is);
        if changes.is_empty() {
            return Ok(());
        }
        Err(Self::OtherSettings { path: path.to_string(), changes, hint: SETTINGS_HINT })
    }

    /// A local file or folder that the system refuses to create or write.
    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unwritable { path: path.display().to_string(), detail: error.to_string(), hint: WRITABLE_HINT }
    }

    /// Whether the same may succeed later: a disk gets room, a store answers again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unwritable { .. } | Self::Unreadable { .. })
    }

    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unwritable { .. } => "unwritable_output",
            Self::InUse { .. } => "output_in_use",
            Self::Superseded { .. } => "output_superseded",
            Self::Nondeterministic { .. } => "nondeterministic_output",
            Self::OtherSettings { .. } => "other_settings",
            Self::Unreadable { .. } => "unreadable_output",
            Self::UnsupportedVersion { .. } => "unsupported_schema_version",
            Self::FlushInterval { .. } => "invalid_flush_interval",
            Self::Row { source, .. } => source.code(),
        }
    }
}

/// What to do if something cannot be written.
pub(crate) const WRITABLE_HINT: &str = "name a folder that this user may write and that has room left";

/// What to do if an object store refuses or does not answer.
pub(crate) const STORE_HINT: &str = "the bucket must exist, and the server (AWS_ENDPOINT_URL), the region (AWS_REGION) and the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) must be right for it";

/// What to do if an output exists and differs.
pub(crate) const DIFFERS_HINT: &str =
    "the same input, configuration and program version give the same bytes; choose an empty folder, or delete this one";

/// What to do if an output was made with other settings.
pub(crate) const SETTINGS_HINT: &str = "choose an empty folder, or delete this one, or use the settings that it has; `watch --new-generation` puts it aside and begins anew";

/// What to do if something is not an output of this program.
pub(crate) const READABLE_HINT: &str = "name a folder that fleetdiff wrote, whole and unchanged";
