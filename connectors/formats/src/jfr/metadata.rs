//! What a chunk says of its types: the fields that each is made of.

use std::borrow::Cow;
use std::collections::HashMap;

use fleetdiff_schemas::rejected::Rejection;

use super::cursor::{Cursor, Text};
use super::malformed;
use crate::budget::Budget;

/// How deep elements of metadata and types within types may lie; the JDK's lie 5 and 3 deep.
const DEEPEST: usize = 16;

/// What an entry of a list or a table of metadata is counted as.
const ENTRY: usize = 128;

type Map<V> = HashMap<u64, V, foldhash::fast::RandomState>;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// So many bytes.
    Bytes(usize),
    /// A number.
    Number,
    Text,
    /// The number of a constant of the type at a place.
    Constant(usize),
    /// The fields of the type at a place.
    Fields(usize),
}

/// A field of a type.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) shape: Shape,
    /// Whether it is a list of such values.
    pub(super) is_list: bool,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) struct Class<'a> {
    pub(super) id: u64,
    pub(super) name: Cow<'a, str>,
    pub(super) fields: Vec<Field<'a>>,
    /// How many types lie within it, one in the other; nothing if too many.
    depth: Option<usize>,
    /// Whether a value of it takes any bytes.
    takes_bytes: bool,
}

/// A value that was read.
#[derive(Clone, Debug, Default)]
pub(super) enum Value<'a> {
    /// It has no such field, or one that is no number and no text.
    #[default]
    Missing,
    Number(u64),
    Text(Text<'a>),
    /// A constant of the type at a place.
    Constant(usize, u64),
}

impl Value<'_> {
    /// The number that it is.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) | Self::Constant(_, number) => Some(*number),
            Self::Missing | Self::Text(_) => None,
        }
    }
}

/// The types of a chunk.
#[derive(Debug, Default)]
pub(super) struct Classes<'a> {
    list: Vec<Class<'a>>,
    places: Map<usize>,
}

impl<'a> Classes<'a> {
    /// Reads the metadata of a chunk.
    ///
    /// # Errors
    /// `malformed` if they are none; `too_large` if there is no room for them.
    pub(super) fn read(mut metadata: Cursor<'a>, budget: &Budget) -> Result<Self, Rejection> {
        let texts = metadata.count()?;
        let mut list: Vec<Cow<'a, str>> = budget.list(texts)?;
        for _ in 0..texts {
            list.push(match metadata.text(budget)? {
                Text::None => Cow::Borrowed(""),
                Text::Inline(text) => text,
                Text::Constant(_) => return Err(malformed("a name in the metadata that is a constant")),
            });
        }
        let mut elements = Elements { texts: &list, budget, found: Vec::new() };
        elements.read(&mut metadata, Parent::Other, 0)?;
        Self::of(elements.found, budget)
    }

    fn of(found: Vec<Declared<'a>>, budget: &Budget) -> Result<Self, Rejection> {
        let mut places = Map::default();
        for (place, class) in found.iter().enumerate() {
            places.insert(class.id, place);
        }
        let shapes: Vec<Option<Shape>> = found.iter().map(|class| primitive(&class.name)).collect();
        budget.take(found.len().saturating_mul(size_of::<Class<'_>>()))?;
        let mut list = Vec::with_capacity(found.len());
        for class in found {
            let mut fields = budget.list(class.fields.len())?;
            for DeclaredField { name, class, is_constant, is_list } in class.fields {
                let place = places
                    .get(&class)
                    .copied()
                    .ok_or_else(|| malformed(format!("a field {name:?} of the type {class}, which is not declared")))?;
                let shape = match shapes.get(place).copied().flatten() {
                    _ if is_constant => Shape::Constant(place),
                    Some(shape) => shape,
                    None => Shape::Fields(place),
                };
                fields.push(Field { name, shape, is_list });
            }
            list.push(Class { id: class.id, name: class.name, fields, depth: None, takes_bytes: false });
        }
        let mut classes = Self { list, places };
        classes.measure();
        Ok(classes)
    }

    /// Finds out how deep each type is and whether it takes bytes, the inner ones first; what never ends, or is too deep, has no depth.
    fn measure(&mut self) {
        for _ in 0..DEEPEST {
            let of = |class: &Class<'a>| {
                let mut inner = class.fields.iter().filter_map(|field| match field.shape {
                    Shape::Fields(place) => Some(self.list.get(place).and_then(|inner| inner.depth)),
                    _ => None,
                });
                let deepest = inner.try_fold(0, |deepest, depth| Some(depth?.max(deepest)));
                let takes_bytes = class.fields.iter().any(|field| match field.shape {
                    Shape::Fields(place) => {
                        field.is_list || self.list.get(place).is_some_and(|inner| inner.takes_bytes)
                    }
                    _ => true,
                });
                (deepest.map(|depth: usize| depth + 1), takes_bytes)
            };
            let measured: Vec<(Option<usize>, bool)> = self.list.iter().map(of).collect();
            for (class, (depth, takes_bytes)) in self.list.iter_mut().zip(measured) {
                (class.depth, class.takes_bytes) = (depth, takes_bytes);
            }
        }
    }

    /// The place of a type by the number that the chunk gives it.
    pub(super) fn place(&self, id: u64) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// The type at a place.
    pub(super) fn class(&self, place: usize) -> Option<&Class<'a>> {
        self.list.get(place)
    }

