//! The log of commits of an object store: `commits/NNNNNNNNNN.json`, one object a commit, each created only if it is absent.
//!
//! A commit is what must have one order: that a run has taken the store, a line of a log that has effect from then on, through when a
//! run writes rows, and which checkpoint is the last. Whoever takes the store writes the next number, so an older run, which knows
//! nothing of that, finds the number of its own next commit taken, and ends. What it still writes until then it had announced, and the
//! newer one decides nothing for that time. Commits that nobody needs any more are removed, but never those by which a store is taken:
//! the number after the last commit of an older run is never free again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::folder::Folder;
use crate::lock::this_process;
use crate::output::{OutputError, STORE_HINT};

/// Name of the folder.
pub const COMMITS: &str = "commits";
/// The layout of a commit.
const FORMAT: u32 = 1;
const ENDING: &str = ".json";
const OVERWRITES: &str = "the store has overwritten an object that was to be created only if it is absent (If-None-Match), so it cannot say whose it is";

/// One object.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    format: u32,
    /// Which run has made it: they are counted from 1.
    generation: u64,
    /// Its process, in words.
    process: String,
    /// A number of its own.
    run: String,
    #[serde(flatten)]
    commit: Commit,
}

/// What is committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "commit", rename_all = "snake_case")]
enum Commit {
    /// A run has taken the store.
    Taken,
    /// A line of a log.
    Line { log: String, line: Value },
    /// The run writes rows of before this instant, in nanoseconds since 1970.
    Rows { before: i64 },
    /// The last checkpoint is another one.
    Checkpoint(Named),
}

/// A checkpoint that is committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// Its object.
    pub(crate) file: String,
    /// Everything before this instant is in it, in seconds since 1970.
    pub(crate) through: i64,
}

/// The log of commits of one store.
pub struct Commits {
    folder: Folder,
    /// A number that no other run has.
    run: String,
    state: Mutex<State>,
    /// Who has taken the store since this run had it.
    superseded_by: OnceLock<String>,
}

#[derive(Default)]
struct State {
    /// The number of the next commit.
    next: u64,
    /// The latest generation.
    generation: u64,
    /// This run's generation, once it has taken the store.
    own: Option<u64>,
    /// Lines of each log, in order.
    lines: BTreeMap<String, Vec<Value>>,
    /// Those whose commits are not removed, by number.
    checkpoints: BTreeMap<u64, Named>,
    /// Before when rows are written, by number, of commits that are not removed.
    rows: BTreeMap<u64, i64>,
}

impl State {
    /// Takes what the commit of this number says.
    fn know(&mut self, number: u64, entry: Entry) {
        self.next = self.next.max(number + 1);
        self.generation = self.generation.max(entry.generation);
        match entry.commit {
            Commit::Taken => {}
            Commit::Rows { before } => drop(self.rows.insert(number, before)),
            Commit::Line { log, line } => self.lines.entry(log).or_default().push(line),
            Commit::Checkpoint(named) => drop(self.checkpoints.insert(number, named)),
        }
    }
}

impl Commits {
    /// Reads the log.
    ///
    /// # Errors
    /// [`OutputError::Unreadable`]: the store does not answer, or a commit is something else.
    pub(crate) fn open(folder: Folder) -> Result<Self, OutputError> {
        let mut number = [0; 8];
        let drawn = getrandom::fill(&mut number);
        drawn.map_err(|error| folder.unreadable(COMMITS, &error))?;
        let commits = Self {
            folder,
            run: format!("{:016x}", u64::from_le_bytes(number)),
            state: Mutex::new(State { next: 1, ..State::default() }),
            superseded_by: OnceLock::new(),
        };
        commits.read_new(&mut commits.lock())?;
        Ok(commits)
    }

    /// Takes the store for this run: every older one ends at its next commit. Gives its generation; a run that has it already keeps it.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`], [`OutputError::Unreadable`]: the store refuses, or cannot create an object only if it is absent.
    pub fn take(&self) -> Result<u64, OutputError> {
        self.generation(&mut self.lock())
    }

    /// Makes sure that no newer run has taken the store, as far as this one knows.
    ///
    /// # Errors
    /// [`OutputError::Superseded`].
    pub fn check(&self) -> Result<(), OutputError> {
        match self.superseded_by.get() {
            None => Ok(()),
            Some(by) => Err(OutputError::Superseded { path: self.folder.display(""), by: by.clone() }),
        }
    }

    /// The run is about to write rows of before this instant.
    ///
    /// # Errors
    /// [`OutputError::Superseded`]; [`OutputError::Unwritable`], [`OutputError::Unreadable`]: the store refuses.
    pub fn announce(&self, before: Nanos) -> Result<(), OutputError> {
        if self.announced() >= Some(before) {
            return self.check();
        }
        self.commit(&Commit::Rows { before: before.0 })?;
        let old: Vec<u64> = self.lock().rows.keys().rev().skip(1).copied().collect();
        old.into_iter().try_for_each(|number| self.remove(number))
    }

    /// Before when this run or an earlier one may have written rows.
    pub fn announced(&self) -> Option<Nanos> {
        self.lock().rows.values().max().map(|&before| Nanos(before))
    }

    /// What a log holds: its lines, as JSON.
    pub fn lines(&self, log: &str) -> Vec<Value> {
        self.lock().lines.get(log).cloned().unwrap_or_default()
    }

