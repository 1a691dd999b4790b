//! Bad lines and bad files: each rejected for its own reason at its own place, with the rest of the fleet unchanged.

use std::fs;
use std::path::Path;

use fleetdiff_connectors::files::RecordedFleet;
use fleetdiff_formats::{Options, compression, pprof};
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::{Value, json};

use super::reading::{good, profile, profiles, read_all, read_folder, small_fleet};

/// The line of the manifest (from 1) that the tests spoil: the second hop of pod-b.
const BAD: usize = 5;

/// The rejection that the fleet gives after its line [`BAD`] or that line's file was spoilt; checks that all other
/// profiles are unchanged.
fn spoilt(spoil: impl FnOnce(&Path, &mut Value)) -> Rejection {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let mut lines = manifest(&folder);
    spoil(&folder, &mut lines[BAD - 1]);
    write_manifest(&folder, &lines);
    let records = read_folder(&folder);
    assert_eq!(records.len(), 12);
    let rest: Vec<Profile> =
        profiles().into_iter().enumerate().filter(|(place, _)| *place != BAD - 1).map(|(_, p)| p).collect();
    assert!(good(&records).eq(&rest), "the rest changed");
    rejection(&records, BAD)
}

fn rejection(records: &[Decoded], line: usize) -> Rejection {
    let record = records.iter().find(|record| record.position.offset == i64::try_from(line).unwrap()).unwrap();
    assert_eq!(record.parts.len(), 1);
    record.parts[0].clone().unwrap_err()
}

fn manifest(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_manifest(folder: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("manifest.jsonl"), text).unwrap();
}

fn file_of(folder: &Path, line: &Value) -> std::path::PathBuf {
    folder.join(line["file"].as_str().unwrap())
}

