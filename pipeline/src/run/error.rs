//! Why a run ended before its sources did.

use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::source::SourceError;

use crate::checkpoint::Unreadable;

/// Why a run ended before its sources did.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A transport failed.
    #[error("reading failed")]
    Source(#[from] SourceError),
    /// Rows could not be written.
    #[error("writing failed")]
    Sink(#[source] SinkError),
    /// A decision could not be written down.
    #[error("a decision could not be written down")]
    Decision(#[source] SinkError),
    /// A checkpoint cannot be read.
    #[error("the run cannot go on from its checkpoint")]
    Checkpoint(#[from] Unreadable),
    /// The workers could not be started.
    #[error("the workers could not be started: {0}")]
    Worker(String),
    /// A worker panicked; what it said went to stderr.
    #[error("a worker stopped by itself, which is a fault of fleetdiff: the lines before this one say where")]
    Panic,
}
