//! What is on disk of a run's rows, in memory: complete intervals stay, what waits for the end of one is lost with the process. What is
//! announced at the close of a hop has left the process, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;

/// One hop in so many is announced whatever it has.
const ANNOUNCED: u64 = 8;

/// Rows by hop.
pub type ByHop = BTreeMap<Hop, Tables>;

/// The rows that runs with one output have written; written again they must be the same.
#[derive(Clone, Default)]
pub struct Output(Arc<Mutex<Disk>>);

#[derive(Default)]
struct Disk {
    written: ByHop,
    /// Everything before this hop is written.
    before: Hop,
    /// Rows of which something was announced.
    announced: ByHop,
    /// What waited at boundaries of checkpoints.
    saved: BTreeMap<Hop, ByHop>,
}

impl Output {
    /// The rows that are on disk.
    pub fn written(&self) -> ByHop {
        self.0.lock().unwrap().written.clone()
    }

    /// Everything before this hop is on disk.
    pub fn before(&self) -> Hop {
        self.0.lock().unwrap().before
    }

    /// Nothing has left an earlier run of this hop and those after it.
    pub fn decided_before(&self) -> Hop {
        let disk = self.0.lock().unwrap();
        let announced = disk.announced.last_key_value().map_or(Hop(0), |(hop, _)| hop.plus(1));
        disk.before.max(announced)
    }

    /// How many hops had something to announce.
    pub fn announced(&self) -> usize {
        self.0.lock().unwrap().announced.len()
    }

    /// For one run; intervals are `every` hops.
    pub fn sink(&self, every: u64) -> impl Sink + use<> {
        Files { disk: self.clone(), every, waiting: ByHop::new(), written_before: self.before() }
    }
}

struct Files {
    disk: Output,
    every: u64,
    waiting: ByHop,
    /// What earlier runs have written.
    written_before: Hop,
}

impl Files {
    /// Writes the intervals that end at or before a hop.
    fn flush(&mut self, hop: Hop) {
        let end = Hop(hop.0 - hop.0 % self.every);
        let rest = self.waiting.split_off(&end);
        let disk = &mut *self.disk.0.lock().unwrap();
        for (hop, tables) in std::mem::replace(&mut self.waiting, rest) {
            let is_new = hop >= self.written_before;
            assert!(
                is_new || disk.written.contains_key(&hop),
                "{hop:?} has rows that were not written: {:?}",
                tables.ledger
            );
            let written = disk.written.entry(hop).or_insert_with(|| tables.clone());
            assert_eq!(written.ledger, tables.ledger, "the ledger of {hop:?} is written again");
            assert!(*written == tables, "{hop:?} is written again with other rows");
        }
        disk.before = disk.before.max(end);
    }

    /// Announces what is later than all that was announced before; of that, rows must be the same again. So that there is more to announce
    /// than few incidents, some hops count as one.
    fn announce(&self, hop: Hop, tables: &Tables) {
        let announced = &mut self.disk.0.lock().unwrap().announced;
        if let Some(before) = announced.get(&hop) {
            assert_eq!(before.ledger, tables.ledger, "the ledger of {hop:?}, of which something was announced");
            assert!(before == tables, "{hop:?}, of which something was announced, has other rows");
        } else if announced.last_key_value().is_none_or(|(last, _)| *last < hop) {
            let is_due = !tables.incidents.is_empty() || hop.0.is_multiple_of(ANNOUNCED);
            is_due.then(|| announced.insert(hop, tables.clone()));
        } else {
            assert!(
                tables.incidents.is_empty(),
                "{hop:?} has incidents that were not announced: {:#?}",
                tables.incidents
            );
        }
    }
}

impl Sink for Files {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        self.flush(hop);
        self.announce(hop, &tables);
        self.waiting.insert(hop, tables);
        Ok(())
    }

    fn save(&mut self, boundary: Hop) -> Result<Option<Vec<u8>>, SinkError> {
        self.flush(boundary);
        if boundary < self.written_before {
            return Ok(None);
        }
        self.disk.0.lock().unwrap().saved.insert(boundary, self.waiting.clone());
        Ok(Some(boundary.0.to_le_bytes().to_vec()))
    }

    fn resume(&mut self, saved: &[u8]) -> Result<(), SinkError> {
        let boundary = Hop(u64::from_le_bytes(saved.try_into()?));
        self.waiting = self.disk.0.lock().unwrap().saved.get(&boundary).ok_or("nothing was saved there")?.clone();
        Ok(())
    }
}
