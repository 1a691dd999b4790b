//! The service ends at a named point of the commit order, and the next run ends there again.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fleetdiff_connectors::crash::CrashPoint;

use super::subject::Subject;
use super::{ABORTED, assert_sound, is_long};
use crate::program::brokers;
use crate::results::Results;
use crate::service::{generate, wait_for};

const TOPIC: &str = "crashing";
/// Checkpoints every three hops.
const OFTEN: [&str; 2] = ["--checkpoint-every", "30s"];
/// How many services run at a time: each waits for brokers and disks.
const TOGETHER: usize = 4;

/// Where the first run ends. Some points are passed many times a commit, and not each time finds the same state.
fn crashes() -> Vec<(CrashPoint, u64)> {
    let times = |point: &CrashPoint| -> &[u64] {
        match point {
            CrashPoint::TableWritten if is_long() => &[1, 5, 20],
            CrashPoint::TableComplete if is_long() => &[1, 20],
            CrashPoint::DecisionMade | CrashPoint::DecisionLogged if is_long() => &[1, 2],
            CrashPoint::TablesWritten | CrashPoint::IntervalDone if is_long() => &[1, 2],
            CrashPoint::TableWritten => &[5],
            CrashPoint::DecisionLogged => &[2],
            _ => &[1],
        }
    };
    CrashPoint::ALL.iter().flat_map(|point| times(point).iter().map(|times| (*point, *times))).collect()
}

#[test]
fn chaos_killed_at_each_point_of_the_commit() {
    let scratch = tempfile::tempdir().unwrap();
    generate(TOPIC, "6m", "3");
    let undisturbed = |alerts: &str| {
        let output = scratch.path().join(format!("undisturbed-{alerts}"));
        let subject = Subject { brokers: brokers(), topic: TOPIC, output, alerts: alerts.to_owned(), idle_after: "0s" };
        let results = subject.to_end(&[]);
        assert_sound(&results, "undisturbed");
        assert!(results.alerts.len() > 1, "{:?}", results.sizes());
        (subject.output, results)
    };
    let (to_topic, to_file) = (undisturbed("crashing-undisturbed"), undisturbed(""));
    let left = Mutex::new(crashes().into_iter());
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((point, times)) = next else { break };
                    let is_of_file = point == CrashPoint::AlertLine;
                    crash(point, times, scratch.path(), if is_of_file { &to_file } else { &to_topic });
                }
            });
        }
    });
}

fn crash(point: CrashPoint, times: u64, scratch: &Path, (whole, expected): &(PathBuf, Results)) {
    let name = format!("{}-{times}", point.name());
    let (output, log) = (scratch.join(&name), scratch.join(format!("{name}.log")));
    let alerts = if point == CrashPoint::AlertLine { String::new() } else { format!("crashing-{name}") };
    let subject = Subject { brokers: brokers(), topic: TOPIC, output, alerts, idle_after: "0s" };
    for (run, end_at) in [(1, times), (2, 1)] {
        let workers = ["1", "3"][run - 1];
        let more = [&OFTEN[..], &["--workers", workers]].concat();
        let mut service = subject.start(&log, &more, Some((point, end_at)));
        let mut ended = None;
        wait_for(&format!("{name}, run {run}: the crash"), &log, || {
            ended = service.try_wait().unwrap();
            ended.is_some()
        });
        let said = fs::read_to_string(&log).unwrap();
        assert_eq!(ended.unwrap().signal(), Some(ABORTED), "{name}, run {run}:\n{said}");
        if point == CrashPoint::TableComplete {
            leave_unfinished_files(whole, &subject.output);
        }
    }
    subject.go_on_to_end(expected, &log, &OFTEN, &name);
    let results = subject.to_end(&["--workers", "2"]);
    assert_sound(&results, &name);
    results.assert_same(expected, &name);
}

/// What a process leaves that ends while it writes a table: a part of the file, under the name that it has until it is complete.
fn leave_unfinished_files(whole: &Path, output: &Path) {
    for entry in fs::read_dir(whole).unwrap().map(|entry| entry.unwrap().path()) {
        let into = output.join(entry.file_name().unwrap());
        if entry.is_dir() {
            fs::create_dir_all(&into).unwrap();
            leave_unfinished_files(&entry, &into);
        } else if entry.extension().is_some_and(|ending| ending == "parquet") && !into.exists() {
            let bytes = fs::read(&entry).unwrap();
            fs::write(format!("{}#1", into.display()), &bytes[..bytes.len() / 2]).unwrap();
        }
    }
}
