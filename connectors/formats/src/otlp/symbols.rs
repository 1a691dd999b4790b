//! Second pass: names of functions, frames of locations, cohorts of attributes, each resolved once a record however many
//! profiles use it.

use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::dictionary::Dictionary;
use super::values::of_table;
use crate::budget::{ALLOCATION, Budget};
use crate::names::{Names, Naming};
use crate::threads::Threads;
use crate::wire::fields;

/// Not resolved yet, or not to be resolved.
const NONE: u32 = u32::MAX;

/// How many frames are kept unfolded: those of some 20,000 stacks. A record of more has many that no other sample shares.
const KEPT: usize = 1 << 19;

/// A stretch of frames.
#[derive(Clone, Copy, Default)]
struct Frames {
    start: usize,
    length: usize,
}

/// What the dictionary's entries stand for.
pub(super) struct Symbols<'d, 'a> {
    dictionary: &'d Dictionary<'a>,
    names: Names<'d>,
    /// Name of each function; [`NONE`] for one that cannot be read, and for the zeroth.
    functions: Vec<u32>,
    /// Frames of each location within `frames`; not resolved yet without any.
    locations: Vec<Frames>,
    frames: Vec<u32>,
    /// Frames of each stack within `unfolded`, root first; not there without any. Most stacks are those of many samples.
    stacks: Vec<Frames>,
    unfolded: Vec<u32>,
    /// Cohort of each attribute that was asked for.
    cohorts: Vec<Option<Option<Cohort>>>,
    cohort_label: Arc<str>,
    threads: Threads,
    /// Thread of each attribute that was asked for.
    threads_of: HashMap<u64, Option<u32>, foldhash::fast::RandomState>,
    /// Frames of the stack at hand, leaf first.
    stack: Vec<u32>,
}

impl<'d, 'a> Symbols<'d, 'a> {
    /// Names all functions in the order of their table.
    ///
    /// # Errors
    /// `too_large` if there is no room for them.
    pub(super) fn of(
        dictionary: &'d Dictionary<'a>,
        cohort_label: &Arc<str>,
        naming: &'d mut Naming,
        budget: &Budget,
    ) -> Result<Self, Rejection> {
        let mut symbols = Self {
            dictionary,
            names: Names::with_capacity(naming, budget, dictionary.functions())?,
            functions: vec![NONE; dictionary.functions()],
            locations: vec![Frames::default(); dictionary.locations()],
            frames: Vec::new(),
            stacks: vec![Frames::default(); dictionary.stacks()],
            unfolded: Vec::new(),
            cohorts: vec![None; dictionary.attributes()],
            cohort_label: Arc::clone(cohort_label),
            threads: Threads::default(),
            threads_of: HashMap::default(),
            stack: Vec::new(),
        };
        budget.take(size_of::<u32>() * dictionary.strings())?;
        symbols.name_functions()?;
        Ok(symbols)
    }

    fn name_functions(&mut self) -> Result<(), Rejection> {
        // Many functions may share a string; each string is hashed once.
        let mut by_string = vec![NONE; self.dictionary.strings()];
        for (index, name) in self.functions.iter_mut().zip(0u64..).skip(1).map(|(name, index)| (index, name)) {
            let Ok(string) = self.dictionary.name_of_function(index) else { continue };
            let Some(known) = usize::try_from(string).ok().and_then(|string| by_string.get_mut(string)) else {
                continue;
            };
            if *known == NONE {
                let Ok(text) = self.dictionary.text(string) else { continue };
                *known = self.names.index_of(text)?;
            }
            *name = *known;
        }
        Ok(())
    }

    /// The names by index.
    pub(super) fn into_names(self) -> Arc<[Arc<str>]> {
        self.names.into_list()
    }

    /// The frames of a stack, root first.
    pub(super) fn unfold(&mut self, stack: u64, budget: &Budget) -> Result<Vec<u32>, Rejection> {
        let known = usize::try_from(stack).ok().and_then(|stack| self.stacks.get(stack)).copied().unwrap_or_default();
        if known.length > 0 {
            let mut frames = budget.list(known.length)?;
            budget.take(ALLOCATION)?;
            frames.extend_from_slice(self.unfolded.get(known.start..known.start + known.length).unwrap_or_default());
            return Ok(frames);
        }
        self.stack.clear();
        let mut parts = fields(self.dictionary.stack(stack)?);
        while let Some((tag, value)) = parts.next()? {
            if tag == 1 {
                value.each(|location| self.push_location(location, budget))?;
            }
        }
        budget.take(ALLOCATION)?;
        self.keep_stack(stack, budget)?;
        Ok(self.stack.iter().rev().copied().collect())
    }

