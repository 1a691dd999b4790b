//! Broken records of every format: each decoder gives profiles that keep their promises, or rejections; none panics, and
//! memory stays within a small multiple of the limit.
//!
//! `FLEETDIFF_FUZZ_RUNS` is the number of broken records of each format, 100,000 by default; a million take minutes.
//! proptest shrinks what fails to the fewest changes, and prints them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;

use fleetdiff_connectors::formats::{Decode, Format, Options, compression, otlp};
use fleetdiff_connectors::identity::IdentityMapping;
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{MAX_SAMPLES, Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::rejected::Reason;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::examples::good;
use super::fixtures::{labels, recorded, testdata};

const LIMIT: usize = 1 << 20;

/// Changes of a record, at places that are a part of its length.
#[derive(Clone, Debug)]
enum Change {
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
    "-1", "0", "1", "0.5", "1e308", "1e-308", "-0", "9007199254740993", "4294967296", "9223372036854775807",
    "18446744073709551616", "null",
];

const TEXTS: [&str; 16] = [
    "[[[[", "{", "\"", "]", "}", ",", "\\", "\\ud800", "\n", "\r\n", ";", "# ", "\t", " (", "µ", "\0",
];

fn changes() -> impl Strategy<Value = Vec<Change>> {
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
    fn apply(&self, bytes: &mut Vec<u8>) {
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

/// What the types promise of a decoded profile.
fn keeps_its_promises(profile: &Profile) {
    let names = profile.names.len();
    let known = |name: u32| usize::try_from(name).unwrap() < names;
    // A snapshot may hold no sample yet.
    let least = u64::from(profile.temporality != Temporality::Cumulative);
    assert!((least..=MAX_SAMPLES).contains(&profile.total()));
    assert!(profile.window.start <= profile.window.end);
    let mut sorted = profile.names.to_vec();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), names);
    match &profile.samples {
        Samples::Stacks(stacks) => {
            assert!(stacks.iter().all(|stack| stack.count > 0 && stack.frames.iter().all(|frame| known(*frame))));
        }
        Samples::Folded { cohorts, .. } => {
            assert!(cohorts.is_sorted_by(|a, b| a.cohort < b.cohort));
            for cohort in cohorts {
                let functions = &cohort.functions;
                assert!(functions.is_sorted_by(|a, b| a.name < b.name) && functions.iter().all(|f| known(f.name)));
                assert!(functions.iter().all(|f| f.own <= f.total && 0 < f.total && f.total <= cohort.samples));
                assert!(functions.iter().map(|f| f.own).sum::<u64>() <= cohort.samples);
            }
        }
    }
}

/// The most memory that this process ever held, all tests together, is far below what one hostile record might ask for.
fn memory_is_bounded() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kibibytes < 512 << 10, "{line}");
}

fn runs() -> u32 {
    std::env::var("FLEETDIFF_FUZZ_RUNS").map_or(100_000, |runs| runs.parse().unwrap())
}

/// What became of the broken records of a format.
#[derive(Debug, Default)]
struct Outcomes {
    profiles: u64,
    reasons: BTreeSet<Reason>,
}

