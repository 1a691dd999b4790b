//! pprof, against Go's own tool, and there and back.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::pprof::encode;
use fleetdiff_formats::pprof::proto::{Profile as Message, Sample, ValueType};
use fleetdiff_formats::{Format, Labels, Options};
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::profile::{Profile, ProfileType, Requests, Samples, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use proptest::prelude::*;
use prost::Message as _;

use super::fixtures::{START, labels, part, profiles, recorded, stacks_of, testdata, window};

/// (self, total) by function name.
type Counts = BTreeMap<String, (u64, u64)>;

fn decode(bytes: &[u8], labels: Labels) -> Result<Profile, Rejection> {
    part(&mut *Format::Pprof.decoder(&Options::default()), bytes, &Ok(labels))
}

fn add_up(counts: &mut Counts, profile: &Profile) {
    for cohort in fold_stacks(&profile.names, stacks_of(profile), &profile.identity.cohort) {
        for function in cohort.functions {
            let name = profile.names[usize::try_from(function.name).unwrap()].to_string();
            let (own, total) = counts.entry(name).or_default();
            *own += function.own;
            *total += function.total;
        }
    }
}

/// The table that `go tool pprof -top` prints.
fn printed_by_go(file: &str) -> Counts {
    let text = fs::read_to_string(testdata("go-tool-pprof").join(file)).unwrap();
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    rows.map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let name =
            columns[5..].join(" ").trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)").to_owned();
        (name, (columns[0].parse().unwrap(), columns[3].parse().unwrap()))
    })
    .collect()
}

#[test]
fn published_self_and_total_counts_of_go_tool_pprof_cpu() {
    let mut counts = Counts::new();
    for hop in 0..18 {
        let bytes = fs::read(recorded(&format!("kv-snapshot/profiles/kv-08/cpu-{hop:03}.pb.gz"))).unwrap();
        add_up(&mut counts, &decode(&bytes, labels(ProfileType::Cpu)).unwrap());
    }
    let truth = printed_by_go("kv-08-cpu.txt");
    assert!(truth.len() > 300, "{}", truth.len());
    assert_eq!(counts, truth);
}

#[test]
fn published_self_and_total_counts_of_go_tool_pprof_contentions() {
    for (file, kind) in [("mutex-01", ProfileType::Mutex), ("block-01", ProfileType::Block)] {
        let bytes = fs::read(testdata(&format!("godeltaprof/{file}.godeltaprof.pb.gz"))).unwrap();
        let mut counts = Counts::new();
        add_up(&mut counts, &decode(&bytes, labels(kind)).unwrap());
        assert_eq!(counts, printed_by_go(&format!("{file}.txt")));
    }
}

/// (file, samples of the profile that are not 0, raw samples), from the values that `go tool pprof -raw` prints.
#[test]
fn published_heap_deltas_give_back_what_was_sampled() {
    for (hop, stacks, raw) in [("00", 150, 894), ("01", 187, 1_348), ("02", 150, 821)] {
        let bytes = fs::read(testdata(&format!("godeltaprof/heap-{hop}.godeltaprof.pb.gz"))).unwrap();
        let profile = decode(&bytes, labels(ProfileType::Heap)).unwrap();
        assert_eq!((stacks_of(&profile).len(), profile.total()), (stacks, raw), "hop {hop}");
    }
}

