//! `replay` of fleets that were recorded from real programs, whose truth is known: what changed is significant, what
//! did not change is not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use fleetdiff_pipeline::rules::waiting::{has_changed, subject};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, IncidentRow};
use fleetdiff_schemas::verdict::{LevelDirection, RowReason, Scope, Support, TimeMeasure, Verdict};

use super::program::{Done, done, recorded, run};

static LISTPACK: LazyLock<Done> =
    LazyLock::new(|| replay("rd-listpack", &["--base", "A,A2", "--head", "B", "--count-kind", "self"]));
static SNAPSHOT: LazyLock<Done> = LazyLock::new(|| {
    replay("kv-snapshot", &["--profile-type", "cpu", "--count-kind", "total", "--base", "A,A2", "--head", "B"])
});

/// Redis with another encoding limit, one cell per cohort.
pub fn listpack() -> &'static Done {
    &LISTPACK
}

fn replay(fleet: &str, more: &[&str]) -> Done {
    let folder = recorded(fleet);
    done(&[&["replay", folder.to_str().unwrap(), "--warm-up", "0s", "--cell", "cohort"], more].concat())
}

/// The rows of the last report's window in one cohort, and how many of them were tested.
fn window<'a>(done: &'a Done, cohort: &str, kind: CountKind) -> (Vec<&'a CellRow>, usize) {
    let rows: Vec<&CellRow> =
        done.rows(Scope::Window, kind).into_iter().filter(|row| row.cell.cohort.as_str() == cohort).collect();
    let tested = rows.iter().filter(|row| row.ln_p.is_some()).count();
    (rows, tested)
}

fn significant<'a>(rows: &[&'a CellRow]) -> BTreeSet<&'a str> {
    rows.iter().filter(|row| row.verdict.is_significant()).map(|row| row.function.as_str()).collect()
}

#[test]
fn listpack_finds_what_the_encoding_limit_changes() {
    let (rows, _) = window(listpack(), "session", CountKind::SelfCount);
    let selected_rows: Vec<_> = rows.iter().filter(|row| row.verdict.is_significant()).collect();
    let found = significant(&rows);
    for function in ["lpFind", "lpFirst", "__memcmp_evex_movbe", "dictFind", "dictSdsKeyCompare", "hashTypeGetValue"] {
        assert!(found.contains(function), "{function} is not among {found:?}");
    }
    assert!((8..=13).contains(&selected_rows.len()), "{found:?}");
    assert!(selected_rows.iter().all(|row| row.support == Support::Tentative));
    let row = |function: &str| selected_rows.iter().find(|row| row.function == function).unwrap();
    assert_eq!((row("lpFind").verdict, row("lpFind").reason), (Verdict::Regressed, Some(RowReason::OnlyInHead)));
    assert_eq!(row("dictFind").verdict, Verdict::Improved);
}

#[test]
fn listpack_leaves_the_cohort_without_hashes_alone() {
    let (rows, tested) = window(listpack(), "cache", CountKind::SelfCount);
    assert!(tested > 100, "{tested} tested");
    assert_eq!(significant(&rows), BTreeSet::new());
}

#[test]
fn listpack_finds_nothing_between_equal_builds() {
    let same = replay("rd-listpack", &["--base", "A", "--head", "A2", "--count-kind", "self"]);
    for cohort in ["session", "cache"] {
        let (rows, tested) = window(&same, cohort, CountKind::SelfCount);
        assert!(tested > 70, "{tested} tested in {cohort}");
        assert_eq!(significant(&rows), BTreeSet::new(), "{cohort}");
    }
    assert!(same.tables.flags.is_empty());
}

#[test]
fn snapshot_finds_the_function_that_is_gone() {
    let (rows, _) = window(&SNAPSHOT, "ingest", CountKind::Total);
    let found = significant(&rows);
    assert!(found.iter().any(|function| function.ends_with("(*EtcdServer).snapshot.func1")), "{found:?}");
    let (rows, tested) = window(&SNAPSHOT, "lookup", CountKind::Total);
    assert!(tested > 250, "{tested} tested");
    assert_eq!(significant(&rows), BTreeSet::new());
    assert!(SNAPSHOT.tables.rejected.is_empty(), "what the filter leaves out is not looked at");
}

