//! The frames of the samples that are read, by their names.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::{Stack, UNSYMBOLISED};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::keys::{Key, Keys};
use super::query::{FILTERED, Parent, Reading};
use crate::budget::{ALLOCATION, Budget};
use crate::labels::Contents;
use crate::observed::{Frame, Observed, Sample, at};
use crate::sink::{FrameKind, SampleDetails};

/// What stands where a file does not say something of a frame.
pub(super) const UNKNOWN: &str = "[unknown]";

/// What stands where no caller matches the pattern of parents.
const OTHER: &str = "[other]";

/// What a name is counted as besides its text: it stands in a list and in a map.
const NAME: usize = 96;

/// Between the parts of a name, as perf has its columns.
const BETWEEN: &str = "  ";

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Names the frames of all samples. `passed` says which of them the filters let pass.
pub(super) fn named(reading: &Reading, mut observed: Observed<'_>, passed: &[bool]) -> Result<Contents, Rejection> {
    let samples = std::mem::take(&mut observed.samples);
    if reading.keys.is_none() && !reading.stream {
        return by_function(samples, observed, passed);
    }
    let mut table = FrameNames::of(&observed, reading);
    let mut stacks = observed.budget.list(samples.len())?;
    for (sample, passed) in samples.into_iter().zip(passed) {
        let frames = match (passed, reading.stream) {
            (true, false) => table.frames(&sample)?,
            (true, true) => vec![table.chain(&sample)?],
            (false, false) => vec![table.names.index_of(FILTERED)?],
            (false, true) => vec![table.chains.index_of(FILTERED)?],
        };
        stacks.push(Stack { frames, ..sample.stack });
    }
    let names = if reading.stream { table.chains } else { table.names };
    Ok(Contents { names: names.list.into(), stacks })
}

/// Frames as decoders name them.
fn by_function(samples: Vec<Sample>, mut observed: Observed<'_>, passed: &[bool]) -> Result<Contents, Rejection> {
    let filtered = passed.contains(&false).then(|| observed.names.index_of_counted(FILTERED)).transpose()?;
    let frames = samples.iter().map(|sample| sample.stack.frames.len()).fold(0, usize::saturating_add);
    observed.budget.take(frames.saturating_mul(size_of::<u32>()))?;
    observed.budget.take(samples.len().saturating_mul(size_of::<Stack>() + ALLOCATION))?;
    let name = |frame: &u32| at(&observed.frames, *frame).map_or(u32::MAX, |frame| frame.name);
    let stack = |(sample, passed): (Sample, &bool)| match filtered.filter(|_| !passed) {
        Some(filtered) => Stack { frames: vec![filtered], ..sample.stack },
        None => Stack { frames: sample.stack.frames.iter().map(name).collect(), ..sample.stack },
    };
    let stacks = samples.into_iter().zip(passed).map(stack).collect();
    Ok(Contents { names: observed.names.into_list(), stacks })
}

/// Name of a program or library without its path.
pub(super) fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Names as they are made of keys.
struct FrameNames<'o, 'n> {
    observed: &'o Observed<'n>,
    keys: Option<&'o Keys>,
    parent: &'o Parent,
    names: NameTable,
    chains: NameTable,
    /// The name of a frame where its sample was taken.
    known: Map<(u32, Surroundings), u32>,
}

/// Names that were made.
struct NameTable {
    list: Vec<Arc<str>>,
    index: Map<Arc<str>, u32>,
    budget: Budget,
}

impl NameTable {
    fn new(budget: &Budget) -> Self {
        Self { list: Vec::new(), index: Map::default(), budget: budget.clone() }
    }

    fn index_of(&mut self, name: &str) -> Result<u32, Rejection> {
        if let Some(index) = self.index.get(name) {
            return Ok(*index);
        }
        self.budget.take(NAME + name.len())?;
        let index = u32::try_from(self.list.len()).map_err(|_| too_long())?;
        let name: Arc<str> = name.into();
        self.list.push(Arc::clone(&name));
        self.index.insert(name, index);
        Ok(index)
    }
}

/// What of a sample is in the names of its frames.
type Surroundings = (SampleDetails, Option<u32>);

impl<'o, 'n> FrameNames<'o, 'n> {
    fn of(observed: &'o Observed<'n>, reading: &'o Reading) -> Self {
        let (keys, budget) = (reading.keys.as_ref(), &observed.budget);
        Self {
            observed,
            keys,
            parent: &reading.parent,
            names: NameTable::new(budget),
            chains: NameTable::new(budget),
            known: Map::default(),
        }
    }

    /// The frames of a sample, root first.
    fn frames(&mut self, sample: &Sample) -> Result<Vec<u32>, Rejection> {
        match self.keys {
            Some(keys) => self.by_keys(sample, keys),
            None => self.by_name(sample),
        }
    }

    /// All frames of a sample as one.
    fn chain(&mut self, sample: &Sample) -> Result<u32, Rejection> {
        let frames = self.frames(sample)?;
        let chain: Vec<&str> =
            frames.iter().filter_map(|frame| at(&self.names.list, *frame)).map(|name| &**name).collect();
        let chain = if chain.is_empty() { UNSYMBOLISED.to_owned() } else { chain.join(";") };
        self.chains.index_of(&chain)
    }

