//! The records of a topic, byte by byte, to be sent again: in pieces, in another order, damaged.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

/// How long brokers may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A record with its place.
#[derive(Clone, Debug)]
pub struct Record {
    pub partition: i32,
    /// Milliseconds since 1970, and the end of its profile.
    pub at: i64,
    pub payload: Vec<u8>,
    pub headers: Option<OwnedHeaders>,
}

/// All records of a topic, by time; those of one partition in their order.
pub fn recorded(brokers: &str, topic: &str, partitions: i32) -> Vec<Record> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "anybody").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    (0..partitions).for_each(|number| list.add_partition_offset(topic, number, Offset::Beginning).unwrap());
    consumer.assign(&list).unwrap();
    let (mut open, mut records): (BTreeSet<i32>, Vec<Record>) = ((0..partitions).collect(), Vec::new());
    let deadline = Instant::now() + PATIENCE;
    while !open.is_empty() {
        assert!(Instant::now() < deadline, "topic {topic} did not come to an end");
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Err(KafkaError::PartitionEOF(number))) => drop(open.remove(&number)),
            Some(message) => {
                let message = message.unwrap();
                records.push(Record {
                    partition: message.partition(),
                    at: message.timestamp().to_millis().unwrap(),
                    payload: message.payload().unwrap().to_vec(),
                    headers: message.headers().map(|headers| headers.detach()),
                });
            }
        }
    }
    records.sort_by_key(|record| record.at);
    records
}

/// Which records brokers did not take, and why.
#[derive(Default)]
struct Deliveries {
    failed: Mutex<Vec<String>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, record)) = result {
            let (partition, bytes) = (record.partition(), record.payload_len());
            self.failed.lock().unwrap().push(format!("{bytes} bytes for partition {partition}: {error}"));
        }
    }
}

/// Sends records to a topic, each once, whatever happens to brokers meanwhile.
pub struct Sender {
    producer: BaseProducer<Deliveries>,
    topic: String,
}

impl Sender {
    pub fn to(brokers: &str, topic: &str) -> Self {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", brokers)
            .set("enable.idempotence", "true")
            .set("message.max.bytes", "16777216")
            .set("reconnect.backoff.max.ms", "500")
            .set("linger.ms", "5");
        Self { producer: config.create_with_context(Deliveries::default()).unwrap(), topic: topic.to_owned() }
    }

    /// They are stored when it returns.
    pub fn send<'a>(&self, records: impl IntoIterator<Item = &'a Record>) {
        for record in records {
            let mut next = BaseRecord::<[u8], [u8]>::to(&self.topic)
                .partition(record.partition)
                .timestamp(record.at)
                .payload(&record.payload);
            next.headers = record.headers.clone();
            self.producer.send(next).unwrap_or_else(|(error, _)| panic!("a record for {}: {error}", self.topic));
        }
        self.producer.flush(PATIENCE).unwrap();
        assert_eq!(self.producer.in_flight_count(), 0, "records for {}", self.topic);
        let failed = self.producer.client().context().failed.lock().unwrap();
        assert!(failed.is_empty(), "records for {}: {failed:?}", self.topic);
    }
}
