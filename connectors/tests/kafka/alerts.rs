//! Alerts on a topic, read as any consumer would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::alerts::AlertProducer;
use fleetdiff_schemas::alert::{Alert, AlertType, Guidance};
use fleetdiff_schemas::rows::HeapFindingRow;
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{FlagState, HeapClass};
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::broker;
use crate::reading::client;

/// The partition that Kafka's Java clients choose for a key: murmur2 with the seed 0x9747b28c, without its sign bit.
pub fn java_partition(key: &[u8], partitions: u32) -> i32 {
    i32::try_from((murmur2(key) & 0x7fff_ffff) % partitions).unwrap()
}

fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(key.len()).unwrap();
    let words = key.chunks_exact(4);
    let rest = words.remainder();
    for word in words {
        let word = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| (tail << 8) | u32::from(byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// From Apache Kafka 4.3.1, `UtilsTest.testMurmur2`.
#[test]
fn published_murmur2_values() {
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ] {
        assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
    }
}

fn alert(cause: u64, sequence: u64) -> Alert {
    Alert {
        key: format!(r#"["checkout","v42","v41","größe_{cause}"]"#),
        id: format!("{:016x}", cause * 1_000 + sequence),
        alert_type: if sequence == 0 { AlertType::IncidentRaised } else { AlertType::IncidentUpdated },
        source: "/fleetdiff/checkout".to_owned(),
        subject: format!("v42 against v41: größe_{cause}"),
        at: Nanos(1_751_241_600_000_000_000 + i64::try_from(sequence).unwrap() * 10_000_000_000),
        sequence: Hop(sequence),
        data: format!(r#"{{"cause":"größe_{cause}","sequence":{sequence}}}"#),
    }
}

/// Reads `count` messages of a topic from its beginning with nothing of fleetdiff's in between.
fn consume(topic: &str, partitions: i32, count: usize) -> Vec<OwnedMessage> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker::shared().address())
        .set("group.id", "anybody")
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut messages = Vec::new();
    while messages.len() < count && Instant::now() < deadline {
        messages.extend(consumer.poll(Duration::from_millis(100)).map(|message| message.unwrap().detach()));
    }
    assert_eq!(messages.len(), count);
    messages
}

fn headers_of(message: &OwnedMessage) -> Vec<(String, String)> {
    let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap().to_vec()).unwrap();
    message.headers().unwrap().iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
}

#[test]
fn alerts_arrive_with_key_headers_and_data_in_order() {
    let producer = AlertProducer::open(&client(), "alerts", 5).unwrap();
    let sent: Vec<Alert> = (0..3).flat_map(|sequence| (0..20).map(move |cause| alert(cause, sequence))).collect();
    for hop in sent.chunks(20) {
        for alert in hop {
            producer.send(alert).unwrap();
        }
        producer.flush().unwrap();
    }

    let mut seen: BTreeMap<String, Vec<&OwnedMessage>> = BTreeMap::new();
    let messages = consume("alerts", 5, sent.len());
    for message in &messages {
        let key = String::from_utf8(message.key().unwrap().to_vec()).unwrap();
        assert_eq!(message.partition(), java_partition(key.as_bytes(), 5), "{key}");
        seen.entry(key).or_default().push(message);
    }
    for alert in &sent {
        let sequence = usize::try_from(alert.sequence.0).unwrap();
        let message = seen[&alert.key][sequence];
        assert_eq!(message.payload().unwrap(), alert.data.as_bytes());
        assert_eq!(message.timestamp().to_millis(), Some(alert.at.0 / 1_000_000));
        assert_eq!(headers_of(message), alert.headers());
    }
}

/// A leak has no cause: its key says what it is, and stays the same from raised to its end.
#[test]
fn a_hidden_leak_arrives_under_its_own_key() {
    let states = [FlagState::Raised, FlagState::Updated, FlagState::Cleared];
    let of = |(sequence, state): (u64, FlagState)| {
        let row = HeapFindingRow {
            service: "checkout".into(),
            base_build: "v41".into(),
            head_build: "v42".into(),
            class: HeapClass::HiddenLeak,
            state,
            sequence: Hop(sequence),
            summary: "Hidden leak: v42 keeps more memory than v41.".to_owned(),
            ..HeapFindingRow::blank()
        };
        Alert::of_heap(&row, &Guidance::default()).unwrap()
    };
    let sent: Vec<Alert> = (1..).zip(states).map(of).collect();
    let producer = AlertProducer::open(&client(), "leaks", 5).unwrap();
    sent.iter().for_each(|alert| producer.send(alert).unwrap());
    producer.flush().unwrap();
    let messages = consume("leaks", 5, sent.len());
    for (alert, message) in sent.iter().zip(&messages) {
        assert_eq!(message.key().unwrap(), br#"["checkout","v42","v41",null,"heap"]"#);
        let headers = headers_of(message);
        let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap();
        assert_eq!(header("ce_type"), "dev.fleetdiff.heap.v1");
        assert_eq!((header("ce_id"), header("ce_subject")), (alert.id.clone(), "v42 against v41: memory".to_owned()));
        let data: serde_json::Value = serde_json::from_slice(message.payload().unwrap()).unwrap();
        assert_eq!(data["class"], "hidden_leak");
        assert_eq!(data["summary"], "Hidden leak: v42 keeps more memory than v41.");
    }
}

#[test]
fn the_alert_topic_is_made_compacted_and_a_second_writer_finds_it() {
    for _ in 0..2 {
        let producer = AlertProducer::open(&client(), "compacted-alerts", 1).unwrap();
        producer.send(&alert(0, 0)).unwrap();
        producer.flush().unwrap();
    }
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker::shared().address()).create().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let topic = ResourceSpecifier::Topic("compacted-alerts");
    let configs = runtime.block_on(admin.describe_configs([&topic], &AdminOptions::new())).unwrap();
    let policy = configs[0].as_ref().unwrap().get("cleanup.policy").unwrap().value.clone();
    assert_eq!(policy.as_deref(), Some("compact"));
    assert_eq!(consume("compacted-alerts", 1, 2).len(), 2);
}
