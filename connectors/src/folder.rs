//! A folder in which nothing is ever overwritten: on a local disk, or in an object store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as Location;
use object_store::{
    GetOptions, ListResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions, WriteMultipart, local::LocalFileSystem,
};
use tokio::runtime::{Builder, Runtime};

use crate::output::{DIFFERS_HINT, OutputError, READABLE_HINT, STORE_HINT, WRITABLE_HINT};
use crate::parquet::encoding::FileMetadata;
use crate::store::Place;

/// A larger object is sent in parts of this size, the least that S3 takes: each must be through within the time of one request.
const PART_BYTES: usize = 5 << 20;
/// Parts that are on their way at a time.
const PARTS_AT_A_TIME: usize = 2;

/// An object store and the thread that waits for it.
pub(crate) struct Folder {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// How messages name it.
    root: PathBuf,
    hints: Hints,
}

/// What to do about what the store refuses.
struct Hints {
    write: &'static str,
    read: &'static str,
}

impl Folder {
    /// A folder to write. A local one is created if it does not exist, and checked by a write: it is better to fail before the work
    /// than after it.
    pub(crate) fn create(place: &Place) -> Result<Self, OutputError> {
        let root = match place {
            Place::Folder(root) => root,
            Place::Store(store) => return Ok(store.folder()),
        };
        let refused = |error: std::io::Error| unwritable(root.display().to_string(), &error, WRITABLE_HINT);
        std::fs::create_dir_all(root).map_err(refused)?;
        let trial = root.join(".fleetdiff-trial");
        std::fs::write(&trial, []).map_err(refused)?;
        std::fs::remove_file(&trial).map_err(refused)?;
        let store = LocalFileSystem::new_with_prefix(root);
        let store = store.map_err(|error| unwritable(display(root), &error, WRITABLE_HINT))?;
        Self::local(store.with_fsync(true).with_automatic_cleanup(true), root)
    }

    /// A folder to read.
    pub(crate) fn open(place: &Place) -> Result<Self, OutputError> {
        let root = match place {
            Place::Folder(root) => root,
            Place::Store(store) => return Ok(store.folder()),
        };
        let store = LocalFileSystem::new_with_prefix(root);
        Self::local(store.map_err(|error| unreadable(display(root), &error, READABLE_HINT))?, root)
    }

