//! First pass: the tables that all profiles of a record share. Entries stay slices of the record until a profile needs them, so
//! that a bad entry spoils the profiles that use it and no other.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::budget::Budget;
use crate::wire::{WireFault, fields};

/// What an entry of a table is counted as besides its slice: what is resolved from it.
const ENTRY: usize = 24;

/// The tables. Mappings and links are not read.
#[derive(Default)]
pub(super) struct Dictionary<'a> {
    strings: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    attributes: Vec<&'a [u8]>,
    stacks: Vec<&'a [u8]>,
}

impl<'a> Dictionary<'a> {
    /// Adds the tables of a message; protobuf lets a message come in pieces.
    pub(super) fn add(&mut self, message: &'a [u8], budget: &Budget) -> Result<(), Rejection> {
        let mut fields = fields(message);
        while let Some((tag, value)) = fields.next()? {
            let table = match tag {
                2 => &mut self.locations,
                3 => &mut self.functions,
                5 => &mut self.strings,
                6 => &mut self.attributes,
                7 => &mut self.stacks,
                _ => continue,
            };
            budget.take(ENTRY)?;
            budget.push(table, value.bytes()?)?;
        }
        Ok(())
    }

    /// Whether these are the tables of their record, as far as that can be told.
    ///
    /// # Errors
    /// [`Reason::UnsupportedVersion`] without tables, [`Reason::Malformed`] if they are those of something else.
    pub(super) fn check(&self) -> Result<(), Rejection> {
        match self.strings.first() {
            None => Err(Rejection::new(
                Reason::UnsupportedVersion,
                "no dictionary, expected the one of opentelemetry-proto 1.10 (until 1.6 each profile had its own tables)",
            )),
            Some(first) if !first.is_empty() => Err(Rejection::new(
                Reason::Malformed,
                format!(
                    "string_table[0] is {:?}, expected \"\": the profiles were parted from their dictionary (the Collector's \
                     kafkaexporter does that with topic_from_attribute: name the topic itself)",
                    shortened(first),
                ),
            )),
            Some(_) => Ok(()),
        }
    }

    /// How many functions there are, the zeroth included.
    pub(super) fn functions(&self) -> usize {
        self.functions.len()
    }

    pub(super) fn locations(&self) -> usize {
        self.locations.len()
    }

    pub(super) fn stacks(&self) -> usize {
        self.stacks.len()
    }

    pub(super) fn strings(&self) -> usize {
        self.strings.len()
    }

    pub(super) fn attributes(&self) -> usize {
        self.attributes.len()
    }

    /// A string of the table.
    pub(super) fn text(&self, index: u64) -> Result<&'a str, Rejection> {
        let bytes = entry(&self.strings, "string_table", index)?;
        std::str::from_utf8(bytes)
            .map_err(|_| Rejection::new(Reason::Malformed, format!("string_table[{index}] is not UTF-8")))
    }

    pub(super) fn location(&self, index: u64) -> Result<&'a [u8], Rejection> {
        entry(&self.locations, "location_table", index)
    }

    pub(super) fn stack(&self, index: u64) -> Result<&'a [u8], Rejection> {
        entry(&self.stacks, "stack_table", index)
    }

    pub(super) fn attribute(&self, index: u64) -> Result<&'a [u8], Rejection> {
        entry(&self.attributes, "attribute_table", index)
    }

    /// The string that names a function: the one for people, else the one for the linker; 0 if it has none.
    pub(super) fn name_of_function(&self, index: u64) -> Result<u64, Rejection> {
        let mut names = (0, 0);
        let mut parts = fields(entry(&self.functions, "function_table", index)?);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => names.0 = value.number()?,
                2 => names.1 = value.number()?,
                _ => {}
            }
        }
        let unnamed = names.0 == 0 || entry(&self.strings, "string_table", names.0)?.is_empty();
        Ok(if unnamed { names.1 } else { names.0 })
    }
}

fn entry<'a>(table: &[&'a [u8]], name: &str, index: u64) -> Result<&'a [u8], Rejection> {
    let found = usize::try_from(index).ok().and_then(|index| table.get(index)).copied();
    found.ok_or_else(|| {
        let detail = format!("{name}[{}] in a table of {}", index.cast_signed(), table.len());
        Rejection::new(Reason::IndexOutOfRange, detail)
    })
}

/// A field of another kind than in 1.10: the numbers of fields have moved from version to version.
#[cold]
pub(super) fn of_other_version(fault: WireFault) -> Rejection {
    match fault {
        WireFault::OtherKind(what) => {
            let detail = format!("{what}, as in records of opentelemetry-proto 1.9 and before, expected 1.10");
            Rejection::new(Reason::UnsupportedVersion, detail)
        }
        WireFault::Broken(_) => fault.into(),
    }
}

/// The beginning of a text, for a message.
pub(super) fn shortened(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}
