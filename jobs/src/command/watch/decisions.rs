//! The log of decisions: `decisions.jsonl` in the output folder, one decision per line.

use std::path::Path;

use fleetdiff_connectors::crash::CrashPoint;
use fleetdiff_pipeline::rules::decisions::limits::LimitsInForce;
use fleetdiff_pipeline::rules::decisions::{Decision, DecisionLog, Decisions};
use fleetdiff_schemas::config::Limits;
use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::HopClock;

use crate::output::lines::{About, Lines, LinesError};

const LOG: About = About { file: "decisions.jsonl", many: "decisions", one: "decision" };

struct Log(Lines<Decision>);

impl DecisionLog for Log {
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError> {
        CrashPoint::DecisionMade.reached();
        self.0.append(decision)?;
        CrashPoint::DecisionLogged.reached();
        Ok(())
    }
}

/// The decisions of earlier runs with this output folder, and the log for new ones.
///
/// # Errors
/// [`LinesError`].
pub(crate) fn open(folder: &Path) -> Result<Decisions, LinesError> {
    let (log, known) = Lines::open(folder, &LOG)?;
    Ok(Decisions::new(Box::new(Log(log)), known))
}

/// Changes limits while the service runs.
pub(crate) struct Limiter {
    pub(crate) limits: LimitsInForce,
    pub(crate) decisions: Decisions,
    pub(crate) clock: HopClock,
}

impl Limiter {
    /// These hold from now on, for records that are not counted yet.
    ///
    /// # Errors
    /// The log cannot be written; nothing has changed then.
    pub(crate) fn change(&self, limits: Limits) -> Result<(), SinkError> {
        if let Some(from) = self.limits.change(limits, &self.decisions)? {
            let from = rfc3339(self.clock.start_of(from));
            tracing::info!("limits have changed: they hold for what is counted from {from} on, by event time");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use fleetdiff_schemas::time::Hop;

    use super::*;

    fn back(offset: i64) -> Decision {
        Decision::Back { source: "t".to_owned(), partition: 1, offset, applied_from: Hop(9) }
    }

    #[test]
    fn what_was_written_is_known_to_the_next_run_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path()).unwrap();
        first.append(&Decision::Idle { source: "t".to_owned(), partition: 1, from_hop: Hop(8), offset: None }).unwrap();
        first.append(&back(5)).unwrap();
        let path = folder.path().join(LOG.file);
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
            folder.path().join(LOG.file),
            "{\"decision\":\"idle\",\"source\":\"t\",\"partition\":1,\"from_hop\":2}\nx\n",
        )
        .unwrap();
        let failure = open(folder.path()).err().unwrap();
        assert!(failure.to_string().contains("line 2 of"), "{failure}");
    }
}
