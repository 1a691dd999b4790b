//! `replay` of snapshots, with a separate comparison for each profile type, checked against a slow reading of the
//! files; and `delta`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fleetdiff_formats::compression::decompress;
use fleetdiff_formats::pprof::proto::Profile;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellRow, LedgerRow};
use fleetdiff_schemas::verdict::{Scope, Verdict};
use prost::Message;

use super::program::{Done, done, recorded, run};

static SNAPSHOTS: LazyLock<Done> = LazyLock::new(|| {
    let fleet = recorded("kv-snapshot");
    done(&["replay", fleet.to_str().unwrap(), "--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B"])
});

/// Whether it is the head, cohort, count kind, function.
type Key = (bool, String, CountKind, String);

/// The samples of a pod in a recorded snapshot, from the manifest and a plain reading of the file.
struct Recorded {
    pod: String,
    end: i64,
    is_head: bool,
    cohort: String,
    /// Raw samples of each stack, functions leaf first.
    stacks: Vec<(Vec<String>, u64)>,
}

fn recordings(kind: &str) -> Vec<Recorded> {
    let folder = recorded("kv-snapshot");
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let lines = manifest.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    // Memory in use is in the same file as allocations.
    let (file, column) = if kind == "live_heap" { ("heap", 2) } else { (kind, 0) };
    let of_kind = lines.filter(|line| line["profile_type"] == file && line["temporality"] == "cumulative");
    let mut all: Vec<Recorded> = of_kind
        .map(|line| Recorded {
            pod: line["pod"].as_str().unwrap().to_owned(),
            end: line["end_unix_nano"].as_i64().unwrap(),
            is_head: line["build"] == "B",
            cohort: line["cohort"].as_str().unwrap().to_owned(),
            stacks: stacks(&folder.join(line["file"].as_str().unwrap()), column),
        })
        .collect();
    all.sort_by_key(|recorded| (recorded.pod.clone(), recorded.end));
    all
}

