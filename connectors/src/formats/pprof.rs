//! `profile.proto` of the pprof tool, the format of Go and of many others.
//!
//! The decoder's passes, in their order: undo the compression; cut the message into its tables (`tables`); choose the
//! columns that give raw samples (`formats/counts.rs`); check every function and location and name them; walk the samples.
//! Nothing is copied before it is known to be needed (`formats/wire.rs`). [`encode`] writes what [`Decoder`] reads, by the messages
//! in [`proto`]; [`delta`] subtracts a profile from another.
//!
//! A location may carry several functions (inlined ones first). One without a function or a name has no symbol. A sample
//! without locations is an empty stack. Samples whose raw count is 0 are dropped: Go emits them for allocation sites
//! that no finished garbage collection has seen.

pub mod delta;
mod encode;
mod ids;
pub mod proto;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::{Profile, ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::tables::{Frames, Tables, malformed};
use super::compression::decompress;
use super::counts::Counts;
use super::labels::{Contents, one_profile};
use super::names::Naming;
use super::wire::fields;
use super::{Decode, Labels, Options, Unit};

pub use encode::encode;

/// Decodes pprof profiles.
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    naming: Naming,
}

impl Decoder {
    /// A decoder with these limits, that takes the cohort of a sample from its label [`Options::cohort_label`].
    pub fn new(options: &Options) -> Self {
        Self { options: options.clone(), naming: Naming::new(options) }
    }

    fn contents(&mut self, mut tables: Tables<'_>, kind: ProfileType, unit: Option<Unit>) -> Result<Contents, Rejection> {
        if tables.says_nothing() {
            return Err(Rejection::new(Reason::Empty, "the profile holds no sample"));
        }
        let counts = Counts::choose(tables.meaning()?, kind, unit)?;
        let frames = tables.resolve(&mut self.naming)?;
        let stacks = Walk::new(&tables, &frames, counts, &self.options).stacks()?;
        Ok(Contents { names: frames.names, stacks })
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let max_bytes = self.options.max_bytes;
        let message = decompress(bytes, max_bytes);
        let tables = message.as_ref().map_err(Clone::clone).and_then(|message| Tables::cut(message, max_bytes));
        let window = tables.as_ref().ok().and_then(Tables::window);
        vec![one_profile(labels, window, |kind, unit| self.contents(tables?, kind, unit))]
    }
}

/// Last pass: samples to stacks.
struct Walk<'a> {
    tables: &'a Tables<'a>,
    frames: &'a Frames,
    counts: Counts,
    columns: usize,
    cohort_label: &'a str,
    /// Cohorts by the index of their text.
    cohorts: BTreeMap<i64, Option<Cohort>>,
    /// Frames that may still be made. A location of many functions that many samples share would else unfold without end.
    frames_left: usize,
    locations: Vec<u64>,
    values: Vec<i64>,
}

impl<'a> Walk<'a> {
    fn new(tables: &'a Tables<'a>, frames: &'a Frames, counts: Counts, options: &'a Options) -> Self {
        Self {
            tables,
            frames,
            counts,
            columns: tables.columns().map_or(0, |columns| columns.len()),
            cohort_label: &options.cohort_label,
            cohorts: BTreeMap::new(),
            frames_left: options.max_bytes / 4,
            locations: Vec::new(),
            values: Vec::new(),
        }
    }

    fn stacks(mut self) -> Result<Vec<Stack>, Rejection> {
        let mut stacks = Vec::with_capacity(self.tables.samples.len());
        for sample in &self.tables.samples {
            stacks.extend(self.stack(sample)?);
        }
        Ok(stacks)
    }

    /// The stack of one sample; nothing if it holds no raw sample.
    fn stack(&mut self, sample: &[u8]) -> Result<Option<Stack>, Rejection> {
        let cohort = self.read(sample)?;
        if self.values.len() != self.columns {
            let detail = format!("a sample with {} values for {} sample types", self.values.len(), self.columns);
            return Err(malformed(&detail));
        }
        let count = self.counts.of(&self.values)?;
        let frames = self.unfold()?;
        Ok((count > 0).then_some(Stack { frames, count, cohort }))
    }

    /// Reads locations and values into their buffers and gives the sample's own cohort.
    fn read(&mut self, sample: &[u8]) -> Result<Option<Cohort>, Rejection> {
        self.locations.clear();
        self.values.clear();
        let mut cohort = None;
        let mut parts = fields(sample);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => value.each(|id| push(&mut self.locations, id, self.frames_left, too_deep))?,
                2 => value.each(|number| push(&mut self.values, number.cast_signed(), self.columns, too_wide))?,
                3 if cohort.is_none() => cohort = self.cohort(value.bytes()?)?,
                _ => {}
            }
        }
        Ok(cohort)
    }

    /// The cohort that a label names, if it is the label for that and not empty.
    fn cohort(&mut self, label: &[u8]) -> Result<Option<Cohort>, Rejection> {
        let (mut key, mut text) = (0, 0);
        let mut parts = fields(label);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => key = value.signed()?,
                2 => text = value.signed()?,
                _ => {}
            }
        }
        if self.tables.text(key)? != self.cohort_label {
            return Ok(None);
        }
        if let Some(known) = self.cohorts.get(&text) {
            return Ok(known.clone());
        }
        let name = self.tables.text(text)?;
        let cohort = (!name.is_empty()).then(|| Cohort::new(Arc::from(name)));
        self.cohorts.insert(text, cohort.clone());
        Ok(cohort)
    }

    /// The frames of the sample at hand, root first.
    fn unfold(&mut self) -> Result<Vec<u32>, Rejection> {
        let mut length = 0;
        for &id in &self.locations {
            length += self.frames.of_location(id)?.len();
            if length > self.frames_left {
                return Err(too_deep());
            }
        }
        self.frames_left -= length;
        let mut frames = Vec::with_capacity(length);
        for &id in self.locations.iter().rev() {
            frames.extend(self.frames.of_location(id)?.iter().rev());
        }
        Ok(frames)
    }
}

/// Appends to a buffer that holds at most `limit`.
fn push<T>(buffer: &mut Vec<T>, entry: T, limit: usize, full: fn() -> Rejection) -> Result<(), Rejection> {
    if buffer.len() == limit {
        return Err(full());
    }
    buffer.push(entry);
    Ok(())
}

#[cold]
fn too_deep() -> Rejection {
    Rejection::new(Reason::TooLarge, "the stacks have too many frames to hold")
}

#[cold]
fn too_wide() -> Rejection {
    malformed("a sample with more values than there are sample types")
}
