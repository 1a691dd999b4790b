//! Broken records of every format: each decoder gives profiles that keep their promises, or rejections; none panics, and
//! memory stays small at the default limits.
//!
//! How many, and how to run one format alone at length: `changes.rs`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::reading::{Filters, Reading, Unread};
use fleetdiff_formats::{Decode, Format, compression, otlp};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{MAX_SAMPLES, Profile, Samples, Stack, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use proptest::prelude::*;

use super::changes::{ENOUGH, LIMIT, changes, run, runs};
use super::examples::good;
use super::fixtures::{kind_of, labels, options, recorded, testdata, unweighed};

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

/// What became of the broken records of a format.
#[derive(Debug, Default)]
struct Outcomes {
    profiles: u64,
    reasons: BTreeSet<Reason>,
}

/// A reading that asks for much of what records of a format say.
fn demanding(format: Format) -> Reading {
    let (keys, timed) = match format {
        Format::ChromeTrace => ("comm,pid,symbol,parent", true),
        Format::PerfScript | Format::PerfData => ("comm,pid,cpu,dso,symbol,parent", true),
        Format::Speedscope => ("comm,symbol", true),
        Format::Cpuprofile | Format::Stackprof | Format::Otlp => ("symbol,parent", true),
        Format::Gecko => ("comm,pid,dso,symbol,parent", true),
        Format::Jfr => ("comm,symbol,parent", true),
        _ => ("symbol,parent", false),
    };
    Reading {
        keys: Some(keys.parse().unwrap()),
        filters: Filters { symbols: Some(["work".into(), "encode".into()].into()), ..Filters::default() },
        times: timed.then(|| "0%-60%".parse().unwrap()),
        stream: true,
        ..Reading::default()
    }
}

/// Whatever a record was made into, reading it for a comparison harms nobody either, and asking for nothing gives what the decoder gave.
///
/// NB: of pprof more is read than is decoded, which may be what is broken.
fn reads_no_worse(
    format: Format,
    bytes: &[u8],
    parts: &[Result<Profile, Rejection>],
    [plain, demanding]: &[Reading; 2],
) -> Result<(), TestCaseError> {
    let options = options(format);
    let labels = labels(kind_of(format));
    let read = plain.runs(format, bytes, &labels, &options);
    prop_assert!(!read.is_empty());
    for (read, decoded) in read.iter().zip(parts) {
        match (read, decoded) {
            (Ok(read), Ok(decoded)) => prop_assert_eq!(unweighed(&read.profile), unweighed(decoded)),
            (Ok(read), Err(fault)) => {
                prop_assert!(read.period.is_some() && fault.reason == Reason::UnitMismatch, "{fault:?}")
            }
            (Err(Unread::Rejected(fault)), Err(decoded)) => {
                prop_assert!(format == Format::Pprof || fault.reason == decoded.reason, "{fault:?} {decoded:?}")
            }
            (Err(fault), Ok(_)) => prop_assert!(format == Format::Pprof, "{fault}"),
            (Err(fault), Err(_)) => prop_assert!(false, "{fault}"),
        }
    }
    for run in demanding.runs(format, bytes, &labels, &options).into_iter().flatten() {
        keeps_its_promises(&run.profile);
    }
    Ok(())
}

/// Breaks the good records of a format.
fn outcomes(format: Format) -> Outcomes {
    let seeds = seeds(format);
    let decoder: RefCell<Box<dyn Decode>> = RefCell::new(format.decoder(&options(format)));
    let outcomes = RefCell::new(Outcomes::default());
    let labels = Ok(labels(kind_of(format)));
    let readings = [Reading::default(), demanding(format)];
    let strategy = (0..seeds.len(), changes());
    run(format.name(), &strategy, |(seed, changes)| {
        let mut bytes = seeds[seed].clone();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        let parts = decoder.borrow_mut().decode(&bytes, &labels);
        prop_assert!(!parts.is_empty());
        reads_no_worse(format, &bytes, &parts, &readings)?;
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
            let stack =
                |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: Some("ios".into()), value: 0 };
            let small = Profile {
                samples: Samples::Stacks(vec![stack(&[0, 1], 3), stack(&[], 200)]),
                ..recorded_profile(RD, Format::Folded)
            };
            let small = Profile { names: ["main".into(), "work".into()].into(), ..small };
            let pair = [Profile { window: first.window, ..small.clone() }, small];
            seeds.push(otlp::encode(&pair, &IdentityMapping::default()).unwrap());
            seeds.push(fs::read(testdata("otlp-kafka/hop02-node-4.otlp.pb")).unwrap());
            seeds.push(fs::read(testdata("otlp-kafka/edge/no-dictionary.otlp.pb")).unwrap());
        }
        Format::Jfr => seeds.push(unpacked(&fs::read(testdata("java/ap-live.jfr.gz")).unwrap())),
        Format::PerfScript
        | Format::PerfData
        | Format::Speedscope
        | Format::Cpuprofile
        | Format::ChromeTrace
        | Format::Heapprofile
        | Format::Stackprof
        | Format::Gecko
        | Format::Pyroscope => {}
    }
    seeds
}

