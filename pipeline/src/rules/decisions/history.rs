//! What earlier runs have seen of the partitions of a source, and what follows for a run that reads it again.
//!
//! Rows are made again from the records at every start. That is possible only if all partitions still begin with the record with
//! which they began. A partition that is new since then is like one that was idle until now. One that was idle at the end is not
//! waited for again.

use std::collections::BTreeMap;
use std::ops::Range;

use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::Decision;

/// What is known of the partitions of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The first offset of each partition of which reading has begun.
    begun: BTreeMap<i32, i64>,
    /// Offset and stamp of the first record that was read.
    first: BTreeMap<i32, (i64, Option<Nanos>)>,
    /// Partitions that were idle at the end, with the offset that was to be read next.
    resting: BTreeMap<i32, i64>,
    /// Where each partition went on after records that were deleted before they were read, by the first of them.
    lost: BTreeMap<(i32, i64), i64>,
    decided_before: Hop,
}

/// How a partition begins in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It is known.
    Known,
    /// It is new to the log: its records are applied at this hop or later.
    New(Hop),
    /// It is known, but these offsets were deleted before anything of it was read.
    Lost(Range<i64>),
}

/// A partition no longer holds the records of which rows were made, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// They were deleted.
    #[error(
        "partition {partition} began with offset {was} when this output was begun, and now begins with offset {is}: the records before it are deleted (retention), so that rows cannot be made again"
    )]
    Deleted {
        /// The partition.
        partition: i32,
        /// The first offset then.
        was: i64,
        /// The first offset now.
        is: i64,
    },
    /// There are others.
    #[error(
        "partition {partition} holds other records than when this output was begun: {was}; now {is}. The topic was deleted and made anew"
    )]
    Replaced {
        /// The partition.
        partition: i32,
        /// A record then.
        was: String,
        /// What is there now.
        is: String,
    },
}

impl History {
    /// The part of a log that is about one source; nothing may be decided anew for hops before `decided_before`.
    pub fn of(source: &str, log: &[Decision], decided_before: Hop) -> Self {
        let mut history = Self { decided_before, ..Self::default() };
        for decision in log {
            match decision {
                Decision::Begun { source: of, partition, offset, from_hop } if of == source => {
                    history.begun.insert(*partition, *offset);
                    history.first.remove(partition);
                    if *from_hop > Hop(0) {
                        history.resting.insert(*partition, *offset);
                    }
                }
                Decision::First { source: of, partition, offset, stamped_at } if of == source => {
                    history.first.insert(*partition, (*offset, *stamped_at));
                }
                Decision::Idle { source: of, partition, offset: Some(offset), .. } if of == source => {
                    history.resting.insert(*partition, *offset);
                }
                Decision::Refused { source: of, partition, offset, .. } if of == source => {
                    history.resting.entry(*partition).and_modify(|next| *next = (*offset).max(*next));
                }
                Decision::Back { source: of, partition, offset, .. } if of == source => {
                    history.gave(*partition, *offset)
                }
                Decision::Lost { source: of, partition, offset, next_offset } if of == source => {
                    history.lost.insert((*partition, *offset), *next_offset);
                }
                _ => {}
            }
        }
        history
    }

    /// The first hop for which something may be decided anew.
    pub fn decided_before(&self) -> Hop {
        self.decided_before
    }

    /// How a partition begins that holds these offsets.
    ///
    /// # Errors
    /// [`Gone`] if rows were made from records that it no longer holds.
    pub fn begin(&self, partition: i32, held: &Range<i64>) -> Result<Beginning, Gone> {
        let Some(&begun) = self.begun.get(&partition) else {
            // NB: a log without any beginning is that of a first run, or of a version that wrote none.
            return Ok(Beginning::New(if self.begun.is_empty() { Hop(0) } else { self.decided_before }));
        };
        match self.first.get(&partition) {
            Some(&first) if held.end <= first.0 => {
                Err(replaced(partition, first, format!("the partition ends at offset {}", held.end)))
            }
            Some(&(first, _)) if held.start > first => self.deleted(partition, first, held.start),
            Some(_) => Ok(Beginning::Known),
            None if held.start > begun => Ok(Beginning::Lost(begun..held.start)),
            None => Ok(Beginning::Known),
        }
    }

    /// Whether the first record that this run reads of a partition is new to the log. It must be the one with which the partition
    /// began, if that is known.
    ///
    /// # Errors
    /// [`Gone`] if it is another one.
    pub fn take_first(&self, partition: i32, offset: i64, stamped_at: Option<Nanos>) -> Result<bool, Gone> {
        match self.first.get(&partition) {
            None => Ok(true),
            Some(&first) if first == (offset, stamped_at) => Ok(false),
            Some(&(first, _)) if offset > first => self.deleted(partition, first, offset).map(|_| true),
            Some(&first) => Err(replaced(partition, first, format!("it is {}", words(offset, stamped_at)))),
        }
    }

    fn deleted(&self, partition: i32, was: i64, is: i64) -> Result<Beginning, Gone> {
        // Nothing was written: rows may become others.
        if self.decided_before == Hop(0) {
            return Ok(Beginning::New(Hop(0)));
        }
        Err(Gone::Deleted { partition, was, is })
    }

    /// The offset that is read next at this one: after what an earlier run has lost there. That may look in this run as if nothing had ever
    /// been there.
    pub fn after_lost(&self, partition: i32, mut offset: i64) -> i64 {
        while let Some(next) = self.lost.get(&(partition, offset)).filter(|next| **next > offset) {
            offset = *next;
        }
        offset
    }

    /// Whether a partition was idle at the end of the log, and is where it was then or further.
    pub fn rests(&self, partition: i32, next_offset: i64) -> bool {
        self.resting.get(&partition).is_some_and(|offset| *offset <= next_offset)
    }

    /// The partition has begun after others: it is idle until it gives something.
    pub fn added(&mut self, partition: i32, offset: i64) {
        self.resting.insert(partition, offset);
    }

    /// The partition has given something good at this offset: if that is after it was found idle, it has returned.
    pub fn gave(&mut self, partition: i32, offset: i64) {
        if self.rests(partition, offset) {
            self.resting.remove(&partition);
        }
    }
}

fn replaced(partition: i32, (offset, stamped_at): (i64, Option<Nanos>), is: String) -> Gone {
    Gone::Replaced { partition, was: format!("its first record was {}", words(offset, stamped_at)), is }
}

impl Gone {
    /// The last record before a bookmark was that one, and now there is this one; each by offset and stamp.
    pub fn other_than_read(partition: i32, was: (i64, Option<Nanos>), is: (i64, Option<Nanos>)) -> Self {
        let was = format!("the last record before the checkpoint was {}", words(was.0, was.1));
        Self::Replaced { partition, was, is: format!("it is {}", words(is.0, is.1)) }
    }
}

fn words(offset: i64, stamped_at: Option<Nanos>) -> String {
    let stamp = stamped_at.map_or_else(|| "without a stamp".to_owned(), |at| format!("stamped {}", rfc3339(at)));
    format!("at offset {offset}, {stamp}")
}

#[cfg(test)]
mod tests;
