//! The log of decisions: `decisions.jsonl` in the output folder, one decision per line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use fleetdiff_pipeline::rules::decisions::{Decision, DecisionLog, Decisions};
use fleetdiff_schemas::sink::SinkError;

/// Name of the file in an output folder.
pub(crate) const DECISIONS_FILE: &str = "decisions.jsonl";

/// The log cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// It cannot be read or written.
    #[error("cannot use the log of decisions {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// A line is not a decision.
    #[error("line {line} of {} is no decision", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

struct Log {
    path: PathBuf,
    file: File,
}

impl DecisionLog for Log {
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError> {
        let line = format!("{}\n", serde_json::to_string(decision)?);
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| LogError::File { path: self.path.clone(), source }.into())
    }
}

/// The decisions of earlier runs with this output folder, and the log for new ones.
///
/// # Errors
/// [`LogError`]. A last line without its end is no error: the run that wrote it ended before the decision had any effect.
pub(crate) fn open(folder: &Path) -> Result<Decisions, LogError> {
    let path = folder.join(DECISIONS_FILE);
    let failed = |source| LogError::File { path: path.clone(), source };
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let whole = text.rfind('\n').map_or("", |end| text.get(..=end).unwrap_or_default());
    if whole.len() < text.len() {
        file.set_len(u64::try_from(whole.len()).unwrap_or(0)).map_err(failed)?;
    }
    let parsed =
        |(line, text)| serde_json::from_str(text).map_err(|source| LogError::Line { path: path.clone(), line, source });
    let known = (1..).zip(whole.lines()).map(parsed).collect::<Result<Vec<_>, _>>()?;
    Ok(Decisions::new(Box::new(Log { path, file }), known))
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::time::Hop;

    use super::*;

    fn back(offset: i64) -> Decision {
        Decision::Back { source: "t".to_owned(), partition: 1, offset, applied_from: Hop(9) }
    }

    #[test]
    fn what_was_written_is_known_to_the_next_run_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path()).unwrap();
        first.append(&Decision::Idle { source: "t".to_owned(), partition: 1, from_hop: Hop(8) }).unwrap();
        first.append(&back(5)).unwrap();
        let path = folder.path().join(DECISIONS_FILE);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"decision\":\"back\",\"sour").unwrap();

        let second = open(folder.path()).unwrap();
        let mut returns = second.known_returns("t");
        assert_eq!((returns.due(1, 5), returns.due(1, 6)), (Some(Hop(9)), None));
        second.append(&back(7)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(open(folder.path()).unwrap().known_returns("t").due(1, 7), Some(Hop(9)));
    }

    #[test]
    fn a_line_that_is_no_decision_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(DECISIONS_FILE),
            "{\"decision\":\"idle\",\"source\":\"t\",\"partition\":1,\"from_hop\":2}\nx\n",
        )
        .unwrap();
        let failure = open(folder.path()).err().unwrap();
        assert!(failure.to_string().contains("line 2 of"), "{failure}");
    }
}