fn recorded_profile(file: &str, format: Format) -> Profile {
    let bytes = fs::read(recorded(file)).unwrap();
    format.decoder(&options(format)).decode(&bytes, &Ok(labels(kind_of(format)))).remove(0).unwrap()
}

/// Reasons that broken records of a format must have been refused for, or the changes do not reach its decoder; the first two soon.
fn expected(format: Format) -> &'static [Reason] {
    use Reason::{
        Empty, IndexOutOfRange, Malformed, MissingIdentity, NegativeValue, TooLarge, Truncated, UnitMismatch,
        UnsupportedType, UnsupportedVersion,
    };
    match format {
        Format::Pprof => &[Truncated, Malformed, IndexOutOfRange, UnitMismatch, Empty],
        Format::Folded => &[Truncated, Malformed, NegativeValue, TooLarge, UnitMismatch],
        Format::PerfScript => &[Truncated, Malformed, Empty],
        Format::PerfData => &[Truncated, Malformed, UnsupportedType],
        Format::Speedscope => &[Truncated, Malformed, IndexOutOfRange, UnitMismatch],
        Format::Cpuprofile => &[Truncated, Malformed, IndexOutOfRange],
        Format::Stackprof => &[Truncated, Malformed, IndexOutOfRange, UnsupportedType, TooLarge],
        Format::Gecko => &[Truncated, Malformed, IndexOutOfRange, UnitMismatch, UnsupportedType],
        Format::ChromeTrace => &[Truncated, Malformed, IndexOutOfRange, Empty],
        Format::Heapprofile => &[Truncated, Malformed, IndexOutOfRange, NegativeValue],
        Format::Pyroscope => {
            &[Truncated, Malformed, IndexOutOfRange, NegativeValue, UnitMismatch, UnsupportedType, UnsupportedVersion]
        }
        Format::Delta => &[Truncated, Malformed, UnsupportedVersion, IndexOutOfRange],
        Format::Jfr => &[Truncated, Malformed, UnsupportedVersion, UnitMismatch, Empty],
        Format::Otlp => &[Truncated, Malformed, UnsupportedVersion, IndexOutOfRange, MissingIdentity, UnsupportedType],
    }
}

fn broken_records_harm_nobody(format: Format) {
    let outcomes = outcomes(format);
    assert!(outcomes.profiles > u64::from(runs() / 200), "{}: {outcomes:?}", format.name());
    let reasons = expected(format);
    for reason in if runs() < ENOUGH { &reasons[..2] } else { reasons } {
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
fn mutated_perf_data() {
    broken_records_harm_nobody(Format::PerfData);
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
fn mutated_heapprofile() {
    broken_records_harm_nobody(Format::Heapprofile);
}

#[test]
fn mutated_gecko() {
    broken_records_harm_nobody(Format::Gecko);
}

#[test]
fn mutated_stackprof() {
    broken_records_harm_nobody(Format::Stackprof);
}

#[test]
fn mutated_chrome_trace() {
    broken_records_harm_nobody(Format::ChromeTrace);
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

#[test]
fn mutated_jfr() {
    broken_records_harm_nobody(Format::Jfr);
}
