//! The same profiles in another format give the same rows.

use std::path::Path;

use fleetdiff_connectors::files::{FileFormat, RecordedFleet, write_fleet};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::verdict::LevelReason;

use super::program::{done, recorded};

/// Every profile of a recorded fleet, in the order of reading.
fn profiles(fleet: &Path) -> Vec<Profile> {
    let mut fleet = RecordedFleet::open(fleet).unwrap();
    let mut all = Vec::new();
    loop {
        match fleet.poll().unwrap() {
            Polled::Record(record) => all.extend(record.parts.into_iter().map(Result::unwrap)),
            Polled::End => return all,
            Polled::PartitionEnd(_) | Polled::Idle | Polled::PartitionAdded(_) | Polled::Lost(..) => {}
        }
    }
}

fn replayed(folder: &Path) -> Tables {
    done(&["replay", folder.to_str().unwrap(), "--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B"])
        .tables
}

/// Counts and snapshots of four types, of Go; and counts of a program in C.
#[test]
fn profiles_as_otlp_pprof_and_folded_stacks_give_the_same_rows() {
    for (name, types) in [("kv-snapshot", 4), ("rd-listpack", 1)] {
        let profiles = profiles(&recorded(name));
        let mut found: Vec<ProfileType> = profiles.iter().map(|profile| profile.profile_type).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), types, "{found:?}");
        let mut expected = replayed(&recorded(name));
        assert!(expected.cells.len() > 300 && expected.rejected.is_empty(), "{name}: {} rows", expected.cells.len());
        assert_eq!(expected.heap.is_empty(), types == 1, "bytes are of memory alone");
        let delays = expected.waiting.iter().filter(|row| row.time.change.is_some()).count();
        assert_eq!(delays == 0, types == 1, "delays are of locks alone");
        for format in [FileFormat::Otlp, FileFormat::Pprof, FileFormat::Folded] {
            let scratch = tempfile::tempdir().unwrap();
            let folder = scratch.path().join(name);
            assert_eq!(write_fleet(&folder, format, &profiles).unwrap(), profiles.len());
            let mut got = replayed(&folder);
            if format == FileFormat::Folded {
                // Folded stacks hold counts, no bytes, and no delays.
                assert!(got.heap.iter().all(|row| row.alloc.change.is_none() && row.live.change.is_none()), "{name}");
                assert!(got.waiting.iter().all(|row| row.time.reason == Some(LevelReason::NoValues)), "{name}");
                (got.heap, expected.heap) = (Vec::new(), Vec::new());
                (got.waiting, expected.waiting) = (Vec::new(), Vec::new());
            }
            assert_eq!(got.ledger, expected.ledger, "{name} as {}", format.name());
            assert_eq!(got.cells, expected.cells, "{name} as {}", format.name());
            assert!(got == expected, "{name} as {}: another table", format.name());
        }
    }
}
