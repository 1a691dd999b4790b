//! The numbers and texts of a recording.

use std::borrow::Cow;

use fleetdiff_schemas::rejected::Rejection;

use super::malformed;
use crate::budget::Budget;

/// Bytes of a chunk, read one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A text as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Text<'a> {
    /// No text at all.
    #[default]
    None,
    /// The text itself.
    Inline(Cow<'a, str>),
    /// The number of one among the constants.
    Constant(u64),
}

impl<'a> Cursor<'a> {
    /// Begins at a place of these bytes.
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    /// Where it stands.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Rejection> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.too_short(length))?;
        self.at += length;
        Ok(taken)
    }

    /// The next byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Rejection> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.too_short(1))?;
        self.at += 1;
        Ok(byte)
    }

    /// A number of one to nine bytes: seven bits of it in each, the lowest first, and eight in the ninth.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Rejection> {
        let mut number = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << 56)
    }

    /// How many things follow, each of at least a byte.
    pub(super) fn count(&mut self) -> Result<usize, Rejection> {
        let count = self.number()?;
        let fits = usize::try_from(count).ok().filter(|count| *count <= self.left());
        fits.ok_or_else(|| malformed(format!("a list of {count} entries in the {} bytes that are left", self.left())))
    }

    /// A text; what has to be written anew is charged.
    pub(super) fn text(&mut self, budget: &Budget) -> Result<Text<'a>, Rejection> {
        Ok(match self.byte()? {
            0 => Text::None,
            1 => Text::Inline(Cow::Borrowed("")),
            2 => Text::Constant(self.number()?),
            3 => {
                let bytes = self.counted()?;
                let text = String::from_utf8_lossy(bytes);
                if let Cow::Owned(text) = &text {
                    budget.take(text.len())?;
                }
                Text::Inline(text)
            }
            4 => Text::Inline(Cow::Owned(self.characters(budget)?)),
            5 => {
                let bytes = self.counted()?;
                budget.take(2 * bytes.len())?;
                Text::Inline(Cow::Owned(bytes.iter().copied().map(char::from).collect()))
            }
            other => return Err(malformed(format!("a text of kind {other}, expected 0 to 5"))),
        })
    }

    /// Passes over a text.
    pub(super) fn skip_text(&mut self) -> Result<(), Rejection> {
        match self.byte()? {
            0 | 1 => Ok(()),
            2 => self.number().map(|_| ()),
            3 | 5 => self.counted().map(|_| ()),
            4 => (0..self.count()?).try_for_each(|_| self.number().map(|_| ())),
            other => Err(malformed(format!("a text of kind {other}, expected 0 to 5"))),
        }
    }

    fn counted(&mut self) -> Result<&'a [u8], Rejection> {
        let length = self.count()?;
        self.take(length)
    }

    /// A text of numbers of UTF-16.
    fn characters(&mut self, budget: &Budget) -> Result<String, Rejection> {
        let length = self.count()?;
        let mut units: Vec<u16> = budget.list(length)?;
        for _ in 0..length {
            let unit = self.number()?;
            units.push(u16::try_from(unit).map_err(|_| malformed(format!("the character {unit} in a text")))?);
        }
        budget.take(3 * length)?;
        Ok(String::from_utf16_lossy(&units))
    }

    #[cold]
    fn too_short(&self, length: usize) -> Rejection {
        malformed(format!("{length} bytes expected, {} are left", self.left()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u64, Rejection> {
        Cursor::at(bytes, 0).number()
    }

    #[test]
    fn numbers_have_up_to_nine_bytes() {
        assert_eq!(number(&[0]).unwrap(), 0);
        assert_eq!(number(&[0x7f]).unwrap(), 127);
        assert_eq!(number(&[0x80, 1]).unwrap(), 128);
        assert_eq!(number(&[0x85, 0xb0, 3]).unwrap(), 55_301);
        assert_eq!(number(&[0x81, 0x80, 0x80, 0]).unwrap(), 1, "as long as the writer likes");
        assert_eq!(number(&[0xff; 9]).unwrap(), u64::MAX);
        assert!(number(&[0x80; 8]).unwrap_err().detail.contains("1 bytes expected, 0 are left"));
    }

    #[test]
    fn texts_of_every_kind() {
        let budget = Budget::of(0, 1_000);
        let text = |bytes: &[u8]| match Cursor::at(bytes, 0).text(&budget).unwrap() {
            Text::Inline(text) => text.into_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&[0]), "None");
        assert_eq!(text(&[1]), "");
        assert_eq!(text(&[2, 0x80, 1]), "Constant(128)");
        assert_eq!(text(b"\x03\x02\xc3\xbc"), "ü");
        assert_eq!(text(&[4, 2, 0xfc, 1, 0xac, 0x41]), "ü\u{20ac}");
        assert_eq!(text(b"\x05\x01\xfc"), "ü");
        assert!(Cursor::at(&[9], 0).text(&budget).is_err());
        for bytes in [&b"\x03\x02\xc3\xbc"[..], &[4, 2, 0xfc, 1, 0xac, 0x41], &[0], &[2, 0x80, 1]] {
            let mut passed = Cursor::at(bytes, 0);
            passed.skip_text().unwrap();
            assert_eq!(passed.left(), 0);
        }
    }

    #[test]
    fn a_text_longer_than_what_is_left_reserves_nothing() {
        for kind in [3, 4, 5] {
            let fault = Cursor::at(&[kind, 0xff, 0xff, 0xff, 0x7f, 0], 0).text(&Budget::of(0, 100)).unwrap_err();
            assert!(fault.detail.contains("a list of"), "{fault:?}");
        }
    }
}