    fn local(store: LocalFileSystem, root: &Path) -> Result<Self, OutputError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unwritable(display(root), &error, WRITABLE_HINT))?;
        let hints = Hints { write: WRITABLE_HINT, read: READABLE_HINT };
        Ok(Self { store: Arc::new(store), runtime: Arc::new(runtime), root: root.to_owned(), hints })
    }

    /// An object store, and what waits for it.
    pub(crate) fn of_store(store: Arc<dyn ObjectStore>, runtime: Arc<Runtime>, shown: &str) -> Self {
        let hints = Hints { write: STORE_HINT, read: STORE_HINT };
        Self { store, runtime, root: PathBuf::from(shown), hints }
    }

    /// A path below the folder as a message shows it; an empty one is the folder.
    pub(crate) fn display(&self, path: &str) -> String {
        if path.is_empty() { display(&self.root) } else { display(&self.root.join(path)) }
    }

    /// Something that is there and cannot be what it should.
    pub(crate) fn unreadable(&self, path: &str, error: &(dyn std::error::Error + 'static)) -> OutputError {
        unreadable(self.display(path), error, self.hints.read)
    }

    /// Something that could not be written.
    pub(crate) fn unwritable(&self, path: &str, error: &(dyn std::error::Error + 'static)) -> OutputError {
        unwritable(self.display(path), error, self.hints.write)
    }

    /// Creates a file atomically; `false` if there is one, which stays as it is.
    pub(crate) fn create_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, OutputError> {
        let options = PutOptions::from(PutMode::Create);
        match self.runtime.block_on(self.store.put_opts(&Location::from(path), bytes.into(), options)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.unwritable(path, &error)),
        }
    }

    /// Creates a Parquet file atomically; `false` if it already existed with equal bytes.
    pub(crate) fn create_once(&self, path: &str, bytes: Bytes) -> Result<bool, OutputError> {
        let created = self.create_if_absent(path, bytes.clone())?;
        if !created {
            self.compare(path, &bytes)?;
        }
        Ok(created)
    }

    fn compare(&self, path: &str, bytes: &Bytes) -> Result<(), OutputError> {
        let existing = self.read(path)?;
        if existing == bytes {
            return Ok(());
        }
        let difference = FileMetadata::difference(&existing, bytes);
        Err(OutputError::Nondeterministic { path: self.display(path), difference, hint: DIFFERS_HINT })
    }

    /// Writes a file of any size, whose name nobody else uses. It is there whole or not at all.
    pub(crate) fn upload(&self, path: &str, bytes: &Bytes) -> Result<(), OutputError> {
        let location = Location::from(path);
        let sent = self.runtime.block_on(async {
            if bytes.len() <= PART_BYTES {
                return self.store.put(&location, bytes.clone().into()).await.map(drop);
            }
            let mut upload =
                WriteMultipart::new_with_chunk_size(self.store.put_multipart(&location).await?, PART_BYTES);
            let mut left = bytes.clone();
            while !left.is_empty() {
                upload.wait_for_capacity(PARTS_AT_A_TIME).await?;
                upload.put(left.split_to(PART_BYTES.min(left.len())));
            }
            upload.finish().await.map(drop)
        });
        sent.map_err(|error| self.unwritable(path, &error))
    }

    /// The bytes of a file.
    pub(crate) fn read(&self, path: &str) -> Result<Bytes, OutputError> {
        self.get(path).map_err(|error| self.unreadable(path, &error))
    }

    /// The bytes of a file, if there is one.
    pub(crate) fn read_if_there(&self, path: &str) -> Result<Option<Bytes>, OutputError> {
        match self.get(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unreadable(path, &error)),
        }
    }

    /// The bytes of some files, asked for at the same time.
    pub(crate) fn read_all(&self, paths: &[String]) -> Result<Vec<Bytes>, OutputError> {
        self.runtime.block_on(async {
            let ask = |path: &String| tokio::spawn(get(Arc::clone(&self.store), Location::from(path.as_str())));
            let asked: Vec<_> = paths.iter().map(ask).collect();
            let mut files = Vec::with_capacity(paths.len());
            for (path, answer) in paths.iter().zip(asked) {
                let answer = answer.await.map_err(|error| self.unreadable(path, &error))?;
                files.push(answer.map_err(|error| self.unreadable(path, &error))?);
            }
            Ok(files)
        })
    }

    fn get(&self, path: &str) -> Result<Bytes, object_store::Error> {
        self.runtime.block_on(get(Arc::clone(&self.store), Location::from(path)))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), OutputError> {
        match self.runtime.block_on(self.store.delete(&Location::from(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.unwritable(path, &error)),
        }
    }

    /// Names of the files in a folder, sorted; none if there is no such folder.
    pub(crate) fn names_in(&self, folder: &str) -> Result<Vec<String>, OutputError> {
        let listed = self.list(&Location::from(folder), folder)?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Paths of the files of a table, by time.
    pub(crate) fn files_of(&self, table: &str) -> Result<Vec<String>, OutputError> {
        Ok(self.sizes_of(table)?.into_iter().map(|(path, _)| path).collect())
    }

    /// The same with their sizes.
    pub(crate) fn sizes_of(&self, table: &str) -> Result<Vec<(String, u64)>, OutputError> {
        let mut files = Vec::new();
        let mut folders = vec![Location::from(table)];
        while let Some(folder) = folders.pop() {
            let ListResult { common_prefixes, objects, .. } = self.list(&folder, table)?;
            folders.extend(common_prefixes);
            let sized = objects.into_iter().map(|object| (object.location.to_string(), object.size));
            files.extend(sized.filter(|(path, _)| path.ends_with(".parquet")));
        }
        files.sort();
        Ok(files)
    }

    fn list(&self, folder: &Location, shown: &str) -> Result<ListResult, OutputError> {
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(folder)));
        listed.map_err(|error| self.unreadable(shown, &error))
    }
}

async fn get(store: Arc<dyn ObjectStore>, path: Location) -> Result<Bytes, object_store::Error> {
    store.get_opts(&path, GetOptions::default()).await?.bytes().await
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn unwritable(path: String, error: &dyn std::error::Error, hint: &'static str) -> OutputError {
    OutputError::Unwritable { path, detail: root_cause(error), hint }
}

fn unreadable(path: String, error: &dyn std::error::Error, hint: &'static str) -> OutputError {
    OutputError::Unreadable { path, detail: root_cause(error), hint }
}

/// The innermost error: the outer ones repeat it, and the path, which the message already names.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
