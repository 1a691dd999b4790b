//! Reads a topic for the dataflow: each worker its own partitions, assigned by number and never by a consumer group,
//! since what a worker reads must follow from configuration and offsets alone.
//!
//! Every partition has its own queue. The queues are polled in turn, so that partitions advance together, and a
//! partition that is held back is not polled: the client library then stops fetching it once its queue is full, nothing
//! that was fetched is thrown away, and no record comes twice.

mod changes;
mod health;
mod partition;
mod record;
mod scout;
mod settings;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetdiff_schemas::source::{Health, Polled, Source, SourceError};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;

use self::partition::{Partition, Step};
pub use self::record::Contents;
use self::scout::Scout;
pub use self::settings::TopicSettings;
use super::client::{ClientSettings, READS, Reporter};
use super::error::BrokerError;

/// How long one poll waits if there is nothing.
const IDLE_WAIT: Duration = Duration::from_millis(2);

/// Which of a topic's partitions a reader owns: those whose number leaves `worker` when divided by `workers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// This reader, from 0.
    pub worker: usize,
    /// Number of readers, at least 1.
    pub workers: usize,
}

impl Share {
    /// The only reader of a topic.
    pub const WHOLE: Self = Self { worker: 0, workers: 1 };

    fn owns(self, partition: i32) -> bool {
        usize::try_from(partition).is_ok_and(|partition| partition % self.workers.max(1) == self.worker)
    }
}

/// How long brokers may take to answer when a reader is closed (guess: they answer within milliseconds).
const CLOSING: Duration = Duration::from_secs(2);

/// A reader of some partitions of one topic.
///
/// Partitions that are added to the topic later are found within seconds, unless it is read up to its end.
pub struct TopicSource {
    // NB: partitions hold queues of the consumer and must be dropped before it.
    partitions: Vec<Partition>,
    /// Looks for added partitions; none for a bounded read.
    scout: Option<Scout>,
    consumer: Arc<BaseConsumer<Reporter>>,
    share: Share,
    /// How many partitions the topic had when it was last looked at.
    known: i32,
    /// Partitions of which a broker has said that it does not hold the next offset, until it is known where they go on.
    out_of_range: BTreeSet<i32>,
    /// When brokers last did not answer what becomes of a partition.
    asked_in_vain: Option<Instant>,
    /// Index of the partition to poll next.
    turn: usize,
    name: Arc<str>,
    client: ClientSettings,
    settings: TopicSettings,
    contents: Contents,
    /// How long a broker may leave a request unanswered before it counts as hanging.
    patience: Duration,
    /// When all brokers were found to be gone, unless one has answered a request since. A record proves nothing: it may
    /// have been fetched before.
    gone_since: Option<Instant>,
}

impl Drop for TopicSource {
    /// NB: the client library closes a consumer by itself too, but waits for brokers that do not answer without end.
    fn drop(&mut self) {
        self.partitions.clear();
        let deadline = Instant::now() + CLOSING;
        let is_closing = self.consumer.close_queue().is_ok();
        while is_closing && !self.consumer.closed() {
            if Instant::now() > deadline {
                // What is left is given back when the process ends.
                std::mem::forget(Arc::clone(&self.consumer));
                return;
            }
            drop(self.consumer.poll(CLOSING / 50));
        }
    }
}

