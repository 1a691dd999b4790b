//! Which stretch of time is asked for, and when: one slice after another, each as soon as all of it has surely arrived.

use fleetdiff_schemas::time::{Nanos, TimeRange};

/// The slices from now on. They adjoin: each begins where the one before it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    /// Where the next one begins.
    pub(super) next: Nanos,
    /// How long each is; the last may be shorter.
    pub(super) every: Nanos,
    /// Where the last one ends.
    pub(super) until: Option<Nanos>,
    /// How long after its end a slice has arrived.
    pub(super) delay: Nanos,
}

/// What to do at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask for this.
    Slice(TimeRange),
    /// Wait so long.
    Later(Nanos),
    /// Nothing is left.
    Done,
}

impl Slices {
    /// What is due; a slice is due until it is [taken](Self::taken).
    pub(super) fn due(&self, now: Nanos) -> Due {
        if self.until.is_some_and(|until| self.next >= until) {
            return Due::Done;
        }
        let end = self.next.plus(self.every);
        let end = self.until.map_or(end, |until| end.min(until));
        let arrived = end.plus(self.delay);
        if arrived > now {
            return Due::Later(arrived.since(now));
        }
        Due::Slice(TimeRange { start: self.next, end })
    }

    /// Goes on behind a slice.
    pub(super) fn taken(&mut self, slice: TimeRange) {
        self.next = slice.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_adjoin_and_are_due_once_they_have_arrived() {
        let seconds = Nanos::from_seconds;
        let mut slices =
            Slices { next: seconds(100), every: seconds(60), until: Some(seconds(250)), delay: seconds(30) };
        assert_eq!(slices.due(seconds(189)), Due::Later(seconds(1)));
        let mut found = Vec::new();
        while let Due::Slice(slice) = slices.due(seconds(280)) {
            found.push((slice.start, slice.end));
            slices.taken(slice);
        }
        assert_eq!(found, [(100, 160), (160, 220), (220, 250)].map(|(start, end)| (seconds(start), seconds(end))));
        assert_eq!(slices.due(seconds(280)), Due::Done);
        let following = Slices { until: None, ..slices };
        assert_eq!(following.due(seconds(280)), Due::Later(seconds(60)), "250 to 310, 30 s later");
    }
}
