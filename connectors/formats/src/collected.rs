//! Stacks as a decoder collects them, charged to the budget of their record.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use crate::budget::{ALLOCATION, Budget};
use crate::compression::decompress;
use crate::decode::Options;
use crate::labels::{Contents, Measure};
use crate::names::{Names, Naming};
use crate::record::Record;
use crate::sink::{FrameDetails, FrameKind, SampleDetails, SampleSink};
use crate::threads::{Threads, by_thread, is_by_thread};
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
        Self { options: options.clone(), naming: Naming::new(options) }
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
    pub(super) fn begin(&mut self, budget: &Budget, measure: Measure) -> Collected<'_> {
        Collected::new(&mut self.naming, budget, measure)
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
        let mut collected = self.begin(&record.budget, measure);
        read(&record, &mut collected)?;
        collected.finish()
    }
}

/// Names and stacks of one record.
pub(super) struct Collected<'n> {
    names: Names<'n>,
    stacks: Vec<Stack>,
    /// Frames that are names of threads and no functions, where roots are declared to be that or functions are counted by thread.
    roots: Option<BTreeSet<u32>>,
    /// The threads of stacks, if functions are counted by thread.
    threads: Option<OfThreads>,
    /// Nanoseconds between two samples; 0 if nobody declared them.
    tick: u64,
    budget: Budget,
}

/// What is known of threads.
#[derive(Default)]
struct OfThreads {
    threads: Threads,
    /// The thread of each stack.
    of_stacks: Vec<Option<u32>>,
}

impl<'n> Collected<'n> {
    fn new(naming: &'n mut Naming, budget: &Budget, measure: Measure) -> Self {
        let threads = is_by_thread(measure.profile_type).then(OfThreads::default);
        Self {
            names: Names::new(naming, budget),
            stacks: Vec::new(),
            roots: (threads.is_some() || measure.root_is_thread).then(BTreeSet::new),
            threads,
            tick: measure.nanoseconds(),
            budget: budget.clone(),
        }
    }

    /// What was collected.
    ///
    /// # Errors
    /// `too_large` if there is no room for functions of threads.
    pub(super) fn finish(self) -> Result<Contents, Rejection> {
        let Self { names, mut stacks, threads, budget, .. } = self;
        let names = names.into_list();
        let names = match threads {
            Some(OfThreads { mut threads, of_stacks, .. }) if of_stacks.iter().any(Option::is_some) => {
                by_thread(&names, &mut stacks, &of_stacks, &mut threads, &budget)?
            }
            _ => names,
        };
        Ok(Contents { names, stacks })
    }

    /// Takes the root off a stack if it is the name of a thread.
    fn root_of(&self, stack: &mut Stack) -> Option<u32> {
        let root = stack
            .frames
            .first()
            .copied()
            .filter(|root| self.roots.as_ref().is_some_and(|roots| roots.contains(root)))?;
        stack.frames.remove(0);
        Some(root)
    }

    /// Keeps the thread of a stack, if functions are counted by thread: its root, or else what its details say.
    fn keep_thread(&mut self, root: Option<u32>, details: SampleDetails) -> Result<(), Rejection> {
        let Some(known) = &mut self.threads else { return Ok(()) };
        let thread = match root {
            Some(root) => Some(known.threads.place(&self.names.name(root), &self.budget)?),
            None => details.comm,
        };
        self.budget.push(&mut known.of_stacks, thread)
    }
}

/// A decoder needs names and counts alone, and threads where it counts by these.
impl SampleSink for Collected<'_> {
    const KEEPS_DETAILS: bool = false;

    fn wants_times(&self) -> bool {
        false
    }

    fn frame(&mut self, name: &str, details: FrameDetails<'_>) -> Result<u32, Rejection> {
        let frame = self.names.index_of(name)?;
        if let Some(roots) = self.roots.as_mut().filter(|_| details.kind == FrameKind::Thread) {
            roots.insert(frame);
        }
        Ok(frame)
    }

    fn frame_at_line(&mut self, frame: u32, _: &str) -> Result<u32, Rejection> {
        Ok(frame)
    }

    fn text(&mut self, text: &str) -> Result<u32, Rejection> {
        self.threads.as_mut().map_or(Ok(0), |known| known.threads.place(text, &self.budget))
    }

    fn sample(&mut self, mut stack: Stack, details: SampleDetails) -> Result<(), Rejection> {
        if stack.count == 0 {
            return Ok(());
        }
        self.budget.take(ALLOCATION)?;
        let root = self.root_of(&mut stack);
        self.keep_thread(root, details)?;
        stack.value = details.weight.unwrap_or_else(|| stack.count.saturating_mul(self.tick));
        self.budget.push(&mut self.stacks, stack)
    }

    fn len(&self) -> usize {
        self.stacks.len()
    }

    fn keep(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let wanted: Vec<bool> = (0..self.stacks.len()).map(&mut wanted).collect();
        let mut places = wanted.iter();
        self.stacks.retain(|_| places.next().is_some_and(|wanted| *wanted));
        if let Some(known) = &mut self.threads {
            let mut places = wanted.iter();
            known.of_stacks.retain(|_| places.next().is_some_and(|wanted| *wanted));
        }
    }

    fn cut_back(&mut self, stacks: usize) {
        self.stacks.truncate(stacks);
        if let Some(known) = &mut self.threads {
            known.of_stacks.truncate(stacks);
        }
    }

    fn weighed_in(&mut self, _: &str) {}

    fn lost(&mut self, samples: u64) {
        tracing::warn!("{samples} samples of a profile are left out, since it does not say of what stacks they are");
    }

    fn ticked(&mut self, found: FoundPeriod) {
        found.log();
    }

    fn divide(&mut self, _: u64) -> bool {
        false
    }
}
