//! Each alert is sent once, however often the service is killed, started again or started twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::Value;

use crate::program::{brokers, fail, start, succeed};
use crate::results::{Results, read_alerts, with_topic};
use crate::service::{generate, stop, wait_for, watch};

/// The service with its alerts in a topic.
pub fn watching<'a>(topic: &'a str, output: &'a Path, alerts: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = watch(topic, output, more);
    let place = args.iter().position(|arg| *arg == "--alerts-topic").unwrap();
    args[place + 1] = alerts;
    args
}

fn ids(alerts: &[Value]) -> Vec<&str> {
    alerts.iter().map(|alert| alert["id"].as_str().unwrap()).collect()
}

pub fn assert_each_once(alerts: &[Value], about: &str) {
    let ids = ids(alerts);
    let different: BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "{about}: some of {ids:?} came twice");
}

/// The results of a run that nothing disturbs.
fn undisturbed(topic: &str, folder: &Path) -> Results {
    let alerts = format!("{topic}-undisturbed");
    succeed(&watching(topic, folder, &alerts, &["--until-end"]));
    with_topic(folder, &alerts)
}

#[test]
fn regression_each_alert_is_there_once_after_kills() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("killed"), scratch.path().join("log"));
    generate("killed", "8m", "3");
    let expected = undisturbed("killed", &scratch.path().join("undisturbed"));
    assert!(expected.alerts.len() > 1, "{} alerts", expected.alerts.len());
    let seed = 20;
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sent = Vec::new();
    for attempt in 0..8 {
        let service = start(&watching("killed", &output, "killed-alerts", &[]), &log);
        // An incident is logged just before it is sent.
        let awaited = if attempt % 4 == 3 { "reading topic" } else { "incident raised" };
        wait_for(awaited, &log, || fs::read_to_string(&log).unwrap().contains(awaited));
        std::thread::sleep(Duration::from_millis(draws.random_range(0..60)));
        stop(service, "KILL");
        sent.push(read_alerts("killed-alerts").len());
    }
    println!("seed {seed}: alerts in the topic after each kill: {sent:?}");
    succeed(&watching("killed", &output, "killed-alerts", &["--until-end"]));
    let got = with_topic(&output, "killed-alerts");
    assert_each_once(&got.alerts, "after kills");
    got.assert_same(&expected, "after kills");
}

/// One that has the folder keeps it; of two with folders of their own, the one that was started last sends.
#[test]
fn regression_of_two_services_one_stops_with_a_clear_error() {
    let scratch = tempfile::tempdir().unwrap();
    let folders = ["first", "second"].map(|name| scratch.path().join(name));
    let logs = ["log1", "log2"].map(|name| scratch.path().join(name));
    generate("twice", "1m", "3");
    let [mut first, second] = [0, 1].map(|at| {
        let service = start(&watching("twice", &folders[at], "twice-alerts", &[]), &logs[at]);
        let reading = || fs::read_to_string(&logs[at]).unwrap().contains("reading topic twice");
        wait_for("reading", &logs[at], reading);
        service
    });
    let said = fail(1, &watching("twice", &folders[1], "twice-alerts", &[]));
    assert!(said.contains("is in use: another run of fleetdiff writes into it"), "{said}");

    generate("twice", "8m", "3");
    let said = || fs::read_to_string(&logs[0]).unwrap();
    wait_for("the end of the first service", &logs[0], || first.try_wait().unwrap().is_some());
    assert_eq!(first.wait().unwrap().code(), Some(1), "{}", said());
    for part in ["started after this one", "twice-alerts", "let only one of them run"] {
        assert!(said().contains(part), "{part:?} is missing in:\n{}", said());
    }
    wait_for("alerts of the second service", &logs[1], || !read_alerts("twice-alerts").is_empty());
    assert_eq!(stop(second, "TERM"), Some(0), "{}", fs::read_to_string(&logs[1]).unwrap());
    assert_each_once(&read_alerts("twice-alerts"), "with two services");
}

/// Rows that records give which retention has left over are others, and so would be their alerts.
#[test]
fn regression_a_restart_after_retention_sends_nothing_before_its_rows_are_found_equal() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    generate("retained", "8m", "3");
    succeed(&watching("retained", &output, "retained-alerts", &["--until-end"]));
    let before = read_alerts("retained-alerts");
    assert!(!before.is_empty());
    delete_before("retained", 3, 6);
    let said = fail(1, &watching("retained", &output, "retained-alerts", &["--until-end"]));
    for part in ["began with offset 0", "now begins with offset 6", "retention", "new output folder"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert_eq!(read_alerts("retained-alerts"), before, "nothing was sent");
    let elsewhere = scratch.path().join("elsewhere");
    succeed(&watching("retained", &elsewhere, "retained-alerts", &["--until-end"]));
    assert_eq!(read_alerts("retained-alerts"), before, "a new folder does not send what was sent");
}

/// Deletes the records before an offset, as retention does.
pub fn delete_before(topic: &str, partitions: i32, offset: i64) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap();
    let mut offsets = TopicPartitionList::new();
    for number in 0..partitions {
        offsets.add_partition_offset(topic, number, Offset::Offset(offset)).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(admin.delete_records(&offsets, &AdminOptions::new())).unwrap();
}
