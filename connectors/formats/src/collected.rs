//! Stacks as a decoder collects them, held to a small multiple of the limit on its record.

use std::borrow::Cow;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::compression::decompress;
use crate::decode::Options;
use crate::labels::{Contents, Measure};
use crate::names::{Names, Naming};
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};
use crate::ticks::FoundPeriod;

/// What a decoder of stacks keeps from record to record: its limit, and the names that it has met.
#[derive(Debug)]
pub(super) struct Collector {
    max_bytes: usize,
    naming: Naming,
}

impl Collector {
    /// One that reads at most [`Options::max_bytes`] a record.
    pub(super) fn new(options: &Options) -> Self {
        Self { max_bytes: options.max_bytes, naming: Naming::new(options.max_bytes, &options.rewrites) }
    }

    /// The text of a record, its compression undone.
    ///
    /// # Errors
    /// Those of [`decompress`].
    pub(super) fn text<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, Rejection> {
        decompress(bytes, self.max_bytes)
    }

    /// A record whose labels say this of it.
    pub(super) fn record<'b>(&self, bytes: &'b [u8], measure: Measure) -> Record<'b> {
        Record { bytes, max_bytes: self.max_bytes, measure }
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
    /// What was collected.
    pub(super) fn finish(self) -> Contents {
        Contents { names: self.names.into_list(), stacks: self.stacks }
    }
}

/// A decoder needs names and counts alone.
impl SampleSink for Collected<'_> {
    const KEEPS_DETAILS: bool = false;

    fn wants_times(&self) -> bool {
        false
    }

    fn frame(&mut self, name: &str, _: FrameDetails<'_>) -> Result<u32, Rejection> {
        let index = self.names.index_of(name);
        if self.names.len() > self.most { Err(too_many("names")) } else { Ok(index) }
    }

    fn frame_at_line(&mut self, frame: u32, _: &str) -> Result<u32, Rejection> {
        Ok(frame)
    }

    fn text(&mut self, _: &str) -> Result<u32, Rejection> {
        Ok(0)
    }

    fn sample(&mut self, stack: Stack, _: SampleDetails) -> Result<(), Rejection> {
        if stack.count == 0 {
            return Ok(());
        }
        if self.stacks.len() >= self.most {
            return Err(too_many("stacks"));
        }
        self.frames_left = self.frames_left.checked_sub(stack.frames.len()).ok_or_else(|| too_many("frames"))?;
        self.stacks.push(stack);
        Ok(())
    }

    fn len(&self) -> usize {
        self.stacks.len()
    }

    fn keep(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let mut places = 0..;
        self.stacks.retain(|_| places.next().is_some_and(&mut wanted));
    }

    fn cut_back(&mut self, stacks: usize) {
        self.stacks.truncate(stacks);
    }

    fn weighed_in(&mut self, _: &str) {}

    fn ticked(&mut self, found: FoundPeriod) {
        found.log();
    }

    fn divide(&mut self, _: u64) -> bool {
        false
    }
}

#[cold]
fn too_many(what: &str) -> Rejection {
    Rejection::new(Reason::TooLarge, format!("too many {what} to hold"))
}
