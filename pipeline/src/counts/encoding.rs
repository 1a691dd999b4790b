//! Folded counts as bytes: what crosses workers and what the ring remembers.
//!
//! One entry a function, ascending by number: LEB128 of the distance to the number before, then LEB128 of
//! `total * 4 + form`, then for form 2 LEB128 of `self`. Form 0: self = total (a leaf that calls nothing), form 1: self = 0.
//! Most entries take two bytes.

use super::functions::FunctionId;

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

/// Encodes entries that ascend strictly by function.
pub fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 2 + 8);
    let mut previous = 0;
    for entry in entries {
        push(&mut bytes, u64::from(entry.function.wrapping_sub(previous)));
        previous = entry.function;
        let form = if entry.own == entry.total {
            0
        } else if entry.own == 0 {
            1
        } else {
            2
        };
        push(&mut bytes, entry.total << 2 | form);
        if form == 2 {
            push(&mut bytes, entry.own);
        }
    }
    bytes
}

/// The entries of bytes made by [`encode`].
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Entry> + '_ {
    let mut at = 0;
    let mut function: FunctionId = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let step = pull(bytes, &mut at);
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "written from a u32 by encode")]
        let step = step as u32;
        function = function.wrapping_add(step);
        let word = pull(bytes, &mut at);
        let total = word >> 2;
        let own = match word & 3 {
            0 => total,
            1 => 0,
            _ => pull(bytes, &mut at),
        };
        Some(Entry { function, own, total })
    })
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or(0));
}

#[inline]
fn pull(bytes: &[u8], at: &mut usize) -> u64 {
    let first = bytes.get(*at).copied().unwrap_or(0);
    *at += 1;
    if first < 0x80 {
        return u64::from(first);
    }
    let mut value = u64::from(first & 0x7f);
    let mut shift = 7;
    while let Some(&byte) = bytes.get(*at) {
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 || shift >= 57 {
            break;
        }
        shift += 7;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Law: decoding gives back what was encoded.
        #[test]
        fn decode_inverts_encode(raw in proptest::collection::btree_map(0u32..1 << 30, (0u64..1 << 40, 0u64..1 << 40), 0..200)) {
            let entries: Vec<_> = raw
                .into_iter()
                .map(|(function, (own, rest))| Entry { function, own, total: own + rest })
                .collect();
            prop_assert_eq!(decode(&encode(&entries)).collect::<Vec<_>>(), entries);
        }
    }
}
