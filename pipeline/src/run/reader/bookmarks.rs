//! From where a partition must be read again so that nothing is missed that is applied from some hop on.

use std::collections::VecDeque;

use fleetdiff_schemas::time::{Hop, Nanos};
use serde::{Deserialize, Serialize};

use crate::rules::admission::Partition;

/// A place between two records of a partition, and all that decides about the records after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::run) struct Bookmark {
    /// The offset of the first record after it.
    pub(super) offset: i64,
    /// The record before it, if there is one: it is read once more, since another one there means another topic.
    pub(super) last: Option<Seen>,
    /// What is known of the partition there.
    pub(super) known: Partition,
    /// The last hop at which anything before it is applied.
    through: Hop,
}

impl Bookmark {
    /// From which offset the partition is to be read.
    pub(in crate::run) fn read_from(&self) -> i64 {
        self.last.map_or(self.offset, |(offset, _)| offset)
    }
}

/// A record that was read: its offset and its stamp.
pub(super) type Seen = (i64, Option<Nanos>);

/// Bookmarks of one partition: of those between two boundaries only the last can be the best one for any.
#[derive(Debug)]
pub(super) struct Bookmarks {
    /// Hops between boundaries.
    every: u64,
    placed: VecDeque<Bookmark>,
    /// The last hop at which anything that was read is applied.
    through: Hop,
}

impl Bookmarks {
    /// The first one: where reading begins.
    pub(super) fn begun_at(offset: i64, known: Partition, every: u64) -> Self {
        Self::resumed(Bookmark { offset, last: None, known, through: Hop(0) }, every)
    }

    /// Goes on from a bookmark of an earlier run.
    pub(super) fn resumed(from: Bookmark, every: u64) -> Self {
        let through = from.through;
        Self { every, placed: VecDeque::from([from]), through }
    }

    /// Something that was read is applied at this hop.
    pub(super) fn applied(&mut self, hop: Hop) {
        self.through = self.through.max(hop);
    }

    /// Whether the watermark has moved since the last bookmark.
    pub(super) fn is_due(&self, watermark: Option<Hop>) -> bool {
        self.placed.back().is_none_or(|last| last.known.watermark() < watermark)
    }

    /// Places a bookmark after a record.
    pub(super) fn place(&mut self, last: Seen, known: Partition) {
        let stretch = |through: Hop| through.0 / self.every;
        self.placed.pop_back_if(|last| stretch(last.through) == stretch(self.through));
        let offset = last.0.saturating_add(1);
        self.placed.push_back(Bookmark { offset, last: Some(last), known, through: self.through });
    }

    /// The last place before which nothing is applied at this boundary or later.
    pub(super) fn before(&self, boundary: Hop) -> Option<&Bookmark> {
        self.placed.iter().take_while(|bookmark| bookmark.through < boundary).last()
    }

    /// No earlier boundary than this is asked about any more.
    pub(super) fn forget_before(&mut self, boundary: Hop) {
        let fit = self.placed.iter().take_while(|bookmark| bookmark.through < boundary).count();
        self.placed.drain(..fit.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::config::Config;

    use super::*;
    use crate::rules::admission::Admission;

    #[test]
    fn the_last_place_before_which_nothing_is_applied_later() {
        let known = Admission::new(&Config::default()).known(0);
        let mut bookmarks = Bookmarks::begun_at(3, known.clone(), 2);
        assert!(!bookmarks.is_due(None) && bookmarks.is_due(Some(Hop(1))));
        // (applied at, next offset): the record at 5 is ahead of those around it.
        for (hop, offset) in [(10, 4), (11, 5), (14, 6), (12, 7), (15, 8), (17, 9)] {
            bookmarks.applied(Hop(hop));
            bookmarks.place((offset - 1, None), known.clone());
        }
        let at = |bookmarks: &Bookmarks, hop| bookmarks.before(Hop(hop)).map(|bookmark| bookmark.offset);
        assert_eq!([6, 10, 12, 14, 16, 98].map(|hop| at(&bookmarks, hop)), [3, 3, 5, 5, 8, 9].map(Some));
        bookmarks.forget_before(Hop(14));
        assert_eq!([14, 16].map(|hop| at(&bookmarks, hop)), [5, 8].map(Some));
        assert_eq!(at(&bookmarks, 10), None);
    }
}