/// A profile of one empty stack with these columns, values and period.
fn columns(types: &[(&str, &str)], values: &[i64], period: (&str, &str, i64)) -> Vec<u8> {
    let mut message = Message { string_table: vec![String::new()], period: period.2, ..Message::default() };
    let mut column = |kind: &str, unit: &str| {
        let mut index = |text: &str| {
            message.string_table.push(text.to_owned());
            i64::try_from(message.string_table.len() - 1).unwrap()
        };
        ValueType { r#type: index(kind), unit: index(unit) }
    };
    let sample_type: Vec<ValueType> = types.iter().map(|(kind, unit)| column(kind, unit)).collect();
    let period_type = (!period.0.is_empty()).then(|| column(period.0, period.1));
    let sample = vec![Sample { value: values.to_vec(), ..Sample::default() }];
    Message { sample_type, period_type, sample, ..message }.encode_to_vec()
}

#[test]
fn each_type_counts_raw_samples() {
    use ProfileType::{Block, Cpu, Heap, Mutex, OffCpu, Wall};
    let samples = [("samples", "count"), ("cpu", "nanoseconds")];
    let heap = [("inuse_space", "bytes"), ("alloc_objects", "count"), ("alloc_space", "bytes")];
    let none = ("", "", 0);
    let cases: [(ProfileType, Vec<u8>, Result<u64, Reason>); 15] = [
        (Cpu, columns(&samples, &[3, 70], none), Ok(3)),
        (Cpu, columns(&samples[1..], &[30_000_000], ("cpu", "nanoseconds", 10_000_000)), Ok(3)),
        (Cpu, columns(&[("cpu", "microseconds")], &[30_001], ("cpu", "milliseconds", 10)), Ok(3)),
        (Cpu, columns(&samples[1..], &[30_000_000], none), Err(Reason::UnknownPeriod)),
        (Cpu, columns(&[("alloc_objects", "count")], &[3], none), Err(Reason::UnitMismatch)),
        (Wall, columns(&[("wall", "nanoseconds"), ("events", "count")], &[9, 4], none), Ok(4)),
        (Wall, columns(&heap, &[0, 9, 9], ("space", "bytes", 524_288)), Err(Reason::UnitMismatch)),
        (OffCpu, columns(&[("off_cpu", "milliseconds")], &[300], ("off_cpu", "milliseconds", 100)), Ok(3)),
        (Mutex, columns(&[("contentions", "count"), ("delay", "nanoseconds")], &[5, 1 << 40], none), Ok(5)),
        (Block, columns(&[("delay", "nanoseconds")], &[5], ("", "", 1)), Err(Reason::UnitMismatch)),
        (Heap, columns(&heap, &[-9, 2, 2 * 524_288], ("space", "bytes", 524_288)), Ok(1)),
        (Heap, columns(&heap, &[0, 2, 20], ("space", "bytes", 1)), Ok(2)),
        (Heap, columns(&heap[..1], &[7], ("space", "bytes", 524_288)), Err(Reason::UnitMismatch)),
        (Cpu, columns(&samples, &[-3, 70], none), Err(Reason::NegativeValue)),
        (Cpu, columns(&samples, &[0, 70], none), Err(Reason::Empty)),
    ];
    for (place, (kind, bytes, expected)) in cases.into_iter().enumerate() {
        let found = decode(&bytes, labels(kind)).map(|profile| profile.total()).map_err(|fault| fault.reason);
        assert_eq!(found, expected, "case {place}");
    }
    let fault = decode(&columns(&[("delay", "nanoseconds")], &[5], none), labels(Block)).unwrap_err();
    assert!(fault.detail.contains("delay/nanoseconds") && fault.detail.contains("contentions/count"), "{fault:?}");
}

#[test]
fn time_comes_from_the_labels_then_the_profile_then_the_sender() {
    let message = |time_nanos, duration_nanos| {
        let bytes = columns(&[("samples", "count")], &[1], ("", "", 0));
        Message { time_nanos, duration_nanos, ..Message::decode(bytes.as_slice()).unwrap() }.encode_to_vec()
    };
    let range = |start, end| Some(TimeRange { start: Nanos(start), end: Nanos(end) });
    let timed = |window, sent_at: Option<i64>, bytes: &[u8]| {
        let labels = Labels { window, sent_at: sent_at.map(Nanos), ..labels(ProfileType::Cpu) };
        decode(bytes, labels).map(|profile| profile.window).map_err(|fault| fault.reason)
    };
    let own = message(START + 5, 100);
    assert_eq!(timed(Some(window()), Some(9), &own), Ok(window()));
    assert_eq!(timed(None, Some(9), &own).ok(), range(START + 5, START + 105));
    assert_eq!(timed(None, Some(9), &message(0, 100)).ok(), range(9, 9));
    assert_eq!(timed(None, None, &message(0, 100)), Err(Reason::Malformed));
    assert_eq!(timed(None, None, &message(i64::MAX, i64::MAX)).ok(), range(i64::MAX, i64::MAX));
}

#[test]
fn requests_without_a_window_of_their_own_are_of_the_profiles() {
    let bytes = columns(&[("samples", "count")], &[1], ("", "", 0));
    let requests = decode(&bytes, Labels { requests: Some(40), ..labels(ProfileType::Cpu) }).unwrap().requests;
    assert_eq!(requests, Some(Requests { count: 40, window: window() }));
}

#[test]
fn repeated_numbers_may_come_one_by_one() {
    // A sample without packing: two locations and a value, each a field of its own.
    let profile = encode(&one_stack()).unwrap();
    let mut message = Message::decode(unzipped(&profile).as_slice()).unwrap();
    let sample = message.sample.remove(0);
    let fields =
        sample.location_id.iter().map(|id| (1u8, *id)).chain(sample.value.iter().map(|v| (2, v.cast_unsigned())));
    let body: Vec<u8> = fields.flat_map(|(tag, value)| [vec![tag << 3], varint(value)].concat()).collect();
    let mut bytes = message.encode_to_vec();
    bytes.extend([vec![0x12, u8::try_from(body.len()).unwrap()], body].concat());
    assert_eq!(decode(&bytes, Labels::of(&one_stack())).unwrap(), one_stack());
}

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(value, &mut out);
    out
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    fleetdiff_formats::compression::decompress(bytes, 1 << 20).unwrap().into_owned()
}

