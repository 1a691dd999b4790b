//! One topic that profiles are put onto, record by record.

use std::time::SystemTime;

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Labels, pprof};
use fleetdiff_schemas::identity::{PodId, stable_hash};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::time::Nanos;
use rdkafka::message::OwnedHeaders;

use super::batch::{Batch, Batches};
use crate::kafka::client::ClientSettings;
use crate::kafka::error::BrokerError;
use crate::kafka::headers;
use crate::kafka::outbox::{Acknowledged, Envelope, MAX_RECORD_BYTES, Outbox};
use crate::kafka::topic::{self, TopicPlan};

/// The form of the records of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// One pprof profile a record, its identity in the headers.
    Pprof,
    /// The columnar delta, which carries everything itself.
    Delta,
}

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
    /// Partitions of the topic if it has to be made. Default 4.
    pub partitions: i32,
    /// Write to the first so many partitions alone and leave the others empty; `None` writes to all.
    pub spread: Option<i32>,
    /// Names of the headers that say whose a profile is (the first name of each).
    pub identity: IdentityMapping,
}

impl PublishSettings {
    /// Publishes to all partitions of this topic, which is made with 4 if it is absent.
    pub fn new(topic: impl Into<String>, form: RecordForm, key: Key) -> Self {
        Self { topic: topic.into(), form, key, partitions: 4, spread: None, identity: IdentityMapping::default() }
    }
}

/// One thing to be published.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A decoded or generated profile.
    Profile(Profile),
    /// The bytes of a pprof file, sent as they are, whatever is wrong with them. Not for [`RecordForm::Delta`].
    Pprof {
        /// Whose it is and when.
        labels: Labels,
        /// The file.
        bytes: Vec<u8>,
    },
}

impl Outgoing {
    fn pod(&self) -> &PodId {
        match self {
            Self::Profile(profile) => &profile.identity.pod,
            Self::Pprof { labels, .. } => &labels.identity.pod,
        }
    }

    /// The end of what it holds; `None` for a recorded file that nobody knows the time of.
    fn end(&self) -> Option<Nanos> {
        match self {
            Self::Profile(profile) => Some(profile.window.end),
            Self::Pprof { labels, .. } => labels.window.map(|window| window.end).or(labels.sent_at),
        }
    }
}

/// Publishes profiles to one topic.
pub struct Publisher {
    outbox: Outbox,
    pub(super) settings: PublishSettings,
    /// Partitions that records go to: 0 up to this.
    spread: i32,
    /// Records handed over so far.
    sent: u64,
    batches: Batches,
    /// Records of before this instant are about to be deleted by the topic's retention; `None` once that was said.
    deleted_before: Option<Nanos>,
}

impl Publisher {
    /// Opens the topic; if it is absent it is made so that records of any age stay in it.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::Denied`],
    /// [`BrokerError::Property`], [`BrokerError::Client`].
    pub fn open(client: &ClientSettings, settings: PublishSettings) -> Result<Self, BrokerError> {
        let plan = TopicPlan {
            name: &settings.topic,
            partitions: settings.partitions,
            replication: None,
            // A recorded fleet is as old as it is: by Kafka's defaults its records would be deleted within minutes
            // (retention.ms counts from a record's own time) or, from a generated future, refused.
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
        // Only for a warning, so a cluster that does not tell is no failure.
        let retention = topic::retention(client, &settings.topic).unwrap_or_default();
        let deleted_before = retention.and_then(|kept| SystemTime::now().checked_sub(kept)).and_then(instant_of);
        Ok(Self { outbox, settings, spread, sent: 0, batches: Batches::default(), deleted_before })
    }

    /// Publishes the next profile; profiles are to be given in order of their ends.
    ///
    /// # Errors
    /// [`BrokerError::Encode`] if it cannot be put into the topic's form, and then nothing is lost but this profile;
    /// the failure of this or an earlier record otherwise ([`BrokerError::Delivery`], [`BrokerError::TooLarge`],
    /// [`BrokerError::Denied`]).
    pub fn publish(&mut self, outgoing: Outgoing) -> Result<(), BrokerError> {
        match (self.settings.form, outgoing) {
            (RecordForm::Pprof, outgoing) => self.send_pprof(outgoing),
            (RecordForm::Delta, Outgoing::Profile(profile)) => {
                let keyed = self.settings.key == Key::Pod;
                let ready = self.batches.add(profile, keyed);
                ready.into_iter().try_for_each(|batch| self.send_batch(batch))
            }
            (RecordForm::Delta, Outgoing::Pprof { labels, .. }) => Err(BrokerError::Encode {
                about: about(&labels.identity.pod, labels.window.map(|window| window.end)),
                format: "delta",
                detail: "it was not decoded".to_owned(),
            }),
        }
    }

    /// Sends what is still held back and waits until brokers have acknowledged everything; `meanwhile` is told how far
    /// they are, about every millisecond.
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

    fn send_pprof(&mut self, outgoing: Outgoing) -> Result<(), BrokerError> {
        let (pod, end) = (outgoing.pod().clone(), outgoing.end());
        let (labels, bytes) = match outgoing {
            Outgoing::Pprof { labels, bytes } => (labels, bytes),
            Outgoing::Profile(profile) => {
                let encoded = pprof::encode(&profile).map_err(|fault| BrokerError::Encode {
                    about: about(&pod, end),
                    format: "pprof",
                    detail: fault.to_string(),
                })?;
                (Labels::of(&profile), encoded)
            }
        };
        let headers = headers::of_labels(&labels, &self.settings.identity);
        self.send(&pod, end, &bytes, headers)
    }

    fn send_batch(&mut self, batch: Batch) -> Result<(), BrokerError> {
        let Some(first) = batch.profiles.first() else { return Ok(()) };
        let pod = first.identity.pod.clone();
        let record = fleetdiff_schemas::delta::encode(&batch.profiles);
        self.send(&pod, Some(batch.end), &record, OwnedHeaders::new())
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

    /// Keyed records of a whole topic are left to the partitioner, which chooses as other producers do.
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

/// The first whole millisecond that is not before this instant: a record is never sent before what it holds is over.
fn millis_after(at: Nanos) -> i64 {
    at.0.saturating_add(999_999).div_euclid(1_000_000)
}

fn about(pod: &PodId, end: Option<Nanos>) -> String {
    let until = end.map_or_else(|| "an unknown time".to_owned(), |end| format!("{} ns", end.0));
    format!("pod {pod}, until {until}")
}
