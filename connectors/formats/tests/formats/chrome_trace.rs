//! Traces of Chrome.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::reading::Reading;
use fleetdiff_formats::{Format, Options, compression, format_of};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::{Value, json};

use super::examples::CHROME_TRACE;
use super::fixtures::{labels, part, testdata};
use super::reading::{leaves, listed, read_as, stacks};

fn decode(kind: ProfileType, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::ChromeTrace.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)))
}

/// The example after a change to its events.
fn changed(change: impl FnOnce(&mut Value)) -> Result<u64, Reason> {
    let mut document: Value = serde_json::from_str(CHROME_TRACE).unwrap();
    change(&mut document["traceEvents"]);
    let profile = decode(ProfileType::Cpu, &document.to_string());
    profile.map(|profile| profile.total()).map_err(|fault| fault.reason)
}

const SERVE: &str = "serve (/srv/shop/server.js)";

#[test]
fn chunks_of_a_thread_are_put_together_and_threads_added_up() {
    let counted = [(SERVE.to_owned(), 3), (format!("{SERVE};parse"), 1), ("(anonymous)".to_owned(), 2)];
    assert_eq!(stacks(&decode(ProfileType::Cpu, CHROME_TRACE).unwrap()), counted.into_iter().collect());
    let wall = stacks(&decode(ProfileType::Wall, CHROME_TRACE).unwrap());
    assert_eq!(wall.values().sum::<u64>(), 7);
    assert_eq!(wall.get("(idle) @ CrRendererMain"), Some(&1), "{wall:?}");
    assert_eq!(decode(ProfileType::Heap, CHROME_TRACE).unwrap_err().reason, Reason::UnsupportedType);
}

#[test]
fn a_bare_list_of_events_is_the_same() {
    let document: Value = serde_json::from_str(CHROME_TRACE).unwrap();
    let bare = document["traceEvents"].to_string();
    assert_eq!(decode(ProfileType::Cpu, &bare), decode(ProfileType::Cpu, CHROME_TRACE));
    for text in [bare.as_str(), CHROME_TRACE] {
        assert_eq!(format_of("profile.json", text.as_bytes()), Format::ChromeTrace);
    }
}

#[test]
fn ticks_have_times_threads_and_lengths() {
    let read =
        |reading: &Reading| read_as(reading, Format::ChromeTrace, CHROME_TRACE.as_bytes(), ProfileType::Cpu).unwrap();
    let weights = read(&Reading::default()).weights.unwrap();
    assert_eq!(&*weights.unit, "time/nanoseconds");
    let lengths = [("(anonymous)", 2_000_000), ("parse", 1_000_000), (SERVE, 3_500_000)];
    assert_eq!(listed(&leaves(&weights.profile)), lengths);
    let by_thread = read(&Reading { keys: Some("comm".parse().unwrap()), ..Reading::default() });
    assert_eq!(leaves(&by_thread.profile).get("CrRendererMain"), Some(&4));
    let first = read(&Reading { times: Some(",77310.1025".parse().unwrap()), ..Reading::default() });
    assert_eq!(first.profile.total(), 2);
}

/// Samples by leaf, without waiting: a walk of all chunks that knows nothing of callers.
fn walked(document: &Value) -> BTreeMap<String, u64> {
    let mut events: Vec<&Value> = document["traceEvents"].as_array().unwrap().iter().collect();
    events.sort_by_key(|event| event["ts"].as_u64());
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for event in events.into_iter().filter(|event| event["name"] == "ProfileChunk") {
        let profile = &event["args"]["data"]["cpuProfile"];
        let key = |id: &Value| format!("{} {} {id}", event["pid"], event["id"]);
        for node in profile["nodes"].as_array().into_iter().flatten() {
            let frame = &node["callFrame"];
            let name = frame["functionName"].as_str().filter(|name| !name.is_empty()).unwrap_or("(anonymous)");
            let url = frame["url"].as_str().unwrap_or_default().trim_start_matches("file://");
            let in_file = !url.is_empty() && !url.starts_with("blob:");
            let name = if in_file { format!("{name} ({url})") } else { name.to_owned() };
            names.insert(key(&node["id"]), name);
        }
        for id in profile["samples"].as_array().into_iter().flatten() {
            *found.entry(names[&key(id)].clone()).or_insert(0) += 1;
        }
    }
    found.remove("(idle)");
    found
}

#[test]
fn oracle_traces_of_chromium_and_node_are_what_a_walk_of_them_finds() {
    // What a run of Node ends with is not in its trace, so that this one has little more than waiting.
    for (file, computed) in [("page.trace.json.gz", 10), ("node.trace.json", 0)] {
        let bytes = fs::read(testdata(&format!("v8/{file}"))).unwrap();
        assert_eq!(format_of(file, &bytes), Format::ChromeTrace);
        let text = compression::decompress(&bytes, 1 << 20).unwrap();
        let expected = walked(&serde_json::from_slice(&text).unwrap());
        let run = read_as(&Reading::default(), Format::ChromeTrace, &bytes, ProfileType::Cpu).unwrap();
        assert_eq!(leaves(&run.profile), expected, "{file}");
        let price = expected.get("price (/srv/shop/page.html)").copied().unwrap_or(0);
        assert!(price >= computed && !expected.is_empty(), "{expected:?}");
        let deep = stacks(&run.profile).keys().any(|stack| stack.matches("deep").count() == 11);
        assert_eq!(deep, computed > 0, "{file}");
        assert!(run.weights.is_some(), "{file}");
    }
}

