//! Through which hop everything has arrived.
//!
//! Sources report the watermark of each partition; worker 0 keeps the board and announces "closed through H". A
//! partition that has ended or is declared idle is not waited for; one that comes back is applied from the announced
//! hop on.

use std::collections::BTreeMap;

use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};

/// The state of a partition, as its source reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartitionState {
    /// Owned, but it has given no good record yet.
    Silent,
    /// Nothing will be applied before this hop.
    Watermark(Hop),
    /// Idle: it has given nothing for a while, and is not waited for until it comes back.
    Idle,
    /// Ended: it will give nothing more.
    Ended,
}

/// A report of one partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Report {
    /// Topic or folder.
    pub source: String,
    /// The partition.
    pub partition: i32,
    /// Its state.
    pub state: PartitionState,
    /// Offset that is read next.
    pub next_offset: i64,
}

/// What is announced to all sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Announced {
    /// Nothing is closed.
    #[default]
    Nothing,
    /// Nothing will be applied before this hop: all before it are closed.
    OpenFrom(Hop),
    /// Every hop is closed.
    All,
}

/// The watermarks of all partitions.
#[derive(Debug)]
pub struct WatermarkBoard {
    partitions: BTreeMap<(String, i32), PartitionState>,
    readers_awaited: usize,
    announced: Announced,
}

impl WatermarkBoard {
    /// A board that announces nothing until this many readers have reported all their partitions once.
    pub fn awaiting(readers: usize) -> Self {
        Self { partitions: BTreeMap::new(), readers_awaited: readers, announced: Announced::Nothing }
    }

    /// A reader has named all its partitions.
    pub fn reader_is_complete(&mut self) {
        self.readers_awaited = self.readers_awaited.saturating_sub(1);
    }

    /// Takes a report.
    pub fn report(&mut self, report: Report) {
        self.partitions.insert((report.source, report.partition), report.state);
    }

    /// What can be announced now, if that is more than before. An announcement is never retracted.
    pub fn announce(&mut self) -> Option<Announced> {
        if self.readers_awaited > 0 {
            return None;
        }
        let hops = self.partitions.values().filter_map(|state| match state {
            PartitionState::Silent => Some(Hop(0)),
            PartitionState::Watermark(hop) => Some(*hop),
            PartitionState::Idle | PartitionState::Ended => None,
        });
        let all_ended = self.partitions.values().all(|state| *state == PartitionState::Ended);
        let now = match hops.min() {
            Some(hop) => Announced::OpenFrom(hop),
            None if all_ended => Announced::All,
            None => self.announced,
        };
        (now > self.announced).then(|| {
            self.announced = now;
            now
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(partition: i32, state: PartitionState) -> Report {
        Report { source: "t".to_owned(), partition, state, next_offset: 0 }
    }

    #[test]
    fn the_slowest_partition_decides_and_nothing_is_taken_back() {
        let mut board = WatermarkBoard::awaiting(2);
        board.report(report(0, PartitionState::Watermark(Hop(7))));
        board.reader_is_complete();
        assert_eq!(board.announce(), None, "a reader has not named its partitions");
        board.report(report(1, PartitionState::Silent));
        board.reader_is_complete();
        assert_eq!(board.announce(), Some(Announced::OpenFrom(Hop(0))));
        board.report(report(1, PartitionState::Watermark(Hop(5))));
        assert_eq!(board.announce(), Some(Announced::OpenFrom(Hop(5))));
        board.report(report(1, PartitionState::Idle));
        assert_eq!(board.announce(), Some(Announced::OpenFrom(Hop(7))));
        board.report(report(1, PartitionState::Watermark(Hop(6))));
        assert_eq!(board.announce(), None);
        board.report(report(0, PartitionState::Ended));
        board.report(report(1, PartitionState::Ended));
        assert_eq!(board.announce(), Some(Announced::All));
    }
}
