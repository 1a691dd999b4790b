//! Decisions that depend on a wall clock, and the log that makes them part of the input.
//!
//! Rows are a function of (records by partition, decisions, configuration). Whether a partition counts as idle depends
//! on how long it has given nothing, which no record says. So each decision is written to a log before it takes effect,
//! and a run that finds it in the log decides the same. Rows can depend on such a decision only if a partition comes
//! back: records from that offset on are applied at the hop of the return, or later.
//!
//! Limits may change while a service runs ([`limits`]): from which hop on is a decision, too.
//!
//! The log also has what a topic was when it was first read ([`history`]): a partition that was added since, or records that are
//! gone, cannot be known from the records that are there.

pub mod history;
pub mod limits;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_schemas::config::Limits;
use fleetdiff_schemas::time::{Hop, Nanos};
use serde::{Deserialize, Serialize};

use fleetdiff_schemas::sink::SinkError;

use self::history::History;

/// One decision, of which most are about one partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// The partition is idle: it has given nothing for a while, and is not waited for from this hop on.
    Idle {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// The first hop that may close without it.
        from_hop: Hop,
        /// The offset that is read next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<i64>,
    },
    /// Reading of the partition has begun. If it was added after others, it is not waited for before it gives something, and the
    /// record at this offset and those after it are applied at this hop or later; otherwise this is hop 0.
    Begun {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// The first offset that it held.
        offset: i64,
        /// The first hop that was still open for it.
        from_hop: Hop,
    },
    /// The first record that was read of the partition. A later run must find it again.
    First {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// Its offset.
        offset: i64,
        /// Its stamp, in nanoseconds since 1970.
        stamped_at: Option<Nanos>,
    },
    /// Records were deleted before they were read: reading has gone on after them.
    Lost {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// The first offset that is lost.
        offset: i64,
        /// The first offset after it that is not lost.
        next_offset: i64,
    },
    /// The partition has returned: the record at this offset and those after it are applied at this hop or later.
    Back {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// The first record after the pause.
        offset: i64,
        /// The first hop that is still open for it.
        applied_from: Hop,
    },
    /// These limits hold from this hop on; the first such line has those of the beginning.
    Limits {
        /// The first hop.
        from_hop: Hop,
        /// The limits of each service.
        limits: Limits,
    },
    /// No partition moves event time, and this one has given only records that were refused: their hops close, and the record
    /// at this offset and those after it are applied at this hop or later.
    Refused {
        /// Topic or folder.
        source: String,
        /// The partition.
        partition: i32,
        /// The first record after the refused ones.
        offset: i64,
        /// The first hop that is still open for it.
        applied_from: Hop,
    },
}

/// A log of decisions.
pub trait DecisionLog: Send {
    /// Writes a decision to the log; it is durable once this returns.
    ///
    /// # Errors
    /// Any reason why it could not be made durable; the run then ends, and the decision has had no effect.
    fn append(&mut self, decision: &Decision) -> Result<(), SinkError>;
}

/// A log that stores nothing, for runs without decisions.
#[derive(Debug, Default)]
pub struct Forgetful;

impl DecisionLog for Forgetful {
    fn append(&mut self, _: &Decision) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The decisions of a run: those of an earlier run of the same input, and a log for new ones. Shared by all workers.
#[derive(Clone)]
pub struct Decisions {
    log: Arc<Mutex<Box<dyn DecisionLog>>>,
    known: Arc<[Decision]>,
    decided_before: Hop,
}

impl Default for Decisions {
    fn default() -> Self {
        Self::new(Box::new(Forgetful), Vec::new())
    }
}

impl Decisions {
    /// `known` are the decisions that the log already holds, in its order.
    pub fn new(log: Box<dyn DecisionLog>, known: Vec<Decision>) -> Self {
        Self { log: Arc::new(Mutex::new(log)), known: known.into(), decided_before: Hop(0) }
    }

    /// The same after a run of whose hops before this one something has left the program, as rows, alerts or a checkpoint: what it did not
    /// read can no longer be applied there.
    pub fn with_decided_before(self, hop: Hop) -> Self {
        Self { decided_before: hop, ..self }
    }

    /// The decisions that the log held when the run began, in its order.
    pub(crate) fn known(&self) -> &[Decision] {
        &self.known
    }

    /// The first hop for which something may be decided anew.
    pub(crate) fn decided_before(&self) -> Hop {
        self.decided_before
    }

