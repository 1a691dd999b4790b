//! The archive: sums over any range from a few files, whatever is written again, and what is removed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleetdiff_connectors::archive::{ARCHIVE, Archive, Keeping};
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::read_table;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{Archived, CallTreeRow, CellKey, FunctionNameRow, PodCountsRow, Span};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use proptest::prelude::*;

use self::tree::tables_below;

/// A multiple of any number of hops that a file spans, but for the largest.
const FIRST: u64 = 160_000_000 / 8192 * 8192;
const FOR_EVER: Keeping = Keeping { age: Nanos(i64::MAX), bytes: 0 };

fn clock() -> HopClock {
    HopClock::new(Nanos::from_seconds(10))
}

fn open(root: &Path, keeping: Keeping) -> Archive {
    Archive::open(root, "{}".to_owned(), clock(), keeping).unwrap()
}

fn span_of(hop: u64) -> Span {
    Span { start_at: clock().start_of(Hop(hop)), end_at: clock().end_of(Hop(hop)) }
}

/// What some pods count at a hop, from a number that decides all.
fn rows(hop: u64, number: u64) -> Archived {
    let span = span_of(hop);
    let cell = |cohort: &str| CellKey { region: "east".into(), cohort: cohort.into() };
    let mut rows = Archived::default();
    for pod in 0..1 + number % 3 {
        let functions: Vec<i64> =
            (0..5).filter(|one| (number + pod + hop) >> one & 1 == 1).map(|one| one * 10 - 20).collect();
        let counts = |factor: i64| functions.iter().map(|one| (one + 100) * factor).collect::<Vec<i64>>();
        // Some pods do not say values.
        let says = pod != 1;
        rows.counts.push(PodCountsRow {
            span,
            service: "cart".into(),
            profile_type: [ProfileType::Wall, ProfileType::Cpu][usize::try_from(pod % 2).unwrap()],
            cell: cell(["tv", "web"][usize::try_from(number % 2).unwrap()]),
            build: "v1".into(),
            hardware: "m5".into(),
            pod: format!("pod-{pod}").as_str().into(),
            samples: i64::try_from(number + pod).unwrap(),
            requests: (pod == 0).then_some(7),
            value: says.then_some(70),
            own: counts(1),
            total: counts(2),
            own_value: if says { counts(10) } else { Vec::new() },
            total_value: if says { counts(20) } else { Vec::new() },
            functions: functions.clone(),
        });
        let named = functions.iter().map(|&function| FunctionNameRow {
            span,
            function,
            name: Arc::from(format!("f{function}")),
        });
        rows.functions.extend(named);
        rows.call_trees.push(CallTreeRow {
            span,
            service: "cart".into(),
            profile_type: ProfileType::Cpu,
            cell: cell("tv"),
            build: format!("v{pod}").as_str().into(),
            nodes: functions.clone(),
            parents: functions.iter().map(|one| one / 2).collect(),
            samples: counts(3),
            functions,
        });
    }
    rows
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    tables_below(&root.join(ARCHIVE))
}

/// The rows of one file.
fn rows_of<R: TableRow>(root: &Path, level: u32, first: u64) -> Option<Vec<R>> {
    let seconds = clock().start_of(Hop(first)).0 / 1_000_000_000;
    let name = format!("{seconds}.parquet");
    let of_level = root.join(ARCHIVE).join(R::TABLE).join(format!("level={level:02}"));
    let folder =
        fs::read_dir(of_level).ok()?.map(|date| date.unwrap().path()).find(|date| date.join(&name).exists())?;
    // A folder that holds only this file is read as a table.
    let alone = tempfile::tempdir().unwrap();
    let table = alone.path().join(R::TABLE);
    fs::create_dir_all(&table).unwrap();
    fs::copy(folder.join(&name), table.join(&name)).unwrap();
    Some(read_table::<R>(alone.path()).unwrap())
}

