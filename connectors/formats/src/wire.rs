//! Walking a protobuf message without copying it.
//!
//! Structs that own their parts (those of [`super::pprof::proto`] and [`super::otlp::proto`]) take several times as long, and
//! a hostile message of a few bytes an entry can make them many times as large as itself; here an entry is a slice until it
//! is needed.

use fleetdiff_schemas::rejected::{Reason, Rejection};
use prost::encoding::{WireType, decode_key, decode_varint};

/// The value of one field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// A message, a string, or packed numbers.
    Bytes(&'a [u8]),
    /// Eight bytes.
    Fixed(u64),
    /// Four bytes, of which our formats make no use.
    Short,
}

/// Why a message cannot be walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WireFault {
    /// The bytes are no protobuf message.
    Broken(String),
    /// They are, but a field is of another kind than its tag says in this version of the format.
    OtherKind(&'static str),
}

impl From<WireFault> for Rejection {
    fn from(fault: WireFault) -> Self {
        let detail = match fault {
            WireFault::Broken(what) => format!("broken protobuf: {what}"),
            WireFault::OtherKind(what) => format!("a message of another format: {what}"),
        };
        Self::new(Reason::Malformed, detail)
    }
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Result<u64, WireFault> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(WireFault::OtherKind("a field that should be a number is none")),
        }
    }

    /// A number that may be negative.
    pub(super) fn signed(self) -> Result<i64, WireFault> {
        self.number().map(u64::cast_signed)
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], WireFault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(WireFault::OtherKind("a field that should be a message or text is none")),
        }
    }

    /// A number of eight bytes.
    pub(super) fn fixed(self) -> Result<u64, WireFault> {
        match self {
            Self::Fixed(number) => Ok(number),
            _ => Err(WireFault::OtherKind("a field that should be a number of eight bytes is none")),
        }
    }

    /// Calls `take` with each number of a repeated field, which may come packed or one by one.
    pub(super) fn each<E: From<WireFault>>(self, mut take: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Number(number) => take(number),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    take(varint(&mut packed)?)?;
                }
                Ok(())
            }
            Self::Fixed(_) | Self::Short => {
                Err(WireFault::OtherKind("a field that should hold numbers holds none").into())
            }
        }
    }

    /// Appends what `of` makes of each number of a repeated field, as long as there are at most `most` entries; says whether those
    /// were all.
    #[inline]
    pub(super) fn append_to<T>(
        self,
        entries: &mut Vec<T>,
        most: usize,
        mut of: impl FnMut(u64) -> T,
    ) -> Result<bool, WireFault> {
        match self {
            Self::Number(number) if entries.len() < most => entries.push(of(number)),
            Self::Bytes(mut packed) => {
                // NB: a number takes a byte at least, so this is room for all of them.
                entries.reserve(packed.len().min(most.saturating_sub(entries.len())));
                while !packed.is_empty() {
                    if entries.len() >= most {
                        return Ok(false);
                    }
                    entries.push(of(varint(&mut packed)?));
                }
            }
            Self::Number(_) => return Ok(false),
            Self::Fixed(_) | Self::Short => {
                return Err(WireFault::OtherKind("a field that should hold numbers holds none"));
            }
        }
        Ok(true)
    }

    /// Calls `take` with each number of a repeated field of numbers of eight bytes, packed or one by one.
    pub(super) fn each_fixed(self, mut take: impl FnMut(u64)) -> Result<(), WireFault> {
        match self {
            Self::Fixed(number) => take(number),
            Self::Bytes(packed) => {
                let (numbers, []) = packed.as_chunks() else {
                    return Err(WireFault::Broken("numbers of eight bytes that are cut off".to_owned()));
                };
                numbers.iter().for_each(|number| take(u64::from_le_bytes(*number)));
            }
            Self::Number(_) | Self::Short => {
                return Err(WireFault::OtherKind("a field that should hold numbers of eight bytes holds none"));
            }
        }
        Ok(())
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
    // Called from one loop a message; its result takes longer to hand over through memory than to find.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, WireFault> {
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
            WireType::SixtyFourBit => Value::Fixed(self.fixed()?),
            WireType::ThirtyTwoBit => self.take(4).map(|_| Value::Short)?,
            WireType::StartGroup | WireType::EndGroup => return Err(broken(&"groups are not of this format")),
        };
        Ok(Some((tag, value)))
    }

    #[inline(always)]
    fn key(&mut self) -> Result<(u32, WireType), WireFault> {
        match self.rest {
            // Tags of our formats are below 16: a key is one byte.
            [key @ 8..0x80, rest @ ..] => {
                self.rest = rest;
                let wire_type = WireType::try_from(u64::from(key & 7)).map_err(|error| broken(&error))?;
                Ok((u32::from(key >> 3), wire_type))
            }
            _ => decode_key(&mut self.rest).map_err(|error| broken(&error)),
        }
    }

    fn fixed(&mut self) -> Result<u64, WireFault> {
        let bytes = self.take(8)?;
        // NB: eight bytes were taken, so that the number is whole.
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireFault> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split
            .ok_or_else(|| broken(&format_args!("a field of {length} bytes where {} are left", self.rest.len())))?;
        self.rest = rest;
        Ok(taken)
    }
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Result<u64, WireFault> {
    // Ids, indexes and lengths are mostly below 2^14.
    match *bytes {
        [byte @ 0..0x80, rest @ ..] => {
            *bytes = rest;
            Ok(u64::from(*byte))
        }
        [low, high @ 0..0x80, rest @ ..] => {
            *bytes = rest;
            Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
        }
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &mut &[u8]) -> Result<u64, WireFault> {
    decode_varint(bytes).map_err(|error| broken(&error))
}

#[cold]
fn broken(what: &dyn std::fmt::Display) -> WireFault {
    WireFault::Broken(what.to_string())
}
