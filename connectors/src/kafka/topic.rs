//! What a cluster knows about a topic, and the creation of topics that do not exist.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::client::{ClientSettings, Reporter};
use super::error::{BrokerError, is_unknown};

/// How a topic is created if it does not exist; an existing topic is not changed.
#[derive(Clone, Copy, Debug)]
pub struct TopicPlan<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many partitions.
    pub partitions: i32,
    /// Copies of each record; `None` leaves it to the cluster's default.
    pub replication: Option<i32>,
    /// Topic configuration by Kafka's names.
    pub configuration: &'a [(&'a str, &'a str)],
}

/// How long until a partition without a leader, or one that is unknown, is asked for again.
const AGAIN: Duration = Duration::from_millis(50);

/// For `message.timestamp.after.max.ms`: records may have any event time, not only up to an hour after their arrival.
pub(crate) const ANY_TIME: &str = "9223372036854775807";

/// How many partitions a topic has.
///
/// # Errors
/// [`BrokerError::Unreachable`], [`BrokerError::Denied`] or, if the cluster does not have it,
/// [`BrokerError::UnknownTopic`].
pub fn partition_count(settings: &ClientSettings, topic: &str) -> Result<i32, BrokerError> {
    let client = settings.inquirer()?;
    partition_count_by(&client, settings, topic)
}

/// Creates the topic if it does not exist, and gives the number of partitions that it has now.
///
/// # Errors
/// As [`partition_count`], and [`BrokerError::Client`] if the cluster refuses the plan.
pub fn ensure(settings: &ClientSettings, plan: TopicPlan<'_>) -> Result<i32, BrokerError> {
    let client = settings.inquirer()?;
    match partition_count_by(&client, settings, plan.name) {
        Err(BrokerError::UnknownTopic { .. }) => {
            create(settings, plan)?;
            wait_until_known(&client, settings, plan.name)
        }
        known => known,
    }
}

/// [`partition_count`] with an existing client.
pub(crate) fn partition_count_by(
    client: &BaseConsumer<Reporter>,
    settings: &ClientSettings,
    topic: &str,
) -> Result<i32, BrokerError> {
    let unknown = || BrokerError::UnknownTopic { topic: topic.to_owned(), brokers: settings.brokers.clone() };
    match partitions_seen(client, topic, settings.connect_timeout) {
        Ok(count) => count.ok_or_else(unknown),
        Err(error) => Err(explain(client, &error, topic, &settings.brokers)),
    }
}

/// How many partitions a topic has, `None` if there is no such topic. Leaves the client's events alone, so that any thread may ask.
pub(crate) fn partitions_seen(
    client: &BaseConsumer<Reporter>,
    topic: &str,
    timeout: Duration,
) -> Result<Option<i32>, KafkaError> {
    let metadata = client.fetch_metadata(Some(topic), timeout)?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(None) };
    match found.error().map(RDKafkaErrorCode::from) {
        Some(code) if is_unknown(code) => Ok(None),
        Some(code) => Err(KafkaError::MetadataFetch(code)),
        None => Ok(i32::try_from(found.partitions().len()).ok().filter(|&count| count > 0)),
    }
}

/// The first and the next offset of a partition. One that has no leader, as in the moment after its topic was made or its broker came
/// back, or that a broker does not know yet, gets the time of a connection.
pub(crate) fn watermarks(
    consumer: &BaseConsumer<Reporter>,
    client: &ClientSettings,
    topic: &str,
    number: i32,
) -> Result<(i64, i64), BrokerError> {
    let deadline = Instant::now() + client.connect_timeout;
    loop {
        let error = match consumer.fetch_watermarks(topic, number, client.connect_timeout) {
            Ok(found) => return Ok(found),
            Err(error) if mends_soon(&error) => error,
            Err(error) => return Err(explain(consumer, &error, topic, &client.brokers)),
        };
        // NB: of a partition that had no leader when the library last saw it, it says that it is unknown, and asks no broker again.
        let count = partitions_seen(consumer, topic, client.connect_timeout);
        if Instant::now() < deadline {
            std::thread::sleep(AGAIN);
            continue;
        }
        return Err(match count {
            Ok(Some(count)) if number < count => {
                BrokerError::NoLeader { topic: topic.to_owned(), partition: number, brokers: client.brokers.clone() }
            }
            _ => explain(consumer, &error, topic, &client.brokers),
        });
    }
}

