//! V8's `.cpuprofile`.

use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::{Value, json};

use super::examples::CPUPROFILE;
use super::fixtures::{labels, part, written_out};

fn decode(kind: ProfileType, text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Cpuprofile.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)))
}

fn lines(profile: &Profile) -> Vec<String> {
    written_out(profile).into_iter().map(|(frames, count, _)| format!("{} {count}", frames.join(";"))).collect()
}

/// The example after a change to it.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Profile, Rejection> {
    let mut document: Value = serde_json::from_str(CPUPROFILE).unwrap();
    change(&mut document);
    decode(ProfileType::Cpu, &document.to_string())
}

const SERVE: &str = "serve (/srv/shop/server.js)";
const ANONYMOUS: &str = "(anonymous) (/srv/shop/server.js)";

#[test]
fn ticks_are_samples_and_waiting_is_none_of_the_processor() {
    let stacks = |idle: Option<&str>| -> Vec<String> {
        let on: [String; 3] =
            [format!("{SERVE} 1"), format!("{SERVE};{ANONYMOUS} 2"), format!("{SERVE};{ANONYMOUS};parse 1")];
        on.into_iter().chain(idle.map(str::to_owned)).chain(["(program) 1".to_owned()]).collect()
    };
    assert_eq!(lines(&decode(ProfileType::Cpu, CPUPROFILE).unwrap()), stacks(None));
    assert_eq!(lines(&decode(ProfileType::Wall, CPUPROFILE).unwrap()), stacks(Some("(idle) 1")));
    let fault = decode(ProfileType::Heap, CPUPROFILE).unwrap_err();
    assert_eq!(fault.reason, Reason::UnsupportedType);
}

/// The two forms in which a file may say the same: ticks by node, and callers by node.
#[test]
fn oracle_hit_counts_and_parents_say_the_same() {
    let plain = decode(ProfileType::Cpu, CPUPROFILE).unwrap();
    let without_samples = changed(|document| drop(document.as_object_mut().unwrap().remove("samples"))).unwrap();
    assert_eq!(without_samples, plain);
    let with_parents = changed(|document| {
        for (node, parent) in [(1, 1), (2, 2), (3, 3), (4, 1), (5, 1)] {
            document["nodes"][node]["parent"] = json!(parent);
        }
        document["nodes"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|node| drop(node.as_object_mut().unwrap().remove("children")));
    });
    assert_eq!(with_parents.unwrap(), plain);
}

#[test]
fn trees_that_are_none_are_refused() {
    let reason = |change: fn(&mut Value)| changed(change).map(|profile| profile.total()).map_err(|fault| fault.reason);
    assert_eq!(reason(|document| document["nodes"][3]["children"] = json!([2])), Err(Reason::Malformed), "two parents");
    assert_eq!(reason(|document| document["nodes"][3]["children"] = json!([1])), Err(Reason::Malformed), "a circle");
    assert_eq!(reason(|document| document["nodes"][3]["id"] = json!(2)), Err(Reason::Malformed), "an id twice");
    assert_eq!(reason(|document| document["nodes"][3]["children"] = json!([77])), Err(Reason::IndexOutOfRange));
    assert_eq!(reason(|document| document["nodes"][3]["parent"] = json!(77)), Err(Reason::IndexOutOfRange));
    assert_eq!(reason(|document| document["samples"][0] = json!(77)), Err(Reason::IndexOutOfRange));
    assert_eq!(reason(|document| document["samples"] = json!([])), Err(Reason::Empty));
    assert_eq!(reason(|document| document["nodes"] = json!({})), Err(Reason::Malformed));
    assert_eq!(
        reason(|document| *document = json!({"head": {"functionName": "(root)"}})),
        Err(Reason::UnsupportedVersion)
    );
    assert_eq!(reason(|document| *document = json!({})), Err(Reason::Malformed));
}

#[test]
fn a_tree_that_unfolds_without_end_is_too_large() {
    // A chain of 2,000 callers, each of which was met: two million frames of 100 kB of text.
    let nodes: Vec<Value> = (1..2_000)
        .map(|id| json!({"id": id, "callFrame": {"functionName": "f"}, "hitCount": 1, "children": if id < 1_999 { vec![id + 1] } else { vec![] }}))
        .collect();
    let text = json!({ "nodes": nodes }).to_string();
    let decode = |max_built_bytes| {
        let mut decoder = Format::Cpuprofile.decoder(&Options { max_built_bytes, ..Options::default() });
        part(&mut *decoder, text.as_bytes(), &Ok(labels(ProfileType::Cpu))).map(|profile| profile.total())
    };
    assert_eq!(decode(32 << 20), Ok(1_999));
    let fault = decode(1 << 20).unwrap_err();
    assert_eq!(fault.reason, Reason::TooLarge, "{fault:?}");
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..CPUPROFILE.len() {
        assert_eq!(decode(ProfileType::Cpu, &CPUPROFILE[..end]).unwrap_err().reason, Reason::Truncated, "cut at {end}");
    }
}
