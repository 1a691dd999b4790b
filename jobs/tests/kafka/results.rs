//! The results of a run: the rows of its folder, and its alerts from the file or from the topic.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use fleetdiff_connectors::parquet::read_tables;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Map, Value, json};

use crate::program::brokers;
use crate::together::assert_same;

/// A rejected record without its place, which differs between a folder and a topic.
type Refusal = (Option<Nanos>, Reason, Option<ProfileType>, u64, Option<Nanos>);

/// Everything that must not depend on where records came from.
pub struct Results {
    pub tables: Tables,
    refusals: Vec<Refusal>,
    /// In structured mode; those of one key in their order.
    pub alerts: Vec<Value>,
}

/// The results of a run whose alerts went to the file.
pub fn of_folder(folder: &Path) -> Results {
    results(folder, lines(folder))
}

/// The alerts in the file.
pub fn lines(folder: &Path) -> Vec<Value> {
    let lines = std::fs::read_to_string(folder.join("alerts.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The results of a run whose alerts went to a topic.
pub fn with_topic(folder: &Path, alerts: &str) -> Results {
    with_topic_at(brokers(), folder, alerts)
}

/// The same at other brokers.
pub fn with_topic_at(brokers: &str, folder: &Path, alerts: &str) -> Results {
    assert!(!folder.join("alerts.jsonl").exists(), "alerts go to the topic alone");
    results(folder, read_alerts_at(brokers, alerts))
}

fn results(folder: &Path, mut alerts: Vec<Value>) -> Results {
    alerts.sort_by(|a, b| a["partitionkey"].as_str().cmp(&b["partitionkey"].as_str()));
    let mut tables = read_tables(folder).unwrap();
    tables.sort();
    let rejected = std::mem::take(&mut tables.rejected).into_iter().map(|row| {
        let fault = row.rejection;
        (row.hop_at, fault.reason, fault.profile_type, fault.samples, fault.at)
    });
    let mut refusals: Vec<Refusal> = rejected.collect();
    refusals.sort();
    Results { tables, refusals, alerts }
}

impl Results {
    /// Panics at the first row that differs.
    pub fn assert_same(&self, other: &Self, about: &str) {
        same(&self.refusals, &other.refusals, &format!("{about}: rejected"));
        assert_same(&self.tables, &other.tables, about);
        same(&self.alerts, &other.alerts, &format!("{about}: alerts"));
    }

    /// The same without what became of records that came twice or held nothing good, as if they had never been sent.
    pub fn of_good_records(mut self) -> Self {
        self.refusals.clear();
        self.tables.ledger.retain(|row| row.profile_type != "_unknown");
        for row in &mut self.tables.ledger {
            row.samples_received -= row.samples_duplicate;
            row.samples_duplicate = 0;
            (row.records_consumed, row.records_decoded, row.records_rejected) = (0, 0, 0);
        }
        self
    }

    /// Rows of cells, flags, comparisons, ledger, and alerts.
    pub fn sizes(&self) -> [usize; 5] {
        let tables = &self.tables;
        [tables.cells.len(), tables.flags.len(), tables.comparisons.len(), tables.ledger.len(), self.alerts.len()]
    }

    /// Why records were rejected.
    pub fn reasons(&self) -> Vec<Reason> {
        self.refusals.iter().map(|(_, reason, ..)| *reason).collect()
    }

    /// How many records were rejected.
    pub fn refused(&self) -> usize {
        self.refusals.len()
    }
}

fn same<T: PartialEq + Debug>(a: &[T], b: &[T], about: &str) {
    if let Some((a, b)) = a.iter().zip(b).find(|(a, b)| a != b) {
        panic!("{about}: the first rows that differ:\n{a:?}\n{b:?}");
    }
    assert_eq!(a.len(), b.len(), "{about}: number of rows");
}

/// Reads a topic to its end with nothing of fleetdiff's in between.
pub fn read_alerts(topic: &str) -> Vec<Value> {
    read_alerts_at(brokers(), topic)
}

/// The same at other brokers.
pub fn read_alerts_at(brokers: &str, topic: &str) -> Vec<Value> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "anybody");
    let consumer: BaseConsumer = config.create().unwrap();
    let (_, end) = consumer.fetch_watermarks(topic, 0, Duration::from_secs(60)).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut alerts = Vec::new();
    // NB: not until the reader comes to an end, which of a partition with a new leader may be less than what was acknowledged.
    let reached = || matches!(consumer.position().unwrap().elements()[0].offset(), Offset::Offset(next) if next >= end);
    while end > 0 && !reached() {
        assert!(Instant::now() < deadline, "topic {topic} did not come to offset {end}");
        let polled = consumer.poll(Duration::from_millis(100));
        alerts.extend(polled.map(|message| structured(&message.unwrap())));
    }
    alerts
}

/// A CloudEvent in binary mode, converted to structured mode.
fn structured(message: &BorrowedMessage<'_>) -> Value {
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    let mut event = Map::new();
    for header in message.headers().unwrap().iter().filter(|header| header.key != "fleetdiff_sender") {
        let name = match header.key {
            "content-type" => "datacontenttype",
            other => other.strip_prefix("ce_").unwrap(),
        };
        event.insert(name.to_owned(), json!(text(header.value)));
    }
    event.insert("partitionkey".to_owned(), json!(text(message.key())));
    event.insert("data".to_owned(), serde_json::from_slice(message.payload().unwrap()).unwrap());
    Value::Object(event)
}
