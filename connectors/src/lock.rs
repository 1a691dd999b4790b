//! One run at a time in an output folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::output::{OutputError, WRITABLE_HINT};

/// Name of the file that is locked. It stays behind, empty: a file that one run removes while another opens it would give
/// each a lock of its own.
pub const LOCK_FILE: &str = ".fleetdiff.lock";

/// The right to write into an output folder, held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder, which is created if it does not exist.
    ///
    /// # Errors
    /// [`OutputError::InUse`]: another run writes into it. [`OutputError::Unwritable`]: the file cannot be created, or the
    /// file system knows no locks.
    pub fn take(root: &Path) -> Result<Self, OutputError> {
        let path = root.join(LOCK_FILE);
        let refused = |error: std::io::Error| OutputError::Unwritable {
            path: path.display().to_string(),
            detail: error.to_string(),
            hint: WRITABLE_HINT,
        };
        std::fs::create_dir_all(root).map_err(refused)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OutputError::InUse { path: root.display().to_string() }),
            Err(TryLockError::Error(error)) => Err(refused(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_run_until_that_ends() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("out");
        let first = FolderLock::take(&root).unwrap();
        let second = FolderLock::take(&root).unwrap_err();
        assert_eq!(second.code(), "output_in_use");
        assert!(second.to_string().contains(root.to_str().unwrap()), "{second}");
        drop(first);
        FolderLock::take(&root).unwrap();
    }
}
