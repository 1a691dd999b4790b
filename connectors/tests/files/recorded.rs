//! The recorded fleets of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fleetdiff_connectors::files::{Filter, RecordedFleet};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::profile::{Decoded, ProfileType, Samples, Stamped, Temporality};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::source::{Polled, Source};
use serde_json::Value;

use super::reading::{good, read_all, read_folder};

fn fleet(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleets").join(name)
}

/// CPU samples by (pod, file), as the recorder counted them.
fn recorded_samples(name: &str) -> BTreeMap<(String, String), u64> {
    let hops = fs::read_to_string(fleet(name).join("hops.jsonl")).unwrap();
    let rows = hops.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        ((text(&row["pod"]), text(&row["files"]["cpu"])), row["cpu_samples"].as_u64().unwrap())
    })
    .collect()
}

fn decoded_samples(records: &[Decoded]) -> BTreeMap<(String, String), u64> {
    let good = records.iter().flat_map(|record| {
        let file = record.position.file.as_ref().unwrap().to_string();
        let of_cpu = record.parts.iter().flatten().filter(|profile| profile.profile_type == ProfileType::Cpu);
        of_cpu.map(move |profile| ((profile.identity.pod.to_string(), file.clone()), profile.total()))
    });
    good.collect()
}

#[test]
fn every_pod_hop_has_the_samples_that_were_recorded() {
    for (name, pod_hops, samples) in [("kv-snapshot", 216, 13_032), ("rd-listpack", 144, 37_881)] {
        let truth = recorded_samples(name);
        assert_eq!((truth.len(), truth.values().sum::<u64>()), (pod_hops, samples));
        assert_eq!(decoded_samples(&read_folder(&fleet(name))), truth);
    }
}

/// Self counts of build and cohort, from the lines of the files themselves.
#[test]
fn functions_of_the_redis_fleet() {
    let mut own: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    let records = read_folder(&fleet("rd-listpack"));
    for profile in good(&records) {
        let Samples::Stacks(stacks) = &profile.samples else { panic!("folded") };
        for function in fold_stacks(&profile.names, stacks, &profile.identity.cohort).remove(0).functions {
            let name = profile.names[usize::try_from(function.name).unwrap()].to_string();
            let key = (profile.identity.build.to_string(), profile.identity.cohort.to_string(), name);
            *own.entry(key).or_default() += function.own;
        }
    }
    let count = |build: &str, cohort: &str, name: &str| {
        own.get(&(build.to_owned(), cohort.to_owned(), name.to_owned())).copied().unwrap_or(0)
    };
    let row = |build, cohort| {
        ["lpFind", "__memcmp_evex_movbe", "dictFind", "[libjemalloc.so]"].map(|name| count(build, cohort, name))
    };
    assert_eq!(row("A", "session"), [0, 64, 758, 105]);
    assert_eq!(row("A2", "session"), [0, 57, 747, 118]);
    assert_eq!(row("B", "session"), [374, 620, 242, 191]);
    assert_eq!(row("A", "cache"), [0, 44, 594, 141]);
    assert_eq!(row("A2", "cache"), [0, 45, 551, 132]);
    assert_eq!(row("B", "cache"), [0, 65, 541, 114]);
}

