//! One topic to which profiles are written, record by record.

use std::collections::BTreeSet;
use std::slice;
use std::time::SystemTime;

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Labels, Unencodable};
use fleetdiff_schemas::identity::{PodId, stable_hash};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::time::Nanos;
use rdkafka::message::OwnedHeaders;

use super::batch::{Batch, Batches};
use super::form::{Encoder, RecordForm};
use crate::kafka::client::ClientSettings;
use crate::kafka::error::BrokerError;
use crate::kafka::headers;
use crate::kafka::outbox::{Acknowledged, Envelope, MAX_RECORD_BYTES, Outbox};
use crate::kafka::topic::{self, TopicPlan};

/// What decides a record's partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The pod id: all records of a pod are in one partition, in order.
    Pod,
    /// Nothing: records have no key and go to the partitions in turn.
    None,
}

/// Where and how to publish.
#[derive(Clone, Debug)]
pub struct PublishSettings {
    /// The topic.
    pub topic: String,
    /// The form of its records.
    pub form: RecordForm,
    /// What decides a record's partition.
    pub key: Key,
    /// Number of partitions if the topic must be created. Default 4.
    pub partitions: i32,
    /// Write only to this many partitions, the first ones, and leave the others empty; `None` writes to all.
    pub spread: Option<i32>,
    /// Names of the headers that identify a profile (the first name of each).
    pub identity: IdentityMapping,
}

impl PublishSettings {
    /// Publishes to all partitions of this topic, which is created with 4 partitions if it does not exist.
    pub fn new(topic: impl Into<String>, form: RecordForm, key: Key) -> Self {
        Self { topic: topic.into(), form, key, partitions: 4, spread: None, identity: IdentityMapping::default() }
    }
}

/// One item to publish.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A decoded or generated profile.
    Profile(Profile),
    /// The bytes of a file in the topic's format, sent as they are, whatever is wrong with them. Not for forms whose records
    /// name their pods.
    File {
        /// The pod and the time.
        labels: Labels,
        /// The file.
        bytes: Vec<u8>,
    },
}

/// Publishes profiles to one topic.
pub struct Publisher {
    outbox: Outbox,
    pub(super) settings: PublishSettings,
    /// Records go to the partitions from 0 up to this one, exclusive.
    spread: i32,
    /// Records queued so far.
    sent: u64,
    batches: Batches,
    /// Types of profiles whose values the form has no place for, of which a warning was logged.
    without_values: BTreeSet<ProfileType>,
    /// The topic's retention is about to delete records from before this instant; `None` once the warning was logged.
    deleted_before: Option<Nanos>,
}

impl Publisher {
    /// Opens the topic; if it does not exist it is created so that it keeps records of any age.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::Denied`],
    /// [`BrokerError::Property`], [`BrokerError::Client`].
    pub fn open(client: &ClientSettings, settings: PublishSettings) -> Result<Self, BrokerError> {
        let plan = TopicPlan {
            name: &settings.topic,
            partitions: settings.partitions,
            replication: None,
            // A recorded fleet may be old: by Kafka's defaults its records would be deleted within minutes
            // (retention.ms counts from a record's own time). Generated records with a future time would be refused.
            configuration: &[
                ("retention.ms", "-1"),
                ("message.timestamp.after.max.ms", topic::ANY_TIME),
                ("max.message.bytes", MAX_RECORD_BYTES),
            ],
        };
        let partitions = topic::ensure(client, plan)?;
        let spread = settings.spread.unwrap_or(partitions).clamp(1, partitions);
        let outbox =
            Outbox::open(client, &settings.topic, &[("linger.ms", "20"), ("queue.buffering.max.kbytes", "65536")])?;
        // Used only for a warning, so a cluster that does not answer is not a failure.
        let retention = topic::retention(client, &settings.topic).unwrap_or_default();
        let deleted_before = retention.and_then(|kept| SystemTime::now().checked_sub(kept)).and_then(instant_of);
        Ok(Self {
            outbox,
            settings,
            spread,
            sent: 0,
            batches: Batches::default(),
            without_values: BTreeSet::new(),
            deleted_before,
        })
    }

    /// Publishes the next profile; profiles must be given in order of their ends.
    ///
    /// # Errors
    /// [`BrokerError::Encode`] if it cannot be encoded in the topic's format, and then only its record is lost; the
    /// failure of this or an earlier record otherwise ([`BrokerError::Delivery`], [`BrokerError::TooLarge`],
    /// [`BrokerError::Denied`]).
    pub fn publish(&mut self, outgoing: Outgoing) -> Result<(), BrokerError> {
        match (self.settings.form.encoder(), outgoing) {
            (Encoder::Labelled(encode), Outgoing::Profile(profile)) => {
                let (labels, bytes) = encode(&profile).map_err(|fault| self.unencodable(&profile, &fault))?;
                self.warn_of_values(&profile, &labels);
                self.send_labelled(&labels, &bytes)
            }
            (Encoder::Labelled(_), Outgoing::File { labels, bytes }) => self.send_labelled(&labels, &bytes),
            (Encoder::Batches(_), Outgoing::Profile(profile)) => {
                let keyed = self.settings.key == Key::Pod;
                let ready = self.batches.add(profile, keyed);
                ready.into_iter().try_for_each(|batch| self.send_batch(batch))
            }
            (Encoder::Batches(_), Outgoing::File { labels, .. }) => Err(BrokerError::Encode {
                about: about(&labels.identity.pod, end_of(&labels)),
                format: self.settings.form.format().name(),
                detail: "it was not decoded".to_owned(),
            }),
        }
    }