/// Spoils the file of the line and gives the rejection; type and time are known whatever it contains.
fn spoilt_file(change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Rejection {
    let fault = spoilt(|folder, line| {
        let file = file_of(folder, line);
        fs::write(&file, change(fs::read(&file).unwrap())).unwrap();
    });
    assert_eq!((fault.profile_type, fault.at), (Some(ProfileType::Cpu), Some(profile("pod-b", 1).window.midpoint())));
    fault
}

fn message(change: impl FnOnce(&mut pprof::proto::Profile)) -> impl FnOnce(Vec<u8>) -> Vec<u8> {
    use prost::Message;
    |bytes| {
        let raw = compression::decompress(&bytes, 1 << 20).unwrap();
        let mut message = pprof::proto::Profile::decode(&*raw).unwrap();
        change(&mut message);
        compression::gzip(&message.encode_to_vec())
    }
}

#[test]
fn bad_files() {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    assert_eq!(spoilt_file(cut).reason, Reason::Truncated);
    assert_eq!(spoilt_file(|_| b"garbage, not protobuf".to_vec()).reason, Reason::Malformed);
    assert_eq!(spoilt_file(|_| compression::gzip(&[0xff; 64])).reason, Reason::Malformed);
    assert_eq!(spoilt_file(|_| Vec::new()).reason, Reason::Empty);
    assert_eq!(spoilt_file(message(|m| m.sample.clear())).reason, Reason::Empty);
    assert_eq!(spoilt_file(message(|m| m.sample[0].value = vec![-1, -1])).reason, Reason::NegativeValue);
    assert_eq!(spoilt_file(message(|m| m.sample_type.clear())).reason, Reason::UnitMismatch);
    assert_eq!(spoilt_file(message(|m| m.location.clear())).reason, Reason::IndexOutOfRange);
}

#[test]
fn files_that_are_not_there() {
    let missing = spoilt(|folder, line| fs::remove_file(file_of(folder, line)).unwrap());
    assert_eq!(missing.reason, Reason::MissingFile);
    assert!(missing.detail.starts_with("profiles/pod-b/cpu-001.pb.gz"), "{missing:?}");
    let folder = spoilt(|_, line| line["file"] = json!("profiles/pod-b"));
    assert_eq!((folder.reason, folder.at.is_some()), (Reason::MissingFile, true));
}

#[test]
fn bad_lines() {
    let cases: [(&str, Value, Reason); 21] = [
        ("service", Value::Null, Reason::MissingIdentity),
        ("build", json!(""), Reason::MissingIdentity),
        ("region", Value::Null, Reason::MissingIdentity),
        ("cohort", Value::Null, Reason::MissingIdentity),
        ("hardware", Value::Null, Reason::MissingIdentity),
        ("pod", Value::Null, Reason::MissingIdentity),
        ("pod", json!(7), Reason::Malformed),
        ("file", Value::Null, Reason::Malformed),
        ("file", json!("../../../etc/hostname"), Reason::Malformed),
        ("file", json!("/etc/hostname"), Reason::Malformed),
        ("profile_type", json!("gpu"), Reason::UnsupportedType),
        ("profile_type", Value::Null, Reason::Malformed),
        ("temporality", json!("gauge"), Reason::UnsupportedType),
        ("temporality", json!("sometimes"), Reason::UnsupportedType),
        ("format", json!("nettrace"), Reason::UnsupportedType),
        ("format", json!("folded"), Reason::Malformed),
        ("unit", json!("furlongs"), Reason::UnitMismatch),
        ("period", json!("often"), Reason::UnitMismatch),
        ("period", json!(10), Reason::Malformed),
        ("requests", json!(-4), Reason::NegativeValue),
        ("end_unix_nano", json!(1.5), Reason::Malformed),
    ];
    for (key, value, reason) in cases {
        let fault = spoilt(|_, line| line[key] = value.clone());
        assert_eq!(fault.reason, reason, "{key} = {value}: {fault:?}");
        assert_eq!(fault.at.is_some(), key != "end_unix_nano", "{fault:?}");
        assert_eq!(fault.profile_type.is_some(), key != "profile_type", "{fault:?}");
    }
    let backwards = spoilt(|_, line| line["start_unix_nano"] = json!(line["end_unix_nano"].as_i64().unwrap() + 1));
    assert_eq!((backwards.reason, backwards.detail.starts_with("line 5: ")), (Reason::Malformed, true));
    assert_eq!(spoilt(|_, line| *line = json!([1, 2])).reason, Reason::Malformed);
    assert_eq!(spoilt(|_, line| *line = json!({})).reason, Reason::MissingIdentity);
}

#[test]
fn lines_that_are_no_json_keep_their_place() {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let mut lines: Vec<Vec<u8>> = manifest(&folder).iter().map(|line| line.to_string().into_bytes()).collect();
    lines[BAD - 1] = b"{\"file\": \"profiles/pod-b".to_vec();
    lines[BAD] = b"\xff\xfe".to_vec();
    lines.insert(BAD + 1, b"   ".to_vec());
    fs::write(folder.join("manifest.jsonl"), lines.join(&b'\n')).unwrap();
    let records = read_folder(&folder);
    assert_eq!(
        records.iter().map(|record| record.position.offset).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13]
    );
    assert_eq!([rejection(&records, 5), rejection(&records, 6)].map(|fault| fault.reason), [Reason::Malformed; 2]);
    assert_eq!(good(&records).count(), 10);
}

#[test]
fn keys_that_are_not_known_are_passed_over() {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let mut lines = manifest(&folder);
    lines.iter_mut().for_each(|line| {
        line["weather"] = json!({"rain": [1, 2]});
        line["unit"] = json!("count");
        line.as_object_mut().unwrap().remove("format");
    });
    write_manifest(&folder, &lines);
    assert!(good(&read_folder(&folder)).eq(&profiles()));
}

/// Moves the bad line's window, keeping its length.
fn later(seconds: i64) -> impl FnOnce(&Path, &mut Value) {
    move |_, line| {
        for key in ["start_unix_nano", "end_unix_nano"] {
            line[key] = json!(line[key].as_i64().unwrap() + seconds * 1_000_000_000);
        }
    }
}

#[test]
fn a_profile_from_the_future_is_refused() {
    // All other pods end with hop 3; the bad line is of hop 1.
    let fault = spoilt(later(20 + 3_601));
    assert_eq!(fault.reason, Reason::FromFuture);
    let expected = profile("pod-b", 1).window.midpoint().0 + 3_621_000_000_000;
    assert_eq!(fault.at.map(|at| at.0), Some(expected));
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let mut lines = manifest(&folder);
    later(20 + 3_600)(&folder, &mut lines[BAD - 1]);
    write_manifest(&folder, &lines);
    assert_eq!(good(&read_folder(&folder)).count(), 12);
}

const PAST: i64 = 6 * 3_600;

