//! Numbers and texts in bytes: LEB128 varints, and a reader that never reads past the end.

use crate::rejected::{Reason, Rejection};

/// Appends a number in 1 to 10 bytes.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_bits(number));
}

/// Appends a number that may be negative; numbers close to 0 take few bytes.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
}

/// Appends a length.
pub(super) fn put_len(out: &mut Vec<u8>, length: usize) {
    // NB: no platform has a usize of more than 64 bits.
    put(out, u64::try_from(length).unwrap_or(u64::MAX));
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn low_bits(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low & 0x7f
}

/// What is left to read of a record or a block.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Rejection> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(byte)
    }

    /// A varint.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Rejection> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_number(),
        }
    }

    /// Calls `take` with each of the next `length` varints.
    #[inline]
    pub(super) fn column(
        &mut self,
        length: usize,
        mut take: impl FnMut(u64) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        // Most columns hold only small numbers: each is then one byte, and no search for its end is needed.
        match self.rest.split_at_checked(length) {
            Some((column, rest)) if column.iter().all(|byte| *byte < 0x80) => {
                self.rest = rest;
                column.iter().try_for_each(|byte| take(u64::from(*byte)))
            }
            _ => (0..length).try_for_each(|_| take(self.number()?)),
        }
    }

    fn long_number(&mut self) -> Result<u64, Rejection> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed("a number of more than 64 bits"))
    }

    /// A number that may be negative.
    pub(super) fn signed(&mut self) -> Result<i64, Rejection> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Rejection> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// So many bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Rejection> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Rejection> {
        let length = self.number()?;
        usize::try_from(length).map_err(|_| truncated()).and_then(|length| self.take(length))
    }

    /// A number of entries, each of at least `each` bytes: at most what is left to read and at most `limit`, so that
    /// memory for them can be allocated safely.
    pub(super) fn entries(&mut self, each: usize, limit: usize) -> Result<usize, Rejection> {
        let number = self.number()?;
        match usize::try_from(number) {
            Ok(entries) if entries > limit => Err(too_large(number, limit)),
            Ok(entries) if entries <= self.left() / each => Ok(entries),
            _ => Err(truncated()),
        }
    }
}

/// Bytes as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Rejection> {
    std::str::from_utf8(bytes).map_err(|_| malformed("a text that is not UTF-8"))
}

#[cold]
pub(super) fn truncated() -> Rejection {
    Rejection::new(Reason::Truncated, "the record ends before its end")
}

#[cold]
pub(super) fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, format!("columnar delta: {what}"))
}

#[cold]
pub(super) fn too_large(number: u64, limit: usize) -> Rejection {
    Rejection::new(Reason::TooLarge, format!("columnar delta: {number} entries, at most {limit}"))
}

#[cold]
pub(super) fn out_of_range(what: &str, index: u64, length: usize) -> Rejection {
    Rejection::new(Reason::IndexOutOfRange, format!("columnar delta: {what} {index} in a table of {length}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, small in 0u64..300) {
            let mut out = Vec::new();
            put(&mut out, number);
            put_signed(&mut out, signed);
            put(&mut out, small);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.number(), Ok(small));
            prop_assert_eq!(reader.number().map_err(|fault| fault.reason), Err(Reason::Truncated));
        }
    }

    #[test]
    fn ends_of_the_range() {
        let mut out = Vec::new();
        put(&mut out, u64::MAX);
        put_signed(&mut out, i64::MIN);
        let mut reader = Reader::new(&out);
        assert_eq!((reader.number(), reader.signed()), (Ok(u64::MAX), Ok(i64::MIN)));
        for too_long in [[0xff; 10].as_slice(), &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]] {
            assert_eq!(Reader::new(too_long).number().map_err(|fault| fault.reason), Err(Reason::Malformed));
        }
    }
}