    /// Keeps the frames of the stack at hand for the next sample of it, as long as there is room.
    fn keep_stack(&mut self, index: u64, budget: &Budget) -> Result<(), Rejection> {
        let frames = Frames { start: self.unfolded.len(), length: self.stack.len() };
        let slot = usize::try_from(index).ok().and_then(|index| self.stacks.get_mut(index));
        let Some(known) = slot.filter(|_| frames.start + frames.length <= KEPT) else { return Ok(()) };
        for frame in self.stack.iter().rev() {
            budget.push(&mut self.unfolded, *frame)?;
        }
        *known = frames;
        Ok(())
    }

    /// Appends the frames of a location, innermost first.
    fn push_location(&mut self, index: u64, budget: &Budget) -> Result<(), Rejection> {
        let known = usize::try_from(index).ok().and_then(|index| self.locations.get(index)).copied();
        let Frames { start, length } = match known {
            Some(frames) if frames.length > 0 => frames,
            _ => self.resolve_location(index, budget)?,
        };
        // Once as it is put together, once as the stack.
        budget.take(2 * size_of::<u32>() * length)?;
        self.stack.extend_from_slice(self.frames.get(start..start + length).unwrap_or_default());
        Ok(())
    }

    #[cold]
    fn resolve_location(&mut self, index: u64, budget: &Budget) -> Result<Frames, Rejection> {
        let start = self.frames.len();
        let mut parts = fields(self.dictionary.location(index)?);
        while let Some((tag, value)) = parts.next()? {
            if tag == 3 {
                let frame = self.function_of_line(value.bytes()?)?;
                budget.push(&mut self.frames, frame)?;
            }
        }
        if self.frames.len() == start {
            // Without a function there is no symbol; what its address means only the machine's binaries would tell.
            budget.push(&mut self.frames, self.names.index_of("")?)?;
        }
        let frames = Frames { start, length: self.frames.len() - start };
        if let Some(known) = usize::try_from(index).ok().and_then(|index| self.locations.get_mut(index)) {
            *known = frames;
        }
        Ok(frames)
    }

    fn function_of_line(&mut self, line: &[u8]) -> Result<u32, Rejection> {
        let mut function = 0;
        let mut parts = fields(line);
        while let Some((tag, value)) = parts.next()? {
            if tag == 1 {
                function = value.number()?;
            }
        }
        match usize::try_from(function).ok().and_then(|function| self.functions.get(function)).copied() {
            Some(name) if name != NONE => Ok(name),
            _ if function == 0 => self.names.index_of(""),
            _ => Err(self.fault_of_function(function)),
        }
    }

    /// Why a function has no name that could be read.
    #[cold]
    fn fault_of_function(&self, function: u64) -> Rejection {
        let named = self.dictionary.name_of_function(function);
        let text = named.and_then(|string| self.dictionary.text(string));
        text.err()
            .unwrap_or_else(|| Rejection::new(Reason::Malformed, format!("function_table[{function}] has no name")))
    }

    /// Makes the frames of a stack those of the thread that attributes of its sample name, if one does.
    pub(super) fn of_thread(
        &mut self,
        frames: &mut [u32],
        attributes: &[u64],
        budget: &Budget,
    ) -> Result<(), Rejection> {
        for attribute in attributes {
            if let Some(thread) = self.thread(*attribute, budget)? {
                return self.threads.qualify(frames, thread, &mut self.names, budget);
            }
        }
        Ok(())
    }

    fn thread(&mut self, attribute: u64, budget: &Budget) -> Result<Option<u32>, Rejection> {
        if let Some(known) = self.threads_of.get(&attribute) {
            return Ok(*known);
        }
        let (key, value) = of_table(attribute, self.dictionary, budget)?;
        let value = value.filter(|value| key == "thread.name" && !value.is_empty());
        let thread = value.map(|value| self.threads.place(&value, budget)).transpose()?;
        budget.take(ALLOCATION)?;
        self.threads_of.insert(attribute, thread);
        Ok(thread)
    }

    /// The cohort that an attribute of a sample names, if it is the attribute for that and not empty.
    pub(super) fn cohort(&mut self, attribute: u64, budget: &Budget) -> Result<Option<Cohort>, Rejection> {
        let slot = usize::try_from(attribute).ok();
        if let Some(Some(known)) = slot.and_then(|slot| self.cohorts.get(slot)) {
            return Ok(known.clone());
        }
        let (key, value) = of_table(attribute, self.dictionary, budget)?;
        let value = value.filter(|value| key == &*self.cohort_label && !value.is_empty());
        budget.take(ALLOCATION + value.as_ref().map_or(0, |value| value.len()))?;
        let cohort = value.map(|value| Cohort::new(Arc::from(value.as_ref())));
        if let Some(known) = slot.and_then(|slot| self.cohorts.get_mut(slot)) {
            *known = Some(cohort.clone());
        }
        Ok(cohort)
    }
}
