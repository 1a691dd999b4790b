//! One service in several processes.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fleetdiff_connectors::parquet::read_tables;

use crate::checkpoints::checkpoints;
use crate::program::{fail, start, succeed, text};
use crate::service::{files_of, generate, has_decided, run_anew, wait_for, watch as watch_silent};
use crate::shards::{alerts_of, publish, read, watch};
use crate::together::assert_same;

/// Addresses at which nobody listens.
fn free_hosts(count: usize) -> String {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string());
    addresses.collect::<Vec<_>>().join(",")
}

/// Processes of one service, with their logs.
struct Company(Vec<(Child, PathBuf)>);

impl Company {
    /// Starts so many processes with so many workers each.
    fn start(folder: &Path, name: &str, (processes, workers): (usize, usize), args: &[&str]) -> Self {
        let hosts = free_hosts(processes);
        let one = |process: usize| Self::one(folder, &format!("{name}-{process}"), (process, workers, &hosts), args);
        Self((0..processes).map(one).collect())
    }

    fn one(folder: &Path, name: &str, shape: (usize, usize, &str), args: &[&str]) -> (Child, PathBuf) {
        let (process, workers, hosts) = shape;
        let log = folder.join(format!("{name}.log"));
        let [process, workers] = [process, workers].map(|number| number.to_string());
        let processes = hosts.split(',').count().to_string();
        let own = ["--processes", &processes, "--process", &process, "--hosts", hosts, "--workers", &workers];
        (start(&[args, &own].concat(), &log), log)
    }

    fn log(&self, process: usize) -> String {
        read(&self.0[process].1)
    }

    fn wait(&self, process: usize, what: &str, holds: impl FnMut() -> bool) {
        wait_for(what, &self.0[process].1, holds);
    }

