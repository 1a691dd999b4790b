//! V8's `.heapprofile`.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::reading::Reading;
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::{Value, json};

use super::examples::HEAPPROFILE;
use super::fixtures::{labels, part, stacks_of, testdata, written_out};
use super::reading::{read_as, stacks};

fn decode(kind: ProfileType, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Heapprofile.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)))
}

/// The example after a change to it.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Profile, Rejection> {
    let mut document: Value = serde_json::from_str(HEAPPROFILE).unwrap();
    change(&mut document);
    decode(ProfileType::LiveHeap, &document.to_string())
}

/// Samples and bytes by stack.
fn both(profile: &Profile) -> Vec<(String, u64, u64)> {
    let stacks = written_out(profile).into_iter().zip(stacks_of(profile));
    stacks.map(|((frames, count, _), stack)| (frames.join(";"), count, stack.value)).collect()
}

#[test]
fn what_was_drawn_is_counted_and_stands_for_bytes() {
    let serve = "serve (/srv/shop/server.js)";
    let expected = [
        (serve.to_owned(), 2, 36_000),
        (format!("{serve};(anonymous) (/srv/shop/server.js)"), 2, 50_544),
        ("(V8 API)".to_owned(), 1, 16_416),
    ];
    let live = decode(ProfileType::LiveHeap, HEAPPROFILE).unwrap();
    assert_eq!((live.temporality, both(&live)), (Temporality::Gauge, expected.to_vec()));
    let allocated = decode(ProfileType::Heap, HEAPPROFILE).unwrap();
    assert_eq!((allocated.temporality, both(&allocated)), (Temporality::Delta, expected.to_vec()));
    for (kind, unit) in [(ProfileType::LiveHeap, "inuse_space/bytes"), (ProfileType::Heap, "alloc_space/bytes")] {
        let run = read_as(&Reading::default(), Format::Heapprofile, HEAPPROFILE.as_bytes(), kind).unwrap();
        let weights = run.weights.unwrap();
        assert_eq!((&*weights.unit, weights.profile.total()), (unit, 36_000 + 50_544 + 16_416));
    }
    assert_eq!(decode(ProfileType::Cpu, HEAPPROFILE).unwrap_err().reason, Reason::UnsupportedType);
}

/// Samples and bytes by stack as a walk of the tree finds them.
fn walked(node: &Value, callers: &str, samples: &BTreeMap<u64, u64>, found: &mut BTreeMap<String, [u64; 2]>) {
    let frame = &node["callFrame"];
    let name = frame["functionName"].as_str().unwrap();
    let name = if name.is_empty() { "(anonymous)" } else { name };
    let url = frame["url"].as_str().unwrap().trim_start_matches("file://");
    let own = match (name, url) {
        ("(root)", _) => String::new(),
        (_, "") => format!(";{name}"),
        (_, url) => format!(";{name} ({url})"),
    };
    let stack = format!("{callers}{own}");
    if let Some(count) = samples.get(&node["id"].as_u64().unwrap()) {
        let [counts, bytes] = found.entry(stack[1..].to_owned()).or_default();
        *counts += count;
        *bytes += node["selfSize"].as_u64().unwrap();
    }
    node["children"].as_array().unwrap().iter().for_each(|child| walked(child, &stack, samples, found));
}

