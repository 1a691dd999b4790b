//! Files of records that carry the identities of their profiles.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fleetdiff_connectors::files::{Filter, RecordedFleet};
use fleetdiff_formats::Format;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::reading::{good, read_all, read_folder};

/// 2026-11-21, when the records were made.
const START: i64 = 1_795_226_099_000_000_000;

fn line(file: &str, more: &str) -> String {
    let end = START + 10_000_000_000;
    format!(r#"{{"file": "{file}", "format": "otlp", "start_unix_nano": {START}, "end_unix_nano": {end}{more}}}"#)
}

/// A folder with two records of three pods each, and a manifest of these lines.
fn folder(within: &Path, lines: &[String]) -> PathBuf {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/testdata/otlp-kafka");
    for node in ["hop01-node-1", "hop01-node-2"] {
        let file = format!("{node}.otlp.pb");
        fs::copy(recorded.join(&file), within.join(&file)).unwrap();
    }
    fs::write(within.join("manifest.jsonl"), lines.join("\n")).unwrap();
    within.to_owned()
}

fn both() -> Vec<String> {
    vec![line("hop01-node-1.otlp.pb", ""), line("hop01-node-2.otlp.pb", "")]
}

#[test]
fn a_file_of_records_is_of_many_pods() {
    let within = tempfile::tempdir().unwrap();
    let records = read_folder(&folder(within.path(), &both()));
    let pods: BTreeSet<String> = good(&records).map(|profile| profile.identity.pod.to_string()).collect();
    assert_eq!((records.len(), good(&records).count(), pods.len()), (2, 18, 6));
    assert_eq!(good(&records).filter(|profile| profile.profile_type == ProfileType::Cpu).count(), 6);
    assert!(good(&records).all(|profile| profile.identity.service.as_str() == "etcd"));
    let fleet = RecordedFleet::open(within.path()).unwrap();
    let window = TimeRange { start: Nanos(START), end: Nanos(START + 10_000_000_000) };
    assert_eq!(fleet.windows().collect::<Vec<_>>(), [window, window]);
    for entry in fleet.entries() {
        let entry = entry.unwrap();
        assert_eq!((entry.format, entry.labels.unwrap_err().reason), (Format::Otlp, Reason::MissingIdentity));
    }
}

/// Builds are those of the records, not of the manifest, which are given first.
#[test]
fn builds_are_found_in_records_too() {
    let within = tempfile::tempdir().unwrap();
    let wrong = r#", "service": "redis", "build": "7""#;
    let named = r#"{"service": "shop", "build": "A", "file": "none"}"#;
    let lines = [line("hop01-node-1.otlp.pb", wrong), line("absent.otlp.pb", ""), named.to_owned()];
    let fleet = RecordedFleet::open(folder(within.path(), &lines)).unwrap();
    let builds: Vec<(String, String)> =
        fleet.builds().map(|(service, build)| (service.to_string(), build.to_string())).collect();
    assert_eq!(builds[0], ("shop".to_owned(), "A".to_owned()));
    assert!(builds.len() > 1 && builds[1..].iter().all(|(service, _)| service == "etcd"), "{builds:?}");
    assert_eq!(read_all(fleet).len(), 3, "nothing was read");
}

#[test]
fn a_filter_holds_for_each_profile() {
    let within = tempfile::tempdir().unwrap();
    let folder = folder(within.path(), &both());
    let kept = |service: Option<&str>, profile_type| {
        let filter = Filter { service: service.map(Into::into), profile_type };
        let records = read_all(RecordedFleet::open(&folder).unwrap().filtered(&filter));
        let parts = records.iter().flat_map(|record| &record.parts);
        (good(&records).count(), parts.filter(|part| part.is_err()).count())
    };
    assert_eq!(kept(Some("etcd"), Some(ProfileType::Cpu)), (6, 0));
    assert_eq!(kept(None, Some(ProfileType::Heap)), (6, 0));
    assert_eq!(kept(Some("redis"), None).0, 0);
}

#[test]
fn faults_of_a_file_of_records_have_a_time() {
    let within = tempfile::tempdir().unwrap();
    let lines = [line("absent.otlp.pb", ""), line("bad.otlp.pb", ""), line("../bad.otlp.pb", "")];
    let folder = folder(within.path(), &lines);
    fs::write(folder.join("bad.otlp.pb"), b"not protobuf").unwrap();
    let records = read_folder(&folder);
    let faults: Vec<_> = records.iter().map(|record| record.parts[0].as_ref().unwrap_err()).collect();
    let reasons: Vec<_> = faults.iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons, [Reason::MissingFile, Reason::Malformed, Reason::Malformed]);
    assert!(faults.iter().all(|fault| fault.at == Some(Nanos(START + 5_000_000_000))), "{faults:?}");
    let timeless = [r#"{"file": "bad.otlp.pb", "format": "otlp"}"#.to_owned()];
    fs::write(folder.join("manifest.jsonl"), timeless.join("")).unwrap();
    let records = read_folder(&folder);
    let fault = records[0].parts[0].as_ref().unwrap_err();
    assert!(fault.reason == Reason::Malformed && fault.detail.contains("start_unix_nano"), "{fault:?}");
}
