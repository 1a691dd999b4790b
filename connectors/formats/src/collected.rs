//! Stacks as a decoder collects them, held to a small multiple of the limit on its record.

use std::borrow::Cow;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::Options;
use super::compression::decompress;
use super::labels::Contents;
use super::names::{Names, Naming};

/// What a decoder of stacks keeps from record to record: its limit, and the names that it has met.
#[derive(Debug)]
pub(super) struct Collector {
    max_bytes: usize,
    naming: Naming,
}

impl Collector {
    /// One that reads at most [`Options::max_bytes`] a record.
    pub(super) fn new(options: &Options) -> Self {
        Self { max_bytes: options.max_bytes, naming: Naming::new(options) }
    }

    /// The text of a record, its compression undone.
    ///
    /// # Errors
    /// Those of [`decompress`].
    pub(super) fn text<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, Rejection> {
        decompress(bytes, self.max_bytes)
    }

    /// Nothing collected yet of a new record. A line of 3 bytes becomes a stack of some 50 and a frame of 2 bytes a number of 4, so
    /// that there is a stack and a name for each 32 bytes of the limit, and a frame for each 2.
    pub(super) fn begin(&mut self) -> Collected<'_> {
        Collected {
            names: Names::with_capacity(&mut self.naming, 0),
            stacks: Vec::new(),
            most: self.max_bytes / 32,
            frames_left: self.max_bytes / 2,
        }
    }
}

/// Names and stacks of one record.
pub(super) struct Collected<'n> {
    names: Names<'n>,
    stacks: Vec<Stack>,
    most: usize,
    frames_left: usize,
}

impl Collected<'_> {
    /// The index of a frame's name.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    pub(super) fn name(&mut self, raw: &str) -> Result<u32, Rejection> {
        let index = self.names.index_of(raw);
        if self.names.len() > self.most { Err(too_many("names")) } else { Ok(index) }
    }

    /// Adds so many samples of a stack; none leave no trace.
    ///
    /// # Errors
    /// `too_large` if there are too many stacks or frames.
    pub(super) fn push(&mut self, frames: Vec<u32>, count: u64) -> Result<(), Rejection> {
        if count == 0 {
            return Ok(());
        }
        if self.stacks.len() >= self.most {
            return Err(too_many("stacks"));
        }
        self.frames_left = self.frames_left.checked_sub(frames.len()).ok_or_else(|| too_many("frames"))?;
        self.stacks.push(Stack { frames, count, cohort: None });
        Ok(())
    }

    /// How many stacks there are.
    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Keeps the stacks for whose place this holds.
    pub(super) fn keep(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let mut places = 0..;
        self.stacks.retain(|_| places.next().is_some_and(&mut wanted));
    }

    /// Takes back all stacks but the first so many.
    pub(super) fn cut_back(&mut self, stacks: usize) {
        self.stacks.truncate(stacks);
    }

    /// What was collected.
    pub(super) fn finish(self) -> Contents {
        Contents { names: self.names.into_list(), stacks: self.stacks }
    }
}

#[cold]
fn too_many(what: &str) -> Rejection {
    Rejection::new(Reason::TooLarge, format!("too many {what} to hold"))
}
