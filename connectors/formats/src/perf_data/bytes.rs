//! Numbers and texts, read one after the other from bytes of either order.

use linux_perf_event_reader::Endianness;

/// Bytes that are still to be read; every read gives nothing if they are too few.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'t> {
    left: &'t [u8],
    order: Endianness,
}

impl<'t> Bytes<'t> {
    pub(super) fn new(bytes: &'t [u8], order: Endianness) -> Self {
        Self { left: bytes, order }
    }

    /// What is left.
    pub(super) fn rest(self) -> &'t [u8] {
        self.left
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'t [u8]> {
        let (taken, left) = self.left.split_at_checked(length)?;
        self.left = left;
        Some(taken)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(if self.is_little() { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(if self.is_little() { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(if self.is_little() { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// A number that is a length or a place.
    pub(super) fn length(&mut self) -> Option<usize> {
        self.u64().and_then(|number| usize::try_from(number).ok())
    }

    /// A text behind its length, up to its first zero.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.u32().and_then(|number| usize::try_from(number).ok())?;
        self.take(length).map(until_zero).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.left.split_first_chunk()?;
        self.left = left;
        Some(*taken)
    }

    fn is_little(self) -> bool {
        self.order == Endianness::LittleEndian
    }
}

/// The bytes before the first zero.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
