//! How much memory may be made of one record.
//!
//! A record of few bytes can ask for much memory: gzip turns 600 bytes into a megabyte, and two bytes of a message are an
//! entry that takes hundreds. So whatever a decoder builds of a record (entries of tables, names, stacks, profiles, rejections)
//! is charged to one budget, which all parts of the decoder share: 4 times the record's bytes after decompression, at least
//! [`LEAST`], and at most [`Options::max_built_bytes`](crate::Options::max_built_bytes).
//!
//! Why 4 and why so much for small records: a stack takes 50 bytes and 4 a frame, a name some 300, which is 1 to 4 times what
//! they take in any format where stacks have some frames; but a line of 4 bytes is a stack too, and inlined functions make 5
//! frames of a number of 2 bytes. A record below 32 MiB, which ordinary ones are, gets 128 MiB whatever it is made of. A
//! process decodes as many records at a time as it has threads for that, so that it can afford that.
//!
//! Room is charged as it is made, not as it is filled, so that a list that grows cannot take twice what was charged. What a
//! decoder keeps from record to record (names that it has met) has limits of its own.

use std::cell::Cell;
use std::rc::Rc;

use fleetdiff_schemas::rejected::{Reason, Rejection};

/// What any record may take.
pub(crate) const LEAST: usize = 128 << 20;

/// How many times the bytes of a record may be taken.
const TIMES: usize = 4;

/// What an allocation takes besides what is in it.
pub(crate) const ALLOCATION: usize = 16;

/// Bytes that decoding a record may still take; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Rc<Cell<usize>>);

impl Budget {
    /// The budget of a record of so many bytes after decompression.
    pub(crate) fn of(record: usize, most: usize) -> Self {
        Self(Rc::new(Cell::new(record.saturating_mul(TIMES).max(LEAST).min(most))))
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// `too_large` if they are not left.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Rejection> {
        self.0.set(self.0.get().checked_sub(bytes).ok_or_else(too_large)?);
        Ok(())
    }

    /// Gives back so many bytes, of what was built and is no longer held.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_add(bytes));
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.0.get()
    }

    /// Appends an entry; room is made, and charged, for as many again as there are.
    ///
    /// # Errors
    /// `too_large` if there is no room.
    #[inline]
    pub(crate) fn push<T>(&self, list: &mut Vec<T>, entry: T) -> Result<(), Rejection> {
        if list.len() == list.capacity() {
            self.grow(list, list.len().max(4))?;
        }
        list.push(entry);
        Ok(())
    }

    /// Appends entries; room is made, and charged, for as many again as there are.
    ///
    /// # Errors
    /// `too_large` if there is no room.
    pub(crate) fn extend<T: Copy>(&self, list: &mut Vec<T>, entries: &[T]) -> Result<(), Rejection> {
        let room = list.capacity() - list.len();
        if room < entries.len() {
            self.grow(list, (entries.len() - room).max(list.len()))?;
        }
        list.extend_from_slice(entries);
        Ok(())
    }

    /// A list with room for so many entries.
    ///
    /// # Errors
    /// `too_large` if there is no room.
    pub(crate) fn list<T>(&self, entries: usize) -> Result<Vec<T>, Rejection> {
        let mut list = Vec::new();
        self.grow(&mut list, entries)?;
        Ok(list)
    }

    /// Makes room for so many more entries than a list has room for.
    fn grow<T>(&self, list: &mut Vec<T>, more: usize) -> Result<(), Rejection> {
        self.take(more.saturating_mul(size_of::<T>()))?;
        list.reserve_exact(list.capacity() - list.len() + more);
        Ok(())
    }
}

#[cold]
pub(crate) fn too_large() -> Rejection {
    Rejection::new(
        Reason::TooLarge,
        "the record unfolds into more than can be held; raise the limit or send smaller batches",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_four_times_its_size_between_two_limits() {
        let left = |record, most| Budget::of(record, most).left();
        assert_eq!(left(0, 512 << 20), 128 << 20);
        assert_eq!(left(40 << 20, 512 << 20), 160 << 20);
        assert_eq!(left(200 << 20, 512 << 20), 512 << 20);
        assert_eq!(left(usize::MAX, 7), 7);
    }

    #[test]
    fn clones_share_what_is_left() {
        let budget = Budget::of(0, 100);
        budget.clone().take(60).unwrap();
        assert_eq!(budget.take(41).unwrap_err().reason, Reason::TooLarge);
        budget.take(40).unwrap();
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn room_is_charged_as_it_is_made() {
        let budget = Budget::of(0, 1_000);
        let mut list: Vec<u64> = Vec::new();
        let mut pushed = 0;
        while budget.push(&mut list, 7).is_ok() {
            pushed += 1;
            assert_eq!(1_000 - budget.left(), list.capacity() * 8);
        }
        assert_eq!((pushed, list.capacity()), (64, 64));
        assert!(budget.list::<u8>(489).is_err());
        assert_eq!(budget.list::<u8>(488).unwrap().capacity(), 488);
    }
}
