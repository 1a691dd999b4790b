//! Checkpoints in an object store: an object each, and a commit that names it.
//!
//! The name has the generation, so that an older run that has not heard of the newer one writes other objects than that.

use bytes::Bytes;

use super::{About, CHECKPOINTS, ENDING, Found, KEPT, State, file};
use crate::crash::CrashPoint;
use crate::folder::Folder;
use crate::output::OutputError;
use crate::store::Store;
use crate::store::commits::Named;

/// What to do about an object that cannot be used.
const DAMAGED_HINT: &str = "remove the object of commits that names it to go on from the checkpoint before it, or all such objects to read the topic from its beginning";

pub(super) struct StoredCheckpoints {
    store: Store,
    folder: Folder,
}

impl StoredCheckpoints {
    pub(super) fn of(store: Store) -> Self {
        Self { folder: store.folder(), store }
    }

    pub(super) fn last(&self) -> Result<Option<Found>, OutputError> {
        let Some((_, named)) = self.store.commits().checkpoints().pop() else { return Ok(None) };
        let path = path_of(&named.file);
        Found::opened(&self.folder.read(&path)?, self.folder.display(&path), DAMAGED_HINT).map(Some)
    }

    pub(super) fn last_through(&self) -> Option<i64> {
        self.store.commits().checkpoints().pop().map(|(_, named)| named.through)
    }

    pub(super) fn write(&self, about: &About, state: State<'_>) -> Result<u64, OutputError> {
        let commits = self.store.commits();
        let generation = commits.take()?;
        let through = about.through.0.div_euclid(1_000_000_000);
        let named = Named { file: format!("{through}-{generation}{ENDING}"), through };
        let path = path_of(&named.file);
        CrashPoint::CheckpointTaken.reached();
        let bytes = file::write(Vec::new(), about, state).map_err(|error| self.folder.unwritable(&path, &error))?;
        let bytes = Bytes::from(bytes);
        self.folder.upload(&path, &bytes)?;
        CrashPoint::CheckpointUnfinished.reached();
        commits.commit_checkpoint(named)?;
        CrashPoint::CheckpointNamed.reached();
        self.remove_old(generation)?;
        CrashPoint::CheckpointDone.reached();
        Ok(u64::try_from(bytes.len()).unwrap_or(0))
    }

    /// Removes what no commit needs, or names: also what a run left that ended before its commit. What a newer run has written is its own.
    fn remove_old(&self, generation: u64) -> Result<(), OutputError> {
        let commits = self.store.commits();
        let mut kept = commits.checkpoints();
        let old = kept.len().saturating_sub(KEPT);
        for (number, _) in kept.drain(..old) {
            commits.remove(number)?;
        }
        for name in self.folder.names_in(CHECKPOINTS)? {
            let is_older = generation_of(&name).is_some_and(|of| of <= generation);
            if is_older && kept.iter().all(|(_, named)| named.file != name) {
                self.folder.remove(&path_of(&name))?;
            }
        }
        Ok(())
    }
}

/// The generation that wrote an object.
fn generation_of(file: &str) -> Option<u64> {
    file.strip_suffix(ENDING)?.rsplit_once('-')?.1.parse().ok()
}

fn path_of(file: &str) -> String {
    format!("{CHECKPOINTS}/{file}")
}
