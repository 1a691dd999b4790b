//! The steps of the commit order at which a test may end the process, as `kill -9` would: without destructors.
//!
//! `FLEETDIFF_CRASH_AT=table_written` ends it when that point is reached, `FLEETDIFF_CRASH_AT=table_written:3` when it is reached
//! for the third time. Without the variable, a point costs one load. The tests crash at every point of [`CrashPoint::ALL`].

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that names a point, for tests alone.
pub const VARIABLE: &str = "FLEETDIFF_CRASH_AT";

/// One list, so that no test can leave out a point.
macro_rules! points {
    ($($(#[$about:meta])+ $point:ident = $name:literal,)+) => {
        /// A moment between two steps of a commit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CrashPoint {
            $($(#[$about])+ $point,)+
        }

        impl CrashPoint {
            /// Every point, in the order in which a commit passes them.
            pub const ALL: &[Self] = &[$(Self::$point,)+];

            /// Its name in the environment.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)+
                }
            }
        }
    };
}

points! {
    /// A decision is made and not in its log.
    DecisionMade = "decision_made",
    /// A decision is in its log and has had no effect.
    DecisionLogged = "decision_logged",
    /// The rows of an interval are complete; the file of a table is to be written.
    TableComplete = "table_complete",
    /// The file of one table has its name; those of other tables may be missing.
    TableWritten = "table_written",
    /// The files of all tables of an interval are there.
    TablesWritten = "tables_written",
    /// A line is in the file of alerts, perhaps without others of its hop.
    AlertLine = "alert_line",
    /// The alerts of a hop are to be sent.
    AlertsBegun = "alerts_begun",
    /// Brokers have the alerts of a hop; their transaction is open.
    AlertsProduced = "alerts_produced",
    /// The transaction is committed; nothing else knows that yet.
    AlertsCommitted = "alerts_committed",
    /// Everything about a hop that ends an interval has left the program.
    IntervalDone = "interval_done",
    /// A checkpoint is to be written.
    CheckpointTaken = "checkpoint_taken",
    /// A checkpoint is on disk under another name.
    CheckpointUnfinished = "checkpoint_unfinished",
    /// A checkpoint has its name; older ones than the one before it may be there still.
    CheckpointNamed = "checkpoint_named",
    /// Older checkpoints are removed.
    CheckpointDone = "checkpoint_done",
}

impl CrashPoint {
    /// Ends the process here if the environment says so.
    pub fn reached(self) {
        if let Some(armed) = &*ARMED
            && armed.point == self
            && armed.is_due()
        {
            tracing::warn!("the process ends at {}, as {VARIABLE} says", self.name());
            std::process::abort();
        }
    }
}

static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).ok()?;
    let armed = Armed::parse(&text);
    if armed.is_none() {
        tracing::warn!("{VARIABLE}: there is no point {text}");
    }
    armed
});

/// Where the process is to end.
#[derive(Debug)]
struct Armed {
    point: CrashPoint,
    /// How often the point is still to be reached.
    left: AtomicU64,
}

impl Armed {
    fn parse(text: &str) -> Option<Self> {
        let (name, times) = text.split_once(':').unwrap_or((text, "1"));
        let point = CrashPoint::ALL.iter().copied().find(|point| point.name() == name)?;
        let times: u64 = times.parse().ok().filter(|times| *times > 0)?;
        Some(Self { point, left: AtomicU64::new(times) })
    }

    fn is_due(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_point_is_due_at_the_time_that_is_named_and_once() {
        let due = |text: &str| -> Vec<bool> {
            let armed = Armed::parse(text).unwrap();
            (0..4).map(|_| armed.is_due()).collect()
        };
        assert_eq!(due("alerts_produced"), [true, false, false, false]);
        assert_eq!(due("table_written:3"), [false, false, true, false]);
        for wrong in ["", "nowhere", "table_written:", "table_written:0", "table_written:-1", "table_written:1:1"] {
            assert!(Armed::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_point_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = CrashPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), CrashPoint::ALL.len());
    }
}