#[test]
fn oracle_a_file_of_node_is_what_a_walk_of_its_tree_finds() {
    let bytes = fs::read(testdata("v8/heap.heapprofile")).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let mut samples = BTreeMap::new();
    for sample in document["samples"].as_array().unwrap() {
        *samples.entry(sample["nodeId"].as_u64().unwrap()).or_insert(0) += 1;
    }
    let mut expected = BTreeMap::new();
    walked(&document["head"], "", &samples, &mut expected);
    let run = read_as(&Reading::default(), Format::Heapprofile, &bytes, ProfileType::LiveHeap).unwrap();
    let of_the_tree: u64 = expected.values().map(|[count, _]| count).sum();
    assert_eq!(run.profile.total(), of_the_tree);
    assert!(
        of_the_tree > 150 && of_the_tree < samples.values().sum::<u64>(),
        "some were drawn while the file was written"
    );
    let counts: BTreeMap<String, u64> = expected.iter().map(|(stack, [count, _])| (stack.clone(), *count)).collect();
    assert_eq!(stacks(&run.profile), counts);
    let bytes: BTreeMap<String, u64> = expected.into_iter().map(|(stack, [_, bytes])| (stack, bytes)).collect();
    assert_eq!(stacks(&run.weights.unwrap().profile), bytes);
    assert!(bytes.keys().any(|stack| stack.matches(";deep (").count() > 30), "{bytes:?}");
}

#[test]
fn a_tree_is_as_deep_as_stacks_and_no_deeper() {
    let nested = |depth: usize| {
        let node = r#"{"callFrame":{"functionName":"f","url":""},"selfSize":8,"id":ID,"children":["#;
        let open: String = (1..=depth).map(|id| node.replace("ID", &id.to_string())).collect();
        let text =
            format!("{{\"head\":{open}{}, \"samples\":[{{\"size\":8,\"nodeId\":{depth}}}]}}", "]}".repeat(depth));
        decode(ProfileType::LiveHeap, &text).map(|profile| written_out(&profile)[0].0.len())
    };
    assert_eq!(nested(513), Ok(513));
    let fault = nested(514).unwrap_err();
    assert_eq!(fault.reason, Reason::Malformed);
    assert!(fault.detail.contains("more than 512 callers"), "{fault:?}");
    assert_eq!(nested(200_000).unwrap_err().reason, Reason::Malformed);
}

/// V8 allocates while it writes the tree, and those nodes come after all of the tree.
#[test]
fn samples_of_nodes_after_the_tree_are_left_out() {
    let fewer = changed(|document| document["samples"][0]["nodeId"] = json!(5)).unwrap();
    assert_eq!(fewer.total(), 4);
}

#[test]
fn each_fault_has_its_reason() {
    let reason =
        |change: &dyn Fn(&mut Value)| changed(|document| change(document)).map(|_| ()).map_err(|fault| fault.reason);
    let first = |document: &mut Value, key: &str, value: Value| document["head"]["children"][0][key] = value;
    assert_eq!(reason(&|document| document["samples"][0]["nodeId"] = json!(0)), Err(Reason::IndexOutOfRange));
    assert_eq!(reason(&|document| first(document, "id", json!(4))), Err(Reason::Malformed));
    assert_eq!(reason(&|document| first(document, "selfSize", json!(-1))), Err(Reason::NegativeValue));
    assert_eq!(reason(&|document| first(document, "selfSize", json!(1e300))), Err(Reason::TooLarge));
    assert_eq!(reason(&|document| first(document, "children", json!([[]]))), Err(Reason::Malformed));
    assert_eq!(reason(&|document| first(document, "children", json!([{}]))), Err(Reason::Malformed));
    assert_eq!(
        reason(&|document| drop(document.as_object_mut().unwrap().remove("samples"))),
        Err(Reason::UnsupportedVersion)
    );
    // As V8 wrote it before: without numbers of nodes too.
    let older = |document: &mut Value| {
        document.as_object_mut().unwrap().remove("samples");
        let text = document.to_string().replace("\"id\":", "\"was\":");
        *document = serde_json::from_str(&text).unwrap();
    };
    assert_eq!(reason(&older), Err(Reason::UnsupportedVersion));
    assert_eq!(reason(&|document| document["samples"] = json!([])), Ok(()), "a level may be of nothing");
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..HEAPPROFILE.len() {
        let fault = decode(ProfileType::LiveHeap, &HEAPPROFILE[..end]).unwrap_err();
        assert_eq!(fault.reason, Reason::Truncated, "cut at {end}");
    }
}
