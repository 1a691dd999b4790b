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

    /// Everything of hops before `boundary` was taken, and nothing of later ones: writes what can be written, and gives what another
    /// sink must know to go on from here. `None` if none could.
    ///
    /// # Errors
    /// As [`Self::take`].
    fn save(&mut self, _boundary: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        Ok(None)
    }

    /// Goes on with what another sink has [saved](Self::save), before anything is taken.
    ///
    /// # Errors
    /// If it cannot be read, or what it refers to is gone.
    fn resume(&mut self, _saved: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The reason why a sink could not take rows.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
