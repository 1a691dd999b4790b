//! Profiles of Firefox's profiler, and of samply in the same form.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::reading::{Filters, Percentage, Reading, Unread};
use fleetdiff_formats::{Format, Options, compression, format_of};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use serde_json::{Value, json};

use super::examples::{GECKO, GECKO_SHARED};
use super::fixtures::{labels, part, testdata};
use super::reading::{leaves, read_as, stacks};

fn decode_as(kind: ProfileType, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Gecko.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)))
}

/// An example after a change to it.
fn changed(text: &str, change: impl FnOnce(&mut Value)) -> Result<u64, Reason> {
    let mut document: Value = serde_json::from_str(text).unwrap();
    change(&mut document);
    let profile = decode_as(ProfileType::Cpu, &document.to_string());
    profile.map(|profile| profile.total()).map_err(|fault| fault.reason)
}

fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
    of.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect()
}

#[test]
fn each_stack_has_the_samples_that_met_it() {
    let cpu = [
        ("main;Basket::total", 1),
        ("main;Basket::total;Price::add", 3),
        ("main;Basket::total;price (/srv/shop/price.js)", 1),
        ("", 1),
        ("_unsymbolised;[libc.so]", 2),
        ("_unsymbolised", 1),
    ];
    assert_eq!(stacks(&decode_as(ProfileType::Cpu, GECKO).unwrap()), counts(&cpu));
    let rested = decode_as(ProfileType::Wall, GECKO).unwrap();
    assert_eq!(rested.total(), 10, "a thread that did not run is a sample of wall");
    let shared = [("main", 1), ("main;price (https://shop.test/price.js)", 2), ("main;[shop]", 1)];
    assert_eq!(stacks(&decode_as(ProfileType::Cpu, GECKO_SHARED).unwrap()), counts(&shared));
}

/// Stacks of a file of version 55 as a separate walk of it finds them.
fn walked(document: &Value) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for thread in document["threads"].as_array().unwrap() {
        let of = |table: &str, column: &str, place: &Value| {
            thread[table][column][usize::try_from(place.as_u64().unwrap()).unwrap()].clone()
        };
        for (place, stack) in thread["samples"]["stack"].as_array().unwrap().iter().enumerate() {
            let (mut names, mut next) = (Vec::new(), stack.clone());
            while !next.is_null() {
                let function = of("frameTable", "func", &of("stackTable", "frame", &next));
                let words = &thread["stringArray"];
                let word = |place: &Value| words[usize::try_from(place.as_u64().unwrap()).unwrap()].as_str().unwrap();
                let (name, resource) = (of("funcTable", "name", &function), of("funcTable", "resource", &function));
                let name = word(&name);
                names.push(match resource.as_u64() {
                    Some(_) if name.starts_with("0x") => {
                        format!("[{}]", word(&of("resourceTable", "name", &resource)))
                    }
                    _ => name.to_owned(),
                });
                next = of("stackTable", "prefix", &next);
            }
            names.reverse();
            *found.entry(names.join("\n")).or_insert(0) += thread["samples"]["weight"][place].as_u64().unwrap();
        }
    }
    found
}

#[test]
fn oracle_a_file_of_samply_is_what_a_walk_of_it_finds() {
    let bytes = fs::read(testdata("samply/node.json.gz")).unwrap();
    assert_eq!(format_of("profile.json.gz", &bytes), Format::Gecko);
    let document: Value = serde_json::from_slice(&compression::decompress(&bytes, 1 << 20).unwrap()).unwrap();
    let walked = walked(&document);
    let run = read_as(&Reading::default(), Format::Gecko, &bytes, ProfileType::Wall).unwrap();
    assert_eq!(run.profile.total(), walked.values().sum::<u64>());
    assert_eq!(run.profile.total(), 136);
    // Rules of names make one of some that differ, so what is compared is what was met last: libraries, and two functions.
    let last = |holds: &dyn Fn(&str) -> bool| -> u64 {
        let met_last = |stack: &str| stack.rsplit('\n').next().is_some_and(holds);
        walked.iter().filter(|(stack, _)| met_last(stack)).map(|(_, count)| count).sum()
    };
    let found = leaves(&run.profile);
    let expected = [
        ("[node]", last(&|name| name == "[node]")),
        ("[libc.so]", last(&|name| name == "[libc.so.6]")),
        ("JS:price /srv/shop/shop.js", last(&|name| name.contains("price /srv"))),
        ("JS:total /srv/shop/shop.js", last(&|name| name.contains("total /srv"))),
    ];
    for (name, count) in expected {
        assert!(count > 0 && found.get(name) == Some(&count), "{name}: {count}, and not {found:?}");
    }
}

#[test]
fn files_say_of_threads_libraries_and_lines() {
    let by = |keys: &str, filters: Filters| {
        let reading = Reading {
            keys: Some(keys.parse().unwrap()),
            filters,
            percentage: Percentage::Relative,
            ..Reading::default()
        };
        read_as(&reading, Format::Gecko, GECKO.as_bytes(), ProfileType::Cpu).unwrap()
    };
    let comms = by("comm", Filters::default());
    assert_eq!(leaves(&comms.profile), counts(&[("shop", 6), ("worker", 3)]));
    let dsos = by("dso", Filters::default());
    let dsos = leaves(&dsos.profile);
    assert_eq!((dsos.get("shop"), dsos.get("libc.so.6")), (Some(&4), Some(&2)), "{dsos:?}");
    let lines = by("srcline", Filters::default());
    assert_eq!(leaves(&lines.profile).get("basket.cc:12"), Some(&1), "{:?}", leaves(&lines.profile));
    let one = by("symbol", Filters { tids: Some("2913".parse().unwrap()), ..Filters::default() });
    assert_eq!(one.profile.total(), 3);
}

