//! A folder of an object store in which nothing is ever overwritten.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::{GetOptions, ListResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions, local::LocalFileSystem};
use tokio::runtime::{Builder, Runtime};

use super::encoding::FileMetadata;
use crate::output::{DIFFERS_HINT, OutputError, READABLE_HINT, WRITABLE_HINT};

/// An object store and the thread that waits for it.
pub(crate) struct Folder {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// The local folder, for messages; empty for other stores.
    root: PathBuf,
}

impl Folder {
    /// A local folder, created if it does not exist, and checked by a write: it is better to fail before the work than
    /// after it.
    pub(crate) fn create(root: &Path) -> Result<Self, OutputError> {
        let refused = |error: std::io::Error| unwritable(root.display().to_string(), &error);
        std::fs::create_dir_all(root).map_err(refused)?;
        let trial = root.join(".fleetdiff-trial");
        std::fs::write(&trial, []).map_err(refused)?;
        std::fs::remove_file(&trial).map_err(refused)?;
        let store = LocalFileSystem::new_with_prefix(root).map_err(|error| unwritable(display(root), &error))?;
        Self::new(Arc::new(store.with_fsync(true).with_automatic_cleanup(true)), root)
    }

    /// A local folder to read.
    pub(super) fn open(root: &Path) -> Result<Self, OutputError> {
        let store = LocalFileSystem::new_with_prefix(root).map_err(|error| unreadable(display(root), &error))?;
        Self::new(Arc::new(store), root)
    }

    /// Any store.
    pub(super) fn of_store(store: Arc<dyn ObjectStore>) -> Result<Self, OutputError> {
        Self::new(store, Path::new(""))
    }

    fn new(store: Arc<dyn ObjectStore>, root: &Path) -> Result<Self, OutputError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unwritable(display(root), &error))?;
        Ok(Self { store, runtime, root: root.to_owned() })
    }

    /// A path below the folder as a message shows it.
    pub(crate) fn display(&self, path: &str) -> String {
        display(&self.root.join(path))
    }

    /// Creates a file atomically; `false` if it already existed with equal bytes.
    pub(crate) fn create_once(&self, path: &str, bytes: Bytes) -> Result<bool, OutputError> {
        let location = object_store::path::Path::from(path);
        let options = PutOptions::from(PutMode::Create);
        match self.runtime.block_on(self.store.put_opts(&location, bytes.clone().into(), options)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => self.compare(path, &bytes).map(|()| false),
            Err(error) => Err(unwritable(self.display(path), &error)),
        }
    }

    fn compare(&self, path: &str, bytes: &Bytes) -> Result<(), OutputError> {
        let existing = self.read(path)?;
        if existing == bytes {
            return Ok(());
        }
        let difference = FileMetadata::difference(&existing, bytes);
        Err(OutputError::Nondeterministic { path: self.display(path), difference, hint: DIFFERS_HINT })
    }

    /// The bytes of a file.
    pub(super) fn read(&self, path: &str) -> Result<Bytes, OutputError> {
        let location = object_store::path::Path::from(path);
        let refused = |error| unreadable(self.display(path), &error);
        self.runtime.block_on(async {
            let found = self.store.get_opts(&location, GetOptions::default()).await.map_err(refused)?;
            found.bytes().await.map_err(refused)
        })
    }

    /// The bytes of a file, if there is one.
    pub(crate) fn read_if_there(&self, path: &str) -> Result<Option<Bytes>, OutputError> {
        let location = object_store::path::Path::from(path);
        match self.runtime.block_on(self.store.head(&location)) {
            Ok(_) => self.read(path).map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreadable(self.display(path), &error)),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), OutputError> {
        let location = object_store::path::Path::from(path);
        match self.runtime.block_on(self.store.delete(&location)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unwritable(self.display(path), &error)),
        }
    }

    /// Paths of the files of a table, by time.
    pub(super) fn files_of(&self, table: &str) -> Result<Vec<String>, OutputError> {
        Ok(self.sizes_of(table)?.into_iter().map(|(path, _)| path).collect())
    }

    /// The same with their sizes.
    pub(crate) fn sizes_of(&self, table: &str) -> Result<Vec<(String, u64)>, OutputError> {
        let refused = |error| unreadable(self.display(table), &error);
        let list = |prefix: object_store::path::Path| {
            self.runtime.block_on(self.store.list_with_delimiter(Some(&prefix))).map_err(refused)
        };
        let mut files = Vec::new();
        let mut folders = vec![object_store::path::Path::from(table)];
        while let Some(folder) = folders.pop() {
            let ListResult { common_prefixes, objects, .. } = list(folder)?;
            folders.extend(common_prefixes);
            let sized = objects.into_iter().map(|object| (object.location.to_string(), object.size));
            files.extend(sized.filter(|(path, _)| path.ends_with(".parquet")));
        }
        files.sort();
        Ok(files)
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn unwritable(path: String, error: &dyn std::error::Error) -> OutputError {
    OutputError::Unwritable { path, detail: root_cause(error), hint: WRITABLE_HINT }
}

fn unreadable(path: String, error: &dyn std::error::Error) -> OutputError {
    OutputError::Unreadable { path, detail: root_cause(error), hint: READABLE_HINT }
}

/// The innermost error: the outer ones repeat it, and the path, which the message already names.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
