//! What happens to a topic while a service reads it: partitions are added, records are deleted before they were read, the topic is
//! deleted and made anew, leaders move. Each is said within seconds of the wall clock; nothing is lost silently, and nothing counts
//! twice.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde_json::Value;

use crate::alerts_once::delete_before;
use crate::broker::Broker;
use crate::program::{brokers, fail, start, succeed, text};
use crate::results::{Results, of_folder};
use crate::service::{decisions, files_of, generate_at, has_decided, run_anew, stop, wait_for, watch};
use crate::status::{Watched, signal};

/// How long until a change is said.
const WITHIN: Duration = Duration::from_secs(60);

fn admin(brokers: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap()
}

fn wait_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn make(brokers: &str, topic: &str, partitions: i32, replication: i32) {
    let plan =
        TopicPlan { name: topic, partitions, replication: Some(replication), configuration: &[("retention.ms", "-1")] };
    topic::ensure(&ClientSettings::new(brokers), plan).unwrap();
}

fn grow(topic: &str, partitions: usize) {
    let admin = admin(brokers());
    let plan = NewPartitions::new(topic, partitions);
    wait_on(admin.create_partitions([&plan], &AdminOptions::new())).unwrap().remove(0).unwrap();
}

fn delete(topic: &str) {
    wait_on(admin(brokers()).delete_topics(&[topic], &AdminOptions::new())).unwrap().remove(0).unwrap();
}

/// Sends a fleet to the first partitions of a topic; the same seed gives the same fleet, of which a longer one holds a shorter one.
fn send(brokers: &str, topic: &str, seed: &str, duration: &str, partitions: &str) {
    let spread = ["--partitions", partitions, "--partitions-used", partitions];
    generate_at(brokers, topic, &[&["--seed", seed, "--duration", duration][..], &spread].concat());
}

fn said(log: &Path, parts: &[&str]) {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(log).unwrap();
        match parts.iter().find(|part| !text.contains(**part)) {
            None => return println!("{parts:?}: said after {:.1} s", begun.elapsed().as_secs_f64()),
            Some(part) => assert!(begun.elapsed() < WITHIN, "{part:?} is not said:\n{text}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn received(results: &Results) -> i64 {
    results.tables.ledger.iter().map(|row| row.samples_received).sum()
}

/// Two of four workers have no partition until the topic grows.
#[test]
fn partitions_that_are_added_are_read_and_what_was_decided_is_decided_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    make(brokers(), "grows", 2, 1);
    send(brokers(), "grows", "3", "5m", "2");
    let service = start(&watch("grows", &output, &["--workers", "4"]), &log);
    wait_for("closing hops of two partitions", &log, || files_of(&output, "ledger") >= 3);
    grow("grows", 4);
    said(&log, &["the partition was added", "partition=2", "partition=3"]);
    wait_for("deciding where it begins", &log, || has_decided(&output, "begun", 3));
    assert!(!has_decided(&output, "first", 3), "{:?}", decisions(&output));
    send(brokers(), "grows", "3", "8m", "4");
    wait_for("reading what was added", &log, || {
        [2, 3].iter().all(|number| has_decided(&output, "first", *number)) && files_of(&output, "ledger") >= 6
    });
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());

    // Another one while nothing runs. What is written stays as it is.
    grow("grows", 5);
    send(brokers(), "grows", "3", "9m", "5");
    let left = files_of(&output, "ledger");
    let whole = run_anew("grows", &output, None, "2");
    assert!(files_of(&output, "ledger") > left, "the rest is written by the run to the end");
    let joined = |made: &Value| made["decision"] == "begun" && made["from_hop"].as_u64() > Some(0);
    assert_eq!(decisions(&output).iter().filter(|made| joined(made)).count(), 3, "{:?}", decisions(&output));
    for workers in ["1", "3"] {
        let again = run_anew("grows", &scratch.path().join(workers), Some(&output), workers);
        again.assert_same(&whole, &format!("{workers} workers"));
    }
    let undecided = run_anew("grows", &scratch.path().join("undecided"), None, "2");
    assert_ne!(undecided.tables.ledger, whole.tables.ledger, "without the decisions less is late");
    assert_eq!(received(&undecided), received(&whole), "nothing is lost or doubled");
}

