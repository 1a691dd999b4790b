//! Sends records and tracks which of them a broker has acknowledged.
//!
//! The producer is idempotent: a record that is sent again after a lost answer is stored once, and records of one
//! partition stay in the order in which they were sent. With a transactional id ([`Outbox::open_fenced`]) what belongs together
//! is stored together or not at all, and of several processes with that id only the one that was opened last can send.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use super::client::{ClientSettings, Reporter};
use super::error::{BrokerError, is_fenced};
use crate::crash::CrashPoint;

/// Largest record that the client sends, unless `message.max.bytes` says otherwise: a profile of a large service has a
/// few MB before compression (guess).
pub(crate) const MAX_RECORD_BYTES: &str = "16777216";

/// How long a record, or a transaction, may wait for a broker that went away (guess: a restart takes seconds).
const PATIENCE: Duration = Duration::from_secs(60);

/// How much longer it may wait once the run must end (guess: a broker that answers at all does so within it).
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// How long the client library waits by itself before it looks whether the run must end.
const STEP: Duration = Duration::from_millis(500);

/// One record to be sent.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// `None` leaves the choice to the partitioner: by the key's murmur2 hash, as Kafka's Java clients choose.
    pub partition: Option<i32>,
    pub key: Option<&'a [u8]>,
    pub payload: &'a [u8],
    pub headers: OwnedHeaders,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// What the record holds, for error messages.
    pub about: String,
}

/// What brokers have acknowledged so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Records.
    pub records: u64,
    /// Bytes of their values before compression.
    pub bytes: u64,
}

/// The records on their way to one topic.
pub(crate) struct Outbox {
    producer: BaseProducer<Deliveries>,
    topic: String,
    brokers: String,
    /// Set when the run must end, and when that was seen.
    stop: Arc<AtomicBool>,
    stopped_at: Cell<Option<Instant>>,
}

impl Outbox {
    /// An outbox for a topic that is known to exist; `defaults` are client properties that the user's properties
    /// override.
    pub(crate) fn open(client: &ClientSettings, topic: &str, defaults: &[(&str, &str)]) -> Result<Self, BrokerError> {
        Self::create(client, topic, defaults, &[])
    }

    /// An outbox that sends in transactions ([`Self::send_together`]). An older one with the same `id` can send nothing more
    /// from now on, and what it had not finished is undone. Once `stop` is set it waits only [`LAST_PATIENCE`] for brokers.
    ///
    /// # Errors
    /// As [`Self::open`], and what the cluster answers to the id.
    pub(crate) fn open_fenced(
        client: &ClientSettings,
        topic: &str,
        defaults: &[(&str, &str)],
        id: &str,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, BrokerError> {
        let own = [("transactional.id", id)];
        let outbox = Self { stop, ..Self::create(client, topic, defaults, &own)? };
        // NB: the older one's transaction may have to be undone first, for which the cluster takes its time.
        let deadline = Instant::now() + client.connect_timeout.max(PATIENCE);
        outbox.insist(deadline, |producer, timeout| producer.init_transactions(timeout))?;
        Ok(outbox)
    }

    fn create(
        client: &ClientSettings,
        topic: &str,
        defaults: &[(&str, &str)],
        own: &[(&str, &str)],
    ) -> Result<Self, BrokerError> {
        let mut all = vec![("compression.type", "zstd"), ("message.max.bytes", MAX_RECORD_BYTES)];
        let timeout = PATIENCE.as_millis().to_string();
        all.push(("message.timeout.ms", &timeout));
        all.extend_from_slice(defaults);
        let fixed = [&[("enable.idempotence", "true"), ("partitioner", "murmur2_random")], own].concat();
        let producer = client
            .config(&all, &fixed)?
            .create_with_context(Deliveries::default())
            .map_err(|error| BrokerError::from_client(&error, topic, &client.brokers, None))?;
        let (topic, brokers) = (topic.to_owned(), client.brokers.clone());
        Ok(Self { producer, topic, brokers, stop: Arc::default(), stopped_at: Cell::default() })
    }

    /// Until when it waits for brokers, if the run must end.
    fn last_moment(&self) -> Option<Instant> {
        if !self.stop.load(Ordering::Acquire) {
            return None;
        }
        let stopped_at = self.stopped_at.get().unwrap_or_else(Instant::now);
        self.stopped_at.set(Some(stopped_at));
        Some(stopped_at + LAST_PATIENCE)
    }

    /// Sends records of which a reader sees all or none; they are stored when it returns.
    ///
    /// # Errors
    /// The first failure; nothing of this call is seen by readers of committed records then.
    pub(crate) fn send_together<'a>(&self, envelopes: impl Iterator<Item = Envelope<'a>>) -> Result<(), BrokerError> {
        let send = || {
            CrashPoint::AlertsBegun.reached();
            self.producer.begin_transaction().map_err(|error| self.refusal(&error))?;
            envelopes.into_iter().try_for_each(|envelope| self.send(envelope))?;
            self.settle(|_| {})?;
            CrashPoint::AlertsProduced.reached();
            self.insist(Instant::now() + PATIENCE, |producer, timeout| producer.commit_transaction(timeout))?;
            CrashPoint::AlertsCommitted.reached();
            Ok(())
        };
        // NB: records of a sender that was shut out fail in their own words, before any step of the transaction does.
        let fenced = |failure| match self.producer.client().fatal_error() {
            Some((code, _)) if is_fenced(code) => {
                BrokerError::Fenced { topic: self.topic.clone(), brokers: self.brokers.clone() }
            }
            _ => failure,
        };
        send().map_err(fenced)
    }