impl TopicSource {
    /// Opens this share of the topic of `count` partitions ([`partition_count`](super::topic::partition_count), asked once for
    /// all shares), whose records hold `contents`.
    ///
    /// # Errors
    /// [`BrokerError::Unreachable`] when no broker answers within the connect timeout, [`BrokerError::UnknownTopic`],
    /// [`BrokerError::Denied`], [`BrokerError::Property`], and [`BrokerError::Replaced`] for a start beyond the end of
    /// its partition.
    pub fn open(
        client: &ClientSettings,
        settings: TopicSettings,
        count: i32,
        share: Share,
        contents: Contents,
    ) -> Result<Self, BrokerError> {
        let owned = (0..count).filter(|&number| share.owns(number));
        let consumer = Arc::new(consumer(client, &settings, owned.clone().count())?);
        let spans =
            owned.map(|number| partition::span(&consumer, client, &settings, number)).collect::<Result<Vec<_>, _>>()?;
        let partitions = partition::assign(&consumer, client, &settings.topic, &spans)?;
        let scout = (!settings.until_end).then(|| Scout::start(&consumer, &settings.topic, count));
        let no_thread = |error: std::io::Error| BrokerError::Client {
            topic: settings.topic.clone(),
            brokers: client.brokers.clone(),
            detail: format!("a thread could not be started: {error}"),
        };
        Ok(Self {
            partitions,
            scout: scout.transpose().map_err(no_thread)?,
            consumer,
            share,
            known: count,
            out_of_range: BTreeSet::new(),
            asked_in_vain: None,
            turn: 0,
            name: settings.topic.as_str().into(),
            client: client.clone(),
            settings,
            contents,
            patience: health::patience(client),
            gone_since: None,
        })
    }

    /// Polls each partition once, beginning with the one whose turn it is.
    fn ask_partitions(&mut self) -> Result<Option<Polled>, BrokerError> {
        let count = self.partitions.len();
        for ahead in 0..count {
            let index = (self.turn + ahead) % count;
            let Some(partition) = self.partitions.get_mut(index) else { continue };
            let number = partition.number;
            let step = partition.step(|message| self.contents.decode(&message, &self.name, &self.settings.identity));
            match step {
                Step::Nothing => {}
                Step::Record(record) => {
                    self.turn = index + 1;
                    return Ok(Some(Polled::Record(record)));
                }
                Step::End => return Ok(Some(Polled::PartitionEnd(number))),
                Step::Error(error) if is_out_of_range(&error) => drop(self.out_of_range.insert(number)),
                Step::Error(error) => self.take_error(&error, Some(number))?,
            }
        }
        Ok(None)
    }

    /// Lets the client library handle its own events and waits so long for some.
    fn serve_client(&mut self, wait: Duration) -> Result<(), BrokerError> {
        let seen = self.consumer.poll(wait).map(|event| event.map(|message| message.offset()));
        match seen {
            None => Ok(()),
            Some(Err(error)) => self.take_error(&error, None),
            // NB: this would break the order within its partition; `partition::assign` explains why it cannot happen.
            Some(Ok(offset)) => Err(BrokerError::Client {
                topic: self.name.to_string(),
                brokers: self.client.brokers.clone(),
                detail: format!("the record at offset {offset} came outside of its partition's queue"),
            }),
        }
    }

    /// The client library reconnects and retries by itself; errors from which it cannot recover end the run.
    fn take_error(&mut self, error: &KafkaError, partition: Option<i32>) -> Result<(), BrokerError> {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                self.gone_since.get_or_insert_with(Instant::now);
                Ok(())
            }
            Some(code) if mends_itself(code) => {
                tracing::debug!(topic = %self.name, ?partition, "{error}");
                Ok(())
            }
            _ => Err(match self.explain(error) {
                BrokerError::UnknownTopic { .. } => self.deleted(),
                other => other,
            }),
        }
    }

    /// If all brokers have been gone for the configured time, asks again, and gives up if none answers.
    fn check_cluster(&mut self) -> Result<(), BrokerError> {
        let Some((since, limit)) = self.gone_since.zip(self.settings.give_up_after) else { return Ok(()) };
        if since.elapsed() < limit {
            return Ok(());
        }
        match self.consumer.fetch_metadata(Some(&self.name), self.client.connect_timeout) {
            Ok(_) => {
                self.gone_since = None;
                Ok(())
            }
            Err(error) => Err(self.explain(&error)),
        }
    }

    fn try_poll(&mut self) -> Result<Polled, BrokerError> {
        if self.settings.until_end && self.partitions.iter().all(|partition| partition.ended) {
            return Ok(Polled::End);
        }
        if let Some(change) = self.look_for_changes()? {
            return Ok(change);
        }
        if let Some(polled) = self.ask_partitions()? {
            return Ok(polled);
        }
        self.serve_client(IDLE_WAIT)?;
        self.check_cluster()?;
        Ok(Polled::Idle)
    }
}