    /// A type by its name.
    pub(super) fn named(&self, name: &str) -> Option<&Class<'a>> {
        self.list.iter().find(|class| class.name == name)
    }

    /// Whether async-profiler wrote the chunk: it has types of its own, in every version some other ones.
    pub(super) fn are_of_async_profiler(&self) -> bool {
        self.list.iter().any(|class| class.name.starts_with("profiler."))
    }

    /// The values of these fields of a type, in their order.
    ///
    /// # Errors
    /// `malformed` if there are fewer bytes than values.
    pub(super) fn values<'v, const FIELDS: usize>(
        &self,
        class: &Class<'a>,
        wanted: [&str; FIELDS],
        cursor: &mut Cursor<'v>,
        budget: &Budget,
    ) -> Result<[Value<'v>; FIELDS], Rejection> {
        let mut values = [const { Value::Missing }; FIELDS];
        for field in &class.fields {
            match wanted.iter().position(|name| *name == field.name).and_then(|place| values.get_mut(place)) {
                Some(value) => *value = self.value(field, cursor, budget)?,
                None => self.skip_field(field, cursor)?,
            }
        }
        Ok(values)
    }

    fn value<'v>(&self, field: &Field<'_>, cursor: &mut Cursor<'v>, budget: &Budget) -> Result<Value<'v>, Rejection> {
        Ok(match field.shape {
            Shape::Number if !field.is_list => Value::Number(cursor.number()?),
            Shape::Bytes(1) if !field.is_list => Value::Number(cursor.byte()?.into()),
            Shape::Text if !field.is_list => Value::Text(cursor.text(budget)?),
            Shape::Constant(place) if !field.is_list => Value::Constant(place, cursor.number()?),
            _ => {
                self.skip_field(field, cursor)?;
                Value::Missing
            }
        })
    }

    /// Passes over a field.
    pub(super) fn skip_field(&self, field: &Field<'_>, cursor: &mut Cursor<'_>) -> Result<(), Rejection> {
        if !field.is_list {
            return self.skip(field.shape, cursor);
        }
        for _ in 0..cursor.count()? {
            self.skip(field.shape, cursor)?;
        }
        Ok(())
    }

    /// Passes over a value.
    fn skip(&self, shape: Shape, cursor: &mut Cursor<'_>) -> Result<(), Rejection> {
        match shape {
            Shape::Bytes(length) => cursor.take(length).map(|_| ()),
            Shape::Number | Shape::Constant(_) => cursor.number().map(|_| ()),
            Shape::Text => cursor.skip_text(),
            Shape::Fields(place) => self.skip_fields(place, cursor),
        }
    }

    /// Passes over the fields of the type at a place.
    pub(super) fn skip_fields(&self, place: usize, cursor: &mut Cursor<'_>) -> Result<(), Rejection> {
        let Some(class) = self.list.get(place) else { return Ok(()) };
        if class.depth.is_none() {
            return Err(malformed(format!("values of the type {:?}, which lies within itself", class.name)));
        }
        // What takes no bytes could lie a million times within what takes none either.
        let fields = if class.takes_bytes { class.fields.as_slice() } else { &[] };
        fields.iter().try_for_each(|field| self.skip_field(field, cursor))
    }
}

