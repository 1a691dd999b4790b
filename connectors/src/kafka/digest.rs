//! What is kept of the client library's statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::statistics::{Broker, Statistics};

/// The state of a client, as its last statistics have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    /// By topic and partition, the offset up to which a reader of committed records can read.
    pub(crate) ends: BTreeMap<(String, i32), i64>,
    /// Topics and partitions whose leader is unknown or not connected.
    pub(crate) cut_off: BTreeSet<(String, i32)>,
    /// Bytes that were fetched and are not taken.
    pub(crate) fetched_bytes: u64,
    /// When a broker last sent anything.
    pub(crate) answered_at: Option<Instant>,
    /// The longest time for which requests wait for a broker that is connected and sends nothing.
    pub(crate) longest_silence: Option<Silence>,
}

/// A broker that leaves requests unanswered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) broker: String,
    pub(crate) since: Instant,
}

impl Digest {
    /// `now` is when these statistics came.
    pub(crate) fn of(statistics: &Statistics, now: Instant) -> Self {
        let ago =
            |micros: i64| u64::try_from(micros).ok().and_then(|micros| now.checked_sub(Duration::from_micros(micros)));
        let partitions = statistics.topics.values().flat_map(|topic| {
            topic.partitions.values().map(|partition| ((topic.topic.clone(), partition.partition), partition))
        });
        let partitions = partitions.collect::<BTreeMap<_, _>>();
        let mut brokers: Vec<&Broker> = statistics.brokers.values().collect();
        brokers.sort_by(|a, b| a.name.cmp(&b.name));
        let silences =
            brokers.iter().filter(|broker| broker.waitresp_cnt > 0 && broker.rxidle >= 0 && broker.txidle >= 0);
        // NB: the time since the last request, if that is shorter: before it, the broker had nothing to answer.
        let silences = silences.filter_map(|broker| {
            ago(broker.rxidle.min(broker.txidle)).map(|since| Silence { broker: broker.name.clone(), since })
        });
        // NB: connections that belong to no broker, as that to the coordinator of a group, have the number of no leader, -1.
        let numbered = brokers.iter().filter(|broker| broker.nodeid >= 0 && is_connected(&broker.state));
        let connected: BTreeSet<i32> = numbered.map(|broker| broker.nodeid).collect();
        let cut_off = partitions.iter().filter(|(_, found)| !connected.contains(&found.leader));
        Self {
            cut_off: cut_off.map(|(name, _)| name.clone()).collect(),
            fetched_bytes: partitions.values().map(|partition| partition.fetchq_size).sum(),
            answered_at: brokers.iter().filter_map(|broker| ago(broker.rxidle)).max(),
            longest_silence: silences.min_by_key(|silence| silence.since),
            ends: partitions
                .into_iter()
                .filter(|(_, found)| found.ls_offset >= 0)
                .map(|(name, found)| (name, found.ls_offset))
                .collect(),
        }
    }
}

/// Whether a broker in this state of the client library's takes requests.
fn is_connected(state: &str) -> bool {
    matches!(state, "UP" | "UPDATE")
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::{Partition, Topic};

    use super::*;

    fn broker(name: &str, waiting: i64, received: i64, sent: i64) -> (String, Broker) {
        let broker = Broker {
            name: name.to_owned(),
            waitresp_cnt: waiting,
            rxidle: received,
            txidle: sent,
            ..Broker::default()
        };
        (name.to_owned(), broker)
    }

    fn of(brokers: Vec<(String, Broker)>) -> (Digest, Instant) {
        let now = Instant::now() + Duration::from_secs(1_000);
        let statistics = Statistics { brokers: brokers.into_iter().collect(), ..Statistics::default() };
        (Digest::of(&statistics, now), now)
    }

    #[test]
    fn a_broker_is_silent_from_the_request_that_it_does_not_answer() {
        let (digest, now) = of(vec![broker("a", 1, 90_000_000, 7_000_000), broker("b", 1, 200_000, 300_000)]);
        let since = now - Duration::from_secs(7);
        assert_eq!(digest.longest_silence, Some(Silence { broker: "a".to_owned(), since }));
        assert_eq!(digest.answered_at, Some(now - Duration::from_micros(200_000)));
    }

    #[test]
    fn a_broker_that_was_asked_nothing_or_is_not_connected_is_not_silent() {
        let (digest, _) = of(vec![broker("idle", 0, 90_000_000, 90_000_000), broker("off", 1, -1, -1)]);
        assert_eq!(digest.longest_silence, None);
        let (digest, _) = of(vec![broker("off", 1, -1, -1)]);
        assert_eq!(digest.answered_at, None);
    }

    #[test]
    fn a_partition_is_cut_off_while_its_leader_is_not_connected() {
        let broker = |node: i32, state: &str| {
            (state.to_owned(), Broker { nodeid: node, state: state.to_owned(), ..Broker::default() })
        };
        let coordinator = Broker { name: "GroupCoordinator".to_owned(), ..broker(-1, "UP").1 };
        let partition = |number: i32, leader| {
            (number, Partition { partition: number, leader, ls_offset: -1001, ..Partition::default() })
        };
        let topic = Topic {
            topic: "t".to_owned(),
            partitions: [partition(0, 1), partition(1, 2), partition(2, -1)].into(),
            ..Topic::default()
        };
        let statistics = Statistics {
            brokers: [broker(1, "UP"), broker(2, "TRY_CONNECT"), (coordinator.name.clone(), coordinator)].into(),
            topics: [("t".to_owned(), topic)].into(),
            ..Statistics::default()
        };
        let digest = Digest::of(&statistics, Instant::now());
        assert_eq!(digest.cut_off, [("t".to_owned(), 1), ("t".to_owned(), 2)].into());
    }

    #[test]
    fn only_known_ends_are_kept() {
        let partition = |number: i32, end| {
            (number, Partition { partition: number, ls_offset: end, fetchq_size: 5, ..Partition::default() })
        };
        let topic = Topic {
            topic: "t".to_owned(),
            partitions: [partition(0, 42), partition(1, -1001)].into(),
            ..Topic::default()
        };
        let statistics = Statistics { topics: [("t".to_owned(), topic)].into(), ..Statistics::default() };
        let digest = Digest::of(&statistics, Instant::now());
        assert_eq!(digest.ends, [(("t".to_owned(), 0), 42)].into());
        assert_eq!(digest.fetched_bytes, 10);
    }
}
