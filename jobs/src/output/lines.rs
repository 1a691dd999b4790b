//! Logs of an output, of one JSON object a line: files in a folder, or commits of an object store. A line is on disk, or committed,
//! before what it says has any effect.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::store::{Place, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A log cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinesError {
    /// It cannot be read or written.
    #[error("cannot use the log of {many} {}", path.display())]
    File {
        /// Of what.
        many: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// A line is something else.
    #[error("line {line} of {} is no {one}", path.display())]
    Line {
        /// What it should be.
        one: &'static str,
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An object store refuses, or belongs to a newer run.
    #[error(transparent)]
    Store(#[from] OutputError),
}

impl LinesError {
    /// Whether the same may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::File { .. } => true,
            Self::Line { .. } => false,
            Self::Store(error) => error.may_pass(),
        }
    }
}

/// What a log is.
#[derive(Debug)]
pub(crate) struct About {
    /// Name of the file in an output folder.
    pub(crate) file: &'static str,
    /// What its lines are, in words.
    pub(crate) many: &'static str,
    /// What one of them is.
    pub(crate) one: &'static str,
}

/// A log to which lines are added.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    about: &'static About,
    kept: Kept,
    of: PhantomData<fn(&T)>,
}

#[derive(Debug)]
enum Kept {
    File(LinesFile),
    Commits(Store),
}

#[derive(Debug)]
struct LinesFile {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    /// The log of an output, and what it holds.
    ///
    /// # Errors
    /// [`LinesError`]. A last line without its end is no error: the run that wrote it ended before it had any effect.
    pub(crate) fn open(place: &Place, about: &'static About) -> Result<(Self, Vec<T>), LinesError> {
        let (kept, known) = match place {
            Place::Folder(folder) => {
                let path = folder.join(about.file);
                let failed = |source| LinesError::File { many: about.many, path: path.clone(), source };
                let (file, whole) = LinesFile::open(path.clone()).map_err(failed)?;
                (Kept::File(file), parsed(whole.lines().map(serde_json::from_str), &path, about)?)
            }
            Place::Store(store) => {
                let lines = store.commits().lines(about.file).into_iter().map(serde_json::from_value);
                let shown = PathBuf::from(format!("{} in the commits of {store}", about.file));
                (Kept::Commits(store.clone()), parsed(lines, &shown, about)?)
            }
        };
        Ok((Self { about, kept, of: PhantomData }, known))
    }

    /// What another run's log holds; a last line without its end is not part of it.
    ///
    /// # Errors
    /// [`LinesError`].
    pub(crate) fn of_another(path: &Path, about: &'static About) -> Result<Vec<T>, LinesError> {
        let failed = |source| LinesError::File { many: about.many, path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        parsed(whole_lines(&text).lines().map(serde_json::from_str), path, about)
    }

    /// Adds a line. After an error it can be added again.
    ///
    /// # Errors
    /// [`LinesError::File`], [`LinesError::Store`].
    pub(crate) fn append(&mut self, one: &T) -> Result<(), LinesError> {
        let About { file, many, .. } = *self.about;
        match &mut self.kept {
            Kept::File(of) => {
                let added = serde_json::to_string(one).map_err(std::io::Error::from);
                let added = added.and_then(|line| of.append(&format!("{line}\n")));
                added.map_err(|source| LinesError::File { many, path: of.path.clone(), source })
            }
            Kept::Commits(store) => {
                let failed =
                    |error: serde_json::Error| LinesError::File { many, path: file.into(), source: error.into() };
                Ok(store.commits().append(file, serde_json::to_value(one).map_err(failed)?)?)
            }
        }
    }
}

impl LinesFile {
    /// The file, which is created if there is none, and its whole lines.
    fn open(path: PathBuf) -> std::io::Result<(Self, String)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = whole_lines(&text).len();
        let length = u64::try_from(whole).unwrap_or(0);
        if whole < text.len() {
            file.set_len(length)?;
            text.truncate(whole);
        }
        Ok((Self { path, file, length }, text))
    }

    fn append(&mut self, line: &str) -> std::io::Result<()> {
        // What failed before may have left a part of a line.
        if self.file.metadata()?.len() > self.length {
            self.file.set_len(self.length)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.length += u64::try_from(line.len()).unwrap_or(0);
        Ok(())
    }
}

fn whole_lines(text: &str) -> &str {
    text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default()
}

fn parsed<T>(
    lines: impl Iterator<Item = serde_json::Result<T>>,
    path: &Path,
    about: &About,
) -> Result<Vec<T>, LinesError> {
    let named = |(line, parsed): (usize, serde_json::Result<T>)| {
        parsed.map_err(|source| LinesError::Line { one: about.one, path: path.to_owned(), line, source })
    };
    (1..).zip(lines).map(named).collect()
}
