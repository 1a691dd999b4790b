//! Stacks as a decoder collects them, held to a small multiple of the limit on its record.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::labels::Contents;
use super::names::{Names, Naming};

/// Names and stacks of one record.
pub(super) struct Collected<'n> {
    names: Names<'n>,
    stacks: Vec<Stack>,
    most: usize,
    frames_left: usize,
}

impl<'n> Collected<'n> {
    /// Nothing yet. A line of 3 bytes becomes a stack of some 50 and a frame of 2 bytes a number of 4, so that there is
    /// a stack and a name for each 32 bytes of the limit, and a frame for each 2.
    pub(super) fn new(naming: &'n mut Naming, max_bytes: usize) -> Self {
        Self {
            names: Names::with_capacity(naming, 0),
            stacks: Vec::new(),
            most: max_bytes / 32,
            frames_left: max_bytes / 2,
        }
    }

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
