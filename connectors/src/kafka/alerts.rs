//! Sends alerts to a compacted topic, as CloudEvents 1.0 in binary mode.

use fleetdiff_schemas::alert::Alert;
use rdkafka::message::{Header, OwnedHeaders};

use super::client::ClientSettings;
use super::error::BrokerError;
use super::outbox::{Envelope, Outbox};
use super::topic::{self, TopicPlan};

/// The default topic of alerts.
pub const DEFAULT_TOPIC: &str = "fleetdiff.alerts";

/// Writes alerts to a topic.
///
/// The key decides the partition by murmur2, as Kafka's Java clients do, so that all alerts of an incident are read
/// in order, whichever client wrote them. An alert may come twice after a restart; it can be recognized by its id.
///
/// ```no_run
/// use fleetdiff_connectors::kafka::{alerts::{AlertProducer, DEFAULT_TOPIC}, client::ClientSettings};
/// # fn announce(alerts: &[fleetdiff_schemas::alert::Alert]) -> Result<(), Box<dyn std::error::Error>> {
/// let producer = AlertProducer::open(&ClientSettings::new("broker:9092"), DEFAULT_TOPIC, 1)?;
/// for alert in alerts {
///     producer.send(alert)?;
/// }
/// producer.flush()?;
/// # Ok(())
/// # }
/// ```
pub struct AlertProducer {
    outbox: Outbox,
}

impl AlertProducer {
    /// Opens the topic; if it does not exist it is created, compacted and with this number of partitions.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::Denied`],
    /// [`BrokerError::Property`], [`BrokerError::Client`].
    pub fn open(client: &ClientSettings, topic: &str, partitions: i32) -> Result<Self, BrokerError> {
        let configuration = [("cleanup.policy", "compact"), ("message.timestamp.after.max.ms", topic::ANY_TIME)];
        topic::ensure(client, TopicPlan { name: topic, partitions, replication: None, configuration: &configuration })?;
        // A hop has few alerts, and they are urgent: they are sent at once.
        Ok(Self { outbox: Outbox::open(client, topic, &[("linger.ms", "0")])? })
    }

    /// Queues one alert. It is certain to be stored only after [`Self::flush`].
    ///
    /// # Errors
    /// The failure of this alert or of an earlier one: [`BrokerError::Delivery`], [`BrokerError::TooLarge`],
    /// [`BrokerError::Denied`]. The producer cannot be used after that.
    pub fn send(&self, alert: &Alert) -> Result<(), BrokerError> {
        let pairs = alert.headers();
        let headers = pairs.iter().fold(OwnedHeaders::new_with_capacity(pairs.len()), |headers, (name, value)| {
            headers.insert(Header { key: name, value: Some(value.as_str()) })
        });
        self.outbox.send(Envelope {
            partition: None,
            key: Some(alert.key.as_bytes()),
            payload: alert.data.as_bytes(),
            headers,
            timestamp: alert.at.0.div_euclid(1_000_000),
            about: format!("alert {} on {}", alert.id, alert.subject),
        })
    }

    /// Waits until every queued alert has been stored; called once per hop, before the hop is committed.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn flush(&self) -> Result<(), BrokerError> {
        self.outbox.settle(|_| {})
    }
}