/// How values of a type are written that is made of no others.
fn primitive(name: &str) -> Option<Shape> {
    Some(match name {
        "boolean" | "byte" => Shape::Bytes(1),
        "char" | "short" | "int" | "long" => Shape::Number,
        "float" => Shape::Bytes(4),
        "double" => Shape::Bytes(8),
        "java.lang.String" => Shape::Text,
        _ => return None,
    })
}

/// A type as the metadata declare it.
struct Declared<'a> {
    id: u64,
    name: Cow<'a, str>,
    fields: Vec<DeclaredField<'a>>,
}

struct DeclaredField<'a> {
    name: Cow<'a, str>,
    class: u64,
    is_constant: bool,
    is_list: bool,
}

/// What an element lies in.
#[derive(Clone, Copy)]
enum Parent {
    /// The type at a place.
    Class(usize),
    Other,
}

/// Reads elements: a name, attributes, and elements within.
struct Elements<'t, 'a> {
    texts: &'t [Cow<'a, str>],
    budget: &'t Budget,
    found: Vec<Declared<'a>>,
}

/// The attributes that say something.
#[derive(Default)]
struct Attributes<'t, 'a> {
    id: Option<&'t Cow<'a, str>>,
    name: Option<&'t Cow<'a, str>>,
    class: Option<&'t Cow<'a, str>>,
    is_constant: bool,
    is_list: bool,
}

impl<'t, 'a> Elements<'t, 'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>, parent: Parent, depth: usize) -> Result<(), Rejection> {
        if depth > DEEPEST {
            return Err(malformed(format!("metadata of more than {DEEPEST} elements within each other")));
        }
        let name = self.text(cursor)?;
        let attributes = self.attributes(cursor)?;
        let inner = match (name.as_ref(), parent) {
            ("class", _) => Parent::Class(self.class(&attributes)?),
            ("field", Parent::Class(place)) => {
                self.field(&attributes, place)?;
                Parent::Other
            }
            _ => Parent::Other,
        };
        (0..cursor.count()?).try_for_each(|_| self.read(cursor, inner, depth + 1))
    }

    fn attributes(&self, cursor: &mut Cursor<'a>) -> Result<Attributes<'t, 'a>, Rejection> {
        let mut found = Attributes::default();
        for _ in 0..cursor.count()? {
            let (key, value) = (self.text(cursor)?, self.text(cursor)?);
            match key.as_ref() {
                "id" => found.id = Some(value),
                "name" => found.name = Some(value),
                "class" => found.class = Some(value),
                "constantPool" => found.is_constant = value == "true",
                "dimension" => found.is_list = value != "0",
                _ => {}
            }
        }
        Ok(found)
    }

    fn class(&mut self, attributes: &Attributes<'t, 'a>) -> Result<usize, Rejection> {
        let name = attributes.name.cloned().unwrap_or_default();
        let id = number(attributes.id).ok_or_else(|| malformed(format!("a type {name:?} without a number")))?;
        self.budget.take(ENTRY + name.len())?;
        self.budget.push(&mut self.found, Declared { id, name, fields: Vec::new() })?;
        Ok(self.found.len() - 1)
    }

    fn field(&mut self, attributes: &Attributes<'t, 'a>, place: usize) -> Result<(), Rejection> {
        let name = attributes.name.cloned().unwrap_or_default();
        let class = number(attributes.class).ok_or_else(|| malformed(format!("a field {name:?} without a type")))?;
        let field = DeclaredField { name, class, is_constant: attributes.is_constant, is_list: attributes.is_list };
        self.budget.take(field.name.len())?;
        self.found.get_mut(place).map_or(Ok(()), |class| self.budget.push(&mut class.fields, field))
    }

    fn text(&self, cursor: &mut Cursor<'a>) -> Result<&'t Cow<'a, str>, Rejection> {
        let number = cursor.number()?;
        let text = usize::try_from(number).ok().and_then(|place| self.texts.get(place));
        text.ok_or_else(|| malformed(format!("text {number} of the metadata, which have {}", self.texts.len())))
    }
}

fn number(text: Option<&Cow<'_, str>>) -> Option<u64> {
    text.and_then(|text| text.parse::<i64>().ok()).map(i64::cast_unsigned)
}
