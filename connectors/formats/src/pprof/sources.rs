//! Frames with the file and line of their source and the file that their code is of, which decoders pass over.

use std::collections::BTreeMap;

use fleetdiff_schemas::rejected::Rejection;

use super::frames::FrameSink;
use super::tables::{Function, Tables};
use crate::observed::Observed;
use crate::sink::{FrameDetails, FrameKind, SampleSink};
use crate::wire::fields;

/// What a mapping is counted as.
const MAPPING: usize = 32;

/// Gives frames with all that is known of them.
pub(super) struct Sources<'s, 'a, 'n> {
    tables: &'s Tables<'a>,
    /// Index of the file's name by id.
    mappings: BTreeMap<u64, i64>,
    observed: &'s mut Observed<'n>,
}

impl<'s, 'a, 'n> Sources<'s, 'a, 'n> {
    /// Of a message with these tables.
    pub(super) fn of(
        message: &[u8],
        tables: &'s Tables<'a>,
        observed: &'s mut Observed<'n>,
    ) -> Result<Self, Rejection> {
        let mut mappings = BTreeMap::new();
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            if tag == 3 {
                tables.budget.take(MAPPING)?;
                mappings.extend([mapping(value.bytes()?)?]);
            }
        }
        Ok(Self { tables, mappings, observed })
    }

    /// The frame of a function, if there is one.
    fn frame_of(&mut self, function: Option<Function>, line: i64, mapping: u64) -> Result<u32, Rejection> {
        let file = self.mappings.get(&mapping).map(|file| self.tables.text(*file)).transpose()?;
        let dso = file.filter(|file| !file.is_empty());
        let name = function.map_or(Ok(""), |function| self.tables.name_of(&function))?;
        let source = function.map_or(Ok(""), |function| self.tables.text(function.file))?;
        let line = (!source.is_empty() && line > 0).then(|| format!("{source}:{line}"));
        let kind = if name.is_empty() { FrameKind::Nameless } else { FrameKind::Function };
        self.observed.frame(name, FrameDetails { symbol: None, dso, line: line.as_deref(), kind })
    }
}

impl FrameSink for Sources<'_, '_, '_> {
    type Function = Function;

    const KEEPS_FILES: bool = true;

    fn function(&mut self, name: &str, function: &Function) -> Result<Function, Rejection> {
        // Names are known in the order of their table, whoever uses them.
        self.observed.know(name)?;
        Ok(*function)
    }

    fn frame(&mut self, function: Function, line: i64, mapping: u64) -> Result<u32, Rejection> {
        self.frame_of(Some(function), line, mapping)
    }

    fn nameless(&mut self, line: i64, mapping: u64) -> Result<u32, Rejection> {
        self.frame_of(None, line, mapping)
    }
}

/// Id and name of a file.
fn mapping(message: &[u8]) -> Result<(u64, i64), Rejection> {
    let (mut id, mut file) = (0, 0);
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => id = value.number()?,
            5 => file = value.signed()?,
            _ => {}
        }
    }
    Ok((id, file))
}