/// Its records are gone, and so is what could make its rows again. The next run says that, too.
#[test]
fn a_topic_that_is_deleted_and_made_anew_ends_the_run_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    make(brokers(), "deleted", 1, 1);
    send(brokers(), "deleted", "3", "5m", "1");
    let args = watch("deleted", &output, &[]);
    let mut service = start(&args, &log);
    wait_for("closing hops", &log, || files_of(&output, "ledger") >= 2);
    delete("deleted");
    said(&log, &["was deleted while it was read", "start it with a new output folder"]);
    wait_for("the end of the service", &log, || service.try_wait().unwrap().is_some());
    assert_eq!(service.wait().unwrap().code(), Some(1));

    make(brokers(), "deleted", 1, 1);
    let told = fail(1, &args);
    assert!(told.contains("now ends at offset 0") && told.contains("new output folder"), "{told}");
    // Its times are the same, its records are not: neither that before the checkpoint nor, without one, the first.
    send(brokers(), "deleted", "4", "6m", "1");
    for record in ["the last record before the checkpoint was at offset", "its first record was at offset 0"] {
        let told = fail(1, &args);
        for part in [
            "partition 0 holds other records than when this output was begun",
            record,
            "deleted and made anew",
            "new output folder",
        ] {
            assert!(told.contains(part), "{part:?} is missing in:\n{told}");
        }
        std::fs::remove_dir_all(output.join("checkpoints")).unwrap_or_default();
    }
    run_anew("deleted", &scratch.path().join("new"), None, "1");
}

/// So soon that nobody sees that it was gone: its offsets begin anew.
#[test]
fn a_topic_that_is_replaced_within_a_moment_ends_the_run_too() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    make(brokers(), "replaced", 2, 1);
    send(brokers(), "replaced", "3", "5m", "2");
    let mut service = start(&watch("replaced", &output, &[]), &log);
    wait_for("closing hops", &log, || files_of(&output, "ledger") >= 2);
    delete("replaced");
    make(brokers(), "replaced", 2, 1);
    send(brokers(), "replaced", "4", "1m", "2");
    said(
        &log,
        &["of topic replaced has lost records that were read", "made anew", "start it with a new output folder"],
    );
    wait_for("the end of the service", &log, || service.try_wait().unwrap().is_some());
    assert_eq!(service.wait().unwrap().code(), Some(1));
}

/// The service stands still while records come and go.
#[test]
fn records_that_retention_deletes_before_they_are_read_are_said_and_the_rest_is_read() {
    make(brokers(), "overtaken", 1, 1);
    send(brokers(), "overtaken", "3", "3m", "1");
    let service = Watched::start(brokers(), "overtaken", "delta", &["--window", "4m"]);
    let (log, output) = (service.folder.path().join("log"), service.folder.path().join("out"));
    let first = || service.status()["partitions"][0].clone();
    let read =
        |partition: &Value| partition["records"].as_i64().is_some_and(|read| read > 0) && partition["lag_records"] == 0;
    wait_for("reading all", &log, || read(&first()) && files_of(&output, "ledger") >= 1);
    let next = first()["next_offset"].as_i64().unwrap();
    signal(service.service.id(), "STOP");
    std::thread::sleep(Duration::from_secs(1));
    send(brokers(), "overtaken", "3", "8m", "1");
    delete_before("overtaken", 1, next + 40);
    signal(service.service.id(), "CONT");
    said(&log, &[&format!("40 records are lost (offsets {next} to {})", next + 39), "\"level\":\"ERROR\""]);
    let begun = Instant::now();
    while first()["lost_records"] != 40 || first()["records"].as_i64() <= Some(next) {
        assert!(begun.elapsed() < WITHIN, "{:#}", first());
        std::thread::sleep(Duration::from_millis(100));
    }
    let metric = "fleetdiff_partition_lost_records_total{topic=\"overtaken\",partition=\"0\"} 40";
    assert!(service.get("/metrics").1.contains(metric), "{}", service.get("/metrics").1);
    assert!(has_decided(&output, "lost", 0), "{:?}", decisions(&output));
    let more = files_of(&output, "ledger");
    wait_for("going on", &log, || files_of(&output, "ledger") > more || more > 3);
    let again =
        ["--format", "delta", "--output", text(&output), "--alerts-topic", "", "--flush", "60s", "--window", "4m"];
    let to_topic = ["watch", "--brokers", brokers(), "--topic", "overtaken"];
    let args = [&to_topic[..], &again].concat();
    let folder = service.stop_and_keep();
    // Without a checkpoint, the rows cannot be made again.
    std::fs::remove_dir_all(output.join("checkpoints")).unwrap_or_default();
    let told = fail(1, &args);
    assert!(
        told.contains("the records before it are deleted (retention)") && told.contains("new output folder"),
        "{told}"
    );
    drop(folder);
}