#[test]
fn records_come_by_end_and_line_with_their_place() {
    let fleet_path = fleet("kv-snapshot");
    let mut fleet = RecordedFleet::open(&fleet_path).unwrap();
    assert_eq!((fleet.name(), fleet.partitions(), fleet.len()), ("kv-snapshot", vec![0], 444));
    fleet.set_paused(0, true);
    assert!(matches!(fleet.poll().unwrap(), Polled::Idle));
    fleet.set_paused(0, false);
    let records = read_all(fleet);
    let lines: Vec<Value> = fs::read_to_string(fleet_path.join("manifest.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut order: Vec<(i64, usize)> =
        lines.iter().enumerate().map(|(place, line)| (line["end_unix_nano"].as_i64().unwrap(), place)).collect();
    order.sort_unstable();
    assert_ne!(order.iter().map(|(_, place)| *place).collect::<Vec<_>>(), (0..444).collect::<Vec<_>>());
    for (record, (_, place)) in records.iter().zip(&order) {
        let position = &record.position;
        assert_eq!((&*position.source, position.partition), ("kv-snapshot", 0));
        assert_eq!(position.offset, i64::try_from(place + 1).unwrap());
        assert_eq!(position.file.as_deref(), lines[*place]["file"].as_str());
        // For memory: what was allocated and what is in use.
        let parts = if lines[*place]["profile_type"] == "heap" { 2 } else { 1 };
        assert_eq!((record.stamped, record.parts.len()), (Stamped::No, parts));
    }
    assert_eq!(records.len(), order.len());
}

#[test]
fn levels_but_of_memory_are_refused_unread_one_by_one() {
    // A folder with only the manifest: every file is missing.
    let folder = tempfile::tempdir().unwrap();
    let manifest = fs::read_to_string(fleet("kv-snapshot").join("manifest.jsonl")).unwrap();
    fs::write(folder.path().join("manifest.jsonl"), manifest.replace("\"cumulative\"", "\"gauge\"")).unwrap();
    let records = read_folder(folder.path());
    let reason = |record: &Decoded, reason| matches!(&record.parts[..], [Err(fault)] if fault.reason == reason);
    assert_eq!(records.iter().filter(|record| reason(record, Reason::UnsupportedType)).count(), 108);
    assert_eq!(records.iter().filter(|record| reason(record, Reason::MissingFile)).count(), 216 + 120);
    for fault in records.iter().flat_map(|record| &record.parts).filter_map(|part| part.as_ref().err()) {
        assert!(fault.at.is_some() && fault.profile_type.is_some(), "{fault:?}");
    }
}

#[test]
fn a_filter_leaves_the_rest_out() {
    let of_type = |kind| Filter { profile_type: Some(kind), service: Some("etcd".into()) };
    let kv = || RecordedFleet::open(fleet("kv-snapshot")).unwrap();
    assert_eq!(kv().filtered(&of_type(ProfileType::Cpu)).len(), 216);
    assert_eq!(kv().filtered(&of_type(ProfileType::Heap)).len(), 120);
    assert_eq!(kv().filtered(&of_type(ProfileType::LiveHeap)).len(), 120);
    for kind in [ProfileType::Heap, ProfileType::LiveHeap] {
        let of_kind = read_all(kv().filtered(&of_type(kind)));
        assert!(
            of_kind.iter().all(|record| matches!(&record.parts[..], [Ok(profile)] if profile.profile_type == kind)),
            "{kind:?}"
        );
    }
    assert!(kv().filtered(&Filter { service: Some("redis".into()), profile_type: None }).is_empty());
    let cpu = read_all(kv().filtered(&of_type(ProfileType::Cpu)));
    let all = read_all(kv());
    assert!(good(&cpu).eq(good(&all).filter(|profile| profile.profile_type == ProfileType::Cpu)));
    assert!(cpu.iter().flat_map(|record| &record.parts).all(Result::is_ok));
}

#[test]
fn raw_entries_decode_to_what_is_read() {
    for (name, format, in_all) in [("kv-snapshot", Format::Pprof, 444), ("rd-listpack", Format::Folded, 144)] {
        let fleet = RecordedFleet::open(fleet(name)).unwrap();
        let mut decoder = format.decoder(&Options::default());
        let raw: Vec<_> = fleet.entries().map(Result::unwrap).collect();
        assert_eq!(raw.len(), in_all);
        assert!(raw.iter().all(|entry| entry.format == format && entry.bytes.starts_with(&[0x1f, 0x8b])));
        let decoded: Vec<_> =
            raw.iter().flat_map(|entry| decoder.decode(&entry.bytes, &entry.labels)).filter_map(Result::ok).collect();
        assert!(good(&read_all(fleet)).eq(&decoded));
        let of = |temporality| decoded.iter().filter(|profile| profile.temporality == temporality).count();
        assert_eq!(of(Temporality::Delta) + of(Temporality::Cumulative), in_all);
        assert_eq!(
            of(Temporality::Gauge),
            decoded.iter().filter(|profile| profile.profile_type == ProfileType::Heap).count()
        );
    }
}
