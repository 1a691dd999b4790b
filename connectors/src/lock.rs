//! One run at a time in an output folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::output::OutputError;

/// Name of the file that is locked. It stays behind: a file that one run removes while another opens it would give each a lock of
/// its own. It says which process has locked it, or was the last that had.
pub const LOCK_FILE: &str = ".fleetdiff.lock";

/// The right to write into an output folder, held until it is dropped or the process ends, however it ends. A process that is
/// stopped but has not ended holds it still. Clones hold the same lock: it lasts until the last of them is dropped.
#[derive(Clone, Debug)]
pub struct FolderLock {
    root: PathBuf,
    _file: Arc<File>,
}

impl FolderLock {
    /// Takes the folder, which is created if it does not exist.
    ///
    /// # Errors
    /// [`OutputError::InUse`]: another run writes into it. [`OutputError::Unwritable`]: the file cannot be created, or the
    /// file system knows no locks.
    pub fn take(root: &Path) -> Result<Self, OutputError> {
        let path = root.join(LOCK_FILE);
        let refused = |error: std::io::Error| OutputError::unwritable(&path, &error);
        std::fs::create_dir_all(root).map_err(refused)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => {
                // NB: only people read it. A full disk must not keep a run from going on.
                drop(file.set_len(0).and_then(|()| file.write_all(this_process().as_bytes())));
                Ok(Self { root: root.to_owned(), _file: Arc::new(file) })
            }
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).ok().filter(|holder| !holder.is_empty());
                let holder = holder.unwrap_or_else(|| "its process is not known".to_owned());
                Err(OutputError::InUse { path: root.display().to_string(), holder })
            }
            Err(TryLockError::Error(error)) => Err(refused(error)),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Which process this is, on which machine if the system says so.
pub(crate) fn this_process() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match machine.trim() {
        "" => format!("process {}", std::process::id()),
        machine => format!("process {} on {machine}", std::process::id()),
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
        let holder = format!("(process {}", std::process::id());
        assert!([root.to_str().unwrap(), &holder].iter().all(|part| second.to_string().contains(part)), "{second}");
        assert_eq!(first.root(), root);
        drop(first);
        FolderLock::take(&root).unwrap();
    }
}