fn one_stack() -> Profile {
    let stack =
        fleetdiff_schemas::profile::Stack { frames: vec![1, 0, 1], count: 300, cohort: None, value: 3_000_000_000 };
    Profile {
        identity: labels(ProfileType::Cpu).identity,
        profile_type: ProfileType::Cpu,
        temporality: Default::default(),
        window: window(),
        requests: None,
        names: ["leaf".into(), "main".into()].into(),
        samples: Samples::Stacks(vec![stack]),
    }
}

proptest! {
    /// What is written is read back exactly, the window from the file itself; equal profiles give equal bytes.
    #[test]
    fn there_and_back(profile in profiles()) {
        let bytes = encode(&profile).unwrap();
        let read = decode(&bytes, Labels { window: None, ..Labels::of(&profile) }).unwrap();
        prop_assert_eq!(&read, &profile);
        prop_assert_eq!(encode(&read).unwrap(), bytes);
    }
}

/// What is in use stands beside what was allocated, is asked for by its own type or as a level, and is of no number of requests.
#[test]
fn a_heap_profile_holds_a_level_too() {
    let heap =
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    let bytes = columns(&heap, &[9, 90, 4, 40], ("space", "bytes", 1));
    let read = |labels: Labels, bytes: &[u8]| -> Vec<(ProfileType, Temporality, u64, bool)> {
        let parts =
            Format::Pprof.decoder(&Options::default()).decode(bytes, &Ok(Labels { requests: Some(5), ..labels }));
        parts
            .into_iter()
            .map(Result::unwrap)
            .map(|profile| (profile.profile_type, profile.temporality, profile.total(), profile.requests.is_some()))
            .collect()
    };
    let of = |kind, temporality| read(Labels { temporality, ..labels(kind) }, &bytes);
    let level = (ProfileType::LiveHeap, Temporality::Gauge, 4, false);
    for temporality in [Temporality::Delta, Temporality::Cumulative] {
        assert_eq!(of(ProfileType::Heap, temporality), [(ProfileType::Heap, temporality, 9, true), level]);
    }
    assert_eq!(of(ProfileType::Heap, Temporality::Gauge), [level]);
    assert_eq!(of(ProfileType::LiveHeap, Temporality::Delta), [level]);
    let without = columns(&heap[..2], &[9, 90], ("space", "bytes", 1));
    assert_eq!(read(labels(ProfileType::Heap), &without).len(), 1);
    let nothing_left = columns(&heap, &[9, 90, 0, 0], ("space", "bytes", 1));
    assert_eq!(
        read(labels(ProfileType::Heap), &nothing_left)[1],
        (ProfileType::LiveHeap, Temporality::Gauge, 0, false)
    );
}