/// Whether a partition that was there a moment ago may be there again in the next: a leader is being elected, or does not know yet how much
/// of its partition is on other brokers too, or a broker that has just come back does not know its partitions yet.
fn mends_soon(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| {
        matches!(
            code,
            RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::OffsetNotAvailable
        ) || is_unknown(code)
    })
}

/// Adds what the client library logged meanwhile to the error, since "timed out" alone does not help.
pub(crate) fn explain(client: &BaseConsumer<Reporter>, error: &KafkaError, topic: &str, brokers: &str) -> BrokerError {
    // Its messages wait in its event queue.
    for _ in 0..100 {
        if client.poll(Duration::ZERO).is_some() {
            break;
        }
    }
    let complaint = client.client().context().complaint();
    match (BrokerError::from_client(error, topic, brokers, complaint.words.as_deref()), complaint.denied) {
        (BrokerError::Unreachable { brokers, detail }, true) => {
            BrokerError::Denied { brokers, what: "the cluster".to_owned(), detail }
        }
        (error, _) => error,
    }
}

/// How long a topic keeps its records, counted from a record's own time; `None` if it never deletes any because of
/// their age.
///
/// # Errors
/// As [`partition_count`].
pub fn retention(settings: &ClientSettings, topic: &str) -> Result<Option<Duration>, BrokerError> {
    let explain = |error: &KafkaError| BrokerError::from_client(error, topic, &settings.brokers, None);
    let admin = admin(settings, topic)?;
    let options = AdminOptions::new().request_timeout(Some(settings.connect_timeout));
    let described = wait_for(admin.describe_configs([&ResourceSpecifier::Topic(topic)], &options));
    let resource = match described.map_err(|error| explain(&error))?.into_iter().next() {
        Some(Ok(resource)) => resource,
        Some(Err(code)) => return Err(explain(&KafkaError::AdminOp(code))),
        None => return Ok(None),
    };
    let value = |name: &str| resource.get(name).and_then(|entry| entry.value.as_deref());
    let deletes = value("cleanup.policy").is_some_and(|policy| policy.contains("delete"));
    let millis = value("retention.ms").and_then(|millis| millis.parse().ok());
    Ok(millis.filter(|_| deletes).map(Duration::from_millis))
}

fn admin(settings: &ClientSettings, topic: &str) -> Result<AdminClient<Reporter>, BrokerError> {
    let config = settings.config(&[], &[])?;
    AdminClient::from_config_and_context(&config, Reporter::default())
        .map_err(|error| BrokerError::from_client(&error, topic, &settings.brokers, None))
}

fn create(settings: &ClientSettings, plan: TopicPlan<'_>) -> Result<(), BrokerError> {
    let explain = |error: &KafkaError| BrokerError::from_client(error, plan.name, &settings.brokers, None);
    let admin = admin(settings, plan.name)?;
    let mut topic = NewTopic::new(plan.name, plan.partitions, TopicReplication::Fixed(plan.replication.unwrap_or(-1)));
    for (key, value) in plan.configuration {
        topic = topic.set(key, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(settings.connect_timeout));
    let results = wait_for(admin.create_topics([&topic], &options)).map_err(|error| explain(&error))?;
    match results.into_iter().next() {
        // Another client was faster: the topic exists, which is enough.
        None | Some(Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(()),
        Some(Err((_, code))) => Err(explain(&KafkaError::AdminOp(code))),
    }
}

/// It takes a moment until every broker knows a created topic and it has leaders.
fn wait_until_known(
    client: &BaseConsumer<Reporter>,
    settings: &ClientSettings,
    topic: &str,
) -> Result<i32, BrokerError> {
    let deadline = Instant::now() + settings.connect_timeout;
    loop {
        match partition_count_by(client, settings, topic) {
            Err(BrokerError::UnknownTopic { .. } | BrokerError::Client { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
}

/// Waits for a future on this thread; works inside and outside of any runtime, since the library completes it from
/// a thread of its own.
fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}
