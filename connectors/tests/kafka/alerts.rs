//! Alerts on a topic, read as any consumer would.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::alerts::{AlertProducer, AlertSettings};
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_schemas::alert::{Alert, AlertType, Guidance};
use fleetdiff_schemas::rows::HeapFindingRow;
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{FlagState, HeapClass};
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
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

fn opened(topic: &str, partitions: i32) -> AlertProducer {
    opened_by(topic, partitions, "profiles")
}

fn opened_by(topic: &str, partitions: i32, sender: &str) -> AlertProducer {
    AlertProducer::open(&client(), AlertSettings { topic, partitions, sender }).unwrap()
}

fn sender() -> Vec<(String, String)> {
    vec![("fleetdiff_sender".to_owned(), "profiles".to_owned())]
}

/// Reads `count` messages of a topic from its beginning with nothing of fleetdiff's in between.
fn consume(topic: &str, partitions: i32, count: usize) -> Vec<OwnedMessage> {
    consume_at(broker::shared().address(), topic, partitions, count)
}

fn consume_at(brokers: &str, topic: &str, partitions: i32, count: usize) -> Vec<OwnedMessage> {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", brokers).set("group.id", "anybody").create().unwrap();
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
    assert!(consumer.poll(Duration::from_millis(300)).is_none(), "more than {count} messages");
    messages
}

fn headers_of(message: &OwnedMessage) -> Vec<(String, String)> {
    let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap().to_vec()).unwrap();
    message.headers().unwrap().iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
}

fn header_of(message: &OwnedMessage, name: &str) -> String {
    headers_of(message).into_iter().find(|(key, _)| key == name).unwrap().1
}

#[test]
fn alerts_arrive_with_key_headers_and_data_in_order() {
    let mut producer = opened("alerts", 5);
    let sent: Vec<Alert> = (0..3).flat_map(|sequence| (0..20).map(move |cause| alert(cause, sequence))).collect();
    for hop in sent.chunks(20) {
        assert_eq!(producer.send(hop).unwrap(), 20);
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
        assert_eq!(headers_of(message), [sender(), alert.headers()].concat());
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
            changed_at: Nanos::from_seconds(i64::try_from(sequence).unwrap() * 10),
            summary: "Hidden leak: v42 keeps more memory than v41.".to_owned(),
            ..HeapFindingRow::blank()
        };
        Alert::of_heap(&row, &Guidance::default()).unwrap()
    };
    let sent: Vec<Alert> = (1..).zip(states).map(of).collect();
    let mut producer = opened("leaks", 5);
    for alert in &sent {
        producer.send(std::slice::from_ref(alert)).unwrap();
    }
    let messages = consume("leaks", 5, sent.len());
    for (alert, message) in sent.iter().zip(&messages) {
        assert_eq!(message.key().unwrap(), br#"["checkout","v42","v41",null,"heap"]"#);
        let header = |name: &str| header_of(message, name);
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
        opened("compacted-alerts", 1).send(&[alert(0, 0)]).unwrap();
    }
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker::shared().address()).create().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let topic = ResourceSpecifier::Topic("compacted-alerts");
    let configs = runtime.block_on(admin.describe_configs([&topic], &AdminOptions::new())).unwrap();
    let policy = configs[0].as_ref().unwrap().get("cleanup.policy").unwrap().value.clone();
    assert_eq!(policy.as_deref(), Some("compact"));
}

/// A sender that starts again sends what its topic lacks, whatever other senders have sent there.
#[test]
fn regression_a_restart_sends_no_alert_again() {
    let hops: Vec<Vec<Alert>> = (0..6).map(|hop| (0..3).map(|cause| alert(cause, hop)).collect()).collect();
    let mut other = opened_by("again", 3, "other-profiles");
    assert_eq!(other.send(&[alert(9, 5)]).unwrap(), 1, "later than all of this sender");
    for sent_before in 0..6 {
        let mut producer = opened("again", 3);
        let counts: Vec<usize> = hops.iter().take(sent_before + 1).map(|hop| producer.send(hop).unwrap()).collect();
        let expected: Vec<usize> = (0..=sent_before).map(|hop| if hop < sent_before { 0 } else { 3 }).collect();
        assert_eq!(counts, expected, "alerts sent by start {sent_before}, hop by hop");
    }
    assert_eq!(opened("again", 3).send(&hops.concat()).unwrap(), 0);
    let messages = consume("again", 3, 19);
    let ids: BTreeSet<String> = messages.iter().map(|message| header_of(message, "ce_id")).collect();
    assert_eq!(ids.len(), 19, "each once");
}

