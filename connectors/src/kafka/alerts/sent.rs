//! Until when alerts of a sender are in a topic.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fleetdiff_schemas::time::Nanos;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::kafka::client::{ClientSettings, READS, Reporter};
use crate::kafka::error::BrokerError;
use crate::kafka::topic::{explain, watermarks};

/// How long one poll of the client library may take.
const POLL: Duration = Duration::from_millis(100);

/// How long a transaction of another sender may be open: brokers end one that was left after a minute, and look every 10 seconds.
const UNFINISHED: Duration = Duration::from_secs(90);

/// The header of a record that says by whom it was sent.
pub(super) const SENDER: &str = "fleetdiff_sender";

/// The time of the latest alert that a sender has in a topic. The latest alert of a key survives compaction, so the latest of
/// a sender always does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    through: Option<Nanos>,
}

impl Sent {
    /// Reads what is stored in the topic now. Records of others are passed over.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] if nothing comes for the time of a connection, and what the cluster refuses.
    pub(super) fn read(
        client: &ClientSettings,
        topic: &str,
        partitions: i32,
        sender: &str,
    ) -> Result<Self, BrokerError> {
        let mut left = stored(client, topic, partitions)?;
        let consumer: BaseConsumer<Reporter> = client
            .config(&[], &[&[("group.id", "fleetdiff")], READS.as_slice()].concat())?
            .create_with_context(Reporter::default())
            .map_err(|error| BrokerError::from_client(&error, topic, &client.brokers, None))?;
        let refused = |error: &KafkaError| explain(&consumer, error, topic, &client.brokers);
        let mut list = TopicPartitionList::new();
        for number in left.keys() {
            list.add_partition_offset(topic, *number, Offset::Beginning).map_err(|error| refused(&error))?;
        }
        consumer.assign(&list).map_err(|error| refused(&error))?;
        let (mut sent, mut heard_at, mut paused) = (Self::default(), Instant::now(), BTreeSet::new());
        while !left.is_empty() {
            let is_held_up = left.keys().all(|number| paused.contains(number));
            let patience = if is_held_up { UNFINISHED } else { client.connect_timeout };
            match consumer.poll(POLL) {
                Some(Ok(message)) => {
                    heard_at = Instant::now();
                    sent.through = sent.through.max(time_of(&message, sender));
                    if left.get(&message.partition()).is_some_and(|end| message.offset() + 1 >= *end) {
                        left.remove(&message.partition());
                    }
                    continue;
                }
                Some(Err(KafkaError::PartitionEOF(number))) => {
                    heard_at = Instant::now();
                    paused.insert(number);
                }
                // NB: the client library goes on by itself after lost connections and elections.
                Some(Err(error)) if heard_at.elapsed() > patience => return Err(refused(&error)),
                None if heard_at.elapsed() > patience => {
                    let detail = match is_held_up {
                        true => format!("a transaction of another sender in topic {topic} does not end"),
                        false => format!("nothing of topic {topic} came"),
                    };
                    return Err(BrokerError::Unreachable { brokers: client.brokers.clone(), detail });
                }
                Some(Err(_)) | None => {}
            }
            // The end of a transaction is a record that is not given.
            for place in consumer.position().map_err(|error| refused(&error))?.elements() {
                let is_reached = |end: &i64| matches!(place.offset(), Offset::Offset(next) if next >= *end);
                if left.get(&place.partition()).is_some_and(is_reached) {
                    left.remove(&place.partition());
                }
            }
        }
        Ok(sent)
    }

    /// The time of the latest alert that is there.
    pub(super) fn through(self) -> Option<Nanos> {
        self.through
    }

    /// Whether an alert of this time is not there yet.
    pub(super) fn lacks(self, at: Nanos) -> bool {
        self.through.is_none_or(|through| at > through)
    }

    /// The alerts of this time, and all earlier ones, are there now.
    pub(super) fn note(&mut self, at: Nanos) {
        self.through = self.through.max(Some(at));
    }
}

/// The end of each partition that holds anything, with what belongs to transactions that have not ended.
///
/// NB: a reader that comes to "the end" has come to where its leader knows that other brokers have everything too, or where a transaction
/// is open. A leader that has just been elected may not know that yet of what was acknowledged before, but it gives no offsets until it
/// does. And what was stored after the beginning of a transaction of somebody else is given only once that has ended.
fn stored(client: &ClientSettings, topic: &str, partitions: i32) -> Result<BTreeMap<i32, i64>, BrokerError> {
    let consumer = client.inquirer()?;
    let mut ends = BTreeMap::new();
    for number in 0..partitions {
        let (first, end) = watermarks(&consumer, client, topic, number)?;
        if first < end {
            ends.insert(number, end);
        }
    }
    Ok(ends)
}

/// The time of an event that this sender sent.
fn time_of(message: &BorrowedMessage<'_>, sender: &str) -> Option<Nanos> {
    let headers = message.headers()?;
    let value = |name: &str| headers.iter().find(|header| header.key == name).and_then(|header| header.value);
    let at = value("ce_time").filter(|_| value(SENDER) == Some(sender.as_bytes()))?;
    let at: jiff::Timestamp = std::str::from_utf8(at).ok()?.parse().ok()?;
    Some(Nanos(i64::try_from(at.as_nanosecond()).ok()?))
}