    fn signal(&self, process: usize, signal: &str) {
        let id = self.0[process].0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Waits until all end, and gives their exit codes.
    fn end(&mut self, within: Duration) -> Vec<Option<i32>> {
        let deadline = Instant::now() + within;
        let logs: Vec<String> = (0..self.0.len()).map(|process| self.log(process)).collect();
        let end = |(process, _): &mut (Child, PathBuf)| loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "a process goes on after {within:?}; the logs:\n{}", logs.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        };
        self.0.iter_mut().map(end).collect()
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        for (process, _) in &mut self.0 {
            // It has ended, unless the test has failed.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// Killed, stopped and cut off, started again with other shapes: rows and alerts are those of one process.
#[test]
fn processes_of_one_service_write_the_rows_and_alerts_of_one() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let output = folder.join("out");
    let [secret, other_secret] = ["secret", "other-secret"].map(|name| folder.join(name));
    fs::write(&secret, "only processes of this test know it\n").unwrap();
    fs::write(&other_secret, "nobody else's").unwrap();
    let known = |more: &[&'static str]| {
        let mut args: Vec<String> =
            watch("company", &output, "company-alerts", more).into_iter().map(str::to_owned).collect();
        args.extend(["--cluster-secret-file".to_owned(), text(&secret).to_owned()]);
        args
    };
    let args = known(&[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    publish("company", &folder.join("first"), 0, 400);

    // Strangers, and processes that are configured otherwise, keep nobody from meeting.
    let hosts = free_hosts(3);
    let first = Company::one(folder, "three-0", (0, 1, &hosts), &args);
    let mut company = Company(vec![first, Company::one(folder, "three-1", (1, 1, &hosts), &args)]);
    company.wait(0, "listening", || company.log(0).contains("waiting for the others"));
    let address = hosts.split(',').next().unwrap();
    let mut silent = Vec::new();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4000], b"", b"\x05\x00\x00\x00"] {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(bytes).unwrap();
        silent.push(stranger);
    }
    let outsider = text(&other_secret);
    for (name, more, said) in [
        ("outsider", vec!["--cluster-secret-file", outsider], "it has another secret"),
        ("window", vec!["--window", "5m"], "settings that decide rows differ: dataflow.window"),
        ("workers", vec!["--workers", "2"], "the number of workers: 2 for one, 1 for the other"),
    ] {
        // NB: of two equal flags the last one counts only if clap takes both, so the others are left out.
        let kept = |args: &[&str]| -> Vec<String> {
            let mut kept: Vec<String> = Vec::new();
            let mut each = args.iter();
            while let Some(arg) = each.next() {
                if *arg == more[0] {
                    each.next();
                } else {
                    kept.push((*arg).to_owned());
                }
            }
            kept
        };
        let own = [&args[..], &["--processes", "3", "--process", "2", "--hosts", &hosts, "--workers", "1"]].concat();
        let mut own = kept(&own);
        own.extend(more.iter().map(|part| (*part).to_owned()));
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let printed = fail(1, &own);
        assert!(printed.contains(said), "{name}: {said:?} is missing in:\n{printed}");
    }
    company.0.push(Company::one(folder, "three-2", (2, 1, &hosts), &args));
    company.wait(0, "meeting", || company.log(0).contains("all 3 processes are here"));
    assert!(company.log(0).contains("was dropped: "), "{}", company.log(0));
    drop(silent);

    company.wait(0, "an incident", || company.log(0).contains("incident raised"));
    company.wait(0, "a checkpoint", || !checkpoints(&output).is_empty());
    company.signal(1, "KILL");
    assert_eq!(company.end(Duration::from_secs(5)), [Some(1), None, Some(1)]);
    for (process, lost) in [(0, "process 1 at"), (2, "is lost: ")] {
        assert!(company.log(process).contains(lost), "{}", company.log(process));
        assert!(!company.log(process).contains("panicked"), "{}", company.log(process));
    }

    // Another shape goes on from the checkpoint; a process that stands still ends all.
    let mut company = Company::start(folder, "two", (2, 2), &args);
    company.wait(0, "going on", || company.log(0).contains("going on from the checkpoint of"));
    company.wait(1, "reading", || company.log(1).contains("reads its part of topic company"));
    publish("company", &folder.join("second"), 400, 500);
    company.wait(0, "rows", || files_of(&output, "ledger") >= 6);
    company.signal(1, "STOP");
    let stopped = Instant::now();
    let first = &mut company.0[0].0;
    while first.try_wait().unwrap().is_none() {
        assert!(stopped.elapsed() < Duration::from_secs(30), "{}", company.log(0));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(company.log(0).contains("is lost: it has said nothing for"), "{}", company.log(0));
    company.signal(1, "CONT");
    assert_eq!(company.end(Duration::from_secs(5)), [Some(1), Some(1)]);

    // To the end of the topic, until one of them is asked to stop.
    publish("company", &folder.join("third"), 500, 10_000);
    let mut company = Company::start(folder, "four", (4, 1), &args);
    company.wait(0, "the end of the topic", || files_of(&output, "ledger") >= 9);
    company.signal(3, "TERM");
    assert_eq!(company.end(Duration::from_secs(20)), [Some(0); 4], "{}", company.log(0));
    for process in 0..4 {
        assert!(!company.log(process).contains("ERROR"), "{}", company.log(process));
    }

    // NB: this compares every file that the services wrote, and adds what is still open.
    let until_end = known(&["--until-end"]);
    let until_end: Vec<&str> = until_end.iter().map(String::as_str).collect();
    let mut company = Company::start(folder, "end", (2, 1), &until_end);
    assert_eq!(company.end(Duration::from_secs(60)), [Some(0); 2], "{}", company.log(0));
    let whole = folder.join("whole");
    succeed(&watch("company", &whole, "company-whole-alerts", &["--until-end"]));
    let [got, expected] = [&output, &whole].map(|folder| read_tables(folder).unwrap());
    let [mut got, mut expected] = [got, expected];
    got.sort();
    expected.sort();
    assert!(expected.cells.len() > 1000 && !expected.flags.is_empty() && !expected.incidents.is_empty());
    assert_same(&got, &expected, "several processes");
    let alerts = alerts_of("company-whole-alerts");
    assert!(!alerts.is_empty());
    assert_eq!(alerts_of("company-alerts"), alerts);
}

/// What another process decides about its partitions is in the log of the first one, before it takes effect.
#[test]
fn decisions_of_every_process_are_in_one_log() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("live");
    generate("silent-company", "5m", "2");
    let mut company =
        Company::start(scratch.path(), "three", (3, 1), &watch_silent("silent-company", &output, &[]));
    company.wait(0, "closing hops without partition 2", || files_of(&output, "ledger") >= 3);
    assert!(has_decided(&output, "idle", 2) && !has_decided(&output, "back", 2));
    assert!(company.log(2).contains("event time goes on without this partition"), "{}", company.log(2));
    generate("silent-company", "8m", "3");
    let is_back = || files_of(&output, "ledger") >= 7 && has_decided(&output, "back", 2);
    company.wait(0, "going on with partition 2", is_back);
    company.signal(0, "TERM");
    assert_eq!(company.end(Duration::from_secs(20)), [Some(0); 3], "{}", company.log(0));
    let whole = run_anew("silent-company", &output, None, "1");
    let again = run_anew("silent-company", &scratch.path().join("again"), Some(&output), "2");
    again.assert_same(&whole, "one process");
    let undecided = run_anew("silent-company", &scratch.path().join("undecided"), None, "2");
    assert_ne!(undecided.tables.ledger, whole.tables.ledger, "without the decisions nothing of partition 2 is late");
}
