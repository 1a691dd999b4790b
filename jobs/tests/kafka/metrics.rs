//! Requests from a topic of metrics: joined with profiles without requests, they give the same rows as a manifest with
//! requests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_formats::otlp::proto::{Any, AnyValue, KeyValue, Resource};
use prost::Message;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use crate::metrics_proto::{Bucketed, Data, Histogram, Metric, Request, ResourceMetrics, ScopeMetrics};
use crate::program::{brokers, fail, recorded, succeed, text};
use crate::results::{of_folder, with_topic};

const DELTA: i32 = 1;
const CUMULATIVE: i32 = 2;

/// One line of the manifest as a record of metrics.
fn record(line: &Value, point: Bucketed, temporality: i32) -> Vec<u8> {
    let names = [
        ("service.name", "service"),
        ("service.version", "build"),
        ("cloud.region", "region"),
        ("cohort", "cohort"),
        ("k8s.pod.uid", "pod"),
    ];
    let attribute = |(key, field): (&str, &str)| {
        let value = AnyValue { value: Some(Any::Text(line[field].as_str().unwrap().to_owned())) };
        KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
    };
    let histogram = Histogram { points: vec![point], temporality };
    let data = Some(Data::Histogram(histogram));
    let metric = Metric { name: "rpc.server.duration".to_owned(), data, ..Metric::default() };
    let resource = Resource { attributes: names.map(attribute).to_vec() };
    let scope_metrics = vec![ScopeMetrics { scope: None, metrics: vec![metric] }];
    Request { resource_metrics: vec![ResourceMetrics { resource: Some(resource), scope_metrics }] }.encode_to_vec()
}

/// Publishes the requests of a manifest to a topic with two partitions: for each line a delta, or the total of its pod
/// so far.
fn put_onto(topic: &str, lines: &[Value], temporality: i32) {
    let plan = TopicPlan { name: topic, partitions: 2, replication: None, configuration: &[("retention.ms", "-1")] };
    topic::ensure(&ClientSettings::new(brokers()), plan).unwrap();
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap();
    let mut so_far: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let instant = |field: &str| line[field].as_u64().unwrap();
        let (start, time, count) =
            (instant("requests_start_unix_nano"), instant("requests_end_unix_nano"), instant("requests"));
        let (since, all) = so_far.entry(line["pod"].as_str().unwrap()).or_insert((start, 0));
        *all += count;
        let point = if temporality == DELTA {
            Bucketed { start, time, count, ..Bucketed::default() }
        } else {
            Bucketed { start: *since, time, count: *all, ..Bucketed::default() }
        };
        let value = record(line, point, temporality);
        let message = BaseRecord::<(), [u8]>::to(topic).partition(i32::try_from(number % 2).unwrap()).payload(&value);
        producer.send(message.timestamp(i64::try_from(time / 1_000_000).unwrap())).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

const SETTINGS: [&str; 10] =
    ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "self"];

/// A copy of a fleet whose manifest has no requests, and the requests that were removed.
fn without_requests(fleet: &Path, copy: &Path) -> Vec<Value> {
    let manifest = fs::read_to_string(fleet.join("manifest.jsonl")).unwrap();
    let lines: Vec<Value> = manifest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let file = line["file"].as_str().unwrap();
        fs::create_dir_all(copy.join(file).parent().unwrap()).unwrap();
        fs::copy(fleet.join(file), copy.join(file)).unwrap();
    }
    let bare = lines.iter().map(|line| {
        let mut line = line.clone();
        line.as_object_mut().unwrap().retain(|key, _| !key.starts_with("requests"));
        line.to_string()
    });
    fs::write(copy.join("manifest.jsonl"), bare.collect::<Vec<_>>().join("\n")).unwrap();
    lines
}

#[test]
fn requests_of_metrics_give_the_rows_of_requests_in_a_manifest() {
    let scratch = tempfile::tempdir().unwrap();
    let (fleet, bare) = (recorded("rd-listpack"), scratch.path().join("bare"));
    let lines = without_requests(&fleet, &bare);
    let replayed = |folder: &Path, name: &str| {
        let output = scratch.path().join(name);
        succeed(&[&["replay", text(folder), "--output", text(&output)][..], &SETTINGS].concat());
        of_folder(&output)
    };
    let expected = replayed(&fleet, "expected");
    let per_request = expected.tables.cells.iter().filter(|row| row.per_request_ratio.is_some()).count();
    assert!(per_request > 50, "{per_request} rows per request");
    let unjoined = replayed(&bare, "unjoined");
    assert!(unjoined.tables.cells.iter().all(|row| row.per_request_ratio.is_none()), "the copy brings requests");

    succeed(&[
        "publish",
        text(&bare),
        "--brokers",
        brokers(),
        "--topic",
        "bare-profiles",
        "--partitions",
        "3",
        "--key",
        "none",
    ]);
    for (temporality, topic) in [(DELTA, "requests-delta"), (CUMULATIVE, "requests-cumulative")] {
        put_onto(topic, &lines, temporality);
        for workers in ["1", "2", "4"] {
            let about = format!("{topic} with {workers} workers");
            let output = scratch.path().join(format!("{topic}-{workers}"));
            let alerts = format!("alerts-{topic}-{workers}");
            let watch =
                ["watch", "--until-end", "--brokers", brokers(), "--topic", "bare-profiles", "--metrics-topic", topic];
            let more = ["--output", text(&output), "--alerts-topic", &alerts, "--workers", workers];
            succeed(&[&watch[..], &more, &SETTINGS].concat());
            with_topic(&output, &alerts).assert_same(&expected, &about);
        }
    }
    let said = fail(
        1,
        &[
            "watch",
            "--until-end",
            "--brokers",
            brokers(),
            "--topic",
            "bare-profiles",
            "--metrics-topic",
            "no-such-metrics",
            "--output",
            text(&scratch.path().join("none")),
        ],
    );
    assert!(said.contains("no-such-metrics"), "{said}");
}
