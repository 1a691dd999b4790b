//! Delivers rows hop by hop, on worker 0.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_schemas::fan_out::FanOutRow;
use fleetdiff_schemas::rows::{
    Archived, CellRow, ClockRow, ComparisonRow, EvidenceRow, FlagRow, HeapFindingRow, HeapRow, IncidentRow, LedgerRow,
    LimitRow, LoadCurveRow, RejectedRow, RingRow, ScalingFindingRow, ScalingRow, StackRow, Tables, VerdictRow,
    WaitingRow,
};
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;

use super::at_close::{AtClose, AtHop, Closed};
use super::common::Common;
use crate::checkpoint::{Loading, Saving, State, Unreadable};

/// A row of any table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum OutputRow {
    /// Of `cells`.
    Cell(Arc<CellRow>),
    /// Of `evidence`.
    Evidence(Box<EvidenceRow>),
    /// Of `flags`.
    Flag(Box<FlagRow>),
    /// Of `comparisons`.
    Comparison(Box<ComparisonRow>),
    /// Of `incidents`.
    Incident(Box<IncidentRow>),
    /// What is said about a whole comparison.
    Verdict(Box<VerdictRow>),
    /// Of `scaling`.
    Scaling(Box<ScalingRow>),
    /// Of `load_curves`.
    LoadCurve(Box<LoadCurveRow>),
    /// Of `rings`.
    Ring(Box<RingRow>),
    /// A function of which a head scales worse.
    ScalingFinding(Box<ScalingFindingRow>),
    /// Of `heap`.
    Heap(Box<HeapRow>),
    /// Of `waiting`.
    Waiting(Box<WaitingRow>),
    /// Of `stacks`.
    Stack(Box<StackRow>),
    /// A head that leaks.
    HeapFinding(Box<HeapFindingRow>),
    /// Of `ledger`.
    Ledger(LedgerRow),
    /// Of `rejected`.
    Rejected(RejectedRow),
    /// Of `clocks`.
    Clock(ClockRow),
    /// Of `limits`.
    Limit(LimitRow),
    /// Of the fan-out.
    FanOut(FanOutRow),
    /// Of the archive.
    Archived(Box<Archived>),
}

/// A sink, and the error after which it takes no more rows.
type Delivery = (Box<dyn Sink>, Option<SinkError>);

/// A sink shared by the workers of a process, with its error, if there was one.
#[derive(Clone)]
pub struct SharedSink {
    state: Arc<Mutex<Delivery>>,
    /// NB: beside the sink, which may wait for a disk or for brokers for hours.
    has_failed: Arc<AtomicBool>,
}

impl SharedSink {
    /// Shares a sink.
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self { state: Arc::new(Mutex::new((sink, None))), has_failed: Arc::default() }
    }

    /// Has the sink do something, unless it has failed; gives what it gives, unless it fails now.
    fn with<T>(&self, act: impl FnOnce(&mut dyn Sink) -> Result<T, SinkError>) -> Option<T> {
        let (sink, failure) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return None;
        }
        act(sink.as_mut())
            .map_err(|error| {
                *failure = Some(error);
                self.has_failed.store(true, Ordering::Release);
            })
            .ok()
    }

    fn take(&self, hop: Hop, tables: Tables) {
        self.with(|sink| sink.take(hop, tables));
    }

    fn save(&self, boundary: Hop) -> Option<Vec<u8>> {
        self.with(|sink| sink.save(boundary)).flatten()
    }

    fn resume(&self, saved: &[u8]) {
        self.with(|sink| sink.resume(saved));
    }

    /// Whether the sink has failed. Answers at once, also while it takes rows.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// The error, if there was one; given only once.
    pub fn failure(&self) -> Option<SinkError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

/// See [`Deliver::deliver`].
pub trait Deliver<'scope> {
    /// Sends all rows of a hop to worker 0 and gives them, sorted, to the sink. Outputs each hop once it has been
    /// delivered.
    fn deliver(self, sink: SharedSink, common: &Common) -> StreamVec<'scope, u64, u64>;
}