    /// Sends what is still held back and waits until brokers have acknowledged everything; calls `meanwhile` with the
    /// progress about every millisecond.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn finish(mut self, meanwhile: impl FnMut(Acknowledged)) -> Result<Acknowledged, BrokerError> {
        for batch in self.batches.take() {
            self.send_batch(batch)?;
        }
        self.outbox.settle(meanwhile)?;
        Ok(self.outbox.acknowledged())
    }

    /// What brokers have acknowledged so far.
    pub(crate) fn acknowledged(&self) -> Acknowledged {
        self.outbox.acknowledged()
    }

    fn send_labelled(&mut self, labels: &Labels, bytes: &[u8]) -> Result<(), BrokerError> {
        let headers = headers::of_labels(labels, &self.settings.identity);
        self.send(&labels.identity.pod, end_of(labels), bytes, headers)
    }

    fn send_batch(&mut self, batch: Batch) -> Result<(), BrokerError> {
        let (Encoder::Batches(encode), Some(first)) = (self.settings.form.encoder(), batch.profiles.first()) else {
            return Ok(());
        };
        let pod = first.identity.pod.clone();
        let identity = &self.settings.identity;
        let record = encode(&batch.profiles, identity).map_err(|fault| {
            let at_fault = batch.profiles.iter().find(|profile| encode(slice::from_ref(profile), identity).is_err());
            self.unencodable(at_fault.unwrap_or(first), &fault)
        })?;
        self.send(&pod, Some(batch.end), &record, OwnedHeaders::new())
    }

    fn unencodable(&self, profile: &Profile, fault: &Unencodable) -> BrokerError {
        BrokerError::Encode {
            about: format!(
                "the {} profile of {}",
                profile.profile_type.name(),
                about(&profile.identity.pod, Some(profile.window.end))
            ),
            format: self.settings.form.format().name(),
            detail: fault.to_string(),
        }
    }

    /// Says once for each type that what its samples stand for is not published.
    fn warn_of_values(&mut self, profile: &Profile, labels: &Labels) {
        let (form, kind) = (self.settings.form, profile.profile_type);
        if form.loses_values(profile, labels) && self.without_values.insert(kind) {
            let (format, kind, unit) = (form.format().name(), kind.name(), kind.value_unit());
            tracing::warn!(
                "{format} holds the samples of {kind} profiles, but not their {unit}: what a reader finds of {unit} will be \
                 missing; pprof, otlp and delta hold them"
            );
        }
    }

    fn send(
        &mut self,
        pod: &PodId,
        end: Option<Nanos>,
        payload: &[u8],
        headers: OwnedHeaders,
    ) -> Result<(), BrokerError> {
        let envelope = Envelope {
            partition: self.partition(pod),
            key: (self.settings.key == Key::Pod).then_some(pod.as_str().as_bytes()),
            payload,
            headers,
            timestamp: end.map_or(0, millis_after),
            about: about(pod, end),
        };
        self.outbox.send(envelope)?;
        self.sent += 1;
        if self.deleted_before.is_some_and(|limit| end.is_some_and(|end| end < limit)) {
            self.deleted_before = None;
            tracing::warn!(
                topic = self.settings.topic,
                "the records are older than the topic keeps them and will soon be deleted; raise its retention.ms or \
                 publish to a new topic, which is made to keep them",
            );
        }
        Ok(())
    }

    /// The partitioner chooses the partition of keyed records, as other producers do, if all partitions are used.
    fn partition(&self, pod: &PodId) -> Option<i32> {
        let spread = u64::try_from(self.spread).unwrap_or(1);
        let chosen = match (self.settings.key, self.settings.spread) {
            (Key::Pod, None) => return None,
            (Key::Pod, Some(_)) => stable_hash(pod.as_str().as_bytes()) % spread,
            (Key::None, _) => self.sent % spread,
        };
        i32::try_from(chosen).ok()
    }
}

fn instant_of(time: SystemTime) -> Option<Nanos> {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_nanos()).ok().map(Nanos)
}

/// The first whole millisecond that is not before this instant: a record is never sent before the end of its profiles.
fn millis_after(at: Nanos) -> i64 {
    at.0.saturating_add(999_999).div_euclid(1_000_000)
}

/// The end of a profile; `None` if its time is unknown.
fn end_of(labels: &Labels) -> Option<Nanos> {
    labels.window.map(|window| window.end).or(labels.sent_at)
}

fn about(pod: &PodId, end: Option<Nanos>) -> String {
    let until = end.map_or_else(|| "an unknown time".to_owned(), |end| format!("{} ns", end.0));
    format!("pod {pod}, until {until}")
}
