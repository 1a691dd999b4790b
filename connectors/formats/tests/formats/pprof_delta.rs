//! Deltas of cumulative pprof profiles: against godeltaprof, which subtracted inside the recorded process, and against what
//! was added to profiles that chance made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fleetdiff_formats::compression::{decompress, gzip};
use fleetdiff_formats::pprof::delta::{NoDelta, Which, delta};
use fleetdiff_formats::pprof::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use fleetdiff_schemas::rejected::Reason;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message;

const MAX: usize = 1 << 24;

pub fn godeltaprof(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/godeltaprof");
    fs::read(folder.join(format!("{name}.pb.gz"))).unwrap()
}

fn decoded(bytes: &[u8]) -> Profile {
    Profile::decode(&*decompress(bytes, MAX).unwrap()).unwrap()
}

/// Values by stack (function and line, leaf first) and labels, equal ones added up.
fn by_stack(profile: &Profile) -> BTreeMap<String, Vec<i64>> {
    let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
    let location = |id: &u64| profile.location.iter().find(|location| location.id == *id).unwrap();
    let function = |id: u64| text(profile.function.iter().find(|function| function.id == id).unwrap().name);
    let mut sums: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for sample in &profile.sample {
        let lines = sample.location_id.iter().flat_map(|id| &location(id).line);
        let stack: Vec<String> = lines.map(|line| format!("{}:{}", function(line.function_id), line.line)).collect();
        let labels: Vec<String> =
            sample.label.iter().map(|label| format!("{}={}{}", text(label.key), text(label.str), label.num)).collect();
        let sum = sums
            .entry(format!("{} {}", stack.join(";"), labels.join(",")))
            .or_insert_with(|| vec![0; sample.value.len()]);
        sum.iter_mut().zip(&sample.value).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn ours(kind: &str, before: u8, after: u8) -> Profile {
    let of = |hop: u8| godeltaprof(&format!("{kind}-0{hop}.cumulative"));
    decoded(&delta(&of(before), &of(after), MAX).unwrap())
}

#[test]
fn published_mutex_and_block_deltas_of_godeltaprof() {
    for kind in ["mutex", "block"] {
        for hop in 1..=2 {
            let expected = decoded(&godeltaprof(&format!("{kind}-0{hop}.godeltaprof")));
            let (expected, got) = (by_stack(&expected), by_stack(&ours(kind, hop - 1, hop)));
            assert!(expected.len() > 10, "{kind} {hop}: {} stacks", expected.len());
            assert_eq!(got, expected, "{kind} {hop}");
        }
    }
}

#[test]
fn published_heap_deltas_of_godeltaprof_up_to_rounding() {
    let mut sums = Vec::new();
    for hop in 1..=2 {
        let expected = by_stack(&decoded(&godeltaprof(&format!("heap-0{hop}.godeltaprof"))));
        let got = by_stack(&ours("heap", hop - 1, hop));
        assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "hop {hop}");
        assert!(got.len() > 50, "hop {hop}: {} stacks", got.len());
        assert!(got.iter().all(|(stack, values)| values[2..] == expected[stack][2..]), "inuse of hop {hop}");
        let total = |of: &BTreeMap<String, Vec<i64>>| {
            [0, 1].map(|column| of.values().map(|values| values[column]).sum::<i64>())
        };
        sums.push((total(&expected), total(&got)));
    }
    println!("objects and bytes of godeltaprof, of ours: {sums:?}");
    for (expected, got) in sums {
        assert!(
            expected.iter().zip(got).all(|(expected, got)| *expected > 1_000_000 && (expected - got).abs() < 100),
            "{expected:?} {got:?}"
        );
    }
}

#[test]
fn a_delta_spans_the_time_between_and_names_what_it_holds_alone() {
    let (before, after) = (decoded(&godeltaprof("mutex-00.cumulative")), decoded(&godeltaprof("mutex-01.cumulative")));
    let got = ours("mutex", 0, 1);
    assert_eq!((got.time_nanos, got.duration_nanos), (before.time_nanos, after.time_nanos - before.time_nanos));
    assert_eq!((got.mapping.len(), got.period, got.sample_type.len()), (after.mapping.len(), after.period, 2));
    assert!(got.location.len() < after.location.len() && got.string_table.len() < after.string_table.len());
    let locations = got.sample.iter().flat_map(|sample| &sample.location_id);
    assert!(
        locations.clone().count() > 0
            && locations.into_iter().all(|id| got.location.iter().any(|location| location.id == *id))
    );
    assert_eq!(ours("mutex", 1, 1).sample, Vec::new(), "nothing happened between a profile and itself");
    assert!(ours("heap", 1, 1).sample.iter().all(|sample| sample.value[..2] == [0, 0]), "its levels stay");
}

pub type Rows = BTreeMap<(Vec<u8>, u8), [i64; 2]>;

/// A heap profile of these rows: stacks of functions 0 to 5 and a label, with objects allocated and in use. `shift` numbers
/// everything otherwise, and each row is split in two.
pub fn heap(rows: &Rows, shift: u64) -> Vec<u8> {
    let shifted = |number: u8| (u64::from(number) + shift) % 6 + 1;
    let mut strings: Vec<String> =
        ["", "alloc_objects", "inuse_objects", "count", "size", "prog"].map(str::to_owned).to_vec();
    strings.extend((0..shift).map(|unused| format!("unused {unused}")));
    let first = strings.len();
    strings.extend((0..6).map(|function| format!("f{function}")));
    let name = |function: u8| i64::try_from(first).unwrap() + i64::from(function);
    let column = |name| ValueType { r#type: name, unit: 3 };
    let mut message = Profile {
        sample_type: vec![column(1), column(2)],
        mapping: vec![Mapping {
            id: 3 + shift,
            filename: 5,
            memory_start: 4096,
            memory_limit: 9999,
            ..Mapping::default()
        }],
        string_table: strings,
        period: 512,
        ..Profile::default()
    };
    for function in 0..6 {
        let id = shifted(function);
        message.function.push(Function { id, name: name(function), ..Function::default() });
        let line = vec![Line { function_id: id, line: 7, column: 0 }];
        message.location.push(Location {
            id,
            mapping_id: 3 + shift,
            address: 4096 + u64::from(function),
            line,
            is_folded: false,
        });
    }
    for ((stack, label), values) in rows {
        let label = Label { key: 4, num: i64::from(*label), ..Label::default() };
        let location_id: Vec<u64> = stack.iter().map(|function| shifted(*function)).collect();
        for value in [values.map(|value| value / 2), values.map(|value| value - value / 2)] {
            message.sample.push(Sample { location_id: location_id.clone(), value: value.to_vec(), label: vec![label] });
        }
    }
    if shift % 2 == 1 {
        message.sample.reverse();
    }
    message.encode_to_vec()
}

fn rows() -> impl Strategy<Value = Rows> {
    btree_map((vec(0u8..6, 0..4), 0u8..2), [0i64..30, 0i64..30], 0..12)
}

/// Rows as [`by_stack`] names them, those of zeros left out.
fn named(rows: &Rows) -> BTreeMap<String, Vec<i64>> {
    let stack = |stack: &[u8]| stack.iter().map(|function| format!("f{function}:7")).collect::<Vec<_>>().join(";");
    let some = rows.iter().filter(|(_, values)| **values != [0, 0]);
    some.map(|((frames, label), values)| (format!("{} size={label}", stack(frames)), values.to_vec())).collect()
}

proptest! {
    /// The law: the delta is what was added, whatever ids, order and splitting of equal stacks; levels are the later ones.
    #[test]
    fn oracle_the_delta_is_what_was_added(before in rows(), added in rows(), shifts in (0u64..6, 0u64..6)) {
        let mut after = added.clone();
        for (key, values) in &before {
            after.entry(key.clone()).or_insert([0, 0])[0] += values[0];
        }
        let mut expected = after.clone();
        for (key, values) in &mut expected {
            values[0] -= before.get(key).map_or(0, |before| before[0]);
        }
        let got = delta(&heap(&before, shifts.0), &gzip(&heap(&after, shifts.1)), MAX).unwrap();
        prop_assert_eq!(by_stack(&decoded(&got)), named(&expected));
    }

    /// The law: a value that falls is a reset, whichever it is, also where its stack is gone.
    #[test]
    fn a_fall_is_a_reset(before in rows(), which in any::<prop::sample::Index>(), gone in any::<bool>()) {
        let falling: Vec<_> = before.iter().filter(|(_, values)| values[0] > 0).map(|(key, _)| key.clone()).collect();
        prop_assume!(!falling.is_empty());
        let key = &falling[which.index(falling.len())];
        let mut after = before.clone();
        if gone { after.remove(key); } else { after.get_mut(key).unwrap()[0] -= 1; }
        let fell = delta(&heap(&before, 1), &heap(&after, 2), MAX).unwrap_err();
        prop_assert!(matches!(&fell, NoDelta::Reset { column, before, after, .. } if column == "alloc_objects/count" && after < before), "{fell}");
    }

    /// The law: whatever the bytes are, there is a delta or a reason.
    #[test]
    fn spoilt_bytes_never_panic(rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let good = heap(&rows, 0);
        let mut spoilt = good.clone();
        let at = at.index(spoilt.len());
        spoilt[at] = byte;
        for (before, after) in [(&good, &spoilt), (&spoilt, &good)] {
            if let Err(fault) = delta(before, after, MAX) {
                prop_assert!(!fault.to_string().is_empty() && !fault.hint().is_empty());
            }
        }
    }
}

#[test]
fn what_is_no_pair_says_why() {
    let (mutex, block, heap) =
        (godeltaprof("mutex-00.cumulative"), godeltaprof("block-01.cumulative"), godeltaprof("heap-01.cumulative"));
    let code = |before: &[u8], after: &[u8]| {
        delta(before, after, MAX).map_err(|fault| (fault.code(), fault.to_string())).unwrap_err()
    };
    let (kind, text) = code(&mutex, &heap);
    assert_eq!(kind, "unlike");
    assert!(text.contains("contentions/count, delay/nanoseconds before, alloc_objects/count"), "{text}");
    assert_eq!(code(&block, &godeltaprof("block-00.cumulative")).0, "backwards");
    let mut other_period = decoded(&mutex);
    other_period.period = 99;
    assert!(code(&mutex, &other_period.encode_to_vec()).1.contains("period: 1 before, 99 after"));
    let unreadable = |before: &[u8], after: &[u8]| match delta(before, after, MAX) {
        Err(NoDelta::Unreadable(which, fault)) => (which, fault.reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(unreadable(&mutex[..40], &mutex), (Which::Before, Reason::Truncated));
    assert_eq!(unreadable(&mutex, b"no profile"), (Which::After, Reason::Malformed));
    assert_eq!(unreadable(&mutex, b""), (Which::After, Reason::UnitMismatch));
    let changed = |change: fn(&mut Profile)| {
        let mut profile = decoded(&mutex);
        change(&mut profile);
        unreadable(&mutex, &profile.encode_to_vec()).1
    };
    assert_eq!(changed(|profile| profile.sample[0].value[0] = -1), Reason::NegativeValue);
    assert_eq!(changed(|profile| profile.sample[0].value.truncate(1)), Reason::Malformed);
    assert_eq!(changed(|profile| profile.sample[0].location_id[0] = 1 << 40), Reason::IndexOutOfRange);
    assert_eq!(changed(|profile| profile.function[0].filename = 1 << 40), Reason::IndexOutOfRange);
    assert_eq!(
        changed(|profile| profile.sample[0].label.push(Label { key: -1, ..Label::default() })),
        Reason::IndexOutOfRange
    );
    assert_eq!(
        changed(|profile| {
            let twice = profile.sample[0].clone();
            profile.sample.push(Sample { value: vec![i64::MAX, 0], ..twice });
        }),
        Reason::TooLarge
    );
}

#[test]
fn a_small_file_of_many_mappings_or_labels_is_too_large() {
    let limit = 1 << 16;
    let mut wide = decoded(&godeltaprof("mutex-00.cumulative"));
    assert!(delta(&wide.encode_to_vec(), &wide.encode_to_vec(), limit).is_ok());
    wide.sample[0].label = vec![Label::default(); 3_000];
    let bytes = wide.encode_to_vec();
    assert!(bytes.len() < limit);
    assert!(
        matches!(delta(&bytes, &bytes, limit), Err(NoDelta::Unreadable(Which::Before, fault)) if fault.reason == Reason::TooLarge)
    );
}
