//! The service as it runs: partitions that fall silent and come back, signals, and a start with the output of an
//! earlier run.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{brokers, fail, start, succeed, text};
use crate::results::{Results, of_folder};

const PATIENCE: Duration = Duration::from_secs(90);

pub fn wait_for(what: &str, log: &Path, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen; the log:\n{}", fs::read_to_string(log).unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends a signal and gives the exit code.
pub fn stop(mut service: Child, signal: &str) -> Option<i32> {
    let sent = Command::new("kill").args(["-s", signal, &service.id().to_string()]).status().unwrap();
    assert!(sent.success());
    service.wait().unwrap().code()
}

pub fn generate(topic: &str, duration: &str, partitions_used: &str) {
    let shape = ["--seed", "3", "--duration", duration, "--partitions-used", partitions_used, "--partitions", "3"];
    generate_at(brokers(), topic, &shape);
}

/// A fleet of few pods with a change in each cell, so that incidents come within minutes however cells are merged ([`watch`]).
pub fn generate_at(brokers: &str, topic: &str, shape: &[&str]) {
    let to_topic = ["generate", "--brokers", brokers, "--topic", topic, "--format", "delta", "--key", "none"];
    let changed = ["--pods", "2:3", "--factor", "1.6", "--cells", "*:*"];
    succeed(&[&to_topic[..], &changed, shape].concat());
}

pub fn watch<'a>(topic: &'a str, output: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let own = ["watch", "--brokers", brokers(), "--topic", topic, "--format", "delta", "--output", text(output)];
    let settings =
        ["--alerts-topic", "", "--flush", "60s", "--window", "4m", "--idle-after", "1s", "--report-every", "2m"];
    // A third of the cells, and of the looks at them: what these tests ask about is the same for each.
    [&own[..], &settings, &["--cell", "region"], more].concat()
}

/// How many files of a table are complete.
pub fn files_of(output: &Path, table: &str) -> usize {
    fn count(path: &Path) -> usize {
        let Ok(entries) = fs::read_dir(path) else {
            return usize::from(path.extension().is_some_and(|end| end == "parquet"));
        };
        entries.map(|entry| count(&entry.unwrap().path())).sum()
    }
    count(&output.join(table))
}

pub fn decisions(output: &Path) -> Vec<Value> {
    let text = fs::read_to_string(output.join("decisions.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub fn has_decided(output: &Path, decision: &str, partition: i32) -> bool {
    decisions(output).iter().any(|made| made["decision"] == decision && made["partition"] == partition)
}

/// All rows, in a new folder with these decisions.
pub fn run_anew(topic: &str, folder: &Path, known: Option<&Path>, workers: &str) -> Results {
    let known = known.map(|known| known.join("decisions.jsonl"));
    let decided = known.iter().flat_map(|known| ["--decisions", text(known)]);
    let more: Vec<&str> = ["--until-end", "--workers", workers].into_iter().chain(decided).collect();
    succeed(&watch(topic, folder, &more));
    of_folder(folder)
}

/// Event time goes on without a silent partition; when it comes back, its records are late. The same decisions give the
/// same rows, whichever run uses them and when: a run to the end compares its files with those of the service.
#[test]
fn a_silent_partition_holds_nobody_up_and_what_was_decided_is_decided_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    generate("silent", "5m", "2");
    let service = start(&watch("silent", &output, &["--workers", "2"]), &log);
    wait_for("closing hops without partition 2", &log, || files_of(&output, "ledger") >= 3);
    assert!(has_decided(&output, "idle", 2) && !has_decided(&output, "back", 2), "{:?}", decisions(&output));
    generate("silent", "8m", "3");
    wait_for("going on with partition 2", &log, || files_of(&output, "ledger") >= 7 && has_decided(&output, "back", 2));
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());
    let logged = fs::read_to_string(&log).unwrap();
    for part in [
        "reading topic silent (3 partitions, delta)",
        "event time goes on without this partition",
        "the partition gives again",
        "stopped; closed through",
    ] {
        assert!(logged.contains(part), "{part:?} is missing in:\n{logged}");
    }

    let left = files_of(&output, "ledger");
    let whole = run_anew("silent", &output, None, "1");
    assert!(files_of(&output, "ledger") > left, "the rest is written by the run to the end");
    for workers in ["2", "4"] {
        let again = run_anew("silent", &scratch.path().join(workers), Some(&output), workers);
        again.assert_same(&whole, &format!("{workers} workers"));
    }
    let undecided = run_anew("silent", &scratch.path().join("undecided"), None, "2");
    assert_ne!(undecided.tables.ledger, whole.tables.ledger, "without the decisions nothing of partition 2 is late");
}

#[test]
fn a_service_waits_at_the_end_of_its_topic_until_it_is_stopped() {
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("log");
    generate("waiting", "1m", "1");
    for signal in ["INT", "TERM"] {
        let output = scratch.path().join(signal);
        let args = watch("waiting", &output, &[]);
        let service = start(&args, &log);
        wait_for("reading", &log, || fs::read_to_string(&log).unwrap().contains("reading topic waiting"));
        assert_eq!(stop(service, signal), Some(0), "{}", fs::read_to_string(&log).unwrap());
        assert_eq!(files_of(&output, "ledger"), 0, "the interval is not over");
    }
}

#[test]
fn another_configuration_does_not_go_into_the_folder_of_a_run() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    generate("mixed", "2m", "3");
    succeed(&watch("mixed", &output, &["--until-end"]));
    succeed(&watch("mixed", &output, &["--until-end", "--workers", "4"]));
    let said = fail(1, &watch("mixed", &output, &["--until-end", "--min-count", "31"]));
    assert!(said.contains("was made with other settings: dataflow.min_count was 30, now it is 31;"), "{said}");
}