#[test]
fn samples_have_times() {
    let reading = Reading { crop: Some(Nanos(2_000_000)), ..Reading::default() };
    let run = read_as(&reading, Format::Gecko, GECKO.as_bytes(), ProfileType::Cpu).unwrap();
    assert_eq!(run.profile.total(), 3, "by deltas in one thread, by times in the other");
    let timeless = GECKO_SHARED.replace("\"time\"", "\"at\"");
    let run = read_as(&reading, Format::Gecko, timeless.as_bytes(), ProfileType::Cpu);
    assert_eq!(run, Err(Unread::Timeless));
}

#[test]
fn firefox_samples_threads_whether_they_run_or_not() {
    let firefox = GECKO.replacen("\"product\"", "\"configuration\": {\"features\": [\"js\"]}, \"product\"", 1);
    assert_eq!(decode_as(ProfileType::Cpu, &firefox).unwrap_err().reason, Reason::UnitMismatch);
    assert_eq!(decode_as(ProfileType::Wall, &firefox).unwrap().total(), 10);
    for (kind, _) in ProfileType::ALL {
        let taken = [ProfileType::Cpu, ProfileType::Wall].contains(&kind);
        assert_eq!(decode_as(kind, GECKO).is_ok(), taken, "{}", kind.name());
    }
}

#[test]
fn each_fault_has_its_reason() {
    let first = |change: fn(&mut Value)| changed(GECKO, |document| change(&mut document["threads"][0]));
    assert_eq!(first(|thread| thread["samples"]["stack"][0] = json!(5)), Err(Reason::IndexOutOfRange));
    assert_eq!(first(|thread| thread["stackTable"]["frame"][4] = json!(5)), Err(Reason::IndexOutOfRange));
    assert_eq!(first(|thread| thread["frameTable"]["func"][0] = json!(5)), Err(Reason::IndexOutOfRange));
    assert_eq!(first(|thread| thread["funcTable"]["name"][0] = json!(9)), Err(Reason::IndexOutOfRange));
    assert_eq!(first(|thread| thread["funcTable"]["resource"][3] = json!(2)), Err(Reason::IndexOutOfRange));
    assert_eq!(first(|thread| thread["stackTable"]["prefix"][1] = json!(1)), Err(Reason::Malformed), "its own caller");
    assert_eq!(first(|thread| thread["stackTable"]["prefix"][0] = json!(4)), Err(Reason::Malformed), "a ring");
    assert_eq!(first(|thread| thread["stackTable"]["prefix"] = Value::Null), Err(Reason::Malformed));
    assert_eq!(first(|thread| thread["funcTable"] = Value::Null), Err(Reason::Malformed));
    assert_eq!(first(|thread| thread["samples"]["weight"] = json!([1])), Err(Reason::Malformed));
    assert_eq!(first(|thread| thread["samples"]["weight"][0] = json!(-1)), Err(Reason::NegativeValue), "a difference");
    assert_eq!(first(|thread| thread["samples"]["weight"][0] = json!(1.5)), Err(Reason::UnitMismatch));
    assert_eq!(first(|thread| thread["samples"]["weight"][0] = json!(1e300)), Err(Reason::TooLarge));
    assert_eq!(first(|thread| thread["samples"]["weightType"] = json!("bytes")), Err(Reason::UnitMismatch));
    assert_eq!(first(|thread| thread["samples"]["weightType"] = json!("tracing-ms")), Err(Reason::UnitMismatch));
    let meta = |change: fn(&mut Value)| changed(GECKO, |document| change(&mut document["meta"]));
    assert_eq!(meta(|meta| meta["sampleUnits"]["time"] = json!("bytes")), Err(Reason::UnsupportedType));
    assert_eq!(meta(|meta| meta["preprocessedProfileVersion"] = Value::Null), Err(Reason::UnsupportedType), "raw");
    assert_eq!(changed(GECKO, |document| document["threads"] = json!([])), Err(Reason::Empty));
    assert_eq!(changed(GECKO_SHARED, |document| document["shared"] = json!({})), Err(Reason::Malformed));
    let late = |document: &mut Value| document["shared"]["stackTable"]["prefixOffset"][1] = json!(2);
    assert_eq!(changed(GECKO_SHARED, late), Err(Reason::Malformed));
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..GECKO_SHARED.len() {
        let fault = decode_as(ProfileType::Cpu, &GECKO_SHARED[..end]).unwrap_err();
        assert_eq!(fault.reason, Reason::Truncated, "cut at {end}: {}", fault.detail);
    }
}

#[test]
fn regression_a_profile_of_an_older_firefox_is_of_wall() {
    let product = |name: &str| changed(GECKO, |document| document["meta"]["product"] = json!(name));
    assert_eq!(product("Firefox"), Err(Reason::UnitMismatch));
    let mut older: serde_json::Value = serde_json::from_str(GECKO).unwrap();
    older["meta"]["product"] = json!("Firefox");
    assert_eq!(decode_as(ProfileType::Wall, &older.to_string()).unwrap().total(), 10);
    assert_eq!(product("shop"), changed(GECKO, |_| ()), "of samply");
}
