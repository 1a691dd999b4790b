//! Logs in an output folder, of one JSON object a line. A line is on disk before what it says has any effect.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

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
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    of: PhantomData<fn(&T)>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    /// The log of a folder, and what it holds.
    ///
    /// # Errors
    /// [`LinesError`]. A last line without its end is no error: the run that wrote it ended before it had any effect.
    pub(crate) fn open(folder: &Path, about: &'static About) -> Result<(Self, Vec<T>), LinesError> {
        let path = folder.join(about.file);
        let failed = |source| LinesError::File { many: about.many, path: path.clone(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = whole_lines(&text);
        let length = u64::try_from(whole.len()).unwrap_or(0);
        if whole.len() < text.len() {
            file.set_len(length).map_err(failed)?;
        }
        let known = parsed(whole, &path, about)?;
        Ok((Self { about, path, file, length, of: PhantomData }, known))
    }

    /// What another run's log holds; a last line without its end is not part of it.
    ///
    /// # Errors
    /// [`LinesError`].
    pub(crate) fn of_another(path: &Path, about: &'static About) -> Result<Vec<T>, LinesError> {
        let failed = |source| LinesError::File { many: about.many, path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        parsed(whole_lines(&text), path, about)
    }

    /// Adds a line. After an error it can be added again.
    ///
    /// # Errors
    /// [`LinesError::File`].
    pub(crate) fn append(&mut self, one: &T) -> Result<(), LinesError> {
        self.write(one).map_err(|source| LinesError::File { many: self.about.many, path: self.path.clone(), source })
    }

    fn write(&mut self, one: &T) -> std::io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(one)?);
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

fn parsed<T: DeserializeOwned>(lines: &str, path: &Path, about: &About) -> Result<Vec<T>, LinesError> {
    let parse = |(line, text)| {
        let wrong = |source| LinesError::Line { one: about.one, path: path.to_owned(), line, source };
        serde_json::from_str(text).map_err(wrong)
    };
    (1..).zip(lines.lines()).map(parse).collect()
}
