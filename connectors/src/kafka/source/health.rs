//! How a topic's transport is: how far its partitions are read, and whether brokers answer.

use std::time::{Duration, Instant};

use fleetdiff_schemas::source::{Health, Trouble};
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::TopicSource;
use crate::kafka::client::ClientSettings;
use crate::kafka::error::BrokerError;

/// How long a broker may take for an answer beyond the time for which it may hold one back (guess: four times the usual
/// heartbeat of connections across an ocean under load).
const ANSWER: Duration = Duration::from_secs(4);

/// How long a broker holds back the answer to a request for records if there are none, by the library's default.
const HELD_BACK: Duration = Duration::from_millis(500);

/// How long a request may be unanswered with these settings before its broker counts as hanging.
pub(super) fn patience(client: &ClientSettings) -> Duration {
    let set = client.properties.get("fetch.wait.max.ms").and_then(|millis| millis.parse().ok());
    ANSWER + set.map_or(HELD_BACK, Duration::from_millis)
}

impl TopicSource {
    pub(super) fn look_around(&mut self) -> Result<Health, BrokerError> {
        self.serve_client(Duration::ZERO)?;
        let digest = self.consumer.client().context().digest().unwrap_or_default();
        // A broker that has answered since is not gone.
        if digest.answered_at.is_some_and(|answered| self.gone_since.is_some_and(|gone| answered > gone)) {
            self.gone_since = None;
        }
        let seen = |number: i32| digest.ends.get(&(self.name.to_string(), number)).copied();
        let extents =
            self.partitions.iter_mut().map(|partition| (partition.number, partition.extent(seen(partition.number))));
        let extents = extents.collect();
        Ok(Health { trouble: self.trouble(), extents, fetched_bytes: digest.fetched_bytes })
    }

    /// Commits the next offset of each partition, for programs that watch lag. A cluster that does not allow it loses nothing.
    pub(super) fn commit(&mut self) {
        let mut list = TopicPartitionList::with_capacity(self.partitions.len());
        for partition in &mut self.partitions {
            let next = Offset::Offset(partition.extent(None).next);
            if list.add_partition_offset(&self.name, partition.number, next).is_err() {
                return;
            }
        }
        if let Err(error) = self.consumer.commit(&list, CommitMode::Async) {
            tracing::debug!(topic = %self.name, "the group's offsets could not be committed: {error}");
        }
    }

    /// Whether the leader of a partition is not connected, by the client library's last statistics.
    pub(super) fn is_cut_off(&self, partition: i32) -> bool {
        let digest = self.consumer.client().context().digest();
        digest.is_some_and(|digest| digest.cut_off.contains(&(self.name.to_string(), partition)))
    }

    /// What keeps the brokers from answering: that all are gone, or that one leaves requests unanswered.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let context = self.consumer.client().context();
        if let Some(since) = self.gone_since {
            let complaint = context.complaint().words;
            return Some(Trouble { since, detail: complaint.unwrap_or_else(|| "all brokers are down".to_owned()) });
        }
        let silence = context.digest()?.longest_silence?;
        let hangs = Instant::now().saturating_duration_since(silence.since) >= self.patience;
        hangs.then(|| Trouble {
            since: silence.since,
            detail: format!("{} is connected but leaves requests unanswered", silence.broker),
        })
    }
}
