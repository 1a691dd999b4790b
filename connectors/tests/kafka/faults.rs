//! Bad records and absent clusters.

use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::alerts::{AlertProducer, AlertSettings};
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::kafka::publish::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::source::{Share, TopicSettings};
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_formats::{Format, Labels, pprof};
use fleetdiff_schemas::profile::{Decoded, Position, Profile};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::source::{Polled, Source};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::metadata::MetadataPartition;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::broker;
use crate::fleet::{comparable, fleet};
use crate::reading::{PATIENCE, client, read_share, try_open, until_end};
use crate::round_trip::publish;

/// A record as any program might write it: headers and a value.
struct Raw {
    headers: Vec<(&'static str, String)>,
    value: Option<Vec<u8>>,
}

const IDENTITY: [(&str, &str); 3] =
    [("service.name", "checkout"), ("container.image.tags", "v42"), ("service.instance.id", "i-7")];

fn headers(more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    IDENTITY.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn raw_producer(transactional_id: Option<&str>) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker::shared().address());
    if let Some(id) = transactional_id {
        config.set("transactional.id", id);
    }
    config.create().unwrap()
}

fn send_raw(producer: &BaseProducer, topic: &str, partition: i32, record: &Raw) {
    let headers = record
        .headers
        .iter()
        .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(value.as_str()) }));
    let mut message = BaseRecord::<(), [u8]>::to(topic).partition(partition).headers(headers).timestamp(1_000_000);
    message.payload = record.value.as_deref();
    producer.send(message).map_err(|(error, _)| error).unwrap();
}

fn one_profile() -> (Profile, Vec<u8>) {
    let profile = fleet(1, 1).remove(0);
    let bytes = pprof::encode(&profile).unwrap();
    (profile, bytes)
}

fn rejections(records: &[Decoded]) -> Vec<Option<(Reason, &str)>> {
    let only = |record: &Decoded| record.parts.len() == 1;
    assert!(records.iter().all(only), "each of these records has one part");
    records
        .iter()
        .map(|record| match &record.parts[0] {
            Ok(_) => None,
            Err(Rejection { reason, detail, .. }) => Some((*reason, detail.as_str())),
        })
        .collect()
}

