//! Announces alerts on a compacted topic, as CloudEvents 1.0 in binary mode.

use fleetdiff_schemas::alert::Alert;
use rdkafka::message::{Header, OwnedHeaders};

use super::client::ClientSettings;
use super::error::BrokerError;
use super::outbox::{Envelope, Outbox};
use super::topic::{self, TopicPlan};

/// The topic on which alerts are announced if no other is named.
pub const DEFAULT_TOPIC: &str = "fleetdiff.alerts";

/// Writes alerts to a topic.
///
/// The key decides the partition by murmur2, as Kafka's Java clients do, so that all alerts of a flag are read in
/// order whoever wrote them. An alert may come twice after a restart; its id tells.
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
    /// Opens the topic; if it is absent it is made, compacted and with this number of partitions.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::Denied`],
    /// [`BrokerError::Property`], [`BrokerError::Client`].
    pub fn open(client: &ClientSettings, topic: &str, partitions: i32) -> Result<Self, BrokerError> {
        let configuration = [("cleanup.policy", "compact"), ("message.timestamp.after.max.ms", topic::ANY_TIME)];
        topic::ensure(client, TopicPlan { name: topic, partitions, replication: None, configuration: &configuration })?;
        // A hop's alerts are few and awaited: they leave at once.
        Ok(Self { outbox: Outbox::open(client, topic, &[("linger.ms", "0")])? })
    }

    /// Hands one alert over. It is announced for sure only after [`Self::flush`].
    ///
    /// # Errors
    /// This alert's failure or that of one before it: [`BrokerError::Delivery`], [`BrokerError::TooLarge`],
    /// [`BrokerError::Denied`]. The producer is of no use after that.
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

    /// Waits until every alert handed over has been stored; called once a hop, before the hop is committed.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn flush(&self) -> Result<(), BrokerError> {
        self.outbox.settle(|_| {})
    }
}
