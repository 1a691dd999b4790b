//! The frames of stacks, and their names.

use std::collections::HashMap;

use fleetdiff_schemas::profile::KERNEL as OF_KERNEL;
use fleetdiff_schemas::rejected::Rejection;

use super::constants::Constants;
use super::metadata::{Class, Classes, Field, Shape, Value};
use crate::budget::Budget;
use crate::sink::{FrameDetails, FrameKind, SampleSink};

/// What a frame is counted as besides its name: a key and a place, in a map that grows.
const ENTRY: usize = 96;

/// Kinds of frames that are not Java's. async-profiler calls those of libraries what the JDK calls Java's native methods.
const KERNEL: &str = "Kernel";
const CPP: &str = "C++";
const NATIVE: &str = "Native";

/// A frame by the numbers of its method, its kind and, where details are kept, its line.
type Key = (u64, u64, u64);

/// The frames of a chunk.
pub(super) struct Frames<'c, 'a> {
    classes: &'c Classes<'a>,
    constants: &'c Constants<'c, 'a>,
    budget: &'c Budget,
    /// Whether async-profiler wrote the chunk.
    is_of_async_profiler: bool,
    known: HashMap<Key, u32, foldhash::fast::RandomState>,
}

impl<'c, 'a> Frames<'c, 'a> {
    pub(super) fn new(
        classes: &'c Classes<'a>,
        constants: &'c Constants<'c, 'a>,
        is_of_async_profiler: bool,
        budget: &'c Budget,
    ) -> Self {
        Self { classes, constants, budget, is_of_async_profiler, known: HashMap::default() }
    }

    /// The frames of a stack, root first; a single one without a symbol if the recording has not the stack.
    pub(super) fn of<S: SampleSink>(&mut self, stack: &Value<'a>, sink: &mut S) -> Result<Vec<u32>, Rejection> {
        let mut frames = Vec::new();
        let found =
            if let Value::Constant(place, number) = stack { self.constants.find(*place, *number) } else { None };
        if let Some((class, mut cursor)) = found {
            for field in &class.fields {
                let Some(of_frame) = self.class_of_frames(field) else {
                    self.classes.skip_field(field, &mut cursor)?;
                    continue;
                };
                for _ in 0..cursor.count()? {
                    let wanted = ["method", "type", "lineNumber"];
                    let values = self.classes.values(of_frame, wanted, &mut cursor, self.budget)?;
                    let frame = self.frame(values, sink)?;
                    self.budget.push(&mut frames, frame)?;
                }
            }
        }
        if frames.is_empty() {
            self.budget.push(&mut frames, nameless(sink)?)?;
        }
        frames.reverse();
        Ok(frames)
    }

    /// The type of the frames that a field of a stack lists, if that is what it does.
    fn class_of_frames(&self, field: &Field<'_>) -> Option<&'c Class<'a>> {
        match field.shape {
            Shape::Fields(place) if field.is_list && field.name == "frames" => self.classes.class(place),
            _ => None,
        }
    }

    fn frame<S: SampleSink>(&mut self, [method, kind, line]: [Value<'a>; 3], sink: &mut S) -> Result<u32, Rejection> {
        let number = |value: &Value<'_>| value.number().unwrap_or(0);
        let line = if S::KEEPS_DETAILS { number(&line) } else { 0 };
        let key = (number(&method), number(&kind), line);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.budget.take(ENTRY)?;
        let name = self.name(&method, kind)?;
        // A class stands for its file, which the recording does not name.
        let place = (line > 0 && !name.class.is_empty()).then(|| format!("{}:{line}", name.class));
        let (symbol, dso) = (name.symbol(), Some(name.library.as_str()).filter(|library| !library.is_empty()));
        let full = if name.is_of_kernel { format!("{symbol}{OF_KERNEL}") } else { symbol.clone() };
        let frame = match symbol.is_empty() {
            true => nameless(sink)?,
            false => {
                let symbol = Some(symbol.as_str());
                sink.frame(&full, FrameDetails { symbol, dso, line: place.as_deref(), ..FrameDetails::default() })?
            }
        };
        self.known.insert(key, frame);
        Ok(frame)
    }
}

impl<'a> Frames<'_, 'a> {
    /// What a method is called that is of a kind.
    fn name(&self, method: &Value<'a>, kind: Value<'a>) -> Result<Name, Rejection> {
        let [class, method] = self.constants.values(method, ["type", "name"])?;
        let [class] = self.constants.values(&class, ["name"])?;
        let (class, method) = (self.constants.text(class)?, self.constants.text(method)?.into_owned());
        let kind = self.constants.text(kind)?;
        let is_of_kernel = kind == KERNEL;
        let is_java = !is_of_kernel && kind != CPP && !(kind == NATIVE && self.is_of_async_profiler);
        Ok(match is_java {
            true => Name { class: dotted(&class), library: String::new(), method, is_of_kernel },
            false => Name { class: String::new(), library: class.into_owned(), method, is_of_kernel },
        })
    }
}

/// What a function is called.
struct Name {
    /// Empty if it is not Java's.
    class: String,
    /// Empty if it is Java's.
    library: String,
    method: String,
    is_of_kernel: bool,
}

impl Name {
    fn symbol(&self) -> String {
        match (self.class.as_str(), self.method.as_str()) {
            ("", method) => method.strip_suffix(OF_KERNEL).unwrap_or(method).to_owned(),
            (class, "") => class.to_owned(),
            (class, method) => format!("{class}.{method}"),
        }
    }
}

fn nameless<S: SampleSink>(sink: &mut S) -> Result<u32, Rejection> {
    sink.frame("", FrameDetails { kind: FrameKind::Nameless, ..FrameDetails::default() })
}

/// A class as Java writes it; what a class that the JVM made has behind its name (`Cart$$Lambda$4+0x07f/12`) is no package.
fn dotted(class: &str) -> String {
    let mut characters = class.chars().peekable();
    let mut name = String::with_capacity(class.len());
    while let Some(character) = characters.next() {
        let is_package = character == '/' && !characters.peek().is_some_and(char::is_ascii_digit);
        name.push(if is_package { '.' } else { character });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_dots() {
        assert_eq!(dotted("java/lang/Thread"), "java.lang.Thread");
        assert_eq!(
            dotted("shop/Cart$$Lambda$4+0x00000008000c0a08/543846639"),
            "shop.Cart$$Lambda$4+0x00000008000c0a08/543846639"
        );
        assert_eq!(dotted("Shop"), "Shop");
    }
}
