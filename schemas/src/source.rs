//! How records reach the dataflow, whatever the transport.

use crate::profile::Decoded;

/// What a source gives at one poll.
#[derive(Debug)]
pub enum Polled {
    /// The next record of its partition, in the partition's order.
    Record(Box<Decoded>),
    /// This partition has ended (a bounded read reached its end).
    PartitionEnd(i32),
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

    /// Pauses or resumes a partition that has run too far ahead of the others. Records already fetched may still come.
    fn set_paused(&mut self, partition: i32, paused: bool);
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
