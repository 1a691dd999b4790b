//! The tables of a thread, and the frames that they name.

use std::borrow::Cow;

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::document::{FrameTable, FuncTable, Library, ResourceTable, StackTable, Tables};
use crate::budget::Budget;
use crate::json::{List, Text};
use crate::sink::{FrameDetails, FrameKind, SampleSink};
use crate::v8::CallFrame;

/// What kind of resource a library is.
const LIBRARY: i64 = 1;

/// The tables of a thread: its own, and those of the file where it has none.
pub(super) struct Known<'t, 'a> {
    texts: &'t [Text<'a>],
    stacks: &'t StackTable,
    frames: &'t FrameTable,
    functions: &'t FuncTable,
    resources: Option<&'t ResourceTable>,
    /// The texts that are files.
    sources: &'t [u32],
    libraries: &'t [Library<'a>],
}

/// A library or program.
struct Module<'t> {
    name: &'t str,
    path: &'t str,
}

impl<'t, 'a> Known<'t, 'a> {
    pub(super) fn of(
        own: &'t Tables<'a>,
        shared: &'t Tables<'a>,
        libraries: &'t [Library<'a>],
    ) -> Result<Self, Rejection> {
        let missing = |table: &str| malformed(&format!("no {table:?}, of a thread or shared"));
        Ok(Self {
            texts: own.string_array.as_ref().or(shared.string_array.as_ref()).ok_or_else(|| missing("stringArray"))?,
            stacks: own.stack_table.as_ref().or(shared.stack_table.as_ref()).ok_or_else(|| missing("stackTable"))?,
            frames: own.frame_table.as_ref().or(shared.frame_table.as_ref()).ok_or_else(|| missing("frameTable"))?,
            functions: own.func_table.as_ref().or(shared.func_table.as_ref()).ok_or_else(|| missing("funcTable"))?,
            resources: own.resource_table.as_ref().or(shared.resource_table.as_ref()),
            sources: own.sources.as_ref().or(shared.sources.as_ref()).map_or(&[], |sources| &sources.filename),
            libraries,
        })
    }

    /// The places of all frames.
    pub(super) fn places<S: SampleSink>(&self, budget: &Budget, sink: &mut S) -> Result<Vec<u32>, Rejection> {
        let mut places = budget.list(self.frames.func.len())?;
        for (frame, function) in self.frames.func.iter().enumerate() {
            let function = index(*function);
            places.push(self.place(frame, function, sink).map_err(|fault| within("frame", frame, fault))?);
        }
        Ok(places)
    }

    fn place<S: SampleSink>(&self, frame: usize, function: usize, sink: &mut S) -> Result<u32, Rejection> {
        let name = self.text(*at(&self.functions.name, function, "functions")?)?;
        let file = self.file(function)?;
        let module = self.module(frame, function)?;
        let line = if S::KEEPS_DETAILS { self.line(frame, file) } else { None };
        let mut details = FrameDetails {
            symbol: Some(name).filter(|name| !name.is_empty()),
            dso: module.as_ref().map(|module| module.path),
            line: line.as_deref(),
            kind: FrameKind::Function,
        };
        let is_js = entry(self.functions.is_js.as_ref(), function).is_some_and(|is_js| *is_js);
        let full = match (file, module) {
            (Some(url), _) if is_js => {
                CallFrame { function_name: name.into(), url: url.into() }.full_name().into_owned().into()
            }
            (_, Some(module)) if is_address(name) => Cow::Owned(format!("[{}]", module.name)),
            _ => Cow::Borrowed(name),
        };
        if is_address(name) {
            (details.symbol, details.kind) = (None, FrameKind::Nameless);
        } else if given(self.frames.inline_depth.as_ref(), frame).is_some_and(|depth| depth > 0) {
            details.kind = FrameKind::Inlined;
        }
        sink.frame(&full, details)
    }

    fn text(&self, place: u32) -> Result<&'t str, Rejection> {
        at(self.texts, index(place), "texts").map(|text| &*text.0)
    }

    /// The file that a function is of.
    fn file(&self, function: usize) -> Result<Option<&'t str>, Rejection> {
        let text = match given(self.functions.source.as_ref(), function) {
            Some(source) => Some(*at(self.sources, index(source), "sources")?),
            None => given(self.functions.file_name.as_ref(), function),
        };
        text.map(|text| self.text(text)).transpose()
    }

    /// `file:line`, where both are known.
    fn line(&self, frame: usize, file: Option<&str>) -> Option<String> {
        let line = given(self.frames.line.as_ref(), frame).filter(|line| *line > 0)?;
        Some(format!("{}:{line}", file?))
    }

    /// The library that a frame is of.
    fn module(&self, frame: usize, function: usize) -> Result<Option<Module<'t>>, Rejection> {
        if let Some(library) = place(given(self.frames.lib.as_ref(), frame)) {
            return self.library(library).map(Some);
        }
        let Some(resource) = place(given(self.functions.resource.as_ref(), function)) else { return Ok(None) };
        let Some(resources) = self.resources else { return Ok(None) };
        let name = *at(&resources.name, resource, "resources")?;
        if given(resources.kind.as_ref(), resource).is_some_and(|kind| kind != LIBRARY) {
            return Ok(None);
        }
        // NB: before version 41 libraries were those of threads, and are not read.
        if let Some(library) = place(given(resources.lib.as_ref(), resource)).filter(|at| *at < self.libraries.len()) {
            return self.library(library).map(Some);
        }
        let name = name.map(|name| self.text(name)).transpose()?;
        Ok(name.map(|name| Module { name, path: name }))
    }

    fn library(&self, place: usize) -> Result<Module<'t>, Rejection> {
        let library = at(self.libraries, place, "libraries")?;
        Ok(Module { name: &library.name, path: library.path.as_ref().map_or(&library.name, |path| &path.0) })
    }

    /// The frames of a stack, root first.
    pub(super) fn path(&self, leaf: u32, frames: &[u32], budget: &Budget) -> Result<Vec<u32>, Rejection> {
        let mut path = Vec::new();
        let mut next = Some(index(leaf));
        while let Some(stack) = next {
            let frame = index(*at(&self.stacks.frame, stack, "stacks")?);
            budget.push(&mut path, *at(frames, frame, "frames")?)?;
            next = self.caller(stack)?;
        }
        path.reverse();
        Ok(path)
    }

    /// The stack that a stack was called from.
    fn caller(&self, stack: usize) -> Result<Option<usize>, Rejection> {
        let caller = match (&self.stacks.prefix, &self.stacks.prefix_offset) {
            (Some(callers), _) => at(callers, stack, "callers")?.map(index),
            (None, Some(offsets)) => match *at(offsets, stack, "callers")? {
                0 => None,
                offset => Some(stack.checked_sub(index(offset)).ok_or_else(|| late(stack))?),
            },
            (None, None) => return Err(malformed("a \"stackTable\" without \"prefix\" or \"prefixOffset\"")),
        };
        if caller.is_some_and(|caller| caller >= stack) { Err(late(stack)) } else { Ok(caller) }
    }
}

/// Whether a name is an address, of which nobody looked up the symbol.
fn is_address(name: &str) -> bool {
    name.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// A place in another table; -1 is none.
fn place(value: Option<i64>) -> Option<usize> {
    value.and_then(|value| usize::try_from(value).ok())
}

/// An entry of a column that may be missing.
fn entry<T>(column: Option<&List<T>>, place: usize) -> Option<&T> {
    column.and_then(|column| column.get(place))
}

/// The same of a column in which entries may be `null`.
fn given<T: Copy>(column: Option<&List<Option<T>>>, place: usize) -> Option<T> {
    entry(column, place).copied().flatten()
}

fn at<'t, T>(table: &'t [T], place: usize, what: &str) -> Result<&'t T, Rejection> {
    table.get(place).ok_or_else(|| {
        Rejection::new(Reason::IndexOutOfRange, format!("place {place} in a table of {} {what}", table.len()))
    })
}

fn within(what: &str, place: usize, fault: Rejection) -> Rejection {
    Rejection { detail: format!("{what} {place}: {}", fault.detail), ..fault }
}

fn late(stack: usize) -> Rejection {
    malformed(&format!("the caller of stack {stack} does not stand before it"))
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
