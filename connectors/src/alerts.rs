//! Alerts as a file: one CloudEvent in structured mode per line.
//!
//! The file follows the same law as the tables: the same rows give the same bytes, and nothing is overwritten. A run
//! that finds an existing file compares its alerts with the file instead of writing, and appends after its end. So an
//! interrupted run can be repeated, and a run with a different result stops.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::time::Nanos;

use crate::crash::CrashPoint;
use crate::output::{DIFFERS_HINT, OutputError};

/// Name of the file in an output folder.
pub const ALERTS_FILE: &str = "alerts.jsonl";

/// The file of alerts of one run, from its first alert on.
#[derive(Debug)]
pub struct AlertLog {
    path: PathBuf,
    file: File,
    /// What an earlier run wrote.
    existing: Vec<u8>,
    /// Bytes of alerts of this run so far.
    position: usize,
    /// Number of alerts of this run so far.
    alerts: u64,
}

impl AlertLog {
    /// The file [`ALERTS_FILE`] in an output folder, created together with the folder if they do not exist.
    ///
    /// # Errors
    /// [`OutputError::Unwritable`]: the file cannot be created, read or written.
    pub fn create(root: &Path) -> Result<Self, OutputError> {
        let path = root.join(ALERTS_FILE);
        let refused = |error| OutputError::unwritable(&path, &error);
        std::fs::create_dir_all(root).map_err(|error| OutputError::unwritable(root, &error))?;
        let file = OpenOptions::new().append(true).create(true).open(&path).map_err(refused)?;
        let existing = std::fs::read(&path).map_err(refused)?;
        Ok(Self { path, file, existing, position: 0, alerts: 0 })
    }

    /// The time of the last alert that an earlier run wrote, whole or in part.
    pub fn through(&self) -> Option<Nanos> {
        // NB: in a line, a quote within a text is escaped, so the first of these is the event's own.
        let time_of = |line: &str| {
            let (_, rest) = line.split_once("\"time\":\"")?;
            let at: jiff::Timestamp = rest.split_once('"')?.0.parse().ok()?;
            i64::try_from(at.as_nanosecond()).ok().map(Nanos)
        };
        // What was cut off before its time was announced to nobody.
        String::from_utf8_lossy(&self.existing).lines().rev().take(2).find_map(time_of)
    }

    /// Writes the alerts of one hop (or of several later hops), ordered by sequence, key, type and id. They are on disk
    /// when it returns. After [`OutputError::Unwritable`] the same can be written again.
    ///
    /// # Errors
    /// [`OutputError::Nondeterministic`]: an earlier run had another alert in this place.
    /// [`OutputError::Unwritable`]: the disk refused.
    pub fn append(&mut self, alerts: &[Alert]) -> Result<(), OutputError> {
        let mut ordered: Vec<&Alert> = alerts.iter().collect();
        ordered.sort_by_key(|alert| (alert.sequence, &alert.key, alert.alert_type, &alert.id));
        if ordered.is_empty() {
            return Ok(());
        }
        let before = self.position();
        self.append_lines(&ordered).inspect_err(|_| (self.position, self.alerts) = before)
    }

    fn append_lines(&mut self, alerts: &[&Alert]) -> Result<(), OutputError> {
        let refused = |error| OutputError::unwritable(&self.path, &error);
        let kept = u64::try_from(self.existing.len().max(self.position)).unwrap_or(u64::MAX);
        // What failed before may have left lines, and a part of one.
        if self.file.metadata().map_err(refused)?.len() > kept {
            self.file.set_len(kept).map_err(refused)?;
        }
        alerts.iter().try_for_each(|alert| self.append_line(&format!("{}\n", alert.line())))?;
        self.file.sync_data().map_err(|error| OutputError::unwritable(&self.path, &error))
    }

    /// Where the next alert will be, for a run that goes on from here: bytes and number of alerts before it.
    pub fn position(&self) -> (usize, u64) {
        (self.position, self.alerts)
    }

    /// Goes on where an earlier run was.
    ///
    /// # Errors
    /// [`OutputError::Nondeterministic`]: the file is shorter than it was then.
    pub fn go_on_at(&mut self, (position, alerts): (usize, u64)) -> Result<(), OutputError> {
        if self.existing.len() < position {
            return Err(self.differs(format!("it is shorter than when the checkpoint was taken: {alerts} alerts")));
        }
        (self.position, self.alerts) = (position, alerts);
        Ok(())
    }

    /// Ends the run.
    ///
    /// # Errors
    /// [`OutputError::Nondeterministic`]: an earlier run had more alerts than this one.
    pub fn finish(self) -> Result<(), OutputError> {
        if self.existing.len() <= self.position {
            return Ok(());
        }
        Err(self.differs(format!("it goes on after the {} alerts of this run", self.alerts)))
    }

    /// One write per line, so that a reader that follows the file sees whole lines.
    fn append_line(&mut self, line: &str) -> Result<(), OutputError> {
        let written = self.existing.get(self.position..).unwrap_or_default();
        let common = written.len().min(line.len());
        let (same, missing) = line.as_bytes().split_at(common);
        if !written.starts_with(same) {
            return Err(self.differs(format!("this run has another alert in line {}", self.alerts + 1)));
        }
        if !missing.is_empty() {
            self.file.write_all(missing).map_err(|error| OutputError::unwritable(&self.path, &error))?;
            CrashPoint::AlertLine.reached();
        }
        self.position += line.len();
        self.alerts += 1;
        Ok(())
    }

    fn differs(&self, difference: String) -> OutputError {
        OutputError::Nondeterministic { path: self.path.display().to_string(), difference, hint: DIFFERS_HINT }
    }
}
