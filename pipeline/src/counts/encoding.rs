//! Folded counts as bytes: what is sent between workers and what the ring keeps.
//!
//! One entry a function, ascending by number: LEB128 of the distance to the number before, then LEB128 of
//! `total * 4 + form`, then for form 2 LEB128 of `self`. Form 0: self = total (a leaf that calls nothing), form 1: self = 0.
//! Most entries take two bytes.

use super::ids::FunctionId;

/// One function's samples in one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which function.
    pub function: FunctionId,
    /// Samples in which it is the leaf.
    pub own: u64,
    /// Samples in which it is on the stack.
    pub total: u64,
}

/// A count is taken for at most this much before it is squared, so that sums of squares fit.
const MOST_SQUARED: u64 = 1 << 28;

/// Ordered pairs of `count` samples of one profile: x (x - 1).
pub(super) fn pairs(count: u64) -> u64 {
    let count = count.min(MOST_SQUARED);
    count * count.saturating_sub(1)
}

impl Entry {
    /// The pairs of samples of this profile that share the function, as counts.
    pub(super) fn pairs(self) -> Self {
        Self { own: pairs(self.own), total: pairs(self.total), ..self }
    }
}

/// Encodes entries that ascend strictly by function.
pub fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut encoder = Encoder::of(entries.len());
    entries.iter().for_each(|&entry| encoder.push(entry));
    encoder.bytes
}

/// [`encode`] of entries in any order; no function comes twice.
pub fn encode_unordered(entries: impl Iterator<Item = Entry> + Clone) -> Vec<u8> {
    let mut encoder = Encoder::of(entries.size_hint().1.unwrap_or(0));
    let mut next = 0;
    for entry in entries.clone() {
        if entry.function < next {
            let mut all: Vec<Entry> = entries.collect();
            all.sort_unstable_by_key(|entry| entry.function);
            return encode(&all);
        }
        next = entry.function.saturating_add(1);
        encoder.push(entry);
    }
    encoder.bytes
}

/// Bytes that are being written, see [`encode`].
struct Encoder {
    bytes: Vec<u8>,
    previous: FunctionId,
}

impl Encoder {
    /// With room for so many entries.
    fn of(entries: usize) -> Self {
        Self { bytes: Vec::with_capacity(entries * 2 + entries / 8 + 8), previous: 0 }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        let step = u64::from(entry.function.wrapping_sub(self.previous));
        self.previous = entry.function;
        let form = match entry.own {
            own if own == entry.total => LEAF,
            0 => ABOVE,
            _ => BOTH,
        };
        push_pair(&mut self.bytes, step, entry.total << 2 | form);
        if form == BOTH {
            push(&mut self.bytes, entry.own);
        }
    }
}

/// The sum, by function, of what several [`encode`] made: the parts of one profile that fall into one cell.
pub fn sum<'a>(mut parts: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    if parts.len() == 1 {
        return parts.next().unwrap_or_default().to_vec();
    }
    let mut entries: Vec<Entry> = parts.flat_map(decode).collect();
    add_up(&mut entries);
    encode(&entries)
}

/// Sums the entries of each function; they ascend by function then.
pub(super) fn add_up(entries: &mut Vec<Entry>) {
    // NB: stable, since it makes use of the parts of the list that ascend already, as each profile does.
    entries.sort_by_key(|entry| entry.function);
    entries.dedup_by(|entry, kept| {
        let same = entry.function == kept.function;
        if same {
            kept.own = kept.own.saturating_add(entry.own);
            kept.total = kept.total.saturating_add(entry.total);
        }
        same
    });
}

/// self = total.
const LEAF: u64 = 0;
/// self = 0.
const ABOVE: u64 = 1;
/// self follows.
const BOTH: u64 = 2;

/// The entries of bytes made by [`encode`].
pub fn decode(bytes: &[u8]) -> Entries<'_> {
    Entries { rest: bytes, function: 0 }
}

/// See [`decode`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    function: FunctionId,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let (step, word) = match *self.rest {
            [] => return None,
            [step, word, ref rest @ ..] if (step | word) < 0x80 => {
                self.rest = rest;
                (u32::from(step), u64::from(word))
            }
            _ => (self.long_step(), pull(&mut self.rest)),
        };
        self.function = self.function.wrapping_add(step);
        let total = word >> 2;
        let own = match word & 3 {
            LEAF => total,
            ABOVE => 0,
            _ => pull(&mut self.rest),
        };
        Some(Entry { function: self.function, own, total })
    }
}

impl Entries<'_> {
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "written from a u32 by encode")]
    fn long_step(&mut self) -> u32 {
        pull(&mut self.rest) as u32
    }
}

/// Writes two numbers; most pairs are two bytes.
#[inline]
fn push_pair(bytes: &mut Vec<u8>, first: u64, second: u64) {
    if let (Ok(first @ ..0x80), Ok(second @ ..0x80)) = (u8::try_from(first), u8::try_from(second)) {
        bytes.extend_from_slice(&[first, second]);
    } else {
        push(bytes, first);
        push(bytes, second);
    }
}

pub(super) fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or(0));
}

/// Removes a number from the front; if the bytes end within the number, it ends there.
#[inline]
pub(super) fn pull(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    while let [byte, after @ ..] = *rest {
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 || shift >= 57 {
            break;
        }
        shift += 7;
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: decoding gives back what was encoded.
        #[test]
        fn decode_inverts_encode(raw in proptest::collection::btree_map(0u32..1 << 30, (0u64..1 << 40, 0u64..1 << 40), 0..200)) {
            let entries: Vec<_> = raw
                .into_iter()
                .map(|(function, (own, rest))| Entry { function, own, total: own + rest })
                .collect();
            prop_assert_eq!(decode(&encode(&entries)).collect::<Vec<_>>(), entries.clone());
            let half = entries.len() / 2;
            prop_assert_eq!(encode_unordered(entries.iter().copied()), encode(&entries));
            prop_assert_eq!(encode_unordered(entries[half..].iter().chain(&entries[..half]).copied()), encode(&entries));
        }
    }
}