/// Breaks the good records of a format; the seed is the format's place, so that a run can be repeated.
fn outcomes(format: Format) -> Outcomes {
    let seeds = seeds(format);
    let config = Config { cases: runs(), failure_persistence: None, max_shrink_iters: 10_000, ..Config::default() };
    let mut seed = [0; 32];
    seed[..format.name().len()].copy_from_slice(format.name().as_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let decoder: RefCell<Box<dyn Decode>> =
        RefCell::new(format.decoder(&Options { max_bytes: LIMIT, ..Options::default() }));
    let outcomes = RefCell::new(Outcomes::default());
    let labels = Ok(labels(ProfileType::Cpu));
    let strategy = (0..seeds.len(), changes());
    let result = runner.run(&strategy, |(seed, changes)| {
        let mut bytes = seeds[seed].clone();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        let parts = decoder.borrow_mut().decode(&bytes, &labels);
        prop_assert!(!parts.is_empty());
        let mut outcomes = outcomes.borrow_mut();
        for part in parts {
            match part {
                Ok(profile) => {
                    keeps_its_promises(&profile);
                    outcomes.profiles += 1;
                }
                Err(fault) => drop(outcomes.reasons.insert(fault.reason)),
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{}: {failure}", format.name()));
    memory_is_bounded();
    outcomes.into_inner()
}

const KV: &str = "kv-snapshot/profiles/kv-00/cpu-000.pb.gz";
const RD: &str = "rd-listpack/profiles/rd-00/cpu-000.folded.gz";

/// Good records, each also as it was before compression; real ones where there are any.
fn seeds(format: Format) -> Vec<Vec<u8>> {
    let unpacked = |bytes: &[u8]| compression::decompress(bytes, LIMIT).unwrap().into_owned();
    let mut seeds: Vec<Vec<u8>> = good(format).into_iter().map(|(bytes, _)| bytes).collect();
    let plain: Vec<Vec<u8>> = seeds.iter().map(|bytes| unpacked(bytes)).collect();
    seeds.push(compression::gzip(&plain[0]));
    seeds.extend(plain);
    match format {
        Format::Pprof => seeds.push(unpacked(&fs::read(recorded(KV)).unwrap())),
        Format::Folded => seeds.push(unpacked(&fs::read(recorded(RD)).unwrap())),
        Format::Delta => {
            seeds.push(fs::read(testdata("delta/v1.fldd")).unwrap());
            seeds.push(delta::encode(&[recorded_profile(KV, Format::Pprof), recorded_profile(RD, Format::Folded)]));
        }
        Format::Otlp => {
            let first = recorded_profile(KV, Format::Pprof);
            let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: Some("ios".into()) };
            let small = Profile { samples: Samples::Stacks(vec![stack(&[0, 1], 3), stack(&[], 200)]), ..recorded_profile(RD, Format::Folded) };
            let small = Profile { names: ["main".into(), "work".into()].into(), ..small };
            let pair = [Profile { window: first.window, ..small.clone() }, small];
            seeds.push(otlp::encode(&pair, &IdentityMapping::default()).unwrap());
            seeds.push(fs::read(testdata("otlp-kafka/hop02-node-4.otlp.pb")).unwrap());
            seeds.push(fs::read(testdata("otlp-kafka/edge/no-dictionary.otlp.pb")).unwrap());
        }
        Format::PerfScript | Format::Speedscope | Format::Cpuprofile | Format::Pyroscope => {}
    }
    seeds
}

fn recorded_profile(file: &str, format: Format) -> Profile {
    let bytes = fs::read(recorded(file)).unwrap();
    format.decoder(&Options::default()).decode(&bytes, &Ok(labels(ProfileType::Cpu))).remove(0).unwrap()
}

/// Reasons that broken records of a format must have been refused for, or the changes do not reach its decoder.
fn expected(format: Format) -> &'static [Reason] {
    use Reason::{Empty, IndexOutOfRange, Malformed, MissingIdentity, NegativeValue, TooLarge, Truncated, UnitMismatch, UnsupportedType, UnsupportedVersion};
    match format {
        Format::Pprof => &[Truncated, Malformed, IndexOutOfRange, UnitMismatch, Empty],
        Format::Folded => &[Truncated, Malformed, NegativeValue, TooLarge, UnitMismatch],
        Format::PerfScript => &[Truncated, Malformed, Empty],
        Format::Speedscope => &[Truncated, Malformed, IndexOutOfRange, UnitMismatch],
        Format::Cpuprofile => &[Truncated, Malformed, IndexOutOfRange],
        Format::Pyroscope => &[Truncated, Malformed, IndexOutOfRange, NegativeValue, UnitMismatch, UnsupportedType, UnsupportedVersion],
        Format::Delta => &[Truncated, Malformed, UnsupportedVersion, IndexOutOfRange],
        Format::Otlp => &[Truncated, Malformed, UnsupportedVersion, IndexOutOfRange, MissingIdentity, UnsupportedType],
    }
}

fn broken_records_harm_nobody(format: Format) {
    let outcomes = outcomes(format);
    assert!(outcomes.profiles > u64::from(runs() / 200), "{}: {outcomes:?}", format.name());
    for reason in expected(format) {
        assert!(outcomes.reasons.contains(reason), "{}: {reason:?} not in {outcomes:?}", format.name());
    }
}

#[test]
fn mutated_pprof() {
    broken_records_harm_nobody(Format::Pprof);
}

#[test]
fn mutated_folded() {
    broken_records_harm_nobody(Format::Folded);
}

#[test]
fn mutated_perf_script() {
    broken_records_harm_nobody(Format::PerfScript);
}

#[test]
fn mutated_speedscope() {
    broken_records_harm_nobody(Format::Speedscope);
}

#[test]
fn mutated_cpuprofile() {
    broken_records_harm_nobody(Format::Cpuprofile);
}

#[test]
fn mutated_pyroscope() {
    broken_records_harm_nobody(Format::Pyroscope);
}

#[test]
fn mutated_delta() {
    broken_records_harm_nobody(Format::Delta);
}

#[test]
fn mutated_otlp() {
    broken_records_harm_nobody(Format::Otlp);
}