/// What was sent and not finished is undone, and never seen.
/// Readers of committed records are given nothing that was stored after the beginning of a transaction that is open, which may be that of
/// any other sender.
#[test]
fn regression_alerts_after_the_beginning_of_anothers_transaction_are_known_as_sent() {
    let mut first = opened("with-others", 1);
    first.send(&[alert(0, 0)]).unwrap();
    let other: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", broker::shared().address())
        .set("transactional.id", "another sender")
        .create()
        .unwrap();
    other.init_transactions(Duration::from_secs(30)).unwrap();
    other.begin_transaction().unwrap();
    other.send(BaseRecord::<[u8], [u8]>::to("with-others").key(b"k").payload(b"{}")).unwrap();
    other.flush(Duration::from_secs(30)).unwrap();
    first.send(&[alert(0, 1)]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            other.commit_transaction(Duration::from_secs(30)).unwrap();
        });
        let began = Instant::now();
        let mut again = opened("with-others", 1);
        assert_eq!(again.through(), Some(alert(0, 1).at));
        assert!(began.elapsed() > Duration::from_secs(1), "it did not wait: {:?}", began.elapsed());
        assert_eq!(again.send(&[alert(0, 1), alert(0, 2)]).unwrap(), 1);
    });
    assert_eq!(consume("with-others", 1, 4).len(), 4);
}

#[test]
fn regression_the_sender_that_was_started_last_is_the_only_one() {
    let mut first = opened("fenced", 1);
    first.send(&[alert(0, 0)]).unwrap();
    let mut second = opened("fenced", 1);
    let refused = first.send(&[alert(0, 1)]).unwrap_err();
    assert_eq!(refused.code(), "kafka_fenced", "{refused}");
    assert!(refused.to_string().contains("started after this one"), "{refused}");
    assert_eq!(second.send(&[alert(0, 0), alert(0, 1)]).unwrap(), 1);
    let mut elsewhere = opened_by("fenced", 1, "other-profiles");
    elsewhere.send(&[alert(1, 0)]).unwrap();
    assert_eq!(second.send(&[alert(0, 2)]).unwrap(), 1, "another sender is no rival");
    let ids: Vec<String> = consume("fenced", 1, 4).iter().map(|message| header_of(message, "ce_id")).collect();
    assert_eq!(ids, [alert(0, 0).id, alert(0, 1).id, alert(1, 0).id, alert(0, 2).id]);
}

/// Whether alerts are stored is not known once brokers did not answer in time; the same producer finds out, and sends what is missing.
#[test]
fn what_brokers_did_not_take_is_sent_once_they_answer_again() {
    let own = broker::Broker::start();
    let mut settings =
        ClientSettings { connect_timeout: Duration::from_secs(20), ..ClientSettings::new(own.address()) };
    settings.properties.insert("message.timeout.ms".to_owned(), "1500".to_owned());
    let by = AlertSettings { topic: "waited", partitions: 1, sender: "profiles" };
    let mut producer = AlertProducer::open(&settings, by).unwrap();
    assert_eq!(producer.send(&[alert(1, 0)]).unwrap(), 1);
    own.signal("STOP");
    let hop = [alert(1, 1), alert(2, 1)];
    let error = producer.send(&hop).unwrap_err();
    assert!(error.may_pass(), "{error}");
    own.signal("CONT");
    assert_eq!(producer.send(&hop).unwrap(), 2, "a transaction that was not committed is undone");
    assert_eq!(producer.send(&hop).unwrap(), 0);
    assert_eq!(producer.send(&[alert(1, 2)]).unwrap(), 1);
    let messages = consume_at(own.address(), "waited", 1, 4);
    let sent: Vec<String> = messages.iter().map(|message| header_of(message, "ce_id")).collect();
    let expected = [alert(1, 0), alert(1, 1), alert(2, 1), alert(1, 2)].map(|alert| alert.id);
    assert_eq!(sent, expected);
}
