//! Changes that break a record, and how many broken records are tried.
//!
//! `FLEETDIFF_FUZZ_RUNS` is the number for each decoder, 100,000 by default; a test alone is chosen by its name, and says how long
//! it took and how much memory the process held at most:
//!
//! ```sh
//! FLEETDIFF_FUZZ_RUNS=10000000 cargo test --release -p fleetdiff-formats --test formats mutated_otlp -- --nocapture
//! ```
//!
//! Runs follow from the decoder's name, so that more of them begin with the same. proptest shrinks what fails to the fewest
//! changes, and prints them.

use std::fs;
use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

/// Bytes that a good record has at most, after decompression.
pub const LIMIT: usize = 1 << 20;

/// Changes of a record, at places that are a part of its length.
#[derive(Clone, Debug)]
pub enum Change {
    /// A bit.
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize, Index),
    Cut(Index),
    /// Instead of some bytes, text that tells: numbers beyond every range, openings without an end.
    Text(Index, usize, &'static str),
    /// Instead of a number, another.
    Number(Index, &'static str),
}

const NUMBERS: [&str; 12] = [
    "-1",
    "0",
    "1",
    "0.5",
    "1e308",
    "1e-308",
    "-0",
    "9007199254740993",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "null",
];

const TEXTS: [&str; 16] =
    ["[[[[", "{", "\"", "]", "}", ",", "\\", "\\ud800", "\n", "\r\n", ";", "# ", "\t", " (", "µ", "\0"];

/// One to eight changes.
pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    let telling = select(vec![0, 1, 0x7f, 0x80, 0xff, b' ', b';', b'\n', b'-', b'9', b'[', b'"', 0x12, 0x22]);
    let byte = prop_oneof![telling, any::<u8>()].boxed();
    let at = any::<Index>;
    vec(
        prop_oneof![
            4 => (at(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
            4 => (at(), byte.clone()).prop_map(|(at, byte)| Change::Set(at, byte)),
            4 => (at(), byte).prop_map(|(at, byte)| Change::Insert(at, byte)),
            4 => (at(), 1..16usize).prop_map(|(at, length)| Change::Remove(at, length)),
            4 => (at(), 1..64usize, at()).prop_map(|(at, length, to)| Change::Repeat(at, length, to)),
            1 => at().prop_map(Change::Cut),
            4 => (at(), 0..4usize, select(TEXTS.to_vec())).prop_map(|(at, length, text)| Change::Text(at, length, text)),
            8 => (at(), select(NUMBERS.to_vec())).prop_map(|(at, number)| Change::Number(at, number)),
        ],
        1..9,
    )
}

impl Change {
    /// Makes it.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Self::Set(at, byte) => bytes[at.index(length)] = *byte,
            Self::Insert(at, byte) => bytes.insert(at.index(length), *byte),
            Self::Remove(at, many) => drop(bytes.drain(range(at, *many, length))),
            Self::Repeat(at, many, to) => {
                let copied = bytes[range(at, *many, length)].to_vec();
                let to = to.index(length);
                bytes.splice(to..to, copied);
            }
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Text(at, many, text) => drop(bytes.splice(range(at, *many, length), text.bytes())),
            Self::Number(at, number) => {
                // The first number behind the place.
                let start = (at.index(length)..length).find(|place| bytes[*place].is_ascii_digit());
                let Some(start) = start else { return };
                let end = (start..length).find(|place| !bytes[*place].is_ascii_digit()).unwrap_or(length);
                bytes.splice(start..end, number.bytes());
            }
        }
    }
}

fn range(at: &Index, many: usize, length: usize) -> std::ops::Range<usize> {
    let start = at.index(length);
    start..(start + many).min(length)
}

/// How many tests run at a time.
fn at_a_time() -> usize {
    let said = std::env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    said.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(2)
}

/// The most memory that this process ever held, all tests together, is far below what one hostile record might ask for. In MiB.
fn memory_is_bounded() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kibibytes < at_a_time() * (256 << 10), "{line}");
    kibibytes >> 10
}

/// Broken records of each kind, unless `FLEETDIFF_FUZZ_RUNS` says how many: enough to reach every part of a decoder.
pub const ENOUGH: u32 = 100_000;

/// How many broken records of each kind.
pub fn runs() -> u32 {
    std::env::var("FLEETDIFF_FUZZ_RUNS").map_or(ENOUGH, |runs| runs.parse().unwrap())
}

/// Tries broken records; `name` is the seed, so that runs can be repeated.
pub fn run<S: Strategy>(name: &str, strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let start = Instant::now();
    let config = Config { cases: runs(), failure_persistence: None, max_shrink_iters: 10_000, ..Config::default() };
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    runner.run(strategy, test).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let peak = memory_is_bounded();
    eprintln!("{name}: {} runs, {} s, at most {peak} MiB", runs(), start.elapsed().as_secs());
}
