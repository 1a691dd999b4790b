//! The service that faults happen to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use fleetdiff_connectors::crash::{self, CrashPoint};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use serde_json::Value;

use super::damage::TOO_LARGE;
use crate::program::{command, fail, succeed, text};
use crate::results::{Results, lines, of_folder, read_alerts_at, with_topic_at};
use crate::service::{files_of, stop, wait_for};

/// What a file spans, in nanoseconds.
const INTERVAL: i64 = 60_000_000_000;
/// More than the lateness and two hops: by so much a service waits for records that may come after the last ones.
const WAITS: i64 = 90_000_000_000;

/// Through where all is written though nothing ends the last intervals.
fn closed_until(expected: &Results) -> Nanos {
    let last = expected.tables.ledger.iter().map(|row| row.hop_at).max().unwrap();
    Nanos((last.0 - WAITS) / INTERVAL * INTERVAL)
}

/// Where a service reads and writes.
pub struct Subject<'a> {
    pub brokers: &'a str,
    pub topic: &'a str,
    pub output: PathBuf,
    /// The topic of alerts; empty for the file.
    pub alerts: String,
    pub idle_after: &'static str,
}

impl Subject<'_> {
    fn args(&self, more: &[&str]) -> Vec<String> {
        let most = (TOO_LARGE - 1).to_string();
        let own = ["watch", "--brokers", self.brokers, "--topic", self.topic, "--output", text(&self.output)];
        let alerts = ["--alerts-topic", &self.alerts, "--idle-after", self.idle_after, "--max-record-bytes", &most];
        let settings = ["--format", "delta", "--flush", "60s", "--window", "4m", "--report-every", "2m"];
        [&own[..], &alerts, &settings, more].concat().into_iter().map(str::to_owned).collect()
    }

    /// Starts it. It ends at a point, at the time named after it, if one is given.
    pub fn start(&self, log: &Path, more: &[&str], end_at: Option<(CrashPoint, u64)>) -> Child {
        let args = self.args(more);
        let mut service = command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some((point, times)) = end_at {
            service.env(crash::VARIABLE, format!("{}:{times}", point.name()));
        }
        service.stdout(Stdio::null()).stderr(fs::File::create(log).unwrap()).spawn().unwrap()
    }

    /// A second one in the same folder, by mistake.
    pub fn is_refused_beside_another(&self) -> String {
        let args = self.args(&[]);
        fail(1, &args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Goes on from the last checkpoint until what a service can close is written, and ends in order. All alerts of it are there
    /// then: none is left to be sent by a read to the end.
    pub fn go_on_to_end(&self, expected: &Results, log: &Path, more: &[&str], about: &str) {
        let until = closed_until(expected);
        let starts = expected.tables.ledger.iter().map(|row| row.hop_at.0 / INTERVAL * INTERVAL);
        let intervals: BTreeSet<i64> = starts.filter(|start| *start < until.0).collect();
        self.go_on_to(intervals.len(), log, more, about);
        let announced = match self.alerts.as_str() {
            "" => lines(&self.output),
            topic => read_alerts_at(self.brokers, topic),
        };
        let ids: Vec<&Value> = announced.iter().map(|alert| &alert["id"]).collect();
        let is_due = |alert: &&Value| alert["time"].as_str().unwrap() <= rfc3339(until).as_str();
        let due: Vec<&Value> = expected.alerts.iter().filter(is_due).collect();
        assert!(!due.is_empty(), "{about}: no alerts");
        due.iter().for_each(|alert| assert!(ids.contains(&&alert["id"]), "{about}: was not sent: {alert}"));
    }

    /// Goes on from the last checkpoint until this many intervals are written, and ends in order.
    pub fn go_on_to(&self, intervals: usize, log: &Path, more: &[&str], about: &str) {
        let service = self.start(log, more, None);
        // NB: all may be written already, and a process that has only just begun takes no signal yet.
        let reads = || fs::read_to_string(log).is_ok_and(|said| said.contains("reading topic"));
        wait_for(&format!("{about}: reading"), log, reads);
        wait_for(&format!("{about}: the end"), log, || files_of(&self.output, "ledger") >= intervals);
        assert_eq!(stop(service, "TERM"), Some(0), "{about}:\n{}", fs::read_to_string(log).unwrap());
    }

    /// Reads the topic from its beginning to its end: the program compares every file and alert that is there, and adds the rest.
    pub fn to_end(&self, more: &[&str]) -> Results {
        let args = self.args(&[&["--until-end"], more].concat());
        succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
        if self.alerts.is_empty() {
            return of_folder(&self.output);
        }
        with_topic_at(self.brokers, &self.output, &self.alerts)
    }

    /// All rows anew, in another folder, with the decisions of this one.
    pub fn anew(&self, output: PathBuf) -> Results {
        let decisions = self.output.join("decisions.jsonl");
        let more = ["--workers", "3", "--decisions", text(&decisions)];
        Subject { output, alerts: format!("{}-anew", self.alerts), ..*self }.to_end(&more)
    }
}
