//! A sink whose work can be seen: which hop it takes, and since when.

use std::time::Instant;

use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;

use super::{Closed, Pulse};

/// Passes rows on, and notes when that begins and ends.
pub(crate) struct Watched {
    sink: Box<dyn Sink>,
    pulse: Pulse,
}

impl Watched {
    pub(crate) fn new(sink: Box<dyn Sink>, pulse: Pulse) -> Self {
        Self { sink, pulse }
    }
}

impl Sink for Watched {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        self.pulse.begin_writing(hop, Instant::now());
        // NB: the lock is not held meanwhile; a sink that hangs must not hang those who ask why.
        let taken = self.sink.take(hop, tables);
        let output = &mut self.pulse.lock().output;
        output.writing = None;
        if taken.is_ok() {
            output.closed = Some(Closed { hop, at: Instant::now() });
        }
        taken
    }

    fn save(&mut self, boundary: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        self.sink.save(boundary)
    }

    fn resume(&mut self, saved: &[u8]) -> Result<(), SinkError> {
        self.sink.resume(saved)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Looks at the run while it takes rows, as somebody does who asks why nothing closes.
    struct Looks(Pulse);

    impl Sink for Looks {
        fn take(&mut self, hop: Hop, _: Tables) -> Result<(), SinkError> {
            let vitals = self.0.read();
            let writing = vitals.output.writing.ok_or("it is seen while it writes")?;
            assert_eq!(
                (writing.hop, vitals.output.closed.map(|closed| closed.hop)),
                (hop, hop.0.checked_sub(1).map(Hop))
            );
            assert!(writing.evaluation.is_some_and(|evaluation| evaluation < Duration::from_secs(60)));
            if hop == Hop(2) { Err("full".into()) } else { Ok(()) }
        }
    }

    #[test]
    fn what_is_being_written_is_seen_and_a_failure_closes_nothing() {
        let pulse = Pulse::default();
        let mut watched = Watched::new(Box::new(Looks(pulse.clone())), pulse.clone());
        pulse.announce(Hop(3), Instant::now());
        for hop in 0..3 {
            let taken = watched.take(Hop(hop), Tables::default());
            assert_eq!(taken.is_ok(), hop < 2, "{taken:?}");
        }
        let output = pulse.read().output;
        assert_eq!((output.writing, output.closed.map(|closed| closed.hop)), (None, Some(Hop(1))));
    }
}
