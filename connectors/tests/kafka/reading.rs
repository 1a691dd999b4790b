//! Driving readers to their end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::kafka::source::{Contents, Share, TopicSettings, TopicSource};
use fleetdiff_connectors::kafka::topic;
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::source::{Polled, Source};

use crate::broker;

/// How long a reader may take before the test fails because it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a reader gave.
#[derive(Debug, Default)]
pub struct Read {
    /// Records by partition, as they came.
    pub records: BTreeMap<i32, Vec<Decoded>>,
    /// How often each partition ended.
    pub ends: BTreeMap<i32, usize>,
}

impl Read {
    /// Every record.
    pub fn all(&self) -> impl Iterator<Item = &Decoded> {
        self.records.values().flatten()
    }

    /// Offsets of a partition in the order in which they came.
    pub fn offsets(&self, partition: i32) -> Vec<i64> {
        self.records.get(&partition).into_iter().flatten().map(|record| record.position.offset).collect()
    }

    fn take(&mut self, polled: Polled) {
        match polled {
            Polled::Record(record) => self.records.entry(record.position.partition).or_default().push(*record),
            Polled::PartitionEnd(partition) => *self.ends.entry(partition).or_default() += 1,
            Polled::PartitionAdded(_) | Polled::Lost(..) | Polled::Idle | Polled::End => {}
        }
    }
}

/// How to reach the broker of these tests.
pub fn client() -> ClientSettings {
    ClientSettings::new(broker::shared().address())
}

/// A bounded read of a topic.
pub fn until_end(topic: &str) -> TopicSettings {
    TopicSettings { until_end: true, ..TopicSettings::new(topic) }
}

/// Opens one share of a topic, however many partitions it has.
pub fn try_open(
    client: &ClientSettings,
    settings: TopicSettings,
    share: Share,
    format: Format,
) -> Result<TopicSource, BrokerError> {
    let count = topic::partition_count(client, &settings.topic)?;
    TopicSource::open(client, settings, count, share, Contents::Profiles(format.decoder(&Options::default())))
}

/// [`try_open`] by the broker of these tests.
pub fn open(settings: TopicSettings, share: Share, format: Format) -> TopicSource {
    try_open(&client(), settings, share, format).unwrap()
}

/// Polls until `done`, which sees everything read so far and the latest answer.
pub fn poll_until(source: &mut TopicSource, read: &mut Read, mut done: impl FnMut(&Read, &Polled) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let polled = source.poll().unwrap();
        let finished = done(read, &polled);
        read.take(polled);
        if finished {
            return;
        }
    }
    panic!("the reader did not come to an end; so far: {read:?}");
}

/// Reads a share of a topic to its end.
pub fn read_share(topic: &str, share: Share, format: Format) -> Read {
    let mut source = open(until_end(topic), share, format);
    let mut read = Read::default();
    poll_until(&mut source, &mut read, |_, polled| matches!(polled, Polled::End));
    let ended: Vec<i32> = read.ends.keys().copied().collect();
    assert_eq!(ended, source.partitions(), "each partition of the share has to end");
    read
}

/// Reads a topic to its end by `workers` concurrent readers.
pub fn read_by(workers: usize, topic: &str, format: Format) -> Read {
    let mut whole = Read::default();
    let shares = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || read_share(topic, Share { worker, workers }, format)))
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
    });
    for share in shares {
        whole.records.extend(share.records);
        whole.ends.extend(share.ends);
    }
    whole
}