/// The fewest pieces that together are the hops from `from` to `until`, as a reader would choose them.
fn cover(from: u64, until: u64) -> Vec<(u32, u64)> {
    let mut pieces = Vec::new();
    let mut at = from;
    while at < until {
        let fits = |level: &u32| at.is_multiple_of(1 << level) && at + (1 << level) <= until;
        let level = (0..=13).rev().find(fits).unwrap();
        pieces.push((level, at));
        at += 1 << level;
    }
    pieces
}

type Counts = BTreeMap<(String, String, i64), [i64; 4]>;
type Trees = BTreeMap<(String, i64), (i64, i64, i64)>;

/// Samples, requests and values.
type OfPod = (i64, Option<i64>, Option<i64>);

/// Counts by pod and function, and by node of the call trees, with samples, requests and values in all.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    counts: Counts,
    pods: BTreeMap<(String, String), OfPod>,
    trees: Trees,
}

impl Sums {
    fn add(&mut self, counts: &[PodCountsRow], trees: &[CallTreeRow]) {
        for row in counts {
            let pod = (row.pod.to_string(), format!("{:?} {:?}", row.profile_type, row.cell));
            let sum = self.pods.entry(pod.clone()).or_default();
            sum.0 += row.samples;
            let add = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).reduce(|a, b| a + b);
            (sum.1, sum.2) = (add(sum.1, row.requests), add(sum.2, row.value));
            for (place, function) in row.functions.iter().enumerate() {
                let sum = self.counts.entry((pod.0.clone(), pod.1.clone(), *function)).or_default();
                for (sum, list) in sum.iter_mut().zip([&row.own, &row.total, &row.own_value, &row.total_value]) {
                    *sum += list.get(place).copied().unwrap_or(0);
                }
            }
        }
        for row in trees {
            for (place, node) in row.nodes.iter().enumerate() {
                let sum = self.trees.entry((row.build.to_string(), *node)).or_insert((
                    row.parents[place],
                    row.functions[place],
                    0,
                ));
                assert_eq!((sum.0, sum.1), (row.parents[place], row.functions[place]));
                sum.2 += row.samples[place];
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// The law: the sums over any range within the archive are those of its hops, from at most 2 log2(n) + 1 files of a table, with the
    /// names of all functions in the same files.
    #[test]
    fn sums_over_a_range_are_in_a_few_files(
        gaps in prop::collection::vec((prop_oneof![8 => Just(1u64), 1 => 2u64..9], 1u64..1000), 20..50),
        again in prop::option::of(1usize..15),
        (from, until) in (0u64..1000, 0u64..1000),
    ) {
        let root = tempfile::tempdir().unwrap();
        let mut at = FIRST - 1;
        let hops: Vec<(u64, Archived)> = gaps.into_iter().map(|(gap, number)| { at += gap; (at, rows(at, number)) }).collect();
        let mut archive = open(root.path(), FOR_EVER);
        for (hop, rows) in &hops {
            archive.take(Hop(*hop), rows).unwrap();
        }
        if let Some(again) = again {
            // A service that was killed makes its last hops again.
            let before = files(root.path());
            let mut archive = open(root.path(), FOR_EVER);
            for (hop, rows) in &hops[hops.len() - again.min(hops.len())..] {
                archive.take(Hop(*hop), rows).unwrap();
            }
            prop_assert_eq!(files(root.path()), before);
        }
        let (first, last) = (hops[0].0, at);
        let within = |part: u64| first + (last - first) * part / 1000;
        let (from, until) = (within(from.min(until)), within(from.max(until)) + 1);
        let mut expected = Sums::default();
        for (_, rows) in hops.iter().filter(|(hop, _)| (from..until).contains(hop)) {
            expected.add(&rows.counts, &rows.call_trees);
        }
        let (mut got, mut found) = (Sums::default(), 0);
        let pieces = cover(from, until);
        for (level, first) in &pieces {
            let Some(counts) = rows_of::<PodCountsRow>(root.path(), *level, *first) else {
                // Nothing was counted there.
                prop_assert!(!hops.iter().any(|(hop, _)| (*first..first + (1 << level)).contains(hop)), "level {} at {}", level, first);
                continue;
            };
            let span = Span { start_at: span_of(*first).start_at, end_at: span_of(first + (1 << level) - 1).end_at };
            prop_assert!(counts.iter().all(|row| row.span == span));
            let trees = rows_of::<CallTreeRow>(root.path(), *level, *first).unwrap();
            let names = rows_of::<FunctionNameRow>(root.path(), *level, *first).unwrap();
            let names: BTreeMap<i64, String> = names.into_iter().map(|row| (row.function, row.name.to_string())).collect();
            for function in counts.iter().flat_map(|row| &row.functions) {
                prop_assert_eq!(&names[function], &format!("f{function}"));
            }
            got.add(&counts, &trees);
            found += 1;
        }
        prop_assert_eq!(got, expected);
        let few = 2 * (until - from).ilog2() + 1;
        prop_assert!(found <= few, "{} files for {} hops", found, until - from);
    }
}

/// A file has its bytes once: other rows of a hop stop the run.
#[test]
fn other_rows_of_a_hop_are_refused() {
    let root = tempfile::tempdir().unwrap();
    open(root.path(), FOR_EVER).take(Hop(FIRST), &rows(FIRST, 3)).unwrap();
    open(root.path(), FOR_EVER).take(Hop(FIRST), &rows(FIRST, 3)).unwrap();
    let refused = open(root.path(), FOR_EVER).take(Hop(FIRST), &rows(FIRST, 5)).unwrap_err();
    assert!(matches!(refused, OutputError::Nondeterministic { .. }), "{refused}");
}

fn first_hops(root: &Path, level: u32) -> Vec<u64> {
    let of_level = Path::new("counts").join(format!("level={level:02}"));
    let names = files(root).into_keys().filter(|path| path.starts_with(&of_level));
    let seconds = names.map(|path| path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap());
    let mut hops: Vec<u64> = seconds.map(|seconds| clock().hop_of(Nanos::from_seconds(seconds)).0).collect();
    hops.sort_unstable();
    hops
}

/// What is older than it is kept is removed, of all levels, and nothing is merged in part.
#[test]
fn what_is_too_old_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let mut archive = open(root.path(), Keeping { age: Nanos::from_seconds(1000), bytes: 0 });
    for hop in FIRST..FIRST + 300 {
        archive.take(Hop(hop), &rows(hop, hop % 7)).unwrap();
    }
    let kept = first_hops(root.path(), 0);
    // It is looked for every 64 hops: the last time at the 257th.
    assert_eq!((kept[0], kept.len()), (FIRST + 257 - 100, 143), "{kept:?}");
    for level in 1..=8 {
        assert!(first_hops(root.path(), level).iter().all(|first| *first >= kept[0]), "level {level}");
    }
    assert!(!first_hops(root.path(), 5).is_empty() && first_hops(root.path(), 8).is_empty());
    assert!(fs::read_dir(root.path().join(ARCHIVE).join("counts/level=00")).unwrap().count() <= 2, "no empty folders");
}

/// The oldest of what is too large is removed.
#[test]
fn what_is_too_large_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let most = 1_000_000;
    let mut archive = open(root.path(), Keeping { age: Nanos(i64::MAX), bytes: most });
    let size = || files(root.path()).values().map(|bytes| u64::try_from(bytes.len()).unwrap()).sum::<u64>();
    let mut largest = 0;
    for hop in FIRST..FIRST + 257 {
        archive.take(Hop(hop), &rows(hop, hop % 7)).unwrap();
        largest = largest.max(size());
    }
    assert!(largest > most, "more than that was written: {largest}");
    assert!(size() <= most && size() > most / 2, "{} of {most}", size());
    let kept = first_hops(root.path(), 0);
    assert_eq!(kept.last(), Some(&(FIRST + 256)));
    assert!(kept[0] > FIRST && kept.windows(2).all(|two| two[0] + 1 == two[1]));
    drop(archive);
    let again = open(root.path(), Keeping { age: Nanos(i64::MAX), bytes: most });
    drop(again);
    assert_eq!(first_hops(root.path(), 0), kept);
}