impl<'scope> Deliver<'scope> for StreamVec<'scope, u64, OutputRow> {
    fn deliver(self, sink: SharedSink, common: &Common) -> StreamVec<'scope, u64, u64> {
        let delivery = ToSink { sink, is_first: self.scope().index() == 0 };
        self.keep_at_close(delivery, |_| 0, common)
    }
}

/// Gives rows to the sink.
struct ToSink {
    sink: SharedSink,
    /// Whether this is the worker that does.
    is_first: bool,
}

impl State for ToSink {
    const NAME: &'static str = "sink";

    fn save(&self, to: &mut Saving) {
        if self.is_first {
            match self.sink.save(to.boundary()) {
                Some(saved) => to.routed("saved", 0, &saved),
                None => to.refuse(),
            }
        }
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        from.all("saved")?.iter().for_each(|saved: &Vec<u8>| self.sink.resume(saved));
        Ok(())
    }
}

impl AtHop<OutputRow> for ToSink {
    type Output = u64;

    fn close(&mut self, closed: Closed<OutputRow>) -> Vec<u64> {
        self.sink.take(Hop(closed.hop), tables(closed.items));
        vec![closed.hop]
    }
}

fn tables(rows: Vec<OutputRow>) -> Tables {
    let mut tables = Tables::default();
    let mut cells = Vec::new();
    for row in rows {
        match row {
            OutputRow::Cell(row) => cells.push(row),
            OutputRow::Evidence(row) => tables.evidence.push(*row),
            OutputRow::Flag(row) => tables.flags.push(*row),
            OutputRow::Comparison(row) => tables.comparisons.push(*row),
            OutputRow::Incident(row) => tables.incidents.push(*row),
            OutputRow::Verdict(row) => tables.verdicts.push(*row),
            OutputRow::Scaling(row) => tables.scaling.push(*row),
            OutputRow::LoadCurve(row) => tables.load_curves.push(*row),
            OutputRow::Ring(row) => tables.rings.push(*row),
            OutputRow::ScalingFinding(row) => tables.scaling_findings.push(*row),
            OutputRow::Heap(row) => tables.heap.push(*row),
            OutputRow::Waiting(row) => tables.waiting.push(*row),
            OutputRow::Stack(row) => tables.stacks.push(*row),
            OutputRow::HeapFinding(row) => tables.heap_findings.push(*row),
            OutputRow::Ledger(row) => tables.ledger.push(row),
            OutputRow::Rejected(row) => tables.rejected.push(row),
            OutputRow::Clock(row) => tables.clocks.push(row),
            OutputRow::Limit(row) => tables.limits.push(row),
            OutputRow::FanOut(row) => tables.fan_out.push(row),
            OutputRow::Archived(rows) => tables.archived.append(*rows),
        }
    }
    // The other tables are small. These rows are not moved until their order is known.
    cells.sort_by(|one, other| one.in_order(other));
    tables.cells.reserve_exact(cells.len());
    tables.cells.extend(cells.into_iter().map(Arc::unwrap_or_clone));
    tables.sort();
    tables
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Waits for something before it takes rows, and then fails.
    struct Waits(Receiver<()>);

    impl Sink for Waits {
        fn take(&mut self, _: Hop, _: Tables) -> Result<(), SinkError> {
            self.0.recv()?;
            Err("the disk is gone".into())
        }
    }

    /// Other workers, and the thread that says to other processes that this one is alive, ask it meanwhile.
    #[test]
    fn regression_a_sink_that_waits_keeps_nobody_waiting_who_asks_whether_it_has_failed() {
        let (go_on, waits) = channel();
        let sink = SharedSink::new(Box::new(Waits(waits)));
        let of_worker = sink.clone();
        let worker = std::thread::spawn(move || of_worker.take(Hop(1), Tables::default()));
        let (answer, answered) = channel();
        let of_another = sink.clone();
        std::thread::spawn(move || answer.send(of_another.has_failed()));
        let within = std::time::Duration::from_secs(20);
        assert_eq!(answered.recv_timeout(within), Ok(false), "it answers while the sink waits");
        go_on.send(()).unwrap();
        worker.join().unwrap();
        assert!(sink.has_failed());
        assert_eq!(sink.failure().unwrap().to_string(), "the disk is gone");
        assert!(sink.has_failed() && sink.failure().is_none());
    }
}
