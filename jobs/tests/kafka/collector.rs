//! Records as an OpenTelemetry Collector wrote them, published unchanged to a topic: no keys, no headers, and the
//! records of a pod spread over all partitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use crate::program::{brokers, fail, succeed, text};
use crate::results::{Results, of_folder, with_topic};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../connectors/formats/testdata/otlp-kafka")
}

/// What is known about the records, in the order of their offsets.
fn records() -> Vec<Value> {
    let text = fs::read_to_string(recorded().join("records.jsonl")).unwrap();
    let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| (record["offset"].as_i64(), record["partition"].as_i64()));
    records
}

fn name(record: &Value) -> &str {
    record["file"].as_str().unwrap()
}

/// Each record to its partition, at its time.
fn put_onto(topic: &str) {
    let plan = TopicPlan { name: topic, partitions: 4, replication: None, configuration: &[("retention.ms", "-1")] };
    topic::ensure(&ClientSettings::new(brokers()), plan).unwrap();
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap();
    for record in records() {
        let value = fs::read(recorded().join(name(&record))).unwrap();
        assert!(record["key"].is_null() && record["headers"].as_array().unwrap().is_empty());
        let partition = i32::try_from(record["partition"].as_i64().unwrap()).unwrap();
        let message = BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(&value);
        producer.send(message.timestamp(record["timestamp_ms"].as_i64().unwrap())).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

/// The same records as files of a folder, whose manifest contains only their time.
fn put_into(folder: &Path) {
    let expected = fs::read_to_string(recorded().join("expected.json")).unwrap();
    let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
    let mut lines = Vec::new();
    for record in records() {
        let of_hop =
            expected.iter().filter(|entry| entry["hop"] == record["hop"]).map(|entry| &entry["types"]["samples/count"]);
        let times = of_hop.map(|cpu| (cpu["time_unix_nano"].as_i64().unwrap(), cpu["duration_nano"].as_i64().unwrap()));
        let (start, length) = times.min().unwrap();
        let line = json!({
            "file": name(&record), "format": "otlp", "start_unix_nano": start, "end_unix_nano": start + length,
        });
        lines.push(line.to_string());
        fs::copy(recorded().join(name(&record)), folder.join(name(&record))).unwrap();
    }
    fs::write(folder.join("manifest.jsonl"), lines.join("\n")).unwrap();
}

const SETTINGS: [&str; 10] =
    ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "total"];

fn replayed(folder: &Path, output: &Path, more: &[&str]) -> Results {
    succeed(&[&["replay", text(folder), "--output", text(output)][..], &SETTINGS, more].concat());
    of_folder(output)
}

#[test]
fn a_topic_of_a_collector_gives_what_its_records_give_as_files() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("fleet");
    fs::create_dir(&folder).unwrap();
    put_into(&folder);
    put_onto("otlp-profiles");
    let expected = replayed(&folder, &scratch.path().join("replayed"), &[]);
    let [cells, _, comparisons, ledger, _] = expected.sizes();
    assert!(cells > 0 && comparisons > 0 && ledger >= 3, "{:?}", expected.sizes());
    assert_eq!(expected.refused(), 0);
    // Memory of hops 1 and 3 and locks of hop 2 are since the process began; their differences are counted.
    let snapshots: Vec<_> =
        expected.tables.ledger.iter().filter(|row| ["heap", "mutex"].contains(&row.profile_type.as_str())).collect();
    assert!(
        snapshots.iter().any(|row| row.samples_counted > 0) && snapshots.iter().any(|row| row.samples_carried_over > 0)
    );
    let of_cpu = expected.tables.ledger.iter().filter(|row| row.profile_type == "cpu");
    let counted: i64 = of_cpu.map(|row| row.samples_counted).sum();
    let totals =
        records().iter().map(|record| record["totals"]["samples/count"]["total"].as_i64().unwrap()).sum::<i64>();
    assert_eq!(counted, totals);
    for workers in ["1", "2", "4"] {
        let output = scratch.path().join(workers);
        let alerts = format!("alerts-otlp-{workers}");
        let watch = ["watch", "--until-end", "--brokers", brokers(), "--topic", "otlp-profiles", "--format", "otlp"];
        let more = ["--output", text(&output), "--alerts-topic", &alerts, "--workers", workers];
        succeed(&[&watch[..], &more, &SETTINGS].concat());
        with_topic(&output, &alerts).assert_same(&expected, &format!("{workers} workers"));
    }
}

/// A filter applies to the profiles of a file of records, whose line of the manifest names neither service nor type.
#[test]
fn a_filter_sees_into_records() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("fleet");
    fs::create_dir(&folder).unwrap();
    put_into(&folder);
    let cpu = replayed(&folder, &scratch.path().join("cpu"), &["--profile-type", "cpu"]);
    assert_eq!(cpu.refused(), 0);
    let other = scratch.path().join("other");
    let said =
        fail(2, &[&["replay", text(&folder), "--output", text(&other), "--service", "redis"][..], &SETTINGS].concat());
    assert!(said.contains("no profile of service redis") && said.contains("it has services: "), "{said}");
    assert!(!other.exists(), "no output without a profile of the service");
}