    /// Adds a line to a log; it is committed when this returns. After an error the same line can be added again.
    ///
    /// # Errors
    /// [`OutputError::Superseded`]; [`OutputError::Unwritable`], [`OutputError::Unreadable`]: the store refuses.
    pub fn append(&self, log: &str, line: Value) -> Result<(), OutputError> {
        self.commit(&Commit::Line { log: log.to_owned(), line })
    }

    /// A checkpoint is the last one now.
    pub(crate) fn commit_checkpoint(&self, named: Named) -> Result<(), OutputError> {
        self.commit(&Commit::Checkpoint(named))
    }

    /// All that are committed and not removed, the last one last.
    pub(crate) fn checkpoints(&self) -> Vec<(u64, Named)> {
        self.lock().checkpoints.iter().map(|(number, named)| (*number, named.clone())).collect()
    }

    /// Removes a commit that a later one has replaced: of a checkpoint, or of rows.
    pub(crate) fn remove(&self, number: u64) -> Result<(), OutputError> {
        self.folder.remove(&path_of(number))?;
        let state = &mut *self.lock();
        state.checkpoints.remove(&number);
        state.rows.remove(&number);
        Ok(())
    }

    /// The generation of this run, which takes the store if it has not.
    fn generation(&self, state: &mut State) -> Result<u64, OutputError> {
        while state.own.is_none() {
            self.check()?;
            self.read_new(state)?;
            let (number, generation) = (state.next, state.generation + 1);
            if self.put(number, generation, &Commit::Taken)?.is_some_and(|there| there.run != self.run) {
                continue;
            }
            if self.put(number, generation, &Commit::Taken)?.is_none() {
                return Err(self.refused(OVERWRITES));
            }
            state.next = number + 1;
            let since = self.read_new(state)?;
            // NB: some numbers become free again. If this was one, an older run has gone beyond it, and does not know of it.
            if since.iter().any(|entry| entry.generation < generation) {
                continue;
            }
            state.own = Some(generation);
            since.first().into_iter().for_each(|newer| self.superseded(newer));
        }
        Ok(state.own.unwrap_or(0))
    }

    fn superseded(&self, Entry { generation, process, .. }: &Entry) {
        self.superseded_by.get_or_init(|| format!("another run of fleetdiff, generation {generation} ({process})"));
    }

    fn commit(&self, commit: &Commit) -> Result<(), OutputError> {
        let state = &mut *self.lock();
        let generation = self.generation(state)?;
        loop {
            self.check()?;
            let number = state.next;
            let Some(there) = self.put(number, generation, commit)? else {
                state.know(number, self.entry(generation, commit));
                return Ok(());
            };
            if there.run != self.run {
                self.superseded(&there);
                continue;
            }
            // This one, or an earlier one of this run, of which it was not heard that it is there.
            let is_this = there.commit == *commit;
            state.know(number, there);
            if is_this {
                return Ok(());
            }
        }
    }

    fn entry(&self, generation: u64, commit: &Commit) -> Entry {
        let (run, commit) = (self.run.clone(), commit.clone());
        Entry { format: FORMAT, generation, process: this_process(), run, commit }
    }

    /// Creates a commit; gives the one that has its number already.
    fn put(&self, number: u64, generation: u64, commit: &Commit) -> Result<Option<Entry>, OutputError> {
        let bytes = serde_json::to_vec(&self.entry(generation, commit));
        let bytes = bytes.map_err(|error| self.refused(&error.to_string()))?;
        let path = path_of(number);
        if self.folder.create_if_absent(&path, Bytes::from(bytes))? {
            return Ok(None);
        }
        self.parsed(&path, &self.folder.read(&path)?).map(Some)
    }

    /// Reads the commits that are not known yet, and gives them.
    fn read_new(&self, state: &mut State) -> Result<Vec<Entry>, OutputError> {
        let mut new = Vec::new();
        for name in self.folder.names_in(COMMITS)? {
            let number = name.strip_suffix(ENDING).and_then(|number| number.parse::<u64>().ok());
            let Some(number) = number.filter(|number| *number >= state.next) else { continue };
            // NB: one that is gone by now is one that nobody needs.
            if let Some(bytes) = self.folder.read_if_there(&path_of(number))? {
                let entry = self.parsed(&path_of(number), &bytes)?;
                state.know(number, entry.clone());
                new.push(entry);
            }
            state.next = number + 1;
        }
        Ok(new)
    }

    fn parsed(&self, path: &str, bytes: &[u8]) -> Result<Entry, OutputError> {
        let entry: Entry = serde_json::from_slice(bytes).map_err(|error| self.folder.unreadable(path, &error))?;
        if entry.format == FORMAT {
            return Ok(entry);
        }
        Err(OutputError::UnsupportedVersion {
            path: self.folder.display(path),
            found: entry.format.to_string(),
            expected: "1",
        })
    }

    fn refused(&self, detail: &str) -> OutputError {
        OutputError::Unwritable { path: self.folder.display(COMMITS), detail: detail.to_owned(), hint: STORE_HINT }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn path_of(number: u64) -> String {
    format!("{COMMITS}/{number:010}{ENDING}")
}

#[cfg(test)]
mod tests;
