//! stackprof's JSON.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::reading::{Reading, Unread};
use fleetdiff_formats::{Format, Labels, Options, format_of};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use serde_json::{Value, json};

use super::examples::STACKPROF;
use super::fixtures::{labels, part, stacks_of, testdata};
use super::reading::{read_as, stacks};

fn decode_with(labels: Labels, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Stackprof.decoder(&Options::default()), text.as_bytes(), &Ok(labels))
}

/// The example after a change to it.
fn changed(change: impl FnOnce(&mut Value)) -> Result<u64, Reason> {
    let mut document: Value = serde_json::from_str(STACKPROF).unwrap();
    change(&mut document);
    let profile = decode_with(labels(ProfileType::Cpu), &document.to_string());
    profile.map(|profile| profile.total()).map_err(|fault| fault.reason)
}

#[test]
fn each_stack_has_the_samples_that_met_it() {
    let profile = decode_with(labels(ProfileType::Cpu), STACKPROF).unwrap();
    let block = "block in <main> (/srv/shop/shop.rb)";
    let expected = [
        (block.to_owned(), 1),
        (format!("{block};Basket#total"), 1),
        (format!("{block};Basket#total;Array#sum"), 2),
        ("(garbage collection);(marking)".to_owned(), 2),
    ];
    assert_eq!(stacks(&profile), expected.into_iter().collect());
}

/// Stacks of a file as `stackprof --stackcollapse` goes through them, whose names are put together as documented.
fn walked(document: &Value) -> BTreeMap<String, u64> {
    let numbers: Vec<u64> = document["raw"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect();
    let name = |address: &u64| {
        let frame = &document["frames"][address.to_string()];
        let (name, file) = (frame["name"].as_str().unwrap(), frame["file"].as_str().unwrap());
        if name.contains('#') || name.contains('.') || ["", "<cfunc>"].contains(&file) {
            name.to_owned()
        } else {
            format!("{name} ({file})")
        }
    };
    let mut found = BTreeMap::new();
    let mut place = 0;
    while place < numbers.len() {
        let length = usize::try_from(numbers[place]).unwrap();
        let frames: Vec<String> = numbers[place + 1..=place + length].iter().map(name).collect();
        *found.entry(frames.join(";")).or_insert(0) += numbers[place + length + 1];
        place += length + 2;
    }
    found
}

#[test]
fn oracle_files_of_ruby_are_what_a_walk_of_them_finds() {
    for (file, kind) in [("cpu", ProfileType::Cpu), ("wall", ProfileType::Wall), ("object", ProfileType::Heap)] {
        let bytes = fs::read(testdata(&format!("stackprof/{file}.json"))).unwrap();
        assert_eq!(format_of("profile.json", &bytes), Format::Stackprof);
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let expected = walked(&document);
        let run = read_as(&Reading::default(), Format::Stackprof, &bytes, kind).unwrap();
        assert_eq!(stacks(&run.profile), expected, "{file}");
        assert_eq!(Some(run.profile.total()), document["samples"].as_u64(), "{file}");
        assert!(expected.keys().any(|stack| stack.contains("Basket#deep;Basket#deep;")), "{file}");
    }
}

#[test]
fn a_file_without_stacks_is_refused_with_how_to_record_them() {
    let flat = fs::read_to_string(testdata("stackprof/flat.json")).unwrap();
    assert_eq!(format_of("profile.json", flat.as_bytes()), Format::Stackprof);
    let fault = decode_with(labels(ProfileType::Cpu), &flat).unwrap_err();
    assert_eq!(fault.reason, Reason::UnsupportedType);
    assert!(fault.detail.contains("raw: true"), "{fault:?}");
}

#[test]
fn modes_are_types() {
    let of = |mode: &str, kind| {
        let text = STACKPROF.replacen("\"cpu\"", &format!("\"{mode}\""), 1);
        decode_with(labels(kind), &text).map(|profile| profile.total()).map_err(|fault| fault.reason)
    };
    for (mode, kind) in [("cpu", ProfileType::Cpu), ("wall", ProfileType::Wall), ("object", ProfileType::Heap)] {
        for other in ProfileType::ALL.map(|(kind, _)| kind) {
            let expected = if other == kind { Ok(6) } else { Err(Reason::UnitMismatch) };
            assert_eq!(of(mode, other), expected, "{mode} as {}", other.name());
        }
    }
    assert_eq!(of("custom", ProfileType::Cpu), Err(Reason::UnsupportedType));
}

#[test]
fn samples_have_times_and_stand_for_none_unless_it_is_declared() {
    let read = |reading: &Reading| read_as(reading, Format::Stackprof, STACKPROF.as_bytes(), ProfileType::Cpu);
    assert_eq!(read(&Reading::default()).unwrap().weights, None);
    let first = Reading { times: Some(",22268.29".parse().unwrap()), ..Reading::default() };
    assert_eq!(read(&first).unwrap().profile.total(), 3);
    let later = Reading { crop: Some(Nanos(20_000_000)), ..Reading::default() };
    assert_eq!(read(&later).unwrap().profile.total(), 3);
    let untimed = STACKPROF.replace("[22268268050, ", "[");
    let cut = read_as(&later, Format::Stackprof, untimed.as_bytes(), ProfileType::Cpu);
    assert_eq!(cut, Err(Unread::Timeless));
    let declared = Labels { period: Some("10ms".parse().unwrap()), ..labels(ProfileType::Cpu) };
    let profile = decode_with(declared, STACKPROF).unwrap();
    assert_eq!(stacks_of(&profile).iter().map(|stack| stack.value).sum::<u64>(), 60_000_000);
}

#[test]
fn each_fault_has_its_reason() {
    let raw = |raw: Value| changed(|document| document["raw"] = raw);
    assert_eq!(raw(json!([1, 7, 1])), Err(Reason::IndexOutOfRange));
    assert_eq!(raw(json!([1, 1])), Err(Reason::Malformed));
    assert_eq!(raw(json!([3, 1, 1])), Err(Reason::Malformed));
    assert_eq!(raw(json!([u64::MAX, 1, 1])), Err(Reason::Malformed));
    assert_eq!(raw(json!([1, 1, -1])), Err(Reason::Malformed));
    assert_eq!(raw(json!([1, 1, u64::MAX])), Err(Reason::TooLarge));
    assert_eq!(raw(json!([])), Err(Reason::Empty));
    assert_eq!(raw(json!([0, 4])), Ok(4), "samples without a stack are some");
    assert_eq!(changed(|document| drop(document.as_object_mut().unwrap().remove("raw"))), Err(Reason::UnsupportedType));
    assert_eq!(changed(|document| document["frames"]["01"] = json!({"name": "x"})), Err(Reason::Malformed));
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..STACKPROF.len() {
        let fault = decode_with(labels(ProfileType::Cpu), &STACKPROF[..end]).unwrap_err();
        assert_eq!(fault.reason, Reason::Truncated, "cut at {end}");
    }
}
