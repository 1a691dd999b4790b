//! One service in several processes.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fleetdiff_connectors::parquet::read_tables;

use crate::checkpoints::checkpoints;
use crate::company::{Company, free_hosts};
use crate::program::{fail, start, succeed, text};
use crate::service::{files_of, generate, has_decided, run_anew, watch as watch_silent};
use crate::shards::{alerts_of, publish, watch};
use crate::together::assert_same;

/// Processes that share a topic, an output folder and a secret.
struct Trial {
    folder: PathBuf,
    output: PathBuf,
    secret: PathBuf,
}

impl Trial {
    fn new(folder: &Path) -> Self {
        let [output, secret] = ["out", "secret"].map(|name| folder.join(name));
        fs::write(&secret, "only processes of this test know it\n").unwrap();
        Self { folder: folder.to_owned(), output, secret }
    }

    /// Arguments of each process, but for those of these flags; then these.
    fn args<'a>(&'a self, but: &str, more: &[&'a str]) -> Vec<&'a str> {
        let all = watch("company", &self.output, "company-alerts", &["--cluster-secret-file", text(&self.secret)]);
        let mut kept = Vec::new();
        let mut each = all.into_iter();
        while let Some(arg) = each.next() {
            if arg == but {
                each.next();
            } else {
                kept.push(arg);
            }
        }
        [&kept, more].concat()
    }

    fn publish(&self, name: &str, from: i64, until: i64) {
        publish("company", &self.folder.join(name), from, until);
    }

    fn start(&self, name: &str, shape: (usize, usize), more: &[&str]) -> Company {
        Company::start(&self.folder.join(name), shape, |own, log, _| start(&[&self.args("", more), own].concat(), log))
    }

    /// Strangers, and processes that are configured otherwise, keep nobody from meeting.
    fn meet_among_strangers(&self) -> Company {
        let hosts = free_hosts(3);
        let one = |process: usize| {
            let args = self.args("", &[]);
            let log = self.folder.join(format!("three-{process}.log"));
            (start(&[&args, &Company::flags(process, 1, &hosts).each()[..]].concat(), &log), log)
        };
        let mut company = Company(vec![one(0), one(1)]);
        company.wait(0, "listening", || company.log(0).contains("waiting for the others"));
        let address = hosts.split(',').next().unwrap();
        let mut silent = Vec::new();
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4000], b"", b"\x05\x00\x00\x00"] {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.write_all(bytes).unwrap();
            silent.push(stranger);
        }
        let outsider = self.folder.join("other-secret");
        fs::write(&outsider, "nobody else's").unwrap();
        for (flag, value, workers, said) in [
            ("--cluster-secret-file", text(&outsider), "1", "it has another secret"),
            ("--window", "5m", "1", "settings that decide rows differ: dataflow.window"),
            ("--until-end", "", "2", "the number of workers: 2 for one, 1 for the other"),
        ] {
            let own = ["--processes", "3", "--process", "2", "--hosts", &hosts, "--workers", workers, flag, value];
            let printed = fail(1, &self.args(flag, own.strip_suffix(&[""]).unwrap_or(&own)));
            assert!(printed.contains(said), "{flag}: {said:?} is missing in:\n{printed}");
        }
        company.0.push(one(2));
        company.wait(0, "meeting", || company.log(0).contains("all 3 processes are here"));
        assert!(company.log(0).contains("was dropped: "), "{}", company.log(0));
        company
    }

    /// One that is killed ends all within 5 s.
    fn killed(&self, mut company: Company) {
        company.wait(0, "an incident", || company.log(0).contains("incident raised"));
        company.wait(0, "a checkpoint", || !checkpoints(&self.output).is_empty());
        company.signal(1, "KILL");
        assert_eq!(company.end(Duration::from_secs(5)), [Some(1), None, Some(1)]);
        for (process, lost) in [(0, "process 1 at"), (2, "is lost: ")] {
            assert!(company.log(process).contains(lost), "{}", company.log(process));
            assert!(!company.log(process).contains("panicked"), "{}", company.log(process));
        }
    }

    /// One that stands still ends all within 30 s, and itself once it goes on.
    fn stopped(&self, mut company: Company) {
        company.signal(1, "STOP");
        let stopped = Instant::now();
        while company.0[0].0.try_wait().unwrap().is_none() {
            assert!(stopped.elapsed() < Duration::from_secs(30), "{}", company.log(0));
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("a process that stood still was given up after {:?}", stopped.elapsed());
        assert!(company.log(0).contains("is lost: it has said nothing for"), "{}", company.log(0));
        company.signal(1, "CONT");
        assert_eq!(company.end(Duration::from_secs(5)), [Some(1), Some(1)]);
    }

    /// One that is asked to stop stops all, and nothing is wrong.
    fn asked_to_stop(&self, mut company: Company) {
        company.signal(3, "TERM");
        assert_eq!(company.end(Duration::from_secs(20)), [Some(0); 4], "{}", company.log(0));
        for process in 0..4 {
            assert!(!company.log(process).contains("ERROR"), "{}", company.log(process));
        }
    }
}

/// Killed, stopped and started again with other shapes: rows and alerts are those of one process.
#[test]
fn processes_of_one_service_write_the_rows_and_alerts_of_one() {
    let scratch = tempfile::tempdir().unwrap();
    let trial = Trial::new(scratch.path());
    let output = &trial.output;
    trial.publish("first", 0, 400);
    trial.killed(trial.meet_among_strangers());

    let company = trial.start("two", (2, 2), &[]);
    company.wait(0, "going on", || company.log(0).contains("going on from the checkpoint of"));
    company.wait(1, "reading", || company.log(1).contains("reads its part of topic company"));
    trial.publish("second", 400, 500);
    company.wait(0, "rows", || files_of(output, "ledger") >= 6);
    trial.stopped(company);

    trial.publish("third", 500, 10_000);
    let company = trial.start("four", (4, 1), &[]);
    company.wait(0, "the end of the topic", || files_of(output, "ledger") >= 9);
    trial.asked_to_stop(company);

    // NB: this compares every file that the services wrote, and adds what is still open.
    let mut company = trial.start("end", (2, 1), &["--until-end"]);
    assert_eq!(company.end(Duration::from_secs(60)), [Some(0); 2], "{}", company.log(0));
    let whole = trial.folder.join("whole");
    succeed(&watch("company", &whole, "company-whole-alerts", &["--until-end"]));
    let [mut got, mut expected] = [output, &whole].map(|folder| read_tables(folder).unwrap());
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
    let args = watch_silent("silent-company", &output, &[]);
    let logs = scratch.path().join("three");
    let mut company = Company::start(&logs, (3, 1), |own, log, _| start(&[&args, own].concat(), log));
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
