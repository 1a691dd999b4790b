//! Sends alerts to a compacted topic, as CloudEvents 1.0 in binary mode, each of them once.
//!
//! Alerts of one hop are one transaction, and hops are sent in order. So the topic itself says what was sent: every alert of a
//! sender up to the latest one that is there, and nothing after it. A service that starts again computes its alerts again from
//! the beginning; it reads the topic ([`sent`]) and sends only what comes after.

mod sent;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::time::Nanos;
use rdkafka::message::{Header, OwnedHeaders};

use self::sent::{SENDER, Sent};
use super::client::ClientSettings;
use super::error::BrokerError;
use super::outbox::{Envelope, Outbox};
use super::topic::{self, TopicPlan};

/// The default topic of alerts.
pub const DEFAULT_TOPIC: &str = "fleetdiff.alerts";

/// Where alerts are sent to, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct AlertSettings<'a> {
    /// The topic.
    pub topic: &'a str,
    /// How many partitions it gets if it does not exist.
    pub partitions: i32,
    /// Whose alerts these are: the topic of profiles from which they come, and which part of its services, if there are several
    /// senders. Of those that were opened by the same name, only the last one can send.
    pub sender: &'a str,
}

/// Writes alerts to a topic.
///
/// The key decides the partition by murmur2, as Kafka's Java clients do, so that all alerts of an incident are read
/// in order, whichever client wrote them.
///
/// ```no_run
/// use fleetdiff_connectors::kafka::{alerts::{AlertProducer, AlertSettings, DEFAULT_TOPIC}, client::ClientSettings};
/// # fn announce(alerts: &[fleetdiff_schemas::alert::Alert]) -> Result<(), Box<dyn std::error::Error>> {
/// let settings = AlertSettings { topic: DEFAULT_TOPIC, partitions: 1, sender: "profiles" };
/// let mut producer = AlertProducer::open(&ClientSettings::new("broker:9092"), settings)?;
/// producer.send(alerts)?;
/// # Ok(())
/// # }
/// ```
pub struct AlertProducer {
    client: ClientSettings,
    topic: String,
    partitions: i32,
    sender: String,
    stop: Arc<AtomicBool>,
    sent: Sent,
    /// None after an error: what was sent is not known then, until the topic is opened again.
    outbox: Option<Outbox>,
}

impl AlertProducer {
    /// Opens the topic and reads what was sent before; if it does not exist it is created, compacted. An older producer of the
    /// same sender can send nothing more.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::Denied`],
    /// [`BrokerError::Property`], [`BrokerError::Client`].
    pub fn open(client: &ClientSettings, settings: AlertSettings<'_>) -> Result<Self, BrokerError> {
        Self::open_ending_on(client, settings, Arc::default())
    }

    /// The same, which does not wait long for brokers that do not answer once `stop` is set: the run must end then, and the next one
    /// sends what is missing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_ending_on(
        client: &ClientSettings,
        settings: AlertSettings<'_>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, BrokerError> {
        let AlertSettings { topic, partitions, sender } = settings;
        let configuration = [("cleanup.policy", "compact"), ("message.timestamp.after.max.ms", topic::ANY_TIME)];
        let plan = TopicPlan { name: topic, partitions, replication: None, configuration: &configuration };
        let partitions = topic::ensure(client, plan)?;
        let (client, topic, sender) = (client.clone(), topic.to_owned(), sender.to_owned());
        let mut producer = Self { client, topic, partitions, sender, stop, sent: Sent::default(), outbox: None };
        producer.outbox = Some(producer.opened()?);
        Ok(producer)
    }

    /// Shuts out older producers of the same sender, and reads what was sent.
    fn opened(&mut self) -> Result<Outbox, BrokerError> {
        let Self { client, topic, partitions, sender, .. } = &*self;
        let (id, stop) = (transactional_id(sender, topic), Arc::clone(&self.stop));
        // A hop has few alerts, and they are urgent: they are sent at once.
        let outbox = Outbox::open_fenced(client, topic, &[("linger.ms", "0")], &id, stop)?;
        // NB: in this order. Nobody else sends from here on, so what is read is all.
        self.sent = Sent::read(client, topic, *partitions, sender)?;
        Ok(outbox)
    }

    /// The time of the latest alert that was sent.
    pub fn through(&self) -> Option<Nanos> {
        self.sent.through()
    }

    /// Sends the alerts of one hop, or of several later hops, except those that were sent before. They are stored when it returns,
    /// all or none. Gives how many were sent.
    ///
    /// After an error the same can be sent again. It is not known then whether they are stored, so the topic is opened and read anew
    /// first.
    ///
    /// # Errors
    /// [`BrokerError::Fenced`]: the same sender was opened again since, and should be left to send. [`BrokerError::Delivery`],
    /// [`BrokerError::TooLarge`], [`BrokerError::Denied`], and as [`Self::open`] after an error.
    pub fn send(&mut self, alerts: &[Alert]) -> Result<usize, BrokerError> {
        if !alerts.iter().any(|alert| self.sent.lacks(alert.at)) {
            return Ok(0);
        }
        let outbox = self.outbox.take().map_or_else(|| self.opened(), Ok)?;
        let new: Vec<&Alert> = alerts.iter().filter(|alert| self.sent.lacks(alert.at)).collect();
        if !new.is_empty() {
            outbox.send_together(new.iter().map(|alert| envelope(alert, &self.sender)))?;
            new.iter().for_each(|alert| self.sent.note(alert.at));
        }
        self.outbox = Some(outbox);
        Ok(new.len())
    }
}

/// By which the cluster knows a sender of alerts.
fn transactional_id(sender: &str, topic: &str) -> String {
    format!("fleetdiff/{sender}/{topic}")
}

fn envelope<'a>(alert: &'a Alert, sender: &str) -> Envelope<'a> {
    let pairs = alert.headers();
    let own = OwnedHeaders::new_with_capacity(pairs.len() + 1).insert(Header { key: SENDER, value: Some(sender) });
    let headers = pairs
        .iter()
        .fold(own, |headers, (name, value)| headers.insert(Header { key: name, value: Some(value.as_str()) }));
    Envelope {
        partition: None,
        key: Some(alert.key.as_bytes()),
        payload: alert.data.as_bytes(),
        headers,
        timestamp: alert.at.0.div_euclid(1_000_000),
        about: format!("alert {} on {}", alert.id, alert.subject),
    }
}
