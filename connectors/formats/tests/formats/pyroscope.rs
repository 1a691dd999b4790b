//! Pyroscope's flame graphs.

use std::collections::BTreeMap;

use fleetdiff_formats::{Format, Labels, Options, Unit};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::examples::PYROSCOPE;
use super::fixtures::{START, labels, part, window, written_out};

fn decode_with(labels: Labels, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Pyroscope.decoder(&Options::default()), text.as_bytes(), &Ok(labels))
}

fn decode(text: &str) -> Result<Profile, Rejection> {
    decode_with(labels(ProfileType::Cpu), text)
}

fn stacks(profile: &Profile) -> BTreeMap<String, u64> {
    written_out(profile).into_iter().map(|(frames, count, _)| (frames.join(";"), count)).collect()
}

/// The example after a change to it.
fn changed(kind: ProfileType, unit: Option<Unit>, change: impl FnOnce(&mut Value)) -> Result<u64, Reason> {
    let mut document: Value = serde_json::from_str(PYROSCOPE).unwrap();
    change(&mut document);
    let found = decode_with(Labels { unit, ..labels(kind) }, &document.to_string());
    found.map(|profile| profile.total()).map_err(|fault| fault.reason)
}

#[test]
fn each_self_count_is_a_stack() {
    let expected = [("main", 1), ("main;encode", 4), ("main;wait", 2), ("serve;encode", 2), ("serve;_unsymbolised", 1)];
    let expected: BTreeMap<String, u64> =
        expected.into_iter().map(|(stack, count)| (stack.to_owned(), count)).collect();
    assert_eq!(stacks(&decode(PYROSCOPE).unwrap()), expected);
}

#[test]
fn the_file_says_when_unless_the_labels_do() {
    let own = decode_with(Labels { window: None, ..labels(ProfileType::Cpu) }, PYROSCOPE).unwrap();
    assert_eq!(own.window, TimeRange { start: Nanos(START), end: Nanos(START + 20_000_000_000) });
    assert_eq!(decode(PYROSCOPE).unwrap().window, window());
}

/// Nanoseconds that are called samples are the trap of this format.
#[test]
fn only_samples_are_counted() {
    let units = |kind, unit, rate: u64, name: &'static str, own: &'static str| {
        changed(kind, unit, |document| {
            document["metadata"]["units"] = json!(own);
            document["metadata"]["sampleRate"] = json!(rate);
            document["metadata"]["name"] = json!(name);
        })
    };
    use ProfileType::{Block, Cpu, Heap, Mutex, Wall};
    for kind in [Cpu, Wall] {
        assert_eq!(units(kind, None, 100, "", "samples"), Ok(10));
        assert_eq!(units(kind, None, 100, "samples", "objects"), Ok(10));
        assert_eq!(units(kind, None, 100, "inuse_objects", "objects"), Err(Reason::UnitMismatch));
        for nanoseconds in [100_000_000, 1_000_000_000] {
            assert_eq!(units(kind, None, nanoseconds, "cpu", "samples"), Err(Reason::UnitMismatch));
        }
        assert_eq!(units(kind, None, 100, "", "nanoseconds"), Err(Reason::UnitMismatch));
        assert_eq!(units(kind, None, 100, "", ""), Err(Reason::UnitMismatch));
        assert_eq!(units(kind, Some(Unit::Count), 100, "", ""), Ok(10));
    }
    for kind in [Mutex, Block] {
        assert_eq!(units(kind, None, 100, "", "lock_samples"), Ok(10));
        assert_eq!(units(kind, None, 100, "", "lock_nanoseconds"), Err(Reason::UnitMismatch));
    }
    for own in ["objects", "bytes", "samples"] {
        assert_eq!(units(Heap, None, 100, "alloc_objects", own), Err(Reason::UnitMismatch));
    }
}

