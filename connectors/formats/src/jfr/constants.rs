//! The constants of a chunk: stacks, methods, names and threads, by number.

use std::borrow::Cow;
use std::collections::HashMap;

use fleetdiff_schemas::rejected::Rejection;

use super::chunk::Chunk;
use super::cursor::{Cursor, Text};
use super::malformed;
use super::metadata::{Class, Classes, Value};
use crate::budget::Budget;

/// The types whose constants samples lead to.
const OF_SAMPLES: [&str; 8] = [
    "jdk.types.StackTrace",
    "jdk.types.Method",
    "jdk.types.Symbol",
    "jdk.types.ThreadState",
    "jdk.types.FrameType",
    "java.lang.Class",
    STRING,
    "java.lang.Thread",
];

/// The type of texts, and of their constants.
const STRING: &str = "java.lang.String";

/// What a constant is counted as: a key and a place, in a map that grows.
const ENTRY: usize = 72;

/// How many constants may lead to one another until one is a text: a class to its name, and that to its text.
const LINKS: usize = 4;

/// Where the constants of a chunk stand, and what they are.
pub(super) struct Constants<'c, 'a> {
    classes: &'c Classes<'a>,
    budget: &'c Budget,
    /// By the place of their type and their number.
    places: HashMap<(usize, u64), Cursor<'a>, foldhash::fast::RandomState>,
    /// The place of the type of texts.
    strings: Option<usize>,
}

impl<'c, 'a> Constants<'c, 'a> {
    /// Finds all that samples lead to.
    ///
    /// # Errors
    /// `malformed` if some cannot be read; `too_large` if there is no room for them.
    pub(super) fn of_samples(
        chunk: &Chunk<'a>,
        classes: &'c Classes<'a>,
        budget: &'c Budget,
    ) -> Result<Self, Rejection> {
        Self::read(chunk, classes, &OF_SAMPLES, budget)
    }

    /// Finds the texts alone.
    ///
    /// # Errors
    /// As for all.
    pub(super) fn texts(chunk: &Chunk<'a>, classes: &'c Classes<'a>, budget: &'c Budget) -> Result<Self, Rejection> {
        Self::read(chunk, classes, &[STRING], budget)
    }

    fn read(chunk: &Chunk<'a>, classes: &'c Classes<'a>, kept: &[&str], budget: &'c Budget) -> Result<Self, Rejection> {
        let strings = classes.named(STRING).and_then(|class| classes.place(class.id));
        let mut constants = Self { classes, budget, places: HashMap::default(), strings };
        chunk.constants(|lists| constants.take(lists, kept))?;
        Ok(constants)
    }

    /// Takes the lists that were written at one moment. Of a constant that was written again, the last is kept, which comes first.
    fn take(&mut self, mut lists: Cursor<'a>, kept: &[&str]) -> Result<(), Rejection> {
        for _ in 0..lists.count()? {
            let id = lists.number()?;
            let place = self.classes.place(id);
            let known = place.and_then(|place| self.classes.class(place).map(|class| (place, class)));
            let (place, class) =
                known.ok_or_else(|| malformed(format!("constants of the type {id}, which is unknown")))?;
            let is_kept = kept.contains(&class.name.as_ref());
            for _ in 0..lists.count()? {
                let number = lists.number()?;
                let value = lists;
                if class.name == STRING {
                    lists.skip_text()?;
                } else {
                    self.classes.skip_fields(place, &mut lists)?;
                }
                if is_kept {
                    self.budget.take(ENTRY)?;
                    self.places.entry((place, number)).or_insert(value);
                }
            }
        }
        Ok(())
    }

    /// A constant and its type.
    pub(super) fn find(&self, place: usize, number: u64) -> Option<(&'c Class<'a>, Cursor<'a>)> {
        self.classes.class(place).zip(self.places.get(&(place, number)).copied())
    }

    /// The values of some fields of a constant.
    pub(super) fn values<const FIELDS: usize>(
        &self,
        value: &Value<'_>,
        wanted: [&str; FIELDS],
    ) -> Result<[Value<'a>; FIELDS], Rejection> {
        let found = if let Value::Constant(place, number) = value { self.find(*place, *number) } else { None };
        match found {
            Some((class, mut cursor)) => self.classes.values(class, wanted, &mut cursor, self.budget),
            None => Ok([const { Value::Missing }; FIELDS]),
        }
    }

    /// The text that a value is, or leads to; empty if it is none.
    pub(super) fn text(&self, value: Value<'a>) -> Result<Cow<'a, str>, Rejection> {
        let mut value = value;
        for _ in 0..LINKS {
            value = match value {
                Value::Text(Text::Inline(text)) => return Ok(text),
                Value::Text(Text::Constant(number)) => match self.string(number) {
                    Some(mut cursor) => Value::Text(cursor.text(self.budget)?),
                    None => Value::Missing,
                },
                Value::Constant(place, number) => match self.find(place, number) {
                    Some((class, mut cursor)) if class.name == STRING => Value::Text(cursor.text(self.budget)?),
                    Some((class, mut cursor)) => {
                        let name = class.fields.iter().map(|field| field.name.as_ref()).find(|name| is_text(name));
                        let [value] =
                            self.classes.values(class, [name.unwrap_or_default()], &mut cursor, self.budget)?;
                        value
                    }
                    None => Value::Missing,
                },
                Value::Number(_) | Value::Missing | Value::Text(Text::None) => break,
            };
        }
        Ok(Cow::Borrowed(""))
    }

    fn string(&self, number: u64) -> Option<Cursor<'a>> {
        self.places.get(&(self.strings?, number)).copied()
    }
}

/// Whether a field of a constant holds the text that stands for it: of symbols, classes, states, and kinds of frames.
fn is_text(field: &str) -> bool {
    ["string", "name", "description"].contains(&field)
}