    /// Repeats a step of a transaction as long as the client library says that it may succeed later.
    fn insist(
        &self,
        deadline: Instant,
        step: impl Fn(&BaseProducer<Deliveries>, Duration) -> Result<(), KafkaError>,
    ) -> Result<(), BrokerError> {
        loop {
            let deadline = self.last_moment().map_or(deadline, |last| last.min(deadline));
            match step(&self.producer, deadline.saturating_duration_since(Instant::now()).min(STEP)) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && Instant::now() < deadline => {
                    self.producer.poll(Duration::from_millis(50));
                }
                result => return result.map_err(|error| self.refusal(&error)),
            }
        }
    }

    /// Why a step of a transaction failed.
    fn refusal(&self, error: &KafkaError) -> BrokerError {
        let complaint = self.producer.client().context().reporter.complaint();
        BrokerError::from_client(error, &self.topic, &self.brokers, complaint.words.as_deref())
    }

    /// Queues one record; waits while the outbox is full.
    ///
    /// # Errors
    /// The failure of this record, or of an earlier one that has failed meanwhile.
    pub(crate) fn send(&self, envelope: Envelope<'_>) -> Result<(), BrokerError> {
        let bytes = envelope.payload.len();
        let sent = Box::new(Sent { about: envelope.about, bytes });
        let mut record = BaseRecord::<[u8], [u8], Box<Sent>>::with_opaque_to(&self.topic, sent)
            .payload(envelope.payload)
            .headers(envelope.headers)
            .timestamp(envelope.timestamp);
        record.partition = envelope.partition;
        record.key = envelope.key;
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    self.producer.poll(Duration::from_millis(1));
                    self.check()?;
                }
                Err((error, back)) => {
                    let Sent { about, bytes } = *back.delivery_opaque;
                    return Err(self.failure(Failure { about, bytes, error }));
                }
            }
        }
        self.producer.poll(Duration::ZERO);
        self.check()
    }

    /// Waits until every record has been acknowledged or has failed, or the run must end.
    ///
    /// # Errors
    /// The first failure, or that not all were acknowledged in time.
    pub(crate) fn settle(&self, mut meanwhile: impl FnMut(Acknowledged)) -> Result<(), BrokerError> {
        // NB: the library's own flush waits in steps of 100 ms. It cannot wait for ever: each record has its
        // message.timeout.ms.
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(Duration::from_millis(1));
            meanwhile(self.acknowledged());
            self.check()?;
            if self.last_moment().is_some_and(|last| Instant::now() > last) {
                let error = KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut);
                return Err(self.failure(Failure { about: "the last records".to_owned(), bytes: 0, error }));
            }
        }
        self.check()
    }

    pub(crate) fn acknowledged(&self) -> Acknowledged {
        let context = self.producer.client().context();
        Acknowledged { records: context.records.load(Ordering::Relaxed), bytes: context.bytes.load(Ordering::Relaxed) }
    }

    fn check(&self) -> Result<(), BrokerError> {
        let failure = self.producer.client().context().failure();
        failure.map_or(Ok(()), |failure| Err(self.failure(failure)))
    }

    fn failure(&self, Failure { about, bytes, error }: Failure) -> BrokerError {
        let (topic, brokers) = (self.topic.clone(), self.brokers.clone());
        let complaint = self.producer.client().context().reporter.complaint();
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => BrokerError::TooLarge { topic, about, bytes },
            Some(RDKafkaErrorCode::MessageTimedOut) => {
                let detail = complaint.words.map_or_else(|| error.to_string(), |words| format!("{error} ({words})"));
                BrokerError::Delivery { topic, brokers, about, detail }
            }
            Some(RDKafkaErrorCode::InvalidTimestamp) => {
                let detail =
                    format!("{error}: outside of message.timestamp.before.max.ms or .after.max.ms of the topic");
                BrokerError::Delivery { topic, brokers, about, detail }
            }
            _ => match BrokerError::from_client(&error, &topic, &brokers, complaint.words.as_deref()) {
                BrokerError::Client { detail, .. } => BrokerError::Delivery { topic, brokers, about, detail },
                known => known,
            },
        }
    }
}

/// The data kept for a record until it is acknowledged.
pub(crate) struct Sent {
    about: String,
    bytes: usize,
}

#[derive(Clone)]
struct Failure {
    about: String,
    bytes: usize,
    error: KafkaError,
}

/// Counts acknowledgements and keeps the first failure.
#[derive(Default)]
struct Deliveries {
    reporter: Reporter,
    records: AtomicU64,
    bytes: AtomicU64,
    failure: Mutex<Option<Failure>>,
}

impl Deliveries {
    fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.reporter.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.reporter.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        match result {
            Ok(_) => {
                self.records.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(u64::try_from(sent.bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            Err((error, _)) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| Failure { about: sent.about, bytes: sent.bytes, error: error.clone() });
            }
        }
    }
}
