//! Last pass: samples to stacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use super::faults::malformed;
use super::frames::{Frames, Span};
use super::sample_labels::names_thread;
use super::tables::Tables;
use crate::budget::{ALLOCATION, Budget, too_large};
use crate::counts::{Settled, Weight};
use crate::decode::Options;
use crate::threads::Threads;
use crate::wire::fields;

/// What a cohort is counted as besides its name.
const COHORT: usize = 96;

/// Stacks, the place of the thread of each, and the threads.
pub(super) struct OfThreads {
    pub(super) stacks: Vec<Stack>,
    pub(super) of_stacks: Vec<Option<u32>>,
    pub(super) threads: Threads,
}

/// What a label names.
#[derive(Clone, Copy)]
enum Named {
    Cohort,
    Thread,
    Other,
}

/// Reads samples one after the other.
pub(super) struct Walk<'a> {
    tables: &'a Tables<'a>,
    frames: &'a Frames,
    counts: Settled,
    weight: Weight,
    columns: usize,
    cohort_label: &'a str,
    /// The last key of a label that was looked at, and what it names: that of most labels.
    last_key: Option<(i64, Named)>,
    /// The text that names the thread of the sample at hand.
    thread: Option<i64>,
    /// Cohorts by the index of their text.
    cohorts: BTreeMap<i64, Option<Cohort>>,
    /// What may still be built. A location of many functions that many samples share would else unfold without end.
    budget: &'a Budget,
    /// Where the frames of each location of the sample at hand stand, leaf first.
    spans: Vec<Span>,
    /// A location of that sample that is in no table.
    unknown: Option<u64>,
    values: Vec<i64>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        tables: &'a Tables<'a>,
        frames: &'a Frames,
        (counts, weight): (Settled, Weight),
        options: &'a Options,
    ) -> Self {
        Self {
            tables,
            frames,
            counts,
            weight,
            columns: tables.columns().map_or(0, |columns| columns.len()),
            cohort_label: &options.cohort_label,
            last_key: None,
            thread: None,
            cohorts: BTreeMap::new(),
            budget: &tables.budget,
            spans: Vec::new(),
            unknown: None,
            values: Vec::new(),
        }
    }

    pub(super) fn stacks(mut self) -> Result<Vec<Stack>, Rejection> {
        let mut stacks = self.budget.list(self.tables.samples.len())?;
        for sample in &self.tables.samples {
            stacks.extend(self.stack(sample)?);
        }
        Ok(stacks)
    }

    /// The same, with the thread of each stack.
    pub(super) fn stacks_by_thread(mut self) -> Result<OfThreads, Rejection> {
        let mut stacks = self.budget.list(self.tables.samples.len())?;
        let mut of_stacks = self.budget.list(self.tables.samples.len())?;
        let mut threads = Threads::default();
        for sample in &self.tables.samples {
            let Some(stack) = self.stack(sample)? else { continue };
            stacks.push(stack);
            let name = self.thread.map(|text| self.tables.text(text)).transpose()?.filter(|name| !name.is_empty());
            of_stacks.push(name.map(|name| threads.place(name, self.budget)).transpose()?);
        }
        Ok(OfThreads { stacks, of_stacks, threads })
    }

    /// The stack of one sample; nothing if it holds no raw sample.
    pub(super) fn stack(&mut self, sample: &[u8]) -> Result<Option<Stack>, Rejection> {
        let cohort = self.read(sample)?;
        if self.values.len() != self.columns {
            let detail = format!("a sample with {} values for {} sample types", self.values.len(), self.columns);
            return Err(malformed(&detail));
        }
        let count = self.counts.of(&self.values)?;
        let value = self.weight.value(&self.values, count);
        let length = self.length()?;
        if count == 0 {
            return Ok(None);
        }
        self.budget.take(ALLOCATION + length.saturating_mul(size_of::<u32>()))?;
        Ok(Some(Stack { frames: self.unfold(length), count, cohort, value }))
    }

    /// A value of the sample at hand, if it is not negative.
    pub(super) fn value(&self, column: usize) -> Option<u64> {
        self.values.get(column).and_then(|value| u64::try_from(*value).ok())
    }

    /// Reads locations and values into their buffers and gives the sample's own cohort.
    fn read(&mut self, sample: &[u8]) -> Result<Option<Cohort>, Rejection> {
        self.spans.clear();
        self.values.clear();
        self.thread = None;
        let mut cohort = None;
        let mut parts = fields(sample);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => {
                    let (frames, unknown) = (self.frames, &mut self.unknown);
                    let span = |id| {
                        frames.of_location(id).unwrap_or_else(|| {
                            unknown.get_or_insert(id);
                            Span::default()
                        })
                    };
                    let before = self.spans.capacity();
                    let most = self.spans.len() + self.budget.left() / (4 * size_of::<Span>());
                    if !value.append_to(&mut self.spans, most, span)? {
                        return Err(too_large());
                    }
                    self.budget.take((self.spans.capacity() - before) * size_of::<Span>())?;
                }
                2 if !value.append_to(&mut self.values, self.columns, u64::cast_signed)? => return Err(too_wide()),
                3 => {
                    let named = self.label(value.bytes()?)?;
                    cohort = cohort.or(named);
                }
                _ => {}
            }
        }
        Ok(cohort)
    }

    /// The cohort that a label names, if it is the label for that and not empty. Keeps the thread that one names.
    fn label(&mut self, label: &[u8]) -> Result<Option<Cohort>, Rejection> {
        let (mut key, mut text) = (0, 0);
        let mut parts = fields(label);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => key = value.signed()?,
                2 => text = value.signed()?,
                _ => {}
            }
        }
        match self.named_by(key)? {
            Named::Cohort => {}
            Named::Thread => {
                self.thread = self.thread.or(Some(text));
                return Ok(None);
            }
            Named::Other => return Ok(None),
        }
        if let Some(known) = self.cohorts.get(&text) {
            return Ok(known.clone());
        }
        let name = self.tables.text(text)?;
        self.budget.take(COHORT + name.len())?;
        let cohort = (!name.is_empty()).then(|| Cohort::new(Arc::from(name)));
        self.cohorts.insert(text, cohort.clone());
        Ok(cohort)
    }

    /// What labels with this key name.
    fn named_by(&mut self, key: i64) -> Result<Named, Rejection> {
        if let Some((_, named)) = self.last_key.filter(|(last, _)| *last == key) {
            return Ok(named);
        }
        let text = self.tables.text(key)?;
        let named = if text == self.cohort_label {
            Named::Cohort
        } else if names_thread(text) {
            Named::Thread
        } else {
            Named::Other
        };
        self.last_key = Some((key, named));
        Ok(named)
    }

    /// How many frames the sample at hand has.
    fn length(&self) -> Result<usize, Rejection> {
        if let Some(id) = self.unknown {
            return Err(self.frames.missing(id));
        }
        Ok(self.spans.iter().map(|span| span.len()).fold(0, usize::saturating_add))
    }

    /// The frames of the sample at hand, root first.
    fn unfold(&self, length: usize) -> Vec<u32> {
        let mut frames = Vec::with_capacity(length);
        for span in self.spans.iter().rev() {
            match self.frames.of_span(*span) {
                [frame] => frames.push(*frame),
                inlined => frames.extend(inlined.iter().rev()),
            }
        }
        frames
    }
}

#[cold]
fn too_wide() -> Rejection {
    malformed("a sample with more values than there are sample types")
}
