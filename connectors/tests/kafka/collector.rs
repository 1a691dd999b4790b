//! Records of OTLP profiles as an OpenTelemetry Collector wrote them, published again to a topic: without keys and
//! headers, with the records of a pod spread over all partitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use crate::broker;
use crate::reading::{client, read_by};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/testdata/otlp-kafka")
}

/// Bytes of the twelve records by partition and offset, as the broker had them.
fn records() -> BTreeMap<(i32, i64), Vec<u8>> {
    let text = fs::read_to_string(recorded().join("records.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|record| {
            let place = (record["partition"].as_i64().unwrap(), record["offset"].as_i64().unwrap());
            let bytes = fs::read(recorded().join(record["file"].as_str().unwrap())).unwrap();
            ((i32::try_from(place.0).unwrap(), place.1), bytes)
        })
        .collect()
}

fn put_onto(topic: &str) {
    let plan = TopicPlan { name: topic, partitions: 4, replication: None, configuration: &[("retention.ms", "-1")] };
    topic::ensure(&client(), plan).unwrap();
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", broker::shared().address()).create().unwrap();
    for ((partition, _), bytes) in records() {
        producer
            .send(BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(&bytes))
            .map_err(|(error, _)| error)
            .unwrap();
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

#[test]
fn every_record_of_a_collector_is_read_as_its_bytes_are() {
    put_onto("otlp-profiles");
    let nobody = Err(Rejection::new(Reason::MissingIdentity, "no headers"));
    let mut decoder = Format::Otlp.decoder(&Options::default());
    for readers in [1, 2] {
        let read = read_by(readers, "otlp-profiles", Format::Otlp);
        let records = records();
        assert_eq!(read.all().count(), records.len());
        let mut profiles = 0;
        for record in read.all() {
            let bytes = &records[&(record.position.partition, record.position.offset)];
            assert_eq!(record.parts, decoder.decode(bytes, &nobody));
            profiles += record.parts.iter().flatten().count();
        }
        assert_eq!((records.len(), profiles), (12, 96), "{readers} readers");
    }
}