    /// Writes a new decision to the log.
    ///
    /// # Errors
    /// See [`DecisionLog::append`].
    pub fn append(&self, decision: &Decision) -> Result<(), SinkError> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).append(decision)
    }

    /// From which hop on records are applied, as an earlier run decided, for the reader of one source.
    pub fn known_returns(&self, source: &str) -> KnownReturns {
        let mut returns = KnownReturns::default();
        for decision in self.known.iter() {
            match decision {
                Decision::Back { source: of, partition, offset, applied_from }
                    if of == source && *applied_from > Hop(0) =>
                {
                    returns.put(*partition, *offset, Due { applied_from: *applied_from, is_return: true });
                }
                Decision::Refused { source: of, partition, offset, applied_from }
                | Decision::Begun { source: of, partition, offset, from_hop: applied_from }
                    if of == source && *applied_from > Hop(0) =>
                {
                    returns.add_bound(*partition, *offset, *applied_from);
                }
                _ => {}
            }
        }
        returns
    }

    /// What earlier runs have seen of the partitions of one source.
    pub fn history(&self, source: &str) -> History {
        History::of(source, &self.known, self.decided_before)
    }
}

/// What was decided about a record of a partition and those after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// They are applied at this hop or later.
    pub applied_from: Hop,
    /// Whether that is the return of the partition. Otherwise only its refused records were passed, or it was found to be there: at which
    /// hop it returns is still to be decided.
    pub is_return: bool,
}

/// Returns that an earlier run decided and this run has not reached yet, by partition and offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownReturns(BTreeMap<i32, VecDeque<(i64, Due)>>);

impl KnownReturns {
    /// It was decided now that the record at `offset` and those after it are applied at this hop or later.
    pub fn add_bound(&mut self, partition: i32, offset: i64, applied_from: Hop) {
        self.put(partition, offset, Due { applied_from, is_return: false });
    }

    fn put(&mut self, partition: i32, offset: i64, due: Due) {
        self.0.entry(partition).or_default().push_back((offset, due));
    }

    /// The hop from which the record at `offset` is applied, if something is due with it. Each is given once; if its own record is
    /// gone, it is due with the next record.
    ///
    /// ```
    /// use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
    /// use fleetdiff_schemas::time::Hop;
    /// let back = Decision::Back { source: "t".to_owned(), partition: 3, offset: 7, applied_from: Hop(40) };
    /// let mut returns = Decisions::new(Box::new(Forgetful), vec![back]).known_returns("t");
    /// let mut due = |offset| returns.due(3, offset).map(|due| due.applied_from);
    /// assert_eq!((due(6), due(7), due(8)), (None, Some(Hop(40)), None));
    /// ```
    pub fn due(&mut self, partition: i32, offset: i64) -> Option<Due> {
        let waiting = self.0.get_mut(&partition)?;
        let mut due: Option<Due> = None;
        while let Some((_, next)) = waiting.pop_front_if(|(at, _)| *at <= offset) {
            let before = due.map_or(Hop(0), |due| due.applied_from);
            due = Some(Due { applied_from: next.applied_from.max(before), ..next });
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(source: &str, partition: i32, offset: i64, hop: u64) -> Decision {
        Decision::Back { source: source.to_owned(), partition, offset, applied_from: Hop(hop) }
    }

    #[test]
    fn returns_are_due_once_each_in_their_partition() {
        let known = vec![back("t", 0, 5, 10), back("other", 0, 1, 99), back("t", 1, 5, 11), back("t", 0, 9, 12)];
        let mut returns = Decisions::new(Box::new(Forgetful), known).known_returns("t");
        let of_return = |hop| Some(Due { applied_from: Hop(hop), is_return: true });
        assert_eq!(returns.due(0, 4), None);
        assert_eq!(returns.due(0, 5), of_return(10));
        assert_eq!(returns.due(0, 6), None);
        assert_eq!(returns.due(1, 20), of_return(11), "the record itself is gone");
        assert_eq!(returns.due(0, 9), of_return(12));
        assert_eq!(returns.due(2, 9), None);
    }

    #[test]
    fn passing_what_was_refused_is_no_return_until_that_is_decided_too() {
        let refused = Decision::Refused { source: "t".to_owned(), partition: 0, offset: 5, applied_from: Hop(9) };
        let returns = |known| Decisions::new(Box::new(Forgetful), known).known_returns("t");
        let due = |known| returns(known).due(0, 5).map(|due| (due.applied_from, due.is_return));
        assert_eq!(due(vec![refused.clone()]), Some((Hop(9), false)));
        assert_eq!(due(vec![refused.clone(), back("t", 0, 5, 12)]), Some((Hop(12), true)));
        assert_eq!(due(vec![back("t", 0, 3, 12), refused]), Some((Hop(12), false)));
    }

    #[test]
    fn a_decision_is_one_flat_object() {
        let idle = Decision::Idle { source: "t".to_owned(), partition: 2, from_hop: Hop(7), offset: None };
        let text = serde_json::to_string(&idle).unwrap();
        assert_eq!(text, r#"{"decision":"idle","source":"t","partition":2,"from_hop":7}"#);
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), idle);
        let refused = Decision::Refused { source: "t".to_owned(), partition: 2, offset: 5, applied_from: Hop(7) };
        let text = serde_json::to_string(&refused).unwrap();
        assert_eq!(text, r#"{"decision":"refused","source":"t","partition":2,"offset":5,"applied_from":7}"#);
    }
}