#[test]
fn regression_a_profile_from_the_past_is_refused() {
    // The first hop of all other pods is hop 0; the bad line is of hop 1.
    let fault = spoilt(later(-10 - PAST - 1));
    assert_eq!((fault.reason, fault.at, fault.samples), (Reason::FromPast, None, 0));
    assert!(fault.profile_type.is_some() && fault.detail.contains("21601 s before every profile"), "{fault:?}");
    assert_eq!(spoilt(later(-1_700_000_000)).reason, Reason::FromPast);
    assert_eq!(after_moves(&[(BAD, -10 - PAST)]), Vec::<usize>::new());
}

/// Two pods with clocks of their own are each alone in the past; two pods at one time are a fleet before a silence.
#[test]
fn regression_only_what_one_pod_alone_recorded_is_from_the_past() {
    let year = -366 * 86_400;
    let (of_a, of_b): (Vec<usize>, Vec<usize>) = (lines_of("pod-a"), lines_of("pod-b"));
    let moved = |lines: &[usize], by: i64| lines.iter().map(|&line| (line, by)).collect::<Vec<_>>();
    let mut both = [of_a.clone(), of_b.clone()].concat();
    both.sort_unstable();
    assert_eq!(after_moves(&moved(&of_a, year)), of_a);
    assert_eq!(after_moves(&[moved(&of_a, year), moved(&of_b, 2 * year)].concat()), both);
    assert_eq!(after_moves(&moved(&both, year)), Vec::<usize>::new());
    // Without a gap, a pod has only run longer than the others.
    let running: Vec<_> = of_a.iter().rev().copied().zip((1..).map(|times| times * (60 - PAST))).collect();
    assert_eq!((running.len(), after_moves(&running)), (4, Vec::new()));
}

/// The lines (from 1) of a pod.
fn lines_of(pod: &str) -> Vec<usize> {
    let whose = profiles().into_iter().map(|profile| profile.identity.pod.to_string());
    (1..).zip(whose).filter(|(_, whose)| whose == pod).map(|(line, _)| line).collect()
}

/// The lines (from 1) that are refused once the windows of some are moved by seconds, all for the same reason. A fourth pod is added,
/// so that two are where the fleet is.
fn after_moves(moves: &[(usize, i64)]) -> Vec<usize> {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let mut lines = manifest(&folder);
    for line in lines_of("pod-c") {
        let mut of_another = lines[line - 1].clone();
        of_another["pod"] = json!("pod-d");
        lines.push(of_another);
    }
    moves.iter().for_each(|&(line, seconds)| later(seconds)(&folder, &mut lines[line - 1]));
    write_manifest(&folder, &lines);
    let records = read_folder(&folder);
    let faults = records.iter().filter_map(|record| Some((record.position.offset, record.parts[0].as_ref().err()?)));
    let mut refused: Vec<usize> = faults
        .map(|(offset, fault)| {
            assert_eq!(fault.reason, Reason::FromPast);
            usize::try_from(offset).unwrap()
        })
        .collect();
    refused.sort_unstable();
    refused
}

#[test]
fn a_fleet_of_one_pod_has_no_future() {
    let within = tempfile::tempdir().unwrap();
    let alone = [profile("pod-a", 0), profile("pod-a", 100_000)];
    fleetdiff_connectors::files::write_fleet(within.path(), fleetdiff_connectors::files::FileFormat::Pprof, &alone)
        .unwrap();
    assert!(good(&read_folder(within.path())).eq(&alone));
}

#[test]
fn files_over_the_limit_are_too_large() {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let small = Options { max_bytes: 64, ..Options::default() };
    let records = read_all(RecordedFleet::open(&folder).unwrap().with_options(small));
    assert!(records.iter().all(|record| matches!(&record.parts[..], [Err(fault)] if fault.reason == Reason::TooLarge)));
}

#[test]
fn formats_are_recognized_by_name_or_else_by_bytes() {
    for name in ["profiles/pod-b/renamed", "renamed.bin", "x.gz"] {
        for text in [false, true] {
            let within = tempfile::tempdir().unwrap();
            let folder = small_fleet(within.path());
            let mut lines = manifest(&folder);
            let line = &mut lines[BAD - 1];
            let bytes = fs::read(file_of(&folder, line)).unwrap();
            let folded = fleetdiff_formats::folded::encode(&profile("pod-b", 1)).unwrap();
            fs::write(folder.join(name), if text { folded } else { bytes }).unwrap();
            line["file"] = json!(name);
            line.as_object_mut().unwrap().remove("format");
            write_manifest(&folder, &lines);
            assert!(good(&read_folder(&folder)).eq(&profiles()), "{name}, text: {text}");
        }
    }
}
