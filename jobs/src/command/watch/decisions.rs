//! The log of decisions, one a line: `decisions.jsonl` in the output folder, or commits of an object store.

use std::path::Path;

use fleetdiff_connectors::crash::CrashPoint;
use fleetdiff_connectors::store::Place;
use fleetdiff_pipeline::rules::decisions::limits::LimitsInForce;
use fleetdiff_pipeline::rules::decisions::{Decision, DecisionLog, Decisions};
use fleetdiff_schemas::config::Limits;
use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::HopClock;

use crate::failure::Failure;
use crate::output::lines::{About, Lines};
use crate::output::patience::Patience;

pub(crate) const LOG: About = About { file: "decisions.jsonl", many: "decisions", one: "decision" };

struct Log {
    lines: Lines<Decision>,
    patience: Patience,
}

impl DecisionLog for Log {
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError> {
        CrashPoint::DecisionMade.reached();
        self.patience.insist(LOG.many, || self.lines.append(decision))?;
        CrashPoint::DecisionLogged.reached();
        Ok(())
    }
}

/// The decisions of earlier runs with this output, and the log for new ones. With `as_in`, the log of another folder, they
/// are those of that log, which are copied first.
///
/// # Errors
/// A log cannot be used, or the output has other decisions of its own.
pub(crate) fn open(place: &Place, as_in: Option<&Path>, patience: Patience) -> Result<Decisions, Failure> {
    let (mut lines, mut known) = Lines::open(place, &LOG)?;
    if let Some(other) = as_in {
        let asked: Vec<Decision> = Lines::of_another(other, &LOG)?;
        if !asked.iter().zip(&known).all(|(asked, known)| asked == known) {
            return Err(Failure::usage(
                format!("{} of {place} has other decisions than {}", LOG.file, other.display()),
                "leave out --decisions: an output keeps its own decisions; or give a new output",
            ));
        }
        for decision in asked.into_iter().skip(known.len()) {
            lines.append(&decision)?;
            known.push(decision);
        }
    }
    Ok(Decisions::new(Box::new(Log { lines, patience }), known))
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

    fn opened(folder: &Path, as_in: Option<&Path>) -> Result<Decisions, Failure> {
        open(&folder.into(), as_in, Patience::none())
    }

    fn back(offset: i64) -> Decision {
        Decision::Back { source: "t".to_owned(), partition: 1, offset, applied_from: Hop(9) }
    }

    #[test]
    fn what_was_written_is_known_to_the_next_run_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let first = opened(folder.path(), None).unwrap();
        first.append(&Decision::Idle { source: "t".to_owned(), partition: 1, from_hop: Hop(8), offset: None }).unwrap();
        first.append(&back(5)).unwrap();
        let path = folder.path().join(LOG.file);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"decision\":\"back\",\"sour").unwrap();

        let second = opened(folder.path(), None).unwrap();
        let mut returns = second.known_returns("t");
        let mut due = |offset| returns.due(1, offset).map(|due| due.applied_from);
        assert_eq!((due(5), due(6)), (Some(Hop(9)), None));
        second.append(&back(7)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(opened(folder.path(), None).unwrap().known_returns("t").due(1, 7).unwrap().applied_from, Hop(9));
    }

    #[test]
    fn what_a_failed_write_left_is_taken_off_before_the_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let log = opened(folder.path(), None).unwrap();
        log.append(&back(5)).unwrap();
        let path = folder.path().join(LOG.file);
        // As a disk leaves it that has room for half of the next line.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"decision\":\"ba").unwrap();
        log.append(&back(6)).unwrap();
        let known: Vec<Decision> = Lines::of_another(&path, &LOG).unwrap();
        assert_eq!(known, [back(5), back(6)]);
    }

    #[test]
    fn a_line_that_is_no_decision_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(LOG.file),
            "{\"decision\":\"idle\",\"source\":\"t\",\"partition\":1,\"from_hop\":2}\nx\n",
        )
        .unwrap();
        let failure = Lines::<Decision>::open(&folder.path().into(), &LOG).err().unwrap();
        assert!(failure.to_string().contains("line 2 of"), "{failure}");
        assert!(opened(folder.path(), None).is_err());
    }

    #[test]
    fn decisions_of_another_folder_are_taken_once_and_never_mixed_with_others() {
        let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let path = first.path().join(LOG.file);
        let log = opened(first.path(), None).unwrap();
        (5..8).for_each(|offset| log.append(&back(offset)).unwrap());
        // A run was ended while it copied them.
        opened(second.path(), None).unwrap().append(&back(5)).unwrap();
        for _ in 0..2 {
            opened(second.path(), Some(&path)).unwrap();
            assert_eq!(std::fs::read(second.path().join(LOG.file)).unwrap(), std::fs::read(&path).unwrap());
        }
        // What it decided since is its own.
        opened(second.path(), Some(&path)).unwrap().append(&back(9)).unwrap();
        let mut returns = opened(second.path(), Some(&path)).unwrap().known_returns("t");
        assert_eq!(returns.due(1, 9).unwrap().applied_from, Hop(9));

        opened(third.path(), None).unwrap().append(&back(6)).unwrap();
        let failure = opened(third.path(), Some(&path)).err().unwrap();
        assert!(format!("{failure:?}").contains("has other decisions than"), "{failure:?}");
        let failure = opened(third.path(), Some(&third.path().join("none"))).err().unwrap();
        assert!(format!("{failure:?}").contains("NotFound"), "{failure:?}");
    }
}
