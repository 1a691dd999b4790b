//! Waits for an output folder into which another process writes.
//!
//! The lock of the folder is the only thing on which processes agree. It ends with the process that holds it, however that ends, so
//! whoever gets it finds all that was written, and nobody who still writes. Nothing of the folder is read before.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleetdiff_connectors::lock::FolderLock;
use fleetdiff_connectors::output::OutputError;

use super::supervisor;

/// How often a standby tries to take the folder.
const EVERY: Duration = Duration::from_millis(100);

/// Takes the folder, once no other process holds it if this one is a standby. `None` if it was stopped while it waited.
///
/// # Errors
/// See [`FolderLock::take`]; a folder in use is an error only to a process that is no standby.
pub(super) fn take_folder(root: &Path, standby: bool, stop: &AtomicBool) -> Result<Option<FolderLock>, OutputError> {
    let mut held_by = None;
    loop {
        match FolderLock::take(root) {
            Err(OutputError::InUse { path, holder }) if standby => {
                if stop.load(Ordering::Acquire) {
                    tracing::info!("stopped while it waited as a standby");
                    return Ok(None);
                }
                if held_by.as_ref() != Some(&holder) {
                    tracing::info!("standby: {holder} writes into {path}; this process takes over once that has ended");
                    held_by = Some(holder);
                }
                supervisor::standing_by();
                std::thread::sleep(EVERY);
            }
            taken => {
                if taken.is_ok() && held_by.is_some() {
                    tracing::info!("standby: {} is free; this process takes over", root.display());
                }
                return taken.map(Some);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_standby_takes_the_folder_once_it_is_free_and_heeds_that_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let stop = Arc::new(AtomicBool::new(false));
        let leader = take_folder(root, true, &stop).unwrap().unwrap();
        assert_eq!(take_folder(root, false, &stop).unwrap_err().code(), "output_in_use");

        let (path, of_thread) = (root.to_owned(), Arc::clone(&stop));
        let standby = std::thread::spawn(move || take_folder(&path, true, &of_thread).unwrap());
        std::thread::sleep(EVERY * 3);
        assert!(!standby.is_finished(), "it waits");
        drop(leader);
        let leader = standby.join().unwrap().unwrap();
        assert_eq!(leader.root(), root);

        stop.store(true, Ordering::Release);
        assert!(take_folder(root, true, &stop).unwrap().is_none());
    }
}
