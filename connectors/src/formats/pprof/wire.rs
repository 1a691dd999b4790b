//! Walking a protobuf message without copying it.
//!
//! Structs that own their parts (those of [`super::proto`]) take several times as long, and a hostile message of a few
//! bytes an entry can make them many times as large as itself; here an entry is a slice until it is needed.

use fleetdiff_schemas::rejected::{Reason, Rejection};
use prost::encoding::{WireType, decode_key, decode_varint};

/// The value of one field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// A message, a string, or packed numbers.
    Bytes(&'a [u8]),
    /// A field of fixed width, of which `profile.proto` has none.
    Fixed,
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Result<u64, Rejection> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) | Self::Fixed => Err(malformed("a field that should be a number is none")),
        }
    }

    /// A number that may be negative.
    pub(super) fn signed(self) -> Result<i64, Rejection> {
        self.number().map(u64::cast_signed)
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], Rejection> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::Fixed => Err(malformed("a field that should be a message or text is none")),
        }
    }

    /// Calls `take` with each number of a repeated field, which may come packed or one by one.
    pub(super) fn each(self, mut take: impl FnMut(u64) -> Result<(), Rejection>) -> Result<(), Rejection> {
        match self {
            Self::Number(number) => take(number),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    take(varint(&mut packed)?)?;
                }
                Ok(())
            }
            Self::Fixed => Err(malformed("a field that should hold numbers holds none")),
        }
    }
}

/// The fields of a message: pairs of tag and value.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// Begins the walk over a message.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

impl<'a> Fields<'a> {
    /// The next field, or nothing at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Rejection> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (tag, wire_type) = self.key()?;
        let value = match wire_type {
            WireType::Varint => Value::Number(varint(&mut self.rest)?),
            WireType::LengthDelimited => {
                let length = varint(&mut self.rest)?;
                Value::Bytes(self.take(length)?)
            }
            WireType::SixtyFourBit => self.take(8).map(|_| Value::Fixed)?,
            WireType::ThirtyTwoBit => self.take(4).map(|_| Value::Fixed)?,
            WireType::StartGroup | WireType::EndGroup => return Err(malformed("groups are not of this format")),
        };
        Ok(Some((tag, value)))
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, WireType), Rejection> {
        let wrong = |what: &dyn std::fmt::Display| malformed(&what.to_string());
        match self.rest {
            // Tags of this format are below 16: a key is one byte.
            [key @ 8..0x80, rest @ ..] => {
                self.rest = rest;
                let wire_type = WireType::try_from(u64::from(key & 7)).map_err(|error| wrong(&error))?;
                Ok((u32::from(key >> 3), wire_type))
            }
            _ => decode_key(&mut self.rest).map_err(|error| wrong(&error)),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Rejection> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| {
            malformed(&format!("a field of {length} bytes where {} are left", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Result<u64, Rejection> {
    if let [byte @ 0..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    decode_varint(bytes).map_err(|error| malformed(&error.to_string()))
}

#[cold]
pub(super) fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, format!("not a pprof profile: {what}"))
}