#[test]
fn one_pod_a_cell_is_untestable_and_says_so() {
    let folder = recorded("rd-listpack");
    let done = done(&[
        "replay",
        folder.to_str().unwrap(),
        "--warm-up",
        "0s",
        "--base",
        "A,A2",
        "--head",
        "B",
        "--count-kind",
        "self",
    ]);
    let rows: Vec<_> =
        done.rows(Scope::Window, CountKind::SelfCount).into_iter().filter(|row| super::program::is_cell(row)).collect();
    let frequent: Vec<_> = rows.iter().filter(|row| row.verdict != Verdict::TooRare).collect();
    assert!(frequent.len() > 200, "{} rows", frequent.len());
    assert!(frequent.iter().all(|row| row.verdict == Verdict::Untestable
        && row.reason == Some(RowReason::FewPods)
        && row.support == Support::Untestable));
    assert!(done.tables.flags.is_empty());
    assert!(
        done.run.stdout.contains(": it needs at least 4 more pods of B (1 now) and 3 more pods of A,A2 (2 now)"),
        "{}",
        done.run.stdout
    );
}

#[test]
fn levels_but_of_memory_are_one_rejected_row_each_and_one_line_in_all() {
    let (fleet, folder) = (recorded("kv-snapshot"), tempfile::tempdir().unwrap());
    let manifest = fs::read_to_string(fleet.join("manifest.jsonl")).unwrap().replace("\"cumulative\"", "\"gauge\"");
    fs::write(folder.path().join("manifest.jsonl"), &manifest).unwrap();
    std::os::unix::fs::symlink(fleet.join("profiles"), folder.path().join("profiles")).unwrap();
    let done = done(&[
        "replay",
        folder.path().to_str().unwrap(),
        "--warm-up",
        "0s",
        "--cell",
        "cohort",
        "--base",
        "A,A2",
        "--head",
        "B",
    ]);
    let levels = manifest.lines().filter(|line| line.contains("\"gauge\"") && !line.contains("\"heap\"")).count();
    assert!(levels > 100);
    let in_use = done.tables.cells.iter().filter(|row| row.comparison.profile_type == ProfileType::LiveHeap).count();
    assert!(
        in_use > 100 && done.tables.cells.iter().all(|row| row.comparison.profile_type != ProfileType::Heap),
        "{in_use} rows"
    );
    let rejected = &done.tables.rejected;
    assert_eq!(rejected.len(), levels);
    assert!(rejected.iter().all(|row| row.rejection.reason == Reason::UnsupportedType));
    let places: BTreeSet<_> = rejected.iter().map(|row| (row.position.offset, row.position.file.clone())).collect();
    assert_eq!(places.len(), levels);
    let lines: Vec<&str> = done.run.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&format!("{levels} rejected as unsupported_type")), "{lines:?}");
}

/// The grid, the lines and the sentence name the same worst function, even with few pods and if some functions cost
/// less.
#[test]
fn what_it_says_of_few_pods() {
    let text = &listpack().run.stdout;
    let title = text.lines().find(|line| line.ends_with("session") && line.contains("cache")).unwrap();
    let worst = title.split(' ').next().unwrap();
    assert_eq!(worst, "__memcmp_evex_movbe");
    let sentence = text.lines().find(|line| line.starts_with("More expensive in ")).unwrap();
    assert!(sentence.starts_with(&format!("More expensive in session: {worst} x 10.6")), "{sentence}");
    assert!(
        sentence.contains("more functions (tentative: 2 against 4 pods); cheaper in session: dictFind x 0.34"),
        "{sentence}"
    );
    let action = text.lines().find_map(|line| line.strip_prefix("What to do: ")).unwrap();
    assert!(
        action.starts_with("Repeat with more pods in session before B is rolled back there: 2 against 4 pods are few"),
        "{action}"
    );
    assert!(action.contains(" The result is inconclusive in cache: "), "{action}");
    assert!(action.contains("more pods of B (2 now)"), "{action}");
    let also: Vec<&str> =
        text.lines().skip_while(|line| *line != "also flagged:").skip(1).take_while(|line| !line.is_empty()).collect();
    let flagged: BTreeSet<&str> = listpack().tables.flags.iter().map(|flag| flag.row.function.as_str()).collect();
    assert_eq!(also.len() + 1, flagged.len(), "{text}");
    assert!(
        also.iter().any(|line| line.trim_start().starts_with("lpFind ")
            && line.contains("regressed in session: +")
            && line.ends_with("only in the head")),
        "{text}"
    );
    assert!(
        also.iter().any(|line| line.trim_start().starts_with("dictFind ") && line.contains("improved in session: -")),
        "{text}"
    );
}

#[test]
fn a_run_without_a_comparison_says_so() {
    let folder = recorded("rd-listpack");
    let deploys = done(&["replay", folder.to_str().unwrap()]).run.stdout;
    assert!(deploys.contains("no comparison was open at the end: name one with --base and --head"), "{deploys}");
    assert_eq!(run(&["replay", folder.to_str().unwrap()]).code, 2);
}

