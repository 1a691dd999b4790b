//! Fleets that this program writes.

use std::fs;

use fleetdiff_connectors::files::{FileFormat, FleetError, FleetWriter, RecordedFleet, write_fleet};
use fleetdiff_schemas::profile::{Profile, Samples};

use super::reading::{good, profile, profiles, read_folder, small_fleet};

#[test]
fn pprof_there_and_back() {
    let within = tempfile::tempdir().unwrap();
    let records = read_folder(&small_fleet(within.path()));
    assert!(good(&records).eq(&profiles()));
    assert_eq!(records.len(), 12);
}

#[test]
fn folded_there_and_back() {
    let within = tempfile::tempdir().unwrap();
    write_fleet(within.path(), FileFormat::Folded, &profiles()).unwrap();
    let records = read_folder(within.path());
    assert!(good(&records).eq(&profiles()));
}

#[test]
fn equal_fleets_are_equal_bytes() {
    let within = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| within.path().join(name));
    for folder in &folders {
        write_fleet(folder, FileFormat::Pprof, &profiles()).unwrap();
    }
    let files = ["manifest.jsonl", "profiles/pod-a/cpu-000.pb.gz", "profiles/pod-c/cpu-003.pb.gz"];
    for file in files {
        assert_eq!(fs::read(folders[0].join(file)).unwrap(), fs::read(folders[1].join(file)).unwrap(), "{file}");
    }
}

#[test]
fn any_pod_has_a_harmless_folder_of_its_own() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("fleet");
    let names = ["../up", "a/b", "a:b", "..", ".", " ", &"long".repeat(100)];
    let profiles: Vec<Profile> = names.iter().flat_map(|pod| [profile(pod, 0), profile(pod, 1)]).collect();
    write_fleet(&folder, FileFormat::Pprof, &profiles).unwrap();
    let mut read: Vec<Profile> = good(&read_folder(&folder)).cloned().collect();
    let mut sent = profiles;
    let key = |profile: &Profile| (profile.identity.pod.clone(), profile.window.start);
    read.sort_by_key(key);
    sent.sort_by_key(key);
    assert_eq!(read, sent);
    assert_eq!(fs::read_dir(within.path()).unwrap().count(), 1);
}

#[test]
fn a_fleet_is_not_written_over_another() {
    let within = tempfile::tempdir().unwrap();
    let folder = small_fleet(within.path());
    let before = fs::read(folder.join("manifest.jsonl")).unwrap();
    let error = FleetWriter::create(&folder, FileFormat::Pprof).err().unwrap();
    assert!(matches!(error, FleetError::Exists { .. }));
    assert_eq!(error.code(), "fleet_exists");
    assert_eq!(fs::read(folder.join("manifest.jsonl")).unwrap(), before);
}

#[test]
fn what_cannot_be_written_says_where_and_why() {
    let within = tempfile::tempdir().unwrap();
    let folded = Profile { samples: Samples::Folded { content: 0, cohorts: vec![] }, ..profile("pod-a", 0) };
    let error = write_fleet(within.path().join("a"), FileFormat::Pprof, &[folded]).unwrap_err();
    assert_eq!(error.code(), "fleet_profile_unencodable");
    assert!(error.to_string().contains("cpu-000.pb.gz"), "{error}");
    fs::write(within.path().join("file"), "").unwrap();
    let error = write_fleet(within.path().join("file/fleet"), FileFormat::Pprof, &profiles()).unwrap_err();
    assert_eq!(error.code(), "fleet_unwritable");
}

#[test]
fn what_is_not_a_fleet_is_an_error_with_path_and_hint() {
    let within = tempfile::tempdir().unwrap();
    for (path, code, named) in [
        (within.path().join("nowhere"), "fleet_folder_unreadable", "nowhere"),
        (within.path().to_owned(), "fleet_manifest_unreadable", "manifest.jsonl"),
    ] {
        let error = RecordedFleet::open(&path).err().unwrap();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(named) && error.hint().contains("manifest.jsonl"), "{error}");
    }
    fs::write(within.path().join("file"), "").unwrap();
    assert_eq!(RecordedFleet::open(within.path().join("file")).err().unwrap().code(), "fleet_folder_unreadable");
}
