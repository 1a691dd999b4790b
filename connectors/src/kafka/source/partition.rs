//! One partition of a topic as a reader sees it: its start, its end, and the next offset.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::Extent;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::settings::TopicSettings;
use crate::kafka::client::{ClientSettings, Reporter};
use crate::kafka::error::BrokerError;
use crate::kafka::topic::{explain, watermarks};

/// The part of a partition that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) number: i32,
    /// The first offset to read.
    pub(super) start: i64,
    /// The first offset after the end of the read; `None` reads for ever.
    end: Option<i64>,
    /// The end of the partition when it was opened.
    high: i64,
}

/// The result of polling a partition.
pub(super) enum Step {
    Nothing,
    Record(Box<Decoded>),
    End,
    Error(KafkaError),
}

pub(super) struct Partition {
    pub(super) number: i32,
    pub(super) paused: bool,
    pub(super) ended: bool,
    /// Whether the broker has reported, since the last record, that there is nothing more.
    pub(super) drained: bool,
    /// What there was to read of it when it was opened.
    pub(super) held: Range<i64>,
    queue: PartitionQueue<Reporter>,
    /// The first offset that has not come yet.
    pub(super) next: i64,
    end: Option<i64>,
    /// The end of the partition as it was last seen.
    seen_end: i64,
}

impl Partition {
    /// Polls for the next record, without waiting.
    ///
    /// The end is reached when the next offset is the end, or when the broker says that there is nothing more: the last
    /// offsets may belong to transaction markers or to records removed by compaction, which never come.
    pub(super) fn step(&mut self, decode: impl FnOnce(BorrowedMessage<'_>) -> Decoded) -> Step {
        if self.ended || self.paused {
            return Step::Nothing;
        }
        if self.end.is_some_and(|end| self.next >= end) {
            self.ended = true;
            return Step::End;
        }
        let message = match self.queue.poll(Duration::ZERO) {
            None => return Step::Nothing,
            Some(Err(KafkaError::PartitionEOF(_))) if self.end.is_some() => {
                self.ended = true;
                return Step::End;
            }
            Some(Err(KafkaError::PartitionEOF(_))) => {
                self.drained = true;
                return Step::Nothing;
            }
            Some(Err(error)) => return Step::Error(error),
            Some(Ok(message)) => message,
        };
        self.drained = false;
        let offset = message.offset();
        self.next = offset.saturating_add(1);
        if self.end.is_some_and(|end| offset >= end) {
            self.ended = true;
            return Step::End;
        }
        Step::Record(Box::new(decode(message)))
    }
}

impl Partition {
    /// How far it is read, with its end as the client library last saw it. If there is nothing more, offsets after the last
    /// record, which belong to markers of transactions, do not count.
    pub(super) fn extent(&mut self, seen: Option<i64>) -> Extent {
        self.seen_end = self.seen_end.max(seen.unwrap_or(0));
        let end = if self.drained || self.ended { self.next } else { self.end.unwrap_or(self.seen_end) };
        Extent { next: self.next, end: end.max(self.next) }
    }
}

/// What to read of a partition, by its offsets now.
pub(super) fn span(
    consumer: &BaseConsumer<Reporter>,
    client: &ClientSettings,
    settings: &TopicSettings,
    number: i32,
) -> Result<Span, BrokerError> {
    let (low, high) = watermarks(consumer, client, &settings.topic, number)?;
    let asked = settings.start.get(&number).copied();
    let start = first_offset(asked, low, high).map_err(|detail| BrokerError::Replaced {
        topic: settings.topic.clone(),
        partition: number,
        detail,
    })?;
    Ok(Span { number, start, end: settings.until_end.then_some(high), high })
}

/// Where to begin in a partition that holds offsets from `low` up to, but not including, `high`.
fn first_offset(asked: Option<i64>, low: i64, high: i64) -> Result<i64, String> {
    match asked {
        Some(asked) if asked > high => Err(format!("it was read up to offset {asked}, and now ends at offset {high}")),
        Some(asked) => Ok(asked.max(low)),
        None => Ok(low),
    }
}

/// Gives each span its own queue and assigns them to the consumer.
pub(super) fn assign(
    consumer: &Arc<BaseConsumer<Reporter>>,
    client: &ClientSettings,
    topic: &str,
    spans: &[Span],
) -> Result<Vec<Partition>, BrokerError> {
    let explain = |error: &KafkaError| explain(consumer, error, topic, &client.brokers);
    // NB: queues are split off before the assignment. The library then leaves them alone; a queue split off afterwards
    // could already have passed its first records to the common queue.
    let partitions = spans.iter().map(|span| split(consumer, client, topic, *span)).collect::<Result<Vec<_>, _>>()?;
    let mut list = TopicPartitionList::with_capacity(spans.len());
    for span in spans {
        list.add_partition_offset(topic, span.number, Offset::Offset(span.start)).map_err(|error| explain(&error))?;
    }
    consumer.assign(&list).map_err(|error| explain(&error))?;
    Ok(partitions)
}

pub(super) fn split(
    consumer: &Arc<BaseConsumer<Reporter>>,
    client: &ClientSettings,
    topic: &str,
    Span { number, start, end, high }: Span,
) -> Result<Partition, BrokerError> {
    let queue = consumer
        .split_partition_queue(topic, number)
        .ok_or_else(|| BrokerError::UnknownTopic { topic: topic.to_owned(), brokers: client.brokers.clone() })?;
    Ok(Partition {
        number,
        paused: false,
        ended: false,
        drained: false,
        held: start..high,
        queue,
        next: start,
        end,
        seen_end: high,
    })
}

#[cfg(test)]
mod tests {
    use super::first_offset;

    #[test]
    fn a_start_lies_within_the_partition_or_is_an_error() {
        assert_eq!(first_offset(None, 5, 9), Ok(5));
        assert_eq!(first_offset(Some(7), 5, 9), Ok(7));
        assert_eq!(first_offset(Some(9), 5, 9), Ok(9));
        assert_eq!(first_offset(Some(2), 5, 9), Ok(5));
        assert!(first_offset(Some(10), 5, 9).is_err_and(|detail| detail.contains("10") && detail.contains('9')));
    }
}
