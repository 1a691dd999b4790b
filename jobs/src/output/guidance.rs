//! What the configuration adds to alerts, by event time, so that the same alert always has the same text.
//!
//! The rules of owners, runbooks and links may change while a service runs, and between two runs. A run computes its alerts again
//! from the beginning of the topic, so it must know what applied when: the log `guidance.jsonl` of the output has a line for each
//! change. A change applies to alerts that come after all that have been announced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetdiff_connectors::store::Place;
use fleetdiff_schemas::alert::Guidance;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use super::lines::{About, Lines, LinesError};
use crate::configuration::GuidanceTexts;

pub(crate) const LOG: About =
    About { file: "guidance.jsonl", many: "owners, runbooks and links", one: "change of owners, runbooks and links" };

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    /// Nanoseconds since 1970: alerts of later times have these texts; all, if there is none.
    after: Option<i64>,
    #[serde(flatten)]
    texts: GuidanceTexts,
}

#[derive(Debug, Default)]
struct Log {
    /// Where changes are kept, if they are.
    lines: Option<Lines<Change>>,
    /// What applies after which time, in order.
    changes: Vec<(Option<i64>, Arc<Guidance>)>,
    texts: Option<GuidanceTexts>,
    /// The time through which alerts have been made or announced.
    through: Option<i64>,
}

/// What alerts say besides their rows, by event time. Clones are handles to the same log.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuidanceLog(Arc<Mutex<Log>>);

impl GuidanceLog {
    /// The same for every time, kept nowhere.
    pub(crate) fn always(texts: &GuidanceTexts) -> Self {
        let changes = vec![(None, Arc::new(texts.read()))];
        Self(Arc::new(Mutex::new(Log { changes, ..Log::default() })))
    }

    /// The log of an output, in which alerts through this time have been announced; from then on these texts apply.
    ///
    /// # Errors
    /// [`LinesError`].
    pub(crate) fn open(place: &Place, texts: &GuidanceTexts, announced: Option<Nanos>) -> Result<Self, LinesError> {
        let (lines, known) = Lines::open(place, &LOG)?;
        let mut log = Log { lines: Some(lines), through: announced.map(|at| at.0), ..Log::default() };
        known.into_iter().for_each(|change| log.know(change));
        let log = Self(Arc::new(Mutex::new(log)));
        log.change(texts)?;
        Ok(log)
    }

    /// From the next alerts on, these texts apply.
    ///
    /// # Errors
    /// [`LinesError::File`]; the former texts apply then.
    pub(crate) fn change(&self, texts: &GuidanceTexts) -> Result<(), LinesError> {
        let mut log = self.lock();
        if log.texts.as_ref() == Some(texts) {
            return Ok(());
        }
        // The first texts of a folder apply from its beginning: a run without this log had them.
        let after = log.through.filter(|_| log.texts.is_some());
        let change = Change { after, texts: texts.clone() };
        if let Some(lines) = &mut log.lines {
            lines.append(&change)?;
        }
        log.know(change);
        Ok(())
    }

    /// What applies to alerts of this time, which are being made now.
    pub(crate) fn at(&self, end: Nanos) -> Arc<Guidance> {
        let mut log = self.lock();
        log.through = log.through.max(Some(end.0));
        let applies = log.changes.iter().rev().find(|(after, _)| after.is_none_or(|after| end.0 > after));
        applies.map(|(_, guidance)| Arc::clone(guidance)).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn know(&mut self, Change { after, texts }: Change) {
        self.changes.push((after, Arc::new(texts.read())));
        self.texts = Some(texts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(owner: &str) -> GuidanceTexts {
        GuidanceTexts { owners: vec![format!("* -> {owner}")], ..GuidanceTexts::default() }
    }

    fn is_of(log: &GuidanceLog, end: i64, owner: &str) -> bool {
        *log.at(Nanos(end)) == texts(owner).read()
    }

    #[test]
    fn a_change_applies_after_what_was_announced_and_later_runs_know_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = GuidanceLog::open(&folder.path().into(), &texts("a"), None).unwrap();
        assert!(is_of(&first, 10, "a") && is_of(&first, 20, "a"));
        first.change(&texts("b")).unwrap();
        assert!(is_of(&first, 30, "b"));

        let second = GuidanceLog::open(&folder.path().into(), &texts("c"), Some(Nanos(40))).unwrap();
        for (end, owner) in [(10, "a"), (20, "a"), (30, "b"), (40, "b"), (50, "c")] {
            assert!(is_of(&second, end, owner), "{end} {owner}");
        }
        // While it computes again what was announced, a change applies only to what comes after it.
        let third = GuidanceLog::open(&folder.path().into(), &texts("c"), Some(Nanos(60))).unwrap();
        assert!(is_of(&third, 10, "a"));
        third.change(&texts("d")).unwrap();
        assert!(is_of(&third, 30, "b") && is_of(&third, 60, "c") && is_of(&third, 70, "d"));
        assert_eq!(std::fs::read_to_string(folder.path().join(LOG.file)).unwrap().lines().count(), 4);
    }

    #[test]
    fn the_first_texts_of_a_folder_apply_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let log = GuidanceLog::open(&folder.path().into(), &texts("a"), Some(Nanos(40))).unwrap();
        assert!(is_of(&log, 10, "a"), "a run of an earlier version had them");
    }

    #[test]
    fn a_line_that_was_cut_off_had_no_effect_and_one_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOG.file);
        GuidanceLog::open(&folder.path().into(), &texts("a"), None).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{{\"after\":1")).unwrap();
        let log = GuidanceLog::open(&folder.path().into(), &texts("a"), None).unwrap();
        assert!(is_of(&log, 10, "a"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        std::fs::write(&path, "x\n").unwrap();
        let failure = GuidanceLog::open(&folder.path().into(), &texts("a"), None).unwrap_err();
        assert!(failure.to_string().contains("line 1 of"), "{failure}");
    }
}
