//! What may happen to the records of a topic on their way, none of which may change a row about the good ones.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use super::records::Record;

/// More than any good record has, and than `--max-record-bytes` of these tests.
pub const TOO_LARGE: usize = 1_200_000;

/// How much later than records before it a record may come, in milliseconds: with the length of a hop, less than the lateness of 30 s.
const DELAY: i64 = 15_000;

/// Records as they are sent, and what was added to them.
#[derive(Default)]
pub struct Damaged {
    pub records: Vec<Record>,
    /// Exact copies.
    pub copies: usize,
    /// Records that hold nothing good.
    pub bad: usize,
}

impl Damaged {
    /// Some of these come later than those after them, some come twice, and between them come records that hold nothing good.
    pub fn draw(good: &[Record], draws: &mut Xoshiro256PlusPlus) -> Self {
        let mut delayed: Vec<(i64, &Record)> = Vec::new();
        let mut damaged = Self::default();
        for record in good {
            let later = if draws.random_range(0..10) == 0 { draws.random_range(0..DELAY) } else { 0 };
            delayed.push((record.at + later, record));
            if draws.random_range(0..30) == 0 {
                delayed.push((record.at + draws.random_range(0..DELAY), record));
                damaged.copies += 1;
            }
        }
        delayed.sort_by_key(|(at, _)| *at);
        for (_, record) in delayed {
            if draws.random_range(0..60) == 0 {
                damaged.records.push(Record { payload: bad(&record.payload, draws), ..record.clone() });
                damaged.bad += 1;
            }
            damaged.records.push(record.clone());
        }
        damaged
    }
}

/// Bytes that hold no profile.
fn bad(good: &[u8], draws: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    match draws.random_range(0..8) {
        0 => vec![draws.random_range(0..=u8::MAX); TOO_LARGE],
        1 => Vec::new(),
        2..=4 => good[..draws.random_range(0..good.len())].to_vec(),
        _ => (0..draws.random_range(1..400)).map(|_| draws.random_range(0..=u8::MAX)).collect(),
    }
}
