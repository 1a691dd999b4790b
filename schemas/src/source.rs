//! How records reach the dataflow, whatever the transport.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use crate::profile::Decoded;

/// What to do if records that rows were made from are gone.
pub const NEW_FOLDER: &str = "start it with a new output folder: rows are made from the records of the topic, so those in this folder cannot be made again or continued; they stay as they are";

/// What a source gives at one poll.
#[derive(Debug)]
pub enum Polled {
    /// The next record of its partition, in the partition's order.
    Record(Box<Decoded>),
    /// This partition has ended (a bounded read reached its end).
    PartitionEnd(i32),
    /// The topic has got this partition, which is this reader's and is read from its first record.
    PartitionAdded(i32),
    /// These records of a partition are gone: the transport deleted them before they were read.
    Lost(i32, Range<i64>),
    /// Nothing now; ask again later.
    Idle,
    /// All partitions have ended.
    End,
}

/// One reader of one or more partitions, owned by one worker.
///
/// Records of one partition come in the order of that partition; partitions may be interleaved in any way.
pub trait Source: Send {
    /// The name of the topic or folder, shared by all its readers.
    fn name(&self) -> &str;

    /// The partitions that this reader owns, ascending.
    fn partitions(&self) -> Vec<i32>;

    /// Whether partitions may be added while it reads. Such a reader has not ended although it owns none.
    fn may_grow(&self) -> bool {
        false
    }

    /// The offsets that a partition held when it was opened, if its transport may delete records; `None` if records stay.
    fn held(&self, _partition: i32) -> Option<Range<i64>> {
        None
    }

    /// Gives what is available, and waits at most a few milliseconds for it.
    ///
    /// # Errors
    /// A [`SourceError`] ends the run: the transport itself failed. A bad record is not an error but a rejected part.
    fn poll(&mut self) -> Result<Polled, SourceError>;

    /// Whether everything that the transport had for this partition at the last poll has been given. Only then may a
    /// silent partition be declared idle. A transport that does not know returns `true`.
    fn is_drained(&self, _partition: i32) -> bool {
        true
    }

    /// How the transport is, for people and monitoring: nothing that is said here decides rows. Asked about twice a second,
    /// also while every partition is held back.
    ///
    /// # Errors
    /// As [`Self::poll`].
    fn health(&mut self) -> Result<Health, SourceError> {
        Ok(Health::default())
    }

    /// Files of tables were completed. A transport may publish how far it has read, for programs that watch its readers; that is
    /// never read back.
    fn flushed(&mut self) {}

    /// Pauses or resumes a partition that has run too far ahead of the others. Records already fetched may still come.
    fn set_paused(&mut self, partition: i32, paused: bool);
}

/// How a transport is. A transport that does not know says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What keeps it from answering, if it does not.
    pub trouble: Option<Trouble>,
    /// How far each partition is read, if known.
    pub extents: BTreeMap<i32, Extent>,
    /// Bytes that were fetched and not given yet.
    pub fetched_bytes: u64,
}

/// How far a partition is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The offset that is read next.
    pub next: i64,
    /// The offset after the last record that is known to be there.
    pub end: i64,
}

/// A transport that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The last moment at which it is known to have answered, or that it was found to be gone.
    pub since: Instant,
    /// What is known about it, in words.
    pub detail: String,
}

/// A transport failed.
#[derive(Debug, thiserror::Error)]
#[error("{source_name}: {detail}; {hint}")]
pub struct SourceError {
    /// Topic or folder.
    pub source_name: String,
    /// What happened, and where.
    pub detail: String,
    /// What to do about it.
    pub hint: String,
}