    fn by_name(&mut self, sample: &Sample) -> Result<Vec<u32>, Rejection> {
        let observed = self.observed;
        observed.budget.take(size_of::<u32>() * sample.stack.frames.len() + ALLOCATION)?;
        let names = sample
            .stack
            .frames
            .iter()
            .filter_map(|frame| at(&observed.frames, *frame))
            .map(|frame| observed.names.name(frame.name));
        names.map(|name| self.names.index_of(&name)).collect()
    }

    fn by_keys(&mut self, sample: &Sample, keys: &Keys) -> Result<Vec<u32>, Rejection> {
        let observed = self.observed;
        let surroundings = self.surroundings(sample, keys);
        let mut names = observed.budget.list(sample.stack.frames.len() + 1)?;
        for number in &sample.stack.frames {
            let Some(frame) = at(&observed.frames, *number).filter(|frame| frame.kind != FrameKind::Thread) else {
                continue;
            };
            let name = match self.known.get(&(*number, surroundings)) {
                Some(name) => *name,
                None => {
                    let name = self.names.index_of(&self.joined(Some(frame), surroundings, keys))?;
                    observed.budget.take(2 * size_of::<(u32, Surroundings, u32)>())?;
                    self.known.insert((*number, surroundings), name);
                    name
                }
            };
            names.push(name);
        }
        if names.is_empty() && keys.iter().any(Key::is_of_sample) {
            names.push(self.names.index_of(&self.joined(None, surroundings, keys))?);
        }
        // Calls within a library are no calls between libraries; a function that calls itself stays.
        if !keys.has(Key::Symbol) && !keys.has(Key::Srcline) {
            names.dedup();
        }
        Ok(names)
    }

    /// What of the sample the keys ask for, and nothing else, so that names are made once.
    fn surroundings(&self, sample: &Sample, keys: &Keys) -> Surroundings {
        let SampleDetails { comm, pid, tid, cpu, .. } = sample.details;
        let parent = keys.has(Key::Parent).then(|| self.parent_of(sample)).flatten();
        let of_thread = [Key::Comm, Key::Pid, Key::Tid].iter().any(|key| keys.has(*key));
        let about = SampleDetails {
            comm: comm.filter(|_| of_thread),
            pid: pid.filter(|_| keys.has(Key::Pid)),
            tid: tid.filter(|_| keys.has(Key::Tid)),
            cpu: cpu.filter(|_| keys.has(Key::Cpu)),
            ..SampleDetails::default()
        };
        (about, parent)
    }

    /// The innermost function that the pattern matches, as a place in the table of texts.
    fn parent_of(&self, sample: &Sample) -> Option<u32> {
        let frames = sample.stack.frames.iter().rev().filter_map(|frame| at(&self.observed.frames, *frame));
        let mut symbols = frames.filter(|frame| frame.kind != FrameKind::Thread).map(|frame| frame.symbol);
        symbols.find(|symbol| self.parent.is(self.text(*symbol)))
    }

    fn joined(&self, frame: Option<&Frame>, (about, parent): Surroundings, keys: &Keys) -> String {
        let named =
            frame.filter(|frame| frame.kind != FrameKind::Nameless || frame.dso.is_some() || frame.line.is_some());
        if named.is_none() && !keys.iter().any(Key::is_of_sample) {
            return UNSYMBOLISED.to_owned();
        }
        let comm = about.comm.map(|comm| self.text(comm));
        let thread = |number: Option<i64>| match (number, comm) {
            (Some(number), Some(comm)) => format!("{number}:{comm}"),
            (Some(number), None) => number.to_string(),
            (None, _) => UNKNOWN.to_owned(),
        };
        let part = |key: Key| match key {
            Key::Comm => comm.unwrap_or(UNKNOWN).to_owned(),
            Key::Pid => thread(about.pid),
            Key::Tid => thread(about.tid),
            Key::Cpu => about.cpu.map_or_else(|| UNKNOWN.to_owned(), |cpu| format!("{cpu:03}")),
            Key::Parent => parent.map_or(OTHER, |parent| self.text(parent)).to_owned(),
            Key::Dso => frame.and_then(|frame| frame.dso).map_or(UNKNOWN, |dso| short(self.text(dso))).to_owned(),
            Key::Symbol => self.symbol(frame, keys),
            Key::Srcline => frame
                .and_then(|frame| frame.line)
                .map_or_else(|| self.symbol(frame, keys), |line| short(self.text(line)).to_owned()),
        };
        keys.iter().map(part).collect::<Vec<_>>().join(BETWEEN)
    }

    /// The function; its stand-in, which names the library, only where nothing else does.
    fn symbol(&self, frame: Option<&Frame>, keys: &Keys) -> String {
        match frame {
            Some(frame) if frame.kind != FrameKind::Nameless || (!keys.has(Key::Dso) && frame.dso.is_some()) => {
                self.observed.names.name(frame.name).to_string()
            }
            _ => UNKNOWN.to_owned(),
        }
    }

    fn text(&self, place: u32) -> &'o str {
        at(&self.observed.texts, place).map_or("", |text| text)
    }
}

fn too_long() -> Rejection {
    Rejection::new(Reason::TooLarge, "the names of the frames are too long to hold")
}
