//! What the formats in JSON share: one place where text becomes structs, and a list of lists that is held flat.

use std::fmt;
use std::ops::Range;

use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

/// Reads a document of a format.
///
/// # Errors
/// `empty` if there is nothing; `truncated` if it ends early; `malformed` with line and column if it is no JSON or not of
/// this form.
pub(super) fn read<'a, T: Deserialize<'a>>(what: &str, text: &'a [u8]) -> Result<T, Rejection> {
    if text.trim_ascii().is_empty() {
        return Err(Rejection::new(Reason::Empty, format!("no {what}: the record is empty")));
    }
    serde_json::from_slice(text).map_err(|error| {
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
            found.ends.push(found.items.len());
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
            self.0.push(item);
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
            let lists: Lists<u32> = read("list", text.as_bytes()).unwrap();
            let plain: Vec<Vec<u32>> = serde_json::from_str(text).unwrap();
            assert_eq!(lists.iter().map(<[u32]>::to_vec).collect::<Vec<_>>(), plain, "{text}");
            assert_eq!(lists.len(), plain.len());
        }
    }

    #[test]
    fn each_fault_of_the_text_has_its_reason() {
        let reason = |text: &str| read::<Lists<u32>>("list", text.as_bytes()).unwrap_err().reason;
        assert_eq!(reason(" \n"), Reason::Empty);
        for cut in ["[", "[[1", "[[1,2],", "[[1,2]", "[[-", "[[1.", "[[1e"] {
            assert_eq!(reason(cut), Reason::Truncated, "{cut}");
        }
        for bad in ["{}", "[1]", "[[-1]]", "[[4294967296]]", "[[1.5]]", "[[1]]x", "[[-]]"] {
            assert_eq!(reason(bad), Reason::Malformed, "{bad}");
        }
    }
}
