//! What a receiver has got, so that a service that is started again, and makes the same events again, does not send them twice.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::alertmanager::Card;
use crate::folder::Folder;
use crate::output::OutputError;
use crate::store::Place;

/// The folder of these files in an output.
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
///
/// In a folder each run replaces the file of the one before. In a store, where an older run may still write, each has one of its own,
/// with the next number, and removes those of before.
pub(super) struct StateFile {
    folder: Folder,
    own: String,
    /// What the run before has left; the last one counts.
    before: Vec<String>,
}

impl StateFile {
    /// Its file in an output. A folder is created.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`]; [`OutputError::Unreadable`] from a store.
    pub(super) fn create(place: &Place, name: &str) -> Result<Self, OutputError> {
        let folder = Folder::create(&place.below(RECEIVERS_FOLDER))?;
        if let Place::Folder(_) = place {
            let own = format!("{name}.json");
            return Ok(Self { folder, before: vec![own.clone()], own });
        }
        let path = |number: u64| format!("{name}/{number:010}.json");
        let numbers = folder.names_in(name)?.into_iter().filter_map(|file| file.strip_suffix(".json")?.parse().ok());
        let numbers: Vec<u64> = numbers.collect();
        let own = path(numbers.last().map_or(1, |last| last + 1));
        Ok(Self { folder, before: numbers.into_iter().map(path).collect(), own })
    }

    /// What the run before has delivered; nothing if there was none.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`].
    pub(super) fn read(&self) -> Result<Saved, OutputError> {
        let Some(path) = self.before.last() else { return Ok(Saved::default()) };
        let Some(bytes) = self.folder.read_if_there(path)? else { return Ok(Saved::default()) };
        serde_json::from_slice(&bytes).map_err(|error| self.folder.unreadable(path, &error))
    }

    /// Replaces it as a whole.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`].
    pub(super) fn write(&mut self, saved: &Saved) -> Result<(), OutputError> {
        let text = serde_json::to_vec(saved).map_err(|error| self.folder.unwritable(&self.own, &error))?;
        self.folder.upload(&self.own, &text.into())?;
        for old in std::mem::take(&mut self.before).into_iter().filter(|old| *old != self.own) {
            self.folder.remove(&old)?;
        }
        Ok(())
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
        let place = Place::from(root.path());
        let got = |name| StateFile::create(&place, name).unwrap().read().unwrap().delivered.len();
        for (name, _) in kinds {
            let saved = Saved { delivered: ["1".to_owned()].into(), ..Saved::default() };
            StateFile::create(&place, name).unwrap().write(&saved).unwrap();
        }
        Receivers::begin_anew(&settings, root.path()).unwrap();
        assert_eq!(["a", "s", "w"].map(got), [0, 1, 1]);
    }
}
