//! Several processes share the services of a topic, each with a standby.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use fleetdiff_connectors::files::{FileFormat, FleetWriter};
use fleetdiff_connectors::parquet::read_tables;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Cells, Fleet};
use serde_json::Value;

use crate::checkpoints::checkpoints;
use crate::program::{brokers, fail, start, succeed, text};
use crate::results::read_alerts;
use crate::service::{files_of, stop, wait_for};
use crate::together::{assert_same, together};

/// Of two shards, each has two of them.
const SERVICES: [&str; 4] = ["cart", "checkout", "payment", "video"];
/// When all fleets begin, in seconds since 1970: the beginning of an hour.
const BEGIN: i64 = 1_799_996_400;

/// A deploy of each service, in the order of time: some 10 minutes.
fn profiles() -> Vec<Profile> {
    let mut profiles = Vec::new();
    for (seed, service) in (31..).zip(SERVICES) {
        let fleet = Fleet::seeded(seed)
            .service(service)
            .regions(["east"])
            .cohorts(["tv", "web"])
            .pods_per_cell(4, 5)
            .samples_per_second(100.0)
            .starts_at(Nanos::from_seconds(BEGIN))
            .lasts(Nanos::from_seconds(600))
            .deploy_after(Nanos::from_seconds(90))
            .regress("serialize_video_chunk", Cells::all(), 2.0)
            .build();
        profiles.extend(fleet.partition(0, 1).flat_map(|record| record.parts).flatten());
    }
    profiles.sort_by_key(|profile| profile.window.end);
    profiles
}

/// Publishes the profiles that end between these seconds after the beginning.
pub fn publish(topic: &str, folder: &Path, from: i64, until: i64) {
    let at = |seconds: i64| Nanos::from_seconds(BEGIN + seconds);
    let mut writer = FleetWriter::create(folder, FileFormat::Pprof).unwrap();
    for profile in profiles().iter().filter(|profile| (at(from)..at(until)).contains(&profile.window.end)) {
        writer.write(profile).unwrap();
    }
    writer.finish().unwrap();
    let to_topic = ["--brokers", brokers(), "--topic", topic, "--format", "delta", "--key", "none"];
    succeed(&[&["publish", text(folder), "--partitions", "3"][..], &to_topic].concat());
}

/// Arguments of a process. Event time waits for every partition, so that nothing depends on the wall clock.
pub fn watch<'a>(topic: &'a str, output: &'a Path, alerts: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let own = ["watch", "--brokers", brokers(), "--topic", topic, "--format", "delta", "--output", text(output)];
    let settings = ["--alerts-topic", alerts, "--flush", "60s", "--window", "4m", "--idle-after", "0s"];
    [&own[..], &settings, &["--report-every", "2m", "--checkpoint-every", "30s"], more].concat()
}

pub fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

fn says(log: &Path, what: &str) {
    wait_for(what, log, || read(log).contains(what));
}

/// A process and its log.
struct Running {
    process: Child,
    log: PathBuf,
}

impl Running {
    fn start(folder: &Path, name: &str, args: &[&str]) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { process: start(args, &log), log }
    }

    fn end(self, signal: &str) -> Option<i32> {
        stop(self.process, signal)
    }
}

/// Alerts in the order of their keys; those of one key as they came.
pub fn alerts_of(topic: &str) -> Vec<Value> {
    let mut alerts = read_alerts(topic);
    alerts.sort_by(|a, b| a["partitionkey"].as_str().cmp(&b["partitionkey"].as_str()));
    let ids: BTreeSet<&str> = alerts.iter().map(|alert| alert["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), alerts.len(), "each alert is on {topic} once");
    alerts
}

#[test]
fn shards_with_a_standby_write_the_rows_and_alerts_of_one_process() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let outputs = ["one", "two"].map(|name| folder.join(name));
    let of_shard = |number: usize, more: &[&'static str]| {
        let shard = ["--shard", ["1/2", "2/2"][number]];
        watch("shared", &outputs[number], "shared-alerts", &[&shard[..], more].concat())
    };
    publish("shared", &folder.join("first"), 0, 400);
    let leader = Running::start(folder, "leader", &of_shard(0, &[]));
    says(&leader.log, "counting services of shard 1/2");
    let other = Running::start(folder, "other", &of_shard(1, &[]));
    let standby = Running::start(folder, "standby", &of_shard(0, &["--standby"]));
    let holder = format!("standby: process {} ", leader.process.id());
    says(&standby.log, &holder);

    // Who is no standby is refused, and a standby ends when it is asked to.
    let refused = fail(1, &of_shard(0, &[]));
    for part in ["is in use: another run of fleetdiff writes into it", &format!("(process {}", leader.process.id())] {
        assert!(refused.contains(part), "{part:?} is missing in:\n{refused}");
    }
    let second = Running::start(folder, "second", &of_shard(0, &["--standby"]));
    says(&second.log, &holder);
    assert_eq!(second.end("TERM"), Some(0));

    says(&leader.log, "incident raised");
    wait_for("a checkpoint", &leader.log, || !checkpoints(&outputs[0]).is_empty());
    assert!(!read(&standby.log).contains("reading topic"), "{}", read(&standby.log));
    assert_eq!(leader.end("KILL"), None);
    says(&standby.log, "going on from the checkpoint of");
    publish("shared", &folder.join("second"), 400, 10_000);
    for (process, output) in [(&standby, &outputs[0]), (&other, &outputs[1])] {
        wait_for("the end of the topic", &process.log, || files_of(output, "ledger") >= 9);
    }
    for process in [standby, other] {
        let log = process.log.clone();
        assert_eq!(process.end("TERM"), Some(0), "{}", read(&log));
        assert!(!read(&log).contains("ERROR"), "{}", read(&log));
    }

    // Another shard, or one process for all, does not go on there.
    for (shard, now) in [("2/2", r#"now it is "2/2""#), ("1/1", r#"now it is "1/1""#)] {
        let said = fail(1, &watch("shared", &outputs[0], "shared-alerts", &["--shard", shard]));
        for part in ["was made with other settings", r#"kafka.shard was "1/2""#, now] {
            assert!(said.contains(part), "{part:?} is missing in:\n{said}");
        }
    }

    // NB: this compares every file that the services wrote, and adds what is still open.
    for number in 0..2 {
        succeed(&of_shard(number, &["--until-end"]));
    }
    let whole = folder.join("whole");
    succeed(&watch("shared", &whole, "whole-alerts", &["--until-end"]));
    let shards = outputs.each_ref().map(|output| read_tables(output).unwrap());
    let mut expected = read_tables(&whole).unwrap();
    expected.sort();
    for tables in &shards {
        let services: BTreeSet<&str> = tables.cells.iter().map(|row| row.comparison.service.as_str()).collect();
        assert_eq!(services.len(), 2, "{services:?}");
    }
    assert!(expected.cells.len() > 1000 && !expected.flags.is_empty() && !expected.incidents.is_empty());
    assert_same(&together(shards), &expected, "two shards");
    let alerts = alerts_of("whole-alerts");
    assert!(alerts.len() >= SERVICES.len());
    assert_eq!(alerts_of("shared-alerts"), alerts);
}