fn stacks(file: &Path, column: usize) -> Vec<(Vec<String>, u64)> {
    let bytes = fs::read(file).unwrap();
    let message = Profile::decode(&*decompress(&bytes, 1 << 26).unwrap()).unwrap();
    let text = |index: i64| message.string_table[usize::try_from(index).unwrap()].clone();
    let functions: BTreeMap<u64, String> =
        message.function.iter().map(|function| (function.id, text(function.name))).collect();
    let locations: BTreeMap<u64, Vec<String>> = message
        .location
        .iter()
        .map(|location| (location.id, location.line.iter().map(|line| functions[&line.function_id].clone()).collect()))
        .collect();
    let is_heap = text(message.sample_type[0].r#type) == "alloc_objects";
    let count = |values: &[i64]| {
        if is_heap {
            drawn(values[column], values[column + 1], message.period)
        } else {
            u64::try_from(values[column]).unwrap()
        }
    };
    let stack = |ids: &[u64]| ids.iter().flat_map(|id| locations[id].clone()).collect();
    message
        .sample
        .iter()
        .map(|sample| (stack(&sample.location_id), count(&sample.value)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// How many allocations the profiler sampled, before it scaled them up to these.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "numbers of allocations are exact as doubles"
)]
fn drawn(objects: i64, bytes: i64, period: i64) -> u64 {
    let (objects, bytes, period) = (objects as f64, bytes as f64, period as f64);
    if objects == 0.0 { 0 } else { (objects * -(-(bytes / objects) / period).exp_m1()).round() as u64 }
}

fn total(recorded: &Recorded) -> i64 {
    recorded.stacks.iter().map(|(_, count)| i64::try_from(*count).unwrap()).sum()
}

/// The last snapshot of each pod. As every process starts seconds before its first snapshot, this is the total count.
fn last_ones(all: &[Recorded]) -> Vec<&Recorded> {
    all.chunk_by(|a, b| a.pod == b.pod).filter_map(<[Recorded]>::last).collect()
}

fn ledger(kind: ProfileType, of: fn(&LedgerRow) -> i64) -> i64 {
    SNAPSHOTS.tables.ledger.iter().filter(|row| row.profile_type == kind.name()).map(of).sum()
}

fn rows(kind: ProfileType) -> Vec<&'static CellRow> {
    let kinds = [CountKind::SelfCount, CountKind::Total].map(|count_kind| SNAPSHOTS.rows(Scope::Window, count_kind));
    kinds
        .concat()
        .into_iter()
        .filter(|row| row.comparison.profile_type == kind && row.cell.cohort.as_str() != "*")
        .collect()
}

#[test]
fn oracle_snapshots_of_kv_snapshot_count_what_their_files_hold() {
    assert!(SNAPSHOTS.tables.rejected.is_empty() && SNAPSHOTS.run.stderr.is_empty(), "{}", SNAPSHOTS.run.stderr);
    for (kind, at_least) in [(ProfileType::Heap, 200), (ProfileType::LiveHeap, 50), (ProfileType::Mutex, 20)] {
        let all = recordings(kind.name());
        // Of counts since the process began the last snapshot has the total; levels are in each snapshot.
        let last = if kind.is_level() { all.iter().collect() } else { last_ones(&all) };
        assert_eq!(last.len(), if kind.is_level() { all.len() } else { 12 });
        let counted: i64 = last.iter().map(|recorded| total(recorded)).sum();
        let received: i64 = all.iter().map(total).sum();
        let of: [fn(&LedgerRow) -> i64; 5] = [
            |row| row.samples_received,
            |row| row.samples_counted,
            |row| row.samples_carried_over,
            |row| row.samples_superseded,
            |row| row.samples_rejected,
        ];
        assert_eq!(of.map(|of| ledger(kind, of)), [received, counted, received - counted, 0, 0], "{}", kind.name());

        let mut expected: BTreeMap<Key, i64> = BTreeMap::new();
        for recorded in &last {
            for (stack, count) in &recorded.stacks {
                let count = i64::try_from(*count).unwrap();
                let key = |kind, function: &String| (recorded.is_head, recorded.cohort.clone(), kind, function.clone());
                stack
                    .iter()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .for_each(|function| *expected.entry(key(CountKind::Total, function)).or_default() += count);
                stack
                    .first()
                    .into_iter()
                    .for_each(|function| *expected.entry(key(CountKind::SelfCount, function)).or_default() += count);
            }
        }
        let mut compared = 0;
        for row in rows(kind).iter().filter(|row| !["_rare", "(all)"].contains(&row.function.as_str())) {
            let key = |is_head| (is_head, row.cell.cohort.to_string(), row.count_kind, row.function.clone());
            let held = [true, false].map(|is_head| expected.get(&key(is_head)).copied().unwrap_or(0));
            assert_eq!([row.head.count, row.base.count], held, "{} {:?} {}", kind.name(), row.count_kind, row.function);
            compared += 1;
        }
        println!("{}: {counted} of {received} samples counted, {compared} rows as in the files", kind.name());
        assert!(compared >= at_least, "{compared} rows of {}", kind.name());
    }
}

/// What is known about the recording: the head keeps its log longer and allocates less for it, where the cohort writes;
/// a request costs about four fifths of the base's allocations.
#[test]
fn snapshots_show_the_allocations_that_the_head_saves() {
    let heap = rows(ProfileType::Heap);
    let significant = |cohort: &'static str| {
        heap.iter().filter(move |row| row.cell.cohort.as_str() == cohort && row.verdict.is_significant())
    };
    let log = "go.etcd.io/etcd/raft.(*MemoryStorage).Append";
    let appended =
        significant("ingest").find(|row| row.function == log && row.count_kind == CountKind::SelfCount).unwrap();
    assert_eq!(appended.verdict, Verdict::Improved);
    assert!(
        significant("ingest")
            .filter(|row| row.count_kind == CountKind::SelfCount)
            .all(|row| row.verdict == Verdict::Improved)
    );
    let tested = heap.iter().filter(|row| row.cell.cohort.as_str() == "lookup" && row.ln_p.is_some()).count();
    assert!(tested > 50, "{tested} tested");
    assert_eq!(significant("lookup").count(), 0);
    let request = heap.iter().find(|row| row.cell.cohort.as_str() == "ingest" && row.function == "(all)").unwrap();
    let ratio = request.per_request_ratio.unwrap();
    assert!(ratio.low < 0.8 && ratio.high > 0.78 && ratio.high < 1.0, "{ratio:?}");
    let types: BTreeSet<&str> =
        SNAPSHOTS.tables.comparisons.iter().map(|row| row.comparison.profile_type.name()).collect();
    assert_eq!(types, BTreeSet::from(["cpu", "heap", "live_heap", "mutex"]));
}

fn godeltaprof(name: &str) -> String {
    let path: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/godeltaprof").join(format!("{name}.cumulative.pb.gz"));
    path.to_str().unwrap().to_owned()
}

#[test]
fn delta_writes_a_profile_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("mutex.delta.pb.gz");
    let delta = |before: &str, after: &str| {
        run(&["delta", &godeltaprof(before), &godeltaprof(after), "-o", output.to_str().unwrap()])
    };
    assert_eq!(delta("mutex-00", "mutex-01").code, 0);
    let written = fs::read(&output).unwrap();
    assert!(stacks(&output, 0).len() > 10);
    assert_eq!(delta("mutex-00", "mutex-01").code, 0, "the same again is no conflict");
    let other = delta("mutex-01", "mutex-02");
    assert!(other.code == 1 && other.stderr.contains("hint: it holds something else"), "{}", other.stderr);
    assert_eq!(fs::read(&output).unwrap(), written);
}

#[test]
fn delta_says_why_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.pb.gz");
    let delta = |before: &str, after: &str| run(&["delta", before, after, "-o", output.to_str().unwrap()]);
    let cases = [
        (godeltaprof("mutex-00"), godeltaprof("heap-01"), "the profiles differ in their sample types"),
        (godeltaprof("mutex-01"), godeltaprof("mutex-00"), "give the earlier profile first"),
        (folder.path().join("absent").to_str().unwrap().to_owned(), godeltaprof("mutex-00"), "cannot read"),
    ];
    for (before, after, said) in cases {
        let taken = delta(&before, &after);
        assert!(taken.code == 1 && taken.stderr.contains(said) && taken.stderr.contains("hint: "), "{}", taken.stderr);
        assert!(!output.exists());
    }
    assert_eq!(run(&["delta", &godeltaprof("mutex-00")]).code, 2);
}
