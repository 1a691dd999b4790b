//! Second pass: the name of each function, in the order of the table, and the frames of each location; every reference between
//! the tables is checked.

use fleetdiff_schemas::rejected::Rejection;

use super::ids::Ids;
use super::tables::{Function, Tables};
use crate::budget::Budget;
use crate::names::Names;
use crate::wire::fields;

/// Makes frames of the functions at a location: a decoder of their names alone, a comparison of all that is known of them.
pub(super) trait FrameSink {
    /// What is remembered of a function between its table and the lines that refer to it.
    type Function: Copy;

    /// Whether files are asked for. If not, the mapping of a location need not be found out.
    const KEEPS_FILES: bool;

    /// Takes a function of the table.
    fn function(&mut self, name: &str, function: &Function) -> Result<Self::Function, Rejection>;

    /// The frame of a function at a line of its source, in code of a mapping.
    fn frame(&mut self, function: Self::Function, line: i64, mapping: u64) -> Result<u32, Rejection>;

    /// The frame of code without a function.
    fn nameless(&mut self, line: i64, mapping: u64) -> Result<u32, Rejection>;
}

/// A decoder counts by name.
impl FrameSink for Names<'_> {
    type Function = u32;

    const KEEPS_FILES: bool = false;

    fn function(&mut self, name: &str, _: &Function) -> Result<u32, Rejection> {
        self.index_of(name)
    }

    fn frame(&mut self, function: u32, _: i64, _: u64) -> Result<u32, Rejection> {
        Ok(function)
    }

    fn nameless(&mut self, _: i64, _: u64) -> Result<u32, Rejection> {
        self.index_of("")
    }
}

/// Names all functions and gives the frames of each location.
pub(super) fn resolve<S: FrameSink>(tables: &Tables<'_>, sink: &mut S) -> Result<Frames, Rejection> {
    let budget = &tables.budget;
    let mut functions = Ids::charged(tables.functions(), budget)?;
    for function in &tables.function_table {
        functions.push(function.id, sink.function(tables.name_of(function)?, function)?);
    }
    let functions = functions.checked("function")?;
    let mut resolving = Resolving { functions, frames: budget.list(tables.locations.len())?, budget: budget.clone() };
    let mut ids = Ids::charged(tables.locations.len(), budget)?;
    for location in &tables.locations {
        let start = resolving.frames.len();
        let id = resolving.location(location, sink)?;
        ids.push(id, Span::of(start, resolving.frames.len()));
    }
    Ok(Frames { frames: resolving.frames, locations: ids.checked("location")? })
}

/// Locations on their way to frames.
struct Resolving<F> {
    functions: Ids<F>,
    frames: Vec<u32>,
    budget: Budget,
}

impl<F: Copy> Resolving<F> {
    /// Appends the frames of one location, innermost first, and gives its id.
    fn location<S: FrameSink<Function = F>>(&mut self, message: &[u8], sink: &mut S) -> Result<u64, Rejection> {
        let mapping = if S::KEEPS_FILES { mapping_of(message)? } else { 0 };
        let (mut id, start) = (0, self.frames.len());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => id = value.number()?,
                4 => {
                    let (function, line) = line_of(value.bytes()?)?;
                    let frame = match function {
                        0 => sink.nameless(line, mapping)?,
                        function => sink.frame(self.functions.get(function)?, line, mapping)?,
                    };
                    self.budget.push(&mut self.frames, frame)?;
                }
                _ => {}
            }
        }
        if self.frames.len() == start {
            self.budget.push(&mut self.frames, sink.nameless(0, mapping)?)?;
        }
        Ok(id)
    }
}

/// The mapping of a location, which may stand behind its lines.
fn mapping_of(location: &[u8]) -> Result<u64, Rejection> {
    let mut mapping = 0;
    let mut parts = fields(location);
    while let Some((tag, value)) = parts.next()? {
        if tag == 2 {
            mapping = value.number()?;
        }
    }
    Ok(mapping)
}

/// Function and number of a line.
fn line_of(message: &[u8]) -> Result<(u64, i64), Rejection> {
    let (mut function, mut number) = (0, 0);
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => function = value.number()?,
            // Only who asks for lines looks at it, so that it spoils nothing if it is no number.
            2 => number = value.signed().unwrap_or_default(),
            _ => {}
        }
    }
    Ok((function, number))
}

/// The frames of each location.
pub(super) struct Frames {
    frames: Vec<u32>,
    locations: Ids<Span>,
}

/// Where the frames of a location stand.
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// NB: a profile has fewer than 2^32 lines.
    pub(super) fn of(start: usize, end: usize) -> Self {
        let [start, end] = [start, end].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        Self { start, end }
    }

    /// How many frames.
    pub(super) fn len(self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }
}

impl Frames {
    /// Where the frames of a location stand, if it is in the table.
    #[inline]
    pub(super) fn of_location(&self, id: u64) -> Option<Span> {
        self.locations.find(id)
    }

    /// Why a location has no frames.
    pub(super) fn missing(&self, id: u64) -> Rejection {
        self.locations.missing(id)
    }

    /// Frames, innermost first, as indexes into the names.
    #[inline]
    pub(super) fn of_span(&self, span: Span) -> &[u32] {
        let [start, end] = [span.start, span.end].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        self.frames.get(start..end).unwrap_or_default()
    }
}
