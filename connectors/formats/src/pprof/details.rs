//! Frames with the file and line of their source and the file that their code is of, which decoders pass over.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::rejected::Rejection;

use super::ids::Ids;
use super::tables::{Frames, Span, Tables};
use crate::reading::{FrameKind, Observed, Said};
use crate::wire::fields;

/// What stands of a function in its table, as indexes of strings.
#[derive(Clone, Copy, Default)]
struct Function {
    name: i64,
    system_name: i64,
    file: i64,
}

/// Names the frames of each location of a message, and says what else is known of them.
pub(super) fn resolve(message: &[u8], tables: &Tables<'_>, observed: &mut Observed<'_>) -> Result<Frames, Rejection> {
    let (mut functions, mut mappings) = (Vec::new(), BTreeMap::new());
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            3 => mappings.extend([mapping(value.bytes()?)?]),
            5 => functions.push(function(value.bytes()?)?),
            _ => {}
        }
    }
    let mut by_id = Ids::with_capacity(functions.len());
    for (id, function) in functions {
        // Names are known in the order of their table, whoever uses them.
        observed.know(name_of(function, tables)?);
        by_id.push(id, function);
    }
    let names = Locations { tables, functions: by_id.checked("function")?, mappings };
    let (mut frames, mut ids) = (Vec::new(), Ids::with_capacity(0));
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        if tag == 4 {
            let start = frames.len();
            let id = names.location(value.bytes()?, observed, &mut frames)?;
            ids.push(id, Span::of(start, frames.len()));
        }
    }
    Ok(Frames::new(Arc::default(), frames, ids.checked("location")?))
}

fn name_of<'a>(function: Function, tables: &Tables<'a>) -> Result<&'a str, Rejection> {
    let name = tables.text(function.name)?;
    if name.is_empty() { tables.text(function.system_name) } else { Ok(name) }
}

/// What locations refer to.
struct Locations<'t, 'a> {
    tables: &'t Tables<'a>,
    functions: Ids<Function>,
    /// Index of the file's name by id.
    mappings: BTreeMap<u64, i64>,
}

impl Locations<'_, '_> {
    /// Appends the frames of one location, innermost first, and gives its id.
    fn location(&self, message: &[u8], observed: &mut Observed<'_>, frames: &mut Vec<u32>) -> Result<u64, Rejection> {
        let (mut id, mut mapping, mut lines) = (0, 0, Vec::new());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => id = value.number()?,
                2 => mapping = value.number()?,
                4 => lines.push(line(value.bytes()?)?),
                _ => {}
            }
        }
        let file = self.mappings.get(&mapping).map(|file| self.tables.text(*file)).transpose()?;
        let dso = file.filter(|file| !file.is_empty());
        let nameless = Said { dso, kind: FrameKind::Nameless, ..Said::default() };
        for (function_id, number) in &lines {
            let function = if *function_id == 0 { Function::default() } else { self.functions.get(*function_id)? };
            let name = name_of(function, self.tables)?;
            let source = self.tables.text(function.file)?;
            let line = (!source.is_empty() && *number > 0).then(|| format!("{source}:{number}"));
            let said = if name.is_empty() { nameless } else { Said { dso, ..Said::default() } };
            frames.push(observed.frame(name, Said { line: line.as_deref(), ..said })?);
        }
        if lines.is_empty() {
            frames.push(observed.frame("", nameless)?);
        }
        Ok(id)
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

fn function(message: &[u8]) -> Result<(u64, Function), Rejection> {
    let (mut id, mut read) = (0, Function::default());
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => id = value.number()?,
            2 => read.name = value.signed()?,
            3 => read.system_name = value.signed()?,
            4 => read.file = value.signed()?,
            _ => {}
        }
    }
    Ok((id, read))
}

/// Function and number of a line.
fn line(message: &[u8]) -> Result<(u64, i64), Rejection> {
    let (mut function, mut number) = (0, 0);
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => function = value.number()?,
            2 => number = value.signed()?,
            _ => {}
        }
    }
    Ok((function, number))
}
