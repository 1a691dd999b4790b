//! Hundreds of thousands of broken records: every decoder gives profiles that keep their promises, or rejections; none
//! panics, and memory stays within a small multiple of the limit.

use std::fs;

use fleetdiff_connectors::formats::pprof::encode;
use fleetdiff_connectors::formats::{Decode, Format, Options, compression, folded, otlp};
use fleetdiff_connectors::identity::IdentityMapping;
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{MAX_SAMPLES, Profile, ProfileType, Samples};
use fleetdiff_schemas::rejected::Reason;

use super::fixtures::{labels, recorded, testdata};

const INPUTS: u64 = 200_000;
const LIMIT: usize = 1 << 20;

/// SplitMix64: the mutations of a seed are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        const TELLING: [u8; 12] = [0, 1, 0x7f, 0x80, 0xff, b' ', b';', b'\n', b'-', b'9', 0x12, 0x22];
        match self.below(3) {
            0 => TELLING[self.below(TELLING.len())],
            _ => self.next().to_le_bytes()[0],
        }
    }

    /// One to eight changes at random places.
    fn mutate(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..=self.below(8) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let until = (at + self.below(16)).min(bytes.len());
        match self.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.byte(),
            2 => bytes.insert(at, self.byte()),
            3 => drop(bytes.drain(at..until)),
            4 if self.below(8) == 0 => bytes.truncate(at),
            5 => {
                let copied = bytes[at..until].to_vec();
                let to = self.below(bytes.len());
                bytes.splice(to..to, copied);
            }
            _ => {
                let large = vec![0xff; 1 + self.below(10)];
                bytes.splice(at..until, large.into_iter().chain([self.byte()]));
            }
        }
    }
}

/// What the types promise of a decoded profile.
fn keeps_its_promises(profile: &Profile) {
    let names = profile.names.len();
    let known = |name: u32| usize::try_from(name).unwrap() < names;
    assert!((1..=MAX_SAMPLES).contains(&profile.total()));
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

/// How many parts of the broken records were still profiles, and which reasons the others were refused for.
fn outcomes(format: Format, seeds: &[Vec<u8>], seed: u64) -> (u64, Vec<Reason>) {
    let mut decoder: Box<dyn Decode> = format.decoder(&Options { max_bytes: LIMIT, ..Options::default() });
    let labels = Ok(labels(ProfileType::Cpu));
    let mut random = Random(seed);
    let (mut profiles, mut reasons) = (0, Vec::new());
    for _ in 0..INPUTS {
        let good = &seeds[random.below(seeds.len())];
        let parts = decoder.decode(&random.mutate(good), &labels);
        assert!(!parts.is_empty());
        for part in parts {
            match part {
                Ok(profile) => {
                    keeps_its_promises(&profile);
                    profiles += 1;
                }
                Err(fault) => reasons.push(fault.reason),
            }
        }
        reasons.sort();
        reasons.dedup();
    }
    memory_is_bounded();
    (profiles, reasons)
}

/// The most memory that this process ever held, all tests together, is far below what one hostile record might ask for.
fn memory_is_bounded() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kibibytes < 512 << 10, "{line}");
}

fn recorded_profiles(file: &str, format: Format) -> Vec<Profile> {
    let parts = format.decoder(&Options::default()).decode(&fs::read(recorded(file)).unwrap(), &Ok(labels(ProfileType::Cpu)));
    parts.into_iter().map(Result::unwrap).collect()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    compression::decompress(bytes, LIMIT).unwrap().into_owned()
}

#[test]
fn mutated_pprof() {
    let small = Profile { names: ["main".into(), "work".into()].into(), ..recorded_profiles(KV, Format::Pprof).remove(0) };
    let stack = |frames: &[u32], count| fleetdiff_schemas::profile::Stack { frames: frames.to_vec(), count, cohort: Some("ios".into()) };
    let small = Profile { samples: Samples::Stacks(vec![stack(&[0, 1], 3), stack(&[], 200)]), ..small };
    let packed = encode(&small).unwrap();
    let recorded = fs::read(super::fixtures::recorded(KV)).unwrap();
    let seeds = [unpacked(&packed), unpacked(&packed), unpacked(&recorded), packed];
    let (profiles, reasons) = outcomes(Format::Pprof, &seeds, 1);
    assert!(profiles > 1_000, "{profiles}");
    for reason in [Reason::Truncated, Reason::Malformed, Reason::IndexOutOfRange, Reason::UnitMismatch, Reason::Empty] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}

#[test]
fn mutated_folded() {
    let recorded = fs::read(super::fixtures::recorded(RD)).unwrap();
    let small = b"main;serve;read 12\nmain;serve;[unknown];write 3\n# note\nmain;wait 700\n".to_vec();
    let packed = folded::encode(&recorded_profiles(RD, Format::Folded)[0]).unwrap();
    let (profiles, reasons) = outcomes(Format::Folded, &[small, unpacked(&recorded), packed], 2);
    assert!(profiles > 1_000, "{profiles}");
    for reason in [Reason::Truncated, Reason::Malformed, Reason::NegativeValue] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}

#[test]
fn mutated_delta() {
    let both = [recorded_profiles(KV, Format::Pprof), recorded_profiles(RD, Format::Folded)].concat();
    let kept = fs::read(testdata("delta/v1.fldd")).unwrap();
    let seeds = [kept.clone(), kept.clone(), delta::encode(&both), compression::gzip(&kept)];
    let (profiles, reasons) = outcomes(Format::Delta, &seeds, 3);
    assert!(profiles > 1_000, "{profiles}");
    for reason in [Reason::Truncated, Reason::Malformed, Reason::UnsupportedVersion, Reason::IndexOutOfRange] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}

#[test]
fn mutated_otlp() {
    let both = [recorded_profiles(KV, Format::Pprof), recorded_profiles(RD, Format::Folded)].concat();
    let stack = |frames: &[u32], count| fleetdiff_schemas::profile::Stack { frames: frames.to_vec(), count, cohort: Some("ios".into()) };
    let small = Profile { samples: Samples::Stacks(vec![stack(&[0, 1], 3), stack(&[], 200)]), ..both[0].clone() };
    let small = Profile { names: ["main".into(), "work".into()].into(), ..small };
    let written = |profiles: &[Profile]| otlp::encode(profiles, &IdentityMapping::default()).unwrap();
    let pair = written(&[small.clone(), Profile { window: both[0].window, ..small.clone() }]);
    let recorded = fs::read(testdata("otlp-kafka/hop02-node-4.otlp.pb")).unwrap();
    let odd = fs::read(testdata("otlp-kafka/edge/no-dictionary.otlp.pb")).unwrap();
    let seeds = [pair.clone(), pair.clone(), pair.clone(), compression::gzip(&pair), recorded, odd];
    let (profiles, reasons) = outcomes(Format::Otlp, &seeds, 4);
    assert!(profiles > 1_000, "{profiles}");
    for reason in [
        Reason::Truncated,
        Reason::Malformed,
        Reason::UnsupportedVersion,
        Reason::IndexOutOfRange,
        Reason::MissingIdentity,
        Reason::UnsupportedType,
    ] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}

const KV: &str = "kv-snapshot/profiles/kv-00/cpu-000.pb.gz";
const RD: &str = "rd-listpack/profiles/rd-00/cpu-000.folded.gz";