/// The advice to name builds was given to those who had named them.
#[test]
fn regression_named_builds_that_are_not_compared_are_not_asked_for_again() {
    let folder = recorded("rd-listpack");
    let all_warm_up = ["--base", "A,A2", "--head", "B", "--warm-up", "24h"];
    let said = done(&[&["replay", folder.to_str().unwrap()], &all_warm_up[..]].concat()).run.stdout;
    assert!(said.contains("no comparison of B with A,A2 was open at the end"), "{said}");
    assert!(!said.contains("--base"), "{said}");
}

/// Unknown names gave a run of no rows that ended well.
#[test]
fn regression_names_that_the_fleet_does_not_have_are_errors() {
    let fleet = recorded("rd-listpack");
    let service = service_of(&fleet);
    let (services, builds) = (format!("it has services: {service}"), format!("it has builds: A, A2, B of {service}"));
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--service", "shopp"], "no profile of service shopp", &services),
        (&["--service", "shopp", "--base", "X", "--head", "Y"], "no profile of service shopp", &services),
        (&["--base", "A,A3", "--head", "B"], "no profile of build A3 (base)\n", &builds),
        (&["--base", "A4", "--head", "b"], "no profile of build A4 (base), b (head)\n", &builds),
    ];
    for (named, problem, there) in cases {
        let output = tempfile::tempdir().unwrap();
        let folder = output.path().join("out");
        let place = ["replay", fleet.to_str().unwrap(), "--output", folder.to_str().unwrap()];
        let run = run(&[&place[..], named].concat());
        assert_eq!(run.code, 2, "{named:?}: {}", run.stderr);
        assert!(run.stderr.contains(problem) && run.stderr.contains(there), "{named:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !folder.exists(), "{named:?}: {}", run.stdout);
    }
    // A service narrows the builds down, and does not hide those that it has.
    done(&["replay", fleet.to_str().unwrap(), "--service", &service, "--base", "A", "--head", "A2"]);
}

