//! Reads a fleet to its end, and makes small ones.

use std::path::Path;
use std::sync::Arc;

use fleetdiff_connectors::files::{FileFormat, RecordedFleet, write_fleet};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType, Requests, Samples, Stack, Temporality};
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::{Nanos, TimeRange};

/// All records, up to the end of the partition and of the source.
pub fn read_all(mut fleet: RecordedFleet) -> Vec<Decoded> {
    let mut records = Vec::new();
    loop {
        match fleet.poll().unwrap() {
            Polled::Record(record) => records.push(*record),
            Polled::PartitionEnd(partition) => {
                assert_eq!(partition, 0);
                assert!(matches!(fleet.poll().unwrap(), Polled::End));
                return records;
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}

/// The same of a folder, without what samples stand for, which is not written in each format.
pub fn read_folder(folder: &Path) -> Vec<Decoded> {
    let mut records = read_all(RecordedFleet::open(folder).unwrap());
    for profile in records.iter_mut().flat_map(|record| &mut record.parts).flatten() {
        if let Samples::Stacks(stacks) = &mut profile.samples {
            stacks.iter_mut().for_each(|stack| stack.value = 0);
        }
    }
    records
}

pub fn good(records: &[Decoded]) -> impl Iterator<Item = &Profile> {
    records.iter().flat_map(|record| &record.parts).filter_map(|part| part.as_ref().ok())
}

const START: i64 = 1_700_000_000;

/// The profile of one pod and hop of 10 s; hop and pod decide its counts.
pub fn profile(pod: &str, hop: i64) -> Profile {
    let window =
        TimeRange { start: Nanos::from_seconds(START + 10 * hop), end: Nanos::from_seconds(START + 10 * hop + 10) };
    let identity = Identity {
        service: "shop".into(),
        build: "2.1".into(),
        region: "eu-west-1".into(),
        cohort: "web".into(),
        hardware: "m7g".into(),
        node: (pod == "pod-b").then(|| "node-1".into()),
        pod: pod.into(),
        process_start: (pod != "pod-c").then_some(Nanos::from_seconds(START - 100)),
    };
    let count = hop.unsigned_abs() + 1;
    let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    Profile {
        identity: Arc::new(identity),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window,
        requests: (hop % 2 == 0).then_some(Requests { count: 40 + count, window }),
        names: ["main".into(), "do work(int)".into(), "wait".into()].into(),
        samples: Samples::Stacks(vec![stack(&[0, 1], count), stack(&[0, 1, 1, 2], 3), stack(&[], 1)]),
    }
}

/// Three pods over four hops, by hop.
pub fn profiles() -> Vec<Profile> {
    (0..4).flat_map(|hop| ["pod-a", "pod-b", "pod-c"].map(|pod| profile(pod, hop))).collect()
}

/// Writes [`profiles`] into a new folder within `within`.
pub fn small_fleet(within: &Path) -> std::path::PathBuf {
    let folder = within.join("small");
    assert_eq!(write_fleet(&folder, FileFormat::Pprof, &profiles()).unwrap(), 12);
    folder
}
