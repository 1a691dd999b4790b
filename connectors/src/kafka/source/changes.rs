//! What becomes of a topic while it is read: it gets partitions, its retention deletes records that were not read yet, or it is
//! deleted, and perhaps made anew.

use std::time::{Duration, Instant};

use fleetdiff_schemas::source::Polled;
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::TopicSource;
use super::partition;
use super::scout::{Scout, Shrunk};
use crate::kafka::error::BrokerError;
use crate::kafka::topic::{self, watermarks};

/// How soon brokers that did not answer are asked again (guess: they are away for seconds or for hours).
const AGAIN: Duration = Duration::from_secs(1);

impl TopicSource {
    /// The next change that was found.
    pub(super) fn look_for_changes(&mut self) -> Result<Option<Polled>, BrokerError> {
        let scout = self.scout.as_ref();
        if scout.is_some_and(Scout::is_gone) {
            return Err(self.deleted());
        }
        if let Some(Shrunk { partition, next, end }) = scout.and_then(Scout::shrunk) {
            return Err(self.replaced(partition, next, end));
        }
        let count = scout.map_or(self.known, Scout::partitions);
        if self.asked_in_vain.is_some_and(|at| at.elapsed() < AGAIN) {
            return Ok(None);
        }
        let found = match self.next_added(count) {
            Ok(None) => self.next_lost(),
            found => found,
        };
        self.asked_in_vain = None;
        match found {
            // A service waits for brokers; it asks again.
            Err(error) if error.may_pass() && self.settings.give_up_after.is_none() => {
                self.asked_in_vain = Some(Instant::now());
                tracing::warn!(topic = %self.name, "{error}; they are asked again");
                Ok(None)
            }
            found => found,
        }
    }

    /// The next partition of a topic of `count` partitions that is not read yet and should be.
    fn next_added(&mut self, count: i32) -> Result<Option<Polled>, BrokerError> {
        while self.known < count {
            let number = self.known;
            let is_own = self.share.owns(number);
            if is_own {
                self.add(number)?;
            }
            self.known += 1;
            if is_own {
                return Ok(Some(Polled::PartitionAdded(number)));
            }
        }
        Ok(None)
    }

    /// The next partition whose next record its brokers do not hold.
    fn next_lost(&mut self) -> Result<Option<Polled>, BrokerError> {
        while let Some(&number) = self.out_of_range.first() {
            let lost = self.resume(number)?;
            self.out_of_range.remove(&number);
            if lost.is_some() {
                return Ok(lost);
            }
        }
        Ok(None)
    }

    fn add(&mut self, number: i32) -> Result<(), BrokerError> {
        let span = partition::span(&self.consumer, &self.client, &self.settings, number)?;
        self.partitions.push(partition::split(&self.consumer, &self.client, &self.name, span)?);
        self.assign_at(number, span.start)
    }

    /// Goes on where records are, after the broker has said that the next offset is out of range. Gives what is lost.
    fn resume(&mut self, number: i32) -> Result<Option<Polled>, BrokerError> {
        let (low, high) = watermarks(&self.consumer, &self.client, &self.name, number)?;
        let Some(partition) = self.partitions.iter_mut().find(|found| found.number == number) else { return Ok(None) };
        let next = partition.next;
        if high < next {
            return Err(self.replaced(number, next, high));
        }
        partition.next = next.max(low);
        let at = partition.next;
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition(&self.name, number);
        self.consumer.incremental_unassign(&list).map_err(|error| self.explain(&error))?;
        self.consumer.poll(Duration::ZERO);
        self.assign_at(number, at)?;
        Ok((at > next).then_some(Polled::Lost(number, next..at)))
    }

    fn assign_at(&self, number: i32, offset: i64) -> Result<(), BrokerError> {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&self.name, number, Offset::Offset(offset)).map_err(|error| self.explain(&error))?;
        self.consumer.incremental_assign(&list).map_err(|error| self.explain(&error))
    }

    pub(super) fn explain(&self, error: &rdkafka::error::KafkaError) -> BrokerError {
        topic::explain(&self.consumer, error, &self.name, &self.client.brokers)
    }

    fn replaced(&self, partition: i32, next: i64, end: i64) -> BrokerError {
        let detail = format!("it was read up to offset {next}, and now ends at offset {end}");
        BrokerError::Replaced { topic: self.name.to_string(), partition, detail }
    }

    pub(super) fn deleted(&self) -> BrokerError {
        BrokerError::Deleted { topic: self.name.to_string(), brokers: self.client.brokers.clone() }
    }
}