/// The service of the first line of a manifest.
fn service_of(fleet: &Path) -> String {
    let manifest = fs::read_to_string(fleet.join("manifest.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(manifest.lines().next().unwrap()).unwrap();
    line["service"].as_str().unwrap().to_owned()
}

/// What requests wait for in one cohort at the last report: `up` or `down`, function and thread, in total counts.
fn waits(done: &Done, cohort: &str) -> BTreeSet<(LevelDirection, String)> {
    let last = done.tables.waiting.iter().map(|row| row.window_end_at).max();
    let rows = done.tables.waiting.iter().filter(|row| Some(row.window_end_at) == last && has_changed(row));
    let rows = rows.filter(|row| {
        row.cell.cohort.as_str() == cohort
            && row.measure == TimeMeasure::OffCpu
            && (row.count_kind == CountKind::Total || &*row.function == ALL_FUNCTIONS)
    });
    rows.map(|row| (row.time.direction, subject(row))).collect()
}

/// Threads of Redis that wait for work, not for a request, in a condition variable; a list cannot know that.
const FOR_WORK: [&str; 2] =
    ["--idle", r#"["__futex_abstimed_wait_common @ bio_*", "__futex_abstimed_wait_common @ jemalloc_bg_thd"]"#];

#[test]
fn fsync_moves_from_a_helper_into_the_thread_that_answers() {
    let done = replay("rd-fsync", &[&["--base", "A,A2", "--head", "B"], &FOR_WORK[..]].concat());
    let found = waits(&done, "write");
    for expected in [
        (LevelDirection::Up, "all of threads redis-server"),
        (LevelDirection::Up, "fdatasync in threads redis-server"),
        (LevelDirection::Up, "do_fsync_[k] in threads redis-server"),
        (LevelDirection::Down, "all of threads bio_aof_fsync"),
        (LevelDirection::Down, "fdatasync in threads bio_aof_fsync"),
    ] {
        assert!(found.contains(&(expected.0, expected.1.to_owned())), "{expected:?} is not among {found:?}");
    }
    let of_others = |(_, subject): &&(LevelDirection, String)| {
        !subject.ends_with("redis-server")
            && !subject.ends_with("bio_aof_fsync")
            && !subject.starts_with("all functions")
    };
    assert_eq!(found.iter().find(of_others), None);
    assert_eq!(waits(&done, "read"), BTreeSet::new());
    for said in [
        "\nwrite\n  all functions together, mostly in fdatasync: time on the CPU and off it per request up x 7.",
        "  all of threads redis-server, mostly in fdatasync: time off the CPU per request up from 0 ns to 56",
        "  all of threads bio_aof_fsync, mostly in fdatasync: time off the CPU per request down from 7.",
        "  __schedule_[k] in threads redis-server, mostly below fdatasync: time off the CPU per request up",
        "__schedule_[k] @ redis-server below fdatasync only in the head",
        "Longer waits in write: ",
        "Waiting per request, all functions together, in the last window: regressed in write: ",
        "(4 with cpu profiles now)",
        "without samples of both builds in read",
    ] {
        assert!(done.run.stdout.contains(said), "{said}: {}", done.run.stdout);
    }
}

/// An incident that stood on total counts alone was in the report and in alerts, and not on the terminal.
#[test]
fn regression_the_terminal_has_incidents_of_total_counts() {
    let done =
        replay("rd-fsync", &[&["--profile-type", "cpu", "--base", "A,A2", "--head", "B"], &FOR_WORK[..]].concat());
    let mut last: BTreeMap<&str, &IncidentRow> = BTreeMap::new();
    for row in &done.tables.incidents {
        last.insert(&row.incident_id, row);
    }
    let standing = last.into_values().filter(|row| row.cleared_because.is_none() && row.superseded_by.is_none());
    let largest = standing.max_by(|a, b| {
        let share = |row: &IncidentRow| row.share_delta.map_or(0.0, |delta| delta.value);
        share(a).total_cmp(&share(b))
    });
    let largest = largest.unwrap();
    assert_eq!(largest.cause, "do_fsync_[k]", "by its total counts");
    let text = &done.run.stdout;
    assert!(text.contains("do_fsync_[k] (total) below fdatasync"), "{text}");
    assert!(text.contains("More expensive in write: do_fsync_[k] (total) below fdatasync x "), "{text}");
}

/// Memory in use "cost" something, lacked requests that it never has, and what waited for its cause was said to be found.
#[test]
fn regression_each_type_of_profile_has_its_words() {
    let done = replay("kv-snapshot", &["--base", "A,A2", "--head", "B"]);
    let text = &done.run.stdout;
    for said in [
        "Less is allocated in ingest: go.etcd.io/etcd/raft.(*MemoryStorage).Append x 0.0",
        "Allocation per request, all functions together, in the last window: ",
        " tests in 1 report were significant",
        ".Compact: bytes allocated per request down (only in the base)",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    for never in ["Without request counts", "Cheaper in ingest: go.etcd.io/etcd/raft", "More is held", "0 improved"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    let live = done.tables.comparisons.iter().filter(|row| row.comparison.profile_type == ProfileType::LiveHeap);
    let live: Vec<&str> = live.filter(|row| row.is_roll_up).map(|row| row.sentence.as_str()).collect();
    assert!(!live.is_empty() && live.iter().all(|said| !said.contains("request")), "{live:?}");
    let summaries: Vec<&str> = done.tables.incidents.iter().map(|row| row.summary.as_str()).collect();
    assert!(summaries.iter().any(|said| said.contains(".Append allocates 9")), "{summaries:?}");
    assert!(!summaries.iter().any(|said| said.contains("takes 0 %")), "{summaries:?}");
}

#[test]
fn fsync_waits_alike_in_equal_builds() {
    let same = replay("rd-fsync", &[&["--base", "A", "--head", "A2"], &FOR_WORK[..]].concat());
    for cohort in ["write", "read"] {
        assert_eq!(waits(&same, cohort), BTreeSet::new(), "{cohort}");
        for kind in CountKind::ALL {
            let (rows, tested) = window(&same, cohort, kind);
            assert!(tested > 50, "{tested} tested in {cohort}");
            assert_eq!(significant(&rows), BTreeSet::new(), "{cohort}, {kind:?}");
        }
    }
    assert!(same.tables.flags.is_empty() && same.tables.incidents.is_empty());
}

/// A first frame that is declared to be a thread is no function of the time on the CPU either.
#[test]
fn regression_a_declared_thread_is_no_function() {
    let done = replay("rd-fsync", &["--profile-type", "cpu", "--base", "A", "--head", "A2"]);
    let functions: BTreeSet<&str> = done.tables.cells.iter().map(|row| row.function.as_str()).collect();
    assert!(functions.len() > 100 && functions.contains("epoll_wait"), "{functions:?}");
    for thread in ["redis-server", "bio_aof_fsync", "jemalloc_bg_thd"] {
        assert!(!functions.contains(thread), "{thread}");
    }
}