#[test]
fn a_trace_without_samples_is_refused_with_how_to_record_them() {
    for text in [r#"{"traceEvents":[{"name":"FunctionCall","ph":"X"}]}"#, r#"[{"name":"Profile","ph":"P"}]"#] {
        let fault = decode(ProfileType::Cpu, text).unwrap_err();
        assert_eq!(fault.reason, Reason::UnsupportedType);
        assert!(fault.detail.contains("disabled-by-default-v8.cpu_profiler"), "{fault:?}");
    }
}

#[test]
fn each_fault_has_its_reason() {
    let profile = |change: &dyn Fn(&mut Value)| changed(|events| change(&mut events[1]["args"]["data"]["cpuProfile"]));
    assert_eq!(profile(&|profile| profile["samples"][0] = json!(9)), Err(Reason::IndexOutOfRange));
    assert_eq!(profile(&|profile| profile["nodes"][0]["parent"] = json!(9)), Err(Reason::IndexOutOfRange));
    assert_eq!(profile(&|profile| profile["nodes"][0]["parent"] = json!(4)), Err(Reason::Malformed));
    assert_eq!(profile(&|profile| profile["nodes"][0]["id"] = json!(3)), Err(Reason::Malformed));
    assert_eq!(changed(|events| events[1]["args"] = json!(7)), Err(Reason::Malformed));
    assert_eq!(changed(|events| *events = json!(7)), Err(Reason::Malformed));
    assert_eq!(changed(|events| events[1]["pid"] = json!(8)), Err(Reason::IndexOutOfRange), "of another process");
    let deltas = json!([-4, i64::MIN, i64::MAX]);
    assert_eq!(changed(|events| events[1]["args"]["data"]["timeDeltas"] = deltas), Ok(6));
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..CHROME_TRACE.len() {
        let fault = decode(ProfileType::Cpu, &CHROME_TRACE[..end]).unwrap_err();
        assert_eq!(fault.reason, Reason::Truncated, "cut at {end}");
    }
}

/// Chrome before 67: all ticks of a thread in one event.
#[test]
fn regression_a_whole_profile_in_one_event_is_read() {
    let frame =
        |name: &str| json!({"functionName": name, "scriptId": "0", "url": "", "lineNumber": 1, "columnNumber": 1});
    let whole = |thread: u32, met: &[u32]| {
        let nodes = json!([
            {"id": 1, "callFrame": frame("(root)"), "hitCount": 0, "children": [2, 3]},
            {"id": 2, "callFrame": frame("(idle)"), "hitCount": 9},
            {"id": 3, "callFrame": frame("serve"), "hitCount": 9},
        ]);
        let deltas: Vec<u32> = met.iter().map(|_| 1_000).collect();
        let profile =
            json!({"nodes": nodes, "startTime": 5_000, "endTime": 9_000, "samples": met, "timeDeltas": deltas});
        json!({"name": "CpuProfile", "ph": "I", "ts": 9_100, "pid": 7, "tid": thread, "args": {"data": {"cpuProfile": profile}}})
    };
    let name = |thread: u32, name: &str| json!({"name": "thread_name", "ph": "M", "pid": 7, "tid": thread, "args": {"name": name}});
    let text = json!({"traceEvents": [whole(8, &[3, 3, 2]), name(8, "Worker"), name(9, "Page"), whole(9, &[2, 3])]})
        .to_string();
    assert_eq!(decode(ProfileType::Cpu, &text).unwrap().total(), 3);
    let by_thread = Reading { keys: Some("comm".parse().unwrap()), ..Reading::default() };
    let run = read_as(&by_thread, Format::ChromeTrace, text.as_bytes(), ProfileType::Wall).unwrap();
    assert_eq!(leaves(&run.profile).get("Worker"), Some(&3));
    let weights = run.weights.unwrap();
    // The last tick of each lasts until the end of its profile.
    assert_eq!((&*weights.unit, weights.profile.total()), ("time/nanoseconds", 3_000_000 + 3_000_000));
}

#[test]
fn regression_ticks_without_a_tree_are_left_out_and_the_rest_is_read() {
    let stray = json!({"name": "ProfileChunk", "ph": "P", "pid": 7, "id": "0x9", "tid": 9, "ts": 1,
        "args": {"data": {"cpuProfile": {"samples": [4, 4, 4]}, "timeDeltas": [1, 1, 1]}}});
    let mut document: Value = serde_json::from_str(CHROME_TRACE).unwrap();
    document["traceEvents"].as_array_mut().unwrap().push(stray.clone());
    let text = document.to_string();
    assert_eq!(decode(ProfileType::Cpu, &text).unwrap().total(), 6);
    let run = read_as(&Reading::default(), Format::ChromeTrace, text.as_bytes(), ProfileType::Cpu).unwrap();
    assert_eq!((run.profile.total(), run.lost), (6, 3));
    let fault = decode(ProfileType::Cpu, &json!([stray]).to_string()).unwrap_err();
    assert!(fault.detail.contains("3 ticks, and none of the nodes"), "{fault:?}");
}