#[test]
fn each_bad_record_is_rejected_by_itself_at_its_partition_and_offset() {
    publish("bad", RecordForm::Pprof, Key::None, &[]);
    let (profile, good) = one_profile();
    let raw = |headers: Vec<(&'static str, String)>, value: &[u8]| Raw { headers, value: Some(value.to_vec()) };
    let records = [
        raw(headers(&[]), &good),
        raw(headers(&[]), b"\x1f\x8bgarbage"),
        raw(Vec::new(), &good),
        Raw { headers: headers(&[]), value: None },
        raw(headers(&[("fleetdiff.profile_type", "gpu")]), &good),
        raw(headers(&[("fleetdiff.requests", "-5")]), &good),
        raw(headers(&[("fleetdiff.window_start_unix_nano", "7")]), &good),
        raw(headers(&[("fleetdiff.temporality", "gauge")]), &good),
        raw(headers(&[("fleetdiff.unit", "parsecs")]), &good),
        raw(headers(&[("process.creation.time", "yesterday")]), &good),
        raw(headers(&[("fleetdiff.window_start_unix_nano", "7"), ("fleetdiff.window_end_unix_nano", "9")]), &good),
    ];
    let producer = raw_producer(None);
    for record in &records {
        send_raw(&producer, "bad", 2, record);
    }
    producer.flush(Duration::from_secs(30)).unwrap();

    let read = read_share("bad", Share::WHOLE, Format::Pprof);
    let found = &read.records[&2];
    let place = |offset| Position { source: "bad".into(), partition: 2, offset, file: None };
    let places: Vec<Position> = found.iter().map(|record| record.position.clone()).collect();
    assert_eq!(places, (0..11).map(place).collect::<Vec<_>>());
    let faults = rejections(found);
    let reasons: Vec<Option<Reason>> = faults.iter().map(|fault| fault.map(|(reason, _)| reason)).collect();
    assert!(reasons[1].is_some(), "garbage is no profile");
    assert_eq!(
        [&reasons[..1], &reasons[2..]].concat(),
        [
            None,
            Some(Reason::MissingIdentity),
            Some(Reason::Empty),
            Some(Reason::UnsupportedType),
            Some(Reason::NegativeValue),
            Some(Reason::Malformed),
            Some(Reason::UnsupportedType),
            Some(Reason::UnitMismatch),
            Some(Reason::Malformed),
            None,
        ],
    );
    assert!(faults[2].unwrap().1.contains("service.name"), "{faults:?}");

    // Without a window in the headers the profile's own time counts; with one, that of the headers.
    let survivors: Vec<&Profile> = found.iter().flat_map(|record| record.parts.iter().flatten()).collect();
    assert_eq!(survivors[0].window, profile.window);
    assert_eq!((survivors[1].window.start.0, survivors[1].window.end.0), (7, 9));
    assert_eq!(survivors[0].identity.build.as_str(), "v42");
    assert_eq!(survivors[0].identity.region.as_str(), "unknown");
    let mut relabelled = profile.clone();
    relabelled.identity = survivors[0].identity.clone();
    relabelled.requests = None;
    assert_eq!(comparable(survivors[0]), comparable(&relabelled));
}

#[test]
fn garbage_on_a_delta_topic_is_rejected_and_the_rest_is_read() {
    let fleet = fleet(2, 3);
    publish("bad-delta", RecordForm::Delta, Key::None, &fleet);
    let producer = raw_producer(None);
    for value in [&b"FLDD\xff"[..], b"FLDD", b"{}"] {
        send_raw(&producer, "bad-delta", 0, &Raw { headers: Vec::new(), value: Some(value.to_vec()) });
    }
    producer.flush(Duration::from_secs(30)).unwrap();
    let read = read_share("bad-delta", Share::WHOLE, Format::Delta);
    let parts = || read.all().flat_map(|record| &record.parts);
    assert_eq!(parts().filter(|part| part.is_ok()).count(), fleet.len());
    let reasons: Vec<Reason> = parts().filter_map(|part| part.as_ref().err()).map(|fault| fault.reason).collect();
    assert_eq!(reasons, [Reason::UnsupportedVersion, Reason::Truncated, Reason::Malformed]);
}

/// Both are more than the client library takes by default; it then asked for them in vain for ever.
#[test]
fn regression_records_of_150_mb_are_refused_and_the_rest_is_read() {
    let most = "209715200";
    // The records say that they are of 1970; a broker that has been up for half a minute would delete full segments of them.
    let configuration = &[("max.message.bytes", most), ("retention.ms", "-1")];
    let plan = TopicPlan { name: "huge", partitions: 1, replication: None, configuration };
    topic::ensure(&client(), plan).unwrap();
    let good = Raw { headers: headers(&[]), value: Some(one_profile().1) };
    let huge = Raw { headers: headers(&[]), value: Some(vec![b'x'; 150_000_000]) };
    for compression in ["none", "zstd"] {
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", broker::shared().address())
            .set("message.max.bytes", most)
            .set("queue.buffering.max.kbytes", "400000")
            .set("compression.type", compression)
            .set("linger.ms", "0")
            .create()
            .unwrap();
        for record in [&good, &huge, &good] {
            send_raw(&producer, "huge", 0, record);
            producer.flush(Duration::from_secs(60)).unwrap();
        }
    }
    let read = read_share("huge", Share::WHOLE, Format::Pprof);
    assert_eq!(read.offsets(0), [0, 1, 2, 3, 4, 5]);
    let is_good: Vec<bool> = read.all().map(|record| record.parts.iter().all(Result::is_ok)).collect();
    assert_eq!(is_good, [true, false, true, true, false, true]);
}

/// The last offset of a partition is then a marker, which no reader ever sees: arithmetic on offsets would wait for it.
#[test]
fn transactions_are_read_when_committed_and_their_markers_end_a_partition() {
    publish("transactions", RecordForm::Pprof, Key::None, &[]);
    let (_, bytes) = one_profile();
    let record = Raw { headers: headers(&[]), value: Some(bytes) };
    let timeout = Duration::from_secs(30);
    let producer = raw_producer(Some("transactions"));
    producer.init_transactions(timeout).unwrap();
    for commit in [true, false] {
        producer.begin_transaction().unwrap();
        for _ in 0..2 {
            send_raw(&producer, "transactions", 0, &record);
        }
        producer.flush(timeout).unwrap();
        if commit { producer.commit_transaction(timeout) } else { producer.abort_transaction(timeout) }.unwrap();
    }
    let read = read_share("transactions", Share::WHOLE, Format::Pprof);
    assert_eq!(read.offsets(0), [0, 1]);
}

fn failures(client: &ClientSettings, topic: &str) -> Vec<BrokerError> {
    std::thread::scope(|scope| {
        let source =
            scope.spawn(|| try_open(client, TopicSettings::new(topic), Share::WHOLE, Format::Pprof).err().unwrap());
        let publisher = scope.spawn(|| {
            let settings = PublishSettings::new(topic, RecordForm::Pprof, Key::None);
            Publisher::open(client, settings).err().unwrap()
        });
        let settings = AlertSettings { topic, partitions: 1, sender: "profiles" };
        let alerts = scope.spawn(move || AlertProducer::open(client, settings).err().unwrap());
        [source, publisher, alerts].map(|attempt| attempt.join().unwrap()).into()
    })
}

#[test]
fn a_broker_that_is_not_there_is_an_error_that_names_it() {
    // A port that was free a moment ago and on which no process listens.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for error in failures(&ClientSettings::new(&address), "any") {
        assert_eq!(error.code(), "kafka_unreachable", "{error}");
        let text = error.to_string();
        assert!(text.contains(&address) && text.contains("refused"), "{text}");
    }
}

#[test]
fn a_broker_that_never_answers_is_an_error_too() {
    // Accepts connections and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let client = ClientSettings { connect_timeout: Duration::from_secs(2), ..ClientSettings::new(&address) };
    for error in failures(&client, "any") {
        assert_eq!(error.code(), "kafka_unreachable", "{error}");
        assert!(error.to_string().contains(&address), "{error}");
    }
}

