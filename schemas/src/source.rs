//! How records reach the dataflow, whatever carried them.

use crate::profile::Decoded;

/// What a source has to offer at the moment.
#[derive(Debug)]
pub enum Polled {
    /// The next record of its partition, in the partition's order.
    Record(Box<Decoded>),
    /// This partition will give no more (a bounded read reached its end).
    PartitionEnd(i32),
    /// Nothing now; ask again later.
    Idle,
    /// No partition will give any more.
    End,
}

/// One reader of one or more partitions, owned by one worker.
///
/// Records of one partition come in that partition's order; between partitions any interleaving is allowed.
pub trait Source: Send {
    /// Name shared by all readers of the same topic or folder.
    fn name(&self) -> &str;

    /// The partitions that this reader owns, ascending.
    fn partitions(&self) -> Vec<i32>;

    /// Gives what is there without waiting longer than a few milliseconds.
    ///
    /// # Errors
    /// A [`SourceError`] ends the run: the transport itself failed. A bad record is not an error but a rejected part.
    fn poll(&mut self) -> Result<Polled, SourceError>;

    /// Whether everything that the transport had for this partition when last asked has been given: only then may
    /// silence be called idle. A transport that cannot tell says yes.
    fn is_drained(&self, _partition: i32) -> bool {
        true
    }

    /// Holds back (or lets go on) a partition that has run too far ahead of the others. Records already fetched may
    /// still come.
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
