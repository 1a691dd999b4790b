//! Why a run ended before its sources did.

use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::source::SourceError;

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
    /// The workers could not be started, or one of them died.
    #[error("a worker failed: {0}")]
    Worker(String),
}