#[test]
fn a_comparison_and_other_versions_are_refused() {
    let cpu = |change: fn(&mut Value)| changed(ProfileType::Cpu, None, change);
    assert_eq!(cpu(|document| document["metadata"]["format"] = json!("double")), Err(Reason::UnsupportedType));
    assert_eq!(cpu(|document| document["leftTicks"] = json!(3)), Err(Reason::UnsupportedType));
    assert_eq!(cpu(|document| document["version"] = json!(2)), Err(Reason::UnsupportedVersion));
}

#[test]
fn bars_that_do_not_fit_together_are_refused() {
    let level = |row: usize, place: usize, value: i64| {
        changed(ProfileType::Cpu, None, |document| document["flamebearer"]["levels"][row][place] = json!(value))
    };
    assert_eq!(level(1, 1, 7), Ok(10), "unchanged");
    assert_eq!(level(1, 1, 8), Err(Reason::Malformed), "longer than what lies below");
    assert_eq!(level(1, 2, 2), Err(Reason::Malformed), "more self than there is room");
    assert_eq!(level(2, 0, 6), Err(Reason::Malformed), "over the edge of the bar below");
    assert_eq!(level(2, 3, 6), Err(Reason::IndexOutOfRange));
    assert_eq!(level(2, 3, -1), Err(Reason::IndexOutOfRange));
    assert_eq!(level(2, 2, -4), Err(Reason::NegativeValue));
    assert_eq!(level(0, 1, i64::MAX), Err(Reason::Malformed));
    let ticks =
        |ticks: i64| changed(ProfileType::Cpu, None, |document| document["flamebearer"]["numTicks"] = json!(ticks));
    assert_eq!([ticks(9), ticks(-1)], [Err(Reason::Malformed), Err(Reason::NegativeValue)]);
    let row = |row: Value| changed(ProfileType::Cpu, None, |document| document["flamebearer"]["levels"][2] = row);
    assert_eq!(row(json!([1, 4, 4])), Err(Reason::Malformed), "three numbers");
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..PYROSCOPE.len() {
        assert_eq!(decode(&PYROSCOPE[..end]).unwrap_err().reason, Reason::Truncated, "cut at {end}");
    }
}

/// Draws a flame graph of stacks the slow way: for each depth, the runs of equal beginnings among the sorted stacks.
fn drawn(stacks: &BTreeMap<Vec<usize>, u64>) -> Value {
    let total: u64 = stacks.values().sum();
    let mut levels = vec![json!([0, total, 0, 0])];
    let deepest = stacks.keys().map(Vec::len).max().unwrap_or(0);
    for depth in 1..=deepest {
        let (mut row, mut end, mut at) = (Vec::new(), 0, 0);
        let sorted: Vec<_> = stacks.iter().collect();
        for run in sorted.chunk_by(|a, b| a.0.len() >= depth && b.0.len() >= depth && a.0[..depth] == b.0[..depth]) {
            let length: u64 = run.iter().map(|(_, count)| **count).sum();
            let (stack, count) = run[0];
            if stack.len() >= depth {
                let own = if stack.len() == depth { *count } else { 0 };
                row.extend([json!(at - end), json!(length), json!(own), json!(stack[depth - 1] + 1)]);
                end = at + length;
            }
            at += length;
        }
        levels.push(Value::Array(row));
    }
    json!({
        "flamebearer": {"names": ["total", "a", "b", "c"], "levels": levels, "numTicks": total, "maxSelf": 0},
        "metadata": {"format": "single", "units": "samples", "sampleRate": 100},
    })
}

proptest! {
    /// What was drawn is read back: the same stacks with the same counts.
    #[test]
    fn oracle_a_drawn_flame_graph_is_read_back(stacks in btree_map(vec(0..3usize, 1..6), 1..50u64, 1..20)) {
        let profile = decode(&drawn(&stacks).to_string()).unwrap();
        let names = |stack: &[usize]| stack.iter().map(|name| ["a", "b", "c"][*name]).collect::<Vec<_>>().join(";");
        let expected: BTreeMap<String, u64> = stacks.iter().map(|(stack, count)| (names(stack), *count)).collect();
        prop_assert_eq!(self::stacks(&profile), expected);
    }
}
