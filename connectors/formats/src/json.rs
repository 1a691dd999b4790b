//! What the formats in JSON share: one place where text becomes structs, lists whose room is charged to the budget of the
//! record, and a list of lists that is held flat.
//!
//! Who makes a struct of JSON is handed nothing but the text, so that the budget of the document at hand stands where its lists
//! find it: a thread reads one document at a time.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, Range};

use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use crate::budget::{ALLOCATION, Budget, too_large};
use crate::recognition::BYTE_ORDER_MARK;

/// Reads a document of a format.
///
/// # Errors
/// `empty` if there is nothing; `truncated` if it ends early; `malformed` with line and column if it is no JSON or not of
/// this form; `too_large` if its lists take more than the budget.
pub(super) fn read<'a, T: Deserialize<'a>>(what: &str, text: &'a [u8], budget: &Budget) -> Result<T, Rejection> {
    read_by(what, text, budget, serde_json::from_slice)
}

/// The same of a document of nests, whose form itself says how deep they may be.
///
/// # Errors
/// Those of [`read`].
pub(super) fn read_nested<'a, T: Deserialize<'a>>(what: &str, text: &'a [u8], budget: &Budget) -> Result<T, Rejection> {
    read_by(what, text, budget, |text| {
        let mut from = serde_json::Deserializer::from_slice(text);
        from.disable_recursion_limit();
        T::deserialize(&mut from).and_then(|document| from.end().map(|()| document))
    })
}

fn read_by<'a, T>(
    what: &str,
    text: &'a [u8],
    budget: &Budget,
    parse: impl FnOnce(&'a [u8]) -> serde_json::Result<T>,
) -> Result<T, Rejection> {
    // What editors and scripts of Windows write before text.
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(Rejection::new(Reason::Empty, format!("no {what}: the record is empty")));
    }
    DOCUMENT.set(Some(budget.clone()));
    let read = parse(text);
    let full = DOCUMENT.take().is_none();
    read.map_err(|error| {
        if full {
            return too_large();
        }
        // A number that ends with the text (`-`, `0.`) is reported as a wrong number.
        let cut = error.classify() == Category::Eof || (error.classify() == Category::Syntax && at_end(&error, text));
        if cut {
            Rejection::new(Reason::Truncated, format!("the {what} ends before its end: {error}"))
        } else {
            Rejection::new(Reason::Malformed, format!("no {what}: {error}"))
        }
    })
}

/// Whether it is the beginning of a number at the end of the text that is wrong.
fn at_end(error: &serde_json::Error, text: &[u8]) -> bool {
    let begun = text.last().is_some_and(|last| b"-+.eE".contains(last));
    let lines = text.split(|&byte| byte == b'\n');
    begun && lines.zip(1..).last().is_some_and(|(last, number)| error.line() == number && error.column() >= last.len())
}

thread_local! {
    /// What may still be built of the document that is being read; nothing once that was not enough.
    static DOCUMENT: Cell<Option<Budget>> = const { Cell::new(None) };
}

/// Appends an entry to a list of the document that is being read.
pub(super) fn push<T, E: serde::de::Error>(list: &mut Vec<T>, entry: T) -> Result<(), E> {
    let budget = DOCUMENT.take().ok_or_else(|| E::custom("too large"))?;
    // What an entry holds of its own, as a text that was escaped, is an allocation beside it.
    let own = if std::mem::needs_drop::<T>() { 2 * ALLOCATION } else { 0 };
    budget.take(own).and_then(|()| budget.push(list, entry)).map_err(|_| E::custom("too large"))?;
    DOCUMENT.set(Some(budget));
    Ok(())
}

/// A text that is not copied if it need not be, where there may be none: `Option<Cow<str>>` always copies.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A list whose room is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List<T>(Vec<T>);

impl<T> List<T> {
    /// Its entries, whose room is charged already.
    pub(super) fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for List<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let mut list = Vec::new();
        from.deserialize_seq(Inner(&mut list))?;
        Ok(Self(list))
    }
}

/// A list of lists, held in two: a list of 4 bytes of text would else take 40 of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists<T> {
    items: Vec<T>,
    ends: Vec<usize>,
}

impl<T> Lists<T> {
    /// How many lists.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Each list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.items.get(Range { start, end }).unwrap_or_default())
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Lists<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Outer(std::marker::PhantomData))
    }
}

struct Outer<T>(std::marker::PhantomData<T>);

impl<'a, T: Deserialize<'a>> Visitor<'a> for Outer<T> {
    type Value = Lists<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of lists")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut lists: A) -> Result<Lists<T>, A::Error> {
        let mut found = Lists { items: Vec::new(), ends: Vec::new() };
        while lists.next_element_seed(Inner(&mut found.items))?.is_some() {
            push(&mut found.ends, found.items.len())?;
        }
        Ok(found)
    }
}

/// One list, appended to those before it.
struct Inner<'v, T>(&'v mut Vec<T>);

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for Inner<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Inner<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            push(self.0, item)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_what_they_were() {
        for text in ["[]", "[[]]", "[[1,2],[],[3]]", "[[],[],[4,5,6]]"] {
            let lists: Lists<u32> = read("list", text.as_bytes(), &Budget::of(0, 1 << 20)).unwrap();
            let plain: Vec<Vec<u32>> = serde_json::from_str(text).unwrap();
            assert_eq!(lists.iter().map(<[u32]>::to_vec).collect::<Vec<_>>(), plain, "{text}");
            assert_eq!(lists.len(), plain.len());
        }
    }

    #[test]
    fn each_fault_of_the_text_has_its_reason() {
        let reason =
            |text: &str| read::<Lists<u32>>("list", text.as_bytes(), &Budget::of(0, 1 << 20)).unwrap_err().reason;
        assert_eq!(reason(" \n"), Reason::Empty);
        for cut in ["[", "[[1", "[[1,2],", "[[1,2]", "[[-", "[[1.", "[[1e"] {
            assert_eq!(reason(cut), Reason::Truncated, "{cut}");
        }
        for bad in ["{}", "[1]", "[[-1]]", "[[4294967296]]", "[[1.5]]", "[[1]]x", "[[-]]"] {
            assert_eq!(reason(bad), Reason::Malformed, "{bad}");
        }
    }

    #[test]
    fn lists_that_take_more_than_the_budget_are_too_large() {
        let text = format!("[{}1]", "1,".repeat(999));
        let of = |most| read::<List<u64>>("list", text.as_bytes(), &Budget::of(0, most)).map(|list| list.len());
        assert_eq!(of(8 << 10), Ok(1_000));
        assert_eq!(of(8 << 9).map_err(|fault| fault.reason), Err(Reason::TooLarge));
        assert_eq!(of(8 << 10), Ok(1_000), "one document leaves nothing behind");
        let lists = read::<Lists<u32>>("list", "[[],[],[],[],[]]".as_bytes(), &Budget::of(0, 4 * size_of::<usize>()));
        assert_eq!(lists.unwrap_err().reason, Reason::TooLarge);
    }
}