fn leaders(brokers: &str, topic: &str) -> Vec<i32> {
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10)).unwrap();
    metadata.topics()[0].partitions().iter().map(rdkafka::metadata::MetadataPartition::leader).collect()
}

/// A broker dies under load. Partitions with a copy go on from there; one without is not taken for idle while its broker is gone.
#[test]
fn leaders_move_and_a_partition_without_one_is_not_taken_for_idle() {
    let broker = Broker::start();
    let second = broker.another(2);
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    let at = broker.address();
    make(at, "moves", 4, 2);
    make(at, "stays", 4, 1);
    send(at, "moves", "3", "4m", "4");
    assert!(leaders(at, "moves").contains(&2), "the second broker leads");
    let watching = |topic: &'static str, output: &Path| -> Vec<String> {
        let args = watch(topic, output, &["--workers", "2"]);
        args.iter().map(|arg| if *arg == brokers() { at.to_owned() } else { (*arg).to_owned() }).collect()
    };
    let as_text = |args: &[String]| args.to_vec();
    let args = as_text(&watching("moves", &output));
    let service = start(&args.iter().map(String::as_str).collect::<Vec<_>>(), &log);
    wait_for("closing hops", &log, || files_of(&output, "ledger") >= 2);

    let (other, other_log) = (scratch.path().join("other"), scratch.path().join("log2"));
    send(at, "stays", "3", "4m", "4");
    let cut_off = i32::try_from(leaders(at, "stays").iter().position(|leader| *leader == 2).unwrap()).unwrap();
    let args = as_text(&watching("stays", &other));
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let idle_after = args.iter().position(|arg| *arg == "--idle-after").unwrap() + 1;
    args[idle_after] = "15s";
    let waits = start(&args, &other_log);
    wait_for("closing hops of the other topic", &other_log, || files_of(&other, "ledger") >= 2);
    drop(second);
    // The client library says each second which leaders are connected. On a slow machine the partition may be idle until it
    // does; from then on it must not become idle.
    std::thread::sleep(Duration::from_secs(3));
    let decided = has_decided(&other, "idle", cut_off);
    send(at, "moves", "3", "8m", "4");
    wait_for("going on", &log, || files_of(&output, "ledger") >= 6);
    assert!(leaders(at, "moves").iter().all(|leader| *leader == 1));
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());
    std::thread::sleep(Duration::from_secs(16));
    assert_eq!(has_decided(&other, "idle", cut_off), decided, "{:?}", decisions(&other));
    assert_eq!(stop(waits, "TERM"), Some(0), "{}", fs::read_to_string(&other_log).unwrap());

    let to_end = |folder: &Path, more: &[&str]| {
        let args = watching("moves", folder);
        succeed(&[&args.iter().map(String::as_str).collect::<Vec<_>>(), &["--until-end"][..], more].concat());
        of_folder(folder)
    };
    let whole = to_end(&output, &[]);
    let again = to_end(&scratch.path().join("anew"), &["--decisions", text(&output.join("decisions.jsonl"))]);
    again.assert_same(&whole, "after leaders moved");
}
