//! Attributes of resources, scopes, profiles and samples, their texts inline or by reference into the dictionary. Producers use
//! both forms; the Collector refers.

use std::borrow::Cow;

use fleetdiff_schemas::rejected::Rejection;

use super::dictionary::Dictionary;
use crate::budget::Budget;
use crate::wire::fields;

/// What an attribute is counted as: two texts.
const ATTRIBUTE: usize = 96;

/// Attributes in the order of the message. Of a name that stands twice the first counts: it is the sender's, for a processor
/// on the way that does not see references adds behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes<'a> {
    entries: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Attributes<'a> {
    /// Adds a `KeyValue`. One whose value is no text, number or list of texts is passed over.
    pub(super) fn add(
        &mut self,
        message: &'a [u8],
        dictionary: &Dictionary<'a>,
        budget: &Budget,
    ) -> Result<(), Rejection> {
        budget.take(ATTRIBUTE)?;
        let (mut key, mut value_of) = ("", None);
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => key = inline(value.bytes()?)?,
                2 => value_of = text_of(value.bytes()?, dictionary, budget)?,
                3 => key = dictionary.text(value.number()?)?,
                _ => {}
            }
        }
        self.entries.extend(value_of.map(|value| (key, value)));
        Ok(())
    }

    /// Adds a `KeyValueAndUnit` of the dictionary; the zeroth is none.
    pub(super) fn add_of_table(
        &mut self,
        index: u64,
        dictionary: &Dictionary<'a>,
        budget: &Budget,
    ) -> Result<(), Rejection> {
        budget.take(ATTRIBUTE)?;
        let (key, value) = of_table(index, dictionary, budget)?;
        self.entries.extend(value.map(|value| (key, value)));
        Ok(())
    }

    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there are some, and none has a name.
    pub(super) fn are_nameless(&self) -> bool {
        !self.is_empty() && self.entries.iter().all(|(key, _)| key.trim().is_empty())
    }
}

/// Name and value of an attribute of the dictionary.
pub(super) fn of_table<'a>(
    index: u64,
    dictionary: &Dictionary<'a>,
    budget: &Budget,
) -> Result<(&'a str, Option<Cow<'a, str>>), Rejection> {
    let (mut key, mut value_of) = ("", None);
    let mut parts = fields(dictionary.attribute(index)?);
    while let Some((tag, value)) = parts.next()? {
        match tag {
            1 => key = dictionary.text(value.number()?)?,
            2 => value_of = text_of(value.bytes()?, dictionary, budget)?,
            _ => {}
        }
    }
    Ok((key, value_of))
}

/// An `AnyValue` as text: numbers in decimals, a list of texts as a JSON array; nothing for what has no such form.
fn text_of<'a>(
    message: &'a [u8],
    dictionary: &Dictionary<'a>,
    budget: &Budget,
) -> Result<Option<Cow<'a, str>>, Rejection> {
    let mut text = None;
    let mut parts = fields(message);
    while let Some((tag, value)) = parts.next()? {
        text = match tag {
            1 => Some(Cow::Borrowed(inline(value.bytes()?)?)),
            2 => Some(Cow::Borrowed(if value.number()? == 0 { "false" } else { "true" })),
            3 => Some(Cow::Owned(value.signed()?.to_string())),
            4 => Some(Cow::Owned(f64::from_bits(value.fixed()?).to_string())),
            5 => Some(Cow::Owned(list_of(value.bytes()?, dictionary, budget)?)),
            8 => Some(Cow::Borrowed(dictionary.text(value.number()?)?)),
            _ => None,
        };
    }
    Ok(text)
}

/// The texts of an `ArrayValue` as a JSON array; what is no text in it is left out.
fn list_of<'a>(message: &'a [u8], dictionary: &Dictionary<'a>, budget: &Budget) -> Result<String, Rejection> {
    let mut texts = Vec::new();
    let mut values = fields(message);
    while let Some((_, value)) = values.next()? {
        let mut parts = fields(value.bytes()?);
        while let Some((tag, value)) = parts.next()? {
            let text = match tag {
                1 => inline(value.bytes()?)?,
                8 => dictionary.text(value.number()?)?,
                _ => continue,
            };
            budget.take(ATTRIBUTE + text.len())?;
            texts.push(text);
        }
    }
    // NB: a list of texts has no error to give.
    Ok(serde_json::to_string(&texts).unwrap_or_default())
}

fn inline(bytes: &[u8]) -> Result<&str, Rejection> {
    std::str::from_utf8(bytes)
        .map_err(|_| Rejection::new(fleetdiff_schemas::rejected::Reason::Malformed, "an attribute is not UTF-8"))
}
