//! Stacks as a decoder collects them, charged to the budget of their record.

use std::borrow::Cow;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use crate::budget::{ALLOCATION, Budget};
use crate::compression::decompress;
use crate::decode::Options;
use crate::labels::{Contents, Measure};
use crate::names::{Names, Naming};
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};
use crate::ticks::FoundPeriod;

/// What a decoder of stacks keeps from record to record: its limits, and the names that it has met.
#[derive(Debug)]
pub(super) struct Collector {
    options: Options,
    naming: Naming,
}

impl Collector {
    /// One that reads within these limits.
    pub(super) fn new(options: &Options) -> Self {
        Self { options: options.clone(), naming: Naming::new(options.max_bytes, &options.rewrites) }
    }

    /// The text of a record, its compression undone.
    ///
    /// # Errors
    /// Those of [`decompress`].
    pub(super) fn text<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, Rejection> {
        decompress(bytes, self.options.max_bytes)
    }

    /// What may be built from a record of this text.
    pub(super) fn budget(&self, text: &[u8]) -> Budget {
        Budget::of(text.len(), self.options.max_built_bytes)
    }

    /// The stacks of a record that was read before, collected with what is left of its budget.
    pub(super) fn begin(&mut self, budget: &Budget) -> Collected<'_> {
        Collected::new(&mut self.naming, budget)
    }

    /// The contents of a record whose labels say this of it, as its format reads them.
    ///
    /// # Errors
    /// Those of [`decompress`] and of the format.
    pub(super) fn contents(
        &mut self,
        bytes: &[u8],
        measure: Measure,
        read: impl FnOnce(&Record<'_>, &mut Collected<'_>) -> Result<(), Rejection>,
    ) -> Result<Contents, Rejection> {
        let text = self.text(bytes)?;
        let record = Record { text: &text, budget: self.budget(&text), measure };
        let mut collected = self.begin(&record.budget);
        read(&record, &mut collected)?;
        Ok(collected.finish())
    }
}

/// Names and stacks of one record.
pub(super) struct Collected<'n> {
    names: Names<'n>,
    stacks: Vec<Stack>,
    budget: Budget,
}

impl<'n> Collected<'n> {
    fn new(naming: &'n mut Naming, budget: &Budget) -> Self {
        Self { names: Names::new(naming, budget), stacks: Vec::new(), budget: budget.clone() }
    }

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
        self.names.index_of(name)
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
        self.budget.take(ALLOCATION)?;
        self.budget.push(&mut self.stacks, stack)
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
