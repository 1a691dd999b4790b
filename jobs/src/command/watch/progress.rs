//! Which lines of progress a log gets, and when: a state machine without a clock.
//!
//! What changes is said at once, what lasts is repeated ever more rarely, so that a night of silence is a page and not a book.

use std::time::{Duration, Instant};

use fleetdiff_pipeline::run::pulse::diagnosis::{Condition, refusals};
use fleetdiff_schemas::tables::calendar::rfc3339;

use super::console::Overview;

/// Shortest time between two lines of progress.
const EVERY: Duration = Duration::from_secs(10);

/// Longest time until a condition that lasts is said again.
const AGAIN_AT_MOST: Duration = Duration::from_secs(600);

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) condition: &'static str,
    pub(crate) text: String,
}

/// What was said so far.
#[derive(Debug)]
pub(crate) struct Progress {
    hops: u64,
    said: Option<Said>,
    closed_said_at: Instant,
    refused: u64,
    /// When refused parts were last said, and how long until they are said again.
    refused_said: Option<(Instant, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Said {
    condition: Condition,
    at: Instant,
    again_after: Duration,
}

impl Progress {
    pub(crate) fn new(now: Instant) -> Self {
        Self { hops: 0, said: None, closed_said_at: now, refused: 0, refused_said: None }
    }

    /// The lines that are due.
    pub(crate) fn lines(&mut self, overview: &Overview) -> Vec<Line> {
        let standing = self.standing(overview);
        let closed = self.closed(overview);
        let refused = self.refused(overview);
        closed.into_iter().chain(standing).chain(refused).collect()
    }

    fn closed(&mut self, overview: &Overview) -> Option<Line> {
        let (done, now) = (&overview.done, overview.now.instant);
        if done.hops == self.hops || now.saturating_duration_since(self.closed_said_at) < EVERY {
            return None;
        }
        (self.hops, self.closed_said_at) = (done.hops, now);
        let end = rfc3339(overview.now.clock.end_of(done.through));
        let text = format!("closed through {end}: {} profiles, {} changes of flags", done.decoded, done.flags);
        Some(Line { level: Level::Info, condition: overview.diagnosis.condition.name(), text })
    }

    /// Why nothing closes. What is no trouble is said only once nothing has closed for a while.
    fn standing(&mut self, overview: &Overview) -> Option<Line> {
        let (condition, now) = (overview.diagnosis.condition, overview.now.instant);
        if condition == Condition::Closing {
            self.said = None;
            return None;
        }
        let again_after = match self.said {
            Some(said) if now.saturating_duration_since(said.at) < said.quiet_for(condition) => return None,
            Some(said) if said.condition == condition => (said.again_after * 2).min(AGAIN_AT_MOST),
            Some(_) => EVERY,
            None if !condition.is_trouble() && overview.done.hops != self.hops => return None,
            None => EVERY,
        };
        self.said = Some(Said { condition, at: now, again_after });
        if condition == Condition::AllRefused {
            // The line has their counts.
            (self.refused, self.refused_said) = (refused_in_all(overview), Some((now, EVERY)));
        }
        let since = overview.vitals.output.closed.map_or_else(
            || "nothing has closed yet".to_owned(),
            |closed| format!("nothing has closed for {} s", overview.now.age(closed.at).as_secs()),
        );
        let level = if condition.is_trouble() { Level::Warn } else { Level::Info };
        Some(Line { level, condition: condition.name(), text: format!("{since}: {}", overview.diagnosis.reason) })
    }

    fn refused(&mut self, overview: &Overview) -> Option<Line> {
        let (all, now) = (refused_in_all(overview), overview.now.instant);
        let again_after = match self.refused_said {
            Some((at, quiet)) if now.saturating_duration_since(at) < quiet => return None,
            Some((_, quiet)) => (quiet * 2).min(AGAIN_AT_MOST),
            None => EVERY,
        };
        if all == self.refused {
            // It has ended: the next one is said at once.
            self.refused_said = None;
            return None;
        }
        (self.refused, self.refused_said) = (all, Some((now, again_after)));
        let text = format!("rejected so far: {}", refusals(&overview.vitals));
        Some(Line { level: Level::Warn, condition: overview.diagnosis.condition.name(), text })
    }
}

impl Said {
    /// How long until this condition is said: new trouble at once, anything else that is new soon, the same later.
    fn quiet_for(self, condition: Condition) -> Duration {
        match self.condition == condition {
            true => self.again_after,
            false if condition.is_trouble() => Duration::ZERO,
            false => EVERY,
        }
    }
}

fn refused_in_all(overview: &Overview) -> u64 {
    overview.vitals.refused().values().sum()
}

#[cfg(test)]
mod tests;
