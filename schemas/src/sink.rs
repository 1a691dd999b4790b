//! How rows leave the dataflow, whatever the sink.

use crate::rows::Tables;
use crate::time::Hop;

/// Where rows go. Hops come in ascending order, each at most once, with all rows that were made at its close. These are filed
/// ([`filed_at`](crate::tables::TableRow::filed_at)) within the hop, so that a file whose time has passed is complete; only rejected
/// rows may have no time.
pub trait Sink: Send {
    /// Takes the rows of one hop, each table sorted by its key.
    ///
    /// # Errors
    /// Any reason why the sink cannot take them; the run then ends.
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError>;
}

/// The reason why a sink could not take rows.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
