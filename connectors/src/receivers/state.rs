//! What a receiver has got, so that a service that is started again, and makes the same events again, does not send them twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::alertmanager::Card;
use crate::output::{OutputError, READABLE_HINT};

/// The folder of these files in an output folder.
pub const RECEIVERS_FOLDER: &str = "receivers";

/// What an earlier run delivered.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Ids of events.
    pub(super) delivered: BTreeSet<String>,
    /// Alerts that Alertmanager accepted.
    pub(super) alerts: Vec<Card>,
}

/// The file of one receiver.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// Its file in an output folder, which is created.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub(super) fn create(root: &Path, name: &str) -> Result<Self, OutputError> {
        let folder = root.join(RECEIVERS_FOLDER);
        std::fs::create_dir_all(&folder).map_err(|error| OutputError::unwritable(&folder, &error))?;
        Ok(Self { path: folder.join(format!("{name}.json")) })
    }

    /// What it holds; nothing if there is none.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`].
    pub(super) fn read(&self) -> Result<Saved, OutputError> {
        let unreadable = |detail: String| OutputError::Unreadable {
            path: self.path.display().to_string(),
            detail,
            hint: READABLE_HINT,
        };
        match std::fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Saved::default()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Replaces it as a whole.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub(super) fn write(&self, saved: &Saved) -> Result<(), OutputError> {
        let unfinished = self.path.with_extension("unfinished");
        let text = serde_json::to_vec(saved).map_err(|error| OutputError::unwritable(&self.path, &error.into()))?;
        let written = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &self.path));
        written.map_err(|error| OutputError::unwritable(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receivers::{Endpoint, ReceiverKind, ReceiverSettings, Receivers};

    #[test]
    fn an_output_that_is_begun_anew_forgets_what_alertmanager_has_and_no_message() {
        let root = tempfile::tempdir().unwrap();
        let kinds = [("a", ReceiverKind::Alertmanager), ("s", ReceiverKind::Slack), ("w", ReceiverKind::Webhook)];
        let endpoint = || Endpoint::parse("http://receiver.example").unwrap();
        let settings = kinds.map(|(name, kind)| ReceiverSettings::new(name, kind, endpoint()));
        let got = |name| StateFile::create(root.path(), name).unwrap().read().unwrap().delivered.len();
        for (name, _) in kinds {
            let saved = Saved { delivered: ["1".to_owned()].into(), ..Saved::default() };
            StateFile::create(root.path(), name).unwrap().write(&saved).unwrap();
        }
        Receivers::begin_anew(&settings, root.path()).unwrap();
        assert_eq!(["a", "s", "w"].map(got), [0, 1, 1]);
    }
}