impl Source for TopicSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> Vec<i32> {
        self.partitions.iter().map(|partition| partition.number).collect()
    }

    fn may_grow(&self) -> bool {
        !self.settings.until_end
    }

    fn held(&self, partition: i32) -> Option<Range<i64>> {
        self.partitions.iter().find(|found| found.number == partition).map(|found| found.held.clone())
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        self.try_poll().map_err(|error| error.into_source_error(&self.name))
    }

    /// While no broker answers, or the partition's leader does not, it is unknown whether there are more records.
    fn is_drained(&self, partition: i32) -> bool {
        let found = self.partitions.iter().find(|found| found.number == partition);
        found.is_some_and(|found| found.drained) && self.trouble().is_none() && !self.is_cut_off(partition)
    }

    /// Commits, to the group of the client's properties, how far it has read.
    fn flushed(&mut self) {
        self.commit();
    }

    fn health(&mut self) -> Result<Health, SourceError> {
        self.look_around().map_err(|error| error.into_source_error(&self.name))
    }

    fn set_paused(&mut self, partition: i32, paused: bool) {
        if let Some(found) = self.partitions.iter_mut().find(|found| found.number == partition) {
            found.paused = paused;
        }
    }
}

/// What a reader may fetch ahead, in all its partitions together, before it is read (guess). With the library's defaults each
/// partition would hold 64 MiB.
const FETCHED_AHEAD: usize = 16 << 20;

/// How many times larger records may become once they are decompressed, as profiles of one fleet do (guess).
const COMPRESSED: usize = 8;

fn consumer(
    client: &ClientSettings,
    settings: &TopicSettings,
    partitions: usize,
) -> Result<BaseConsumer<Reporter>, BrokerError> {
    // NB: the library fetches on while a partition holds less than the one, and takes as much as the other at once, compressed. A
    // record that is larger than both is fetched nevertheless.
    let queued = (FETCHED_AHEAD / partitions.max(1)).max(1 << 20);
    let [queued, at_once] = [queued / 1024, queued / COMPRESSED].map(|size| size.to_string());
    let defaults = [
        // None is joined, and what is committed to it is for programs that watch lag: it is never read.
        ("group.id", "fleetdiff"),
        // A gap in the offsets must be detected, not skipped.
        ("auto.offset.reset", "error"),
        // How far the partitions are and whether brokers answer; read twice a second.
        ("statistics.interval.ms", "1000"),
        ("queued.max.messages.kbytes", queued.as_str()),
        ("fetch.message.max.bytes", at_once.as_str()),
        // Whatever a broker holds can be fetched, so that a record that is too large is refused by its offset rather than fetched
        // in vain for ever. This is no buffer: memory is taken for what comes, and `fetch.max.bytes` limits what is asked for.
        ("receive.message.max.bytes", "2147483647"),
    ];
    client
        .config(&defaults, &READS)?
        .create_with_context(Reporter::default())
        .map_err(|error| BrokerError::from_client(&error, &settings.topic, &client.brokers, None))
}

/// Whether a broker has said that it does not hold the offset that is read next.
fn is_out_of_range(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    matches!(code, Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange))
}

/// Errors after which the client library continues by itself: lost connections and moving leaders.
fn mends_itself(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::Resolve
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::RequestTimedOut
            | RDKafkaErrorCode::NotLeaderForPartition
            | RDKafkaErrorCode::LeaderNotAvailable
            | RDKafkaErrorCode::PreferredLeaderNotAvailable
            | RDKafkaErrorCode::FencedLeaderEpoch
            | RDKafkaErrorCode::UnknownLeaderEpoch
            | RDKafkaErrorCode::OffsetNotAvailable
            | RDKafkaErrorCode::NetworkException
    )
}