#[test]
fn a_broker_that_goes_away_ends_the_run_after_the_limit() {
    let own = broker::Broker::start();
    let client = ClientSettings { connect_timeout: Duration::from_secs(20), ..ClientSettings::new(own.address()) };
    topic::ensure(&client, TopicPlan { name: "lost", partitions: 2, replication: None, configuration: &[] }).unwrap();
    let client = ClientSettings { connect_timeout: Duration::from_secs(1), ..client };
    let settings = TopicSettings { give_up_after: Some(Duration::from_millis(200)), ..TopicSettings::new("lost") };
    let mut source = try_open(&client, settings, Share::WHOLE, Format::Pprof).unwrap();
    drop(own);
    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        match source.poll() {
            Ok(polled) => assert!(matches!(polled, Polled::Idle) && Instant::now() < deadline, "{polled:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.source_name, "lost");
    assert!(error.to_string().contains(&client.brokers), "{error}");
}

/// Which broker leads each partition, -1 for none.
fn leaders(client: &ClientSettings, topic: &str) -> Vec<i32> {
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", &client.brokers).create().unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    metadata.topics()[0].partitions().iter().map(MetadataPartition::leader).collect()
}

/// A partition's only broker hangs and is put out of the cluster. The client library says from then on that the partition is
/// unknown, also once it has a leader again.
#[test]
fn a_partition_without_a_leader_is_waited_for_and_is_not_an_unknown_topic() {
    let first = broker::Broker::start();
    let second = first.another(2);
    let client = ClientSettings { connect_timeout: Duration::from_secs(30), ..ClientSettings::new(first.address()) };
    topic::ensure(&client, TopicPlan { name: "away", partitions: 2, replication: Some(1), configuration: &[] })
        .unwrap();
    let led = leaders(&client, "away");
    assert!(led.contains(&2), "{led:?}");
    second.signal("STOP");
    let deadline = Instant::now() + PATIENCE;
    while !leaders(&client, "away").contains(&-1) {
        assert!(Instant::now() < deadline, "{:?}", leaders(&client, "away"));
    }
    let open = |client: &ClientSettings| try_open(client, until_end("away"), Share::WHOLE, Format::Pprof);
    let hasty = ClientSettings { connect_timeout: Duration::from_secs(1), ..client.clone() };
    let error = open(&hasty).err().unwrap();
    assert_eq!(error.code(), "kafka_no_leader", "{error}");
    let partition = led.iter().position(|leader| *leader == 2).unwrap();
    assert!(error.to_string().contains(&format!("partition {partition} of topic away")), "{error}");

    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| open(&client).map(|mut source| source.poll().unwrap()));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!waiting.is_finished());
        second.signal("CONT");
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn an_unknown_topic_is_an_error_and_asking_does_not_make_it() {
    for _ in 0..2 {
        let error = try_open(&client(), TopicSettings::new("nowhere"), Share::WHOLE, Format::Pprof).err().unwrap();
        assert_eq!(error.code(), "kafka_unknown_topic");
        assert!(error.to_string().contains("nowhere") && error.to_string().contains(broker::shared().address()));
    }
    assert_eq!(topic::partition_count(&client(), "nowhere").unwrap_err().code(), "kafka_unknown_topic");
}

#[test]
fn a_start_beyond_the_end_is_an_error_with_both_offsets() {
    publish("short", RecordForm::Pprof, Key::None, &fleet(3, 1));
    let settings = TopicSettings { start: [(1, 40)].into(), ..TopicSettings::new("short") };
    let error = try_open(&client(), settings, Share::WHOLE, Format::Pprof).err().unwrap();
    assert_eq!(error.code(), "kafka_topic_replaced");
    let text = error.to_string();
    assert!(text.contains("short") && text.contains("partition 1") && text.contains("40"), "{text}");
}

#[test]
fn a_property_that_the_client_library_does_not_know_is_named_without_its_value() {
    let mut settings = client();
    settings.properties.insert("sasl.passwrod".into(), "hunter2".into());
    for error in failures(&settings, "any") {
        assert_eq!(error.code(), "kafka_property");
        let text = format!("{error} {error:?}");
        assert!(text.contains("sasl.passwrod") && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_record_that_the_topic_does_not_take_names_its_pod_and_size() {
    let mut client = client();
    client.properties.insert("message.max.bytes".into(), "2000".into());
    let settings = PublishSettings::new("small", RecordForm::Pprof, Key::Pod);
    let mut publisher = Publisher::open(&client, settings).unwrap();
    let (profile, _) = one_profile();
    let labels = Labels {
        identity: profile.identity.clone(),
        profile_type: profile.profile_type,
        temporality: profile.temporality,
        window: Some(profile.window),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    };
    let error = publisher.publish(Outgoing::File { labels, bytes: vec![0; 5_000] }).unwrap_err();
    assert_eq!(error.code(), "kafka_too_large");
    let text = error.to_string();
    assert!(text.contains("pod-0") && text.contains("5000") && text.contains("small"), "{text}");
}
