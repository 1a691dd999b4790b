//! Looks every few seconds how many partitions a topic has, whether it is still there, and whether its partitions still hold what
//! was read of them. The answer of a broker may take long, so this has a thread of its own: a reader never waits for it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::Offset;

use crate::kafka::client::Reporter;
use crate::kafka::topic;

/// How often it looks (guess: a change is said within 15 s, for two small requests a partition).
const EVERY: Duration = Duration::from_secs(5);

/// How often it looks while the topic seems to be gone, and for how long that must last: a broker that has just started may not
/// know all topics yet (guess).
const AGAIN: Duration = Duration::from_secs(1);
const GONE_AFTER: Duration = Duration::from_secs(4);

/// How long a look may take. The end of a reader waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that looks, and what it has found. It ends with its reader.
pub(super) struct Scout {
    found: Arc<Found>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Found {
    partitions: AtomicI32,
    is_gone: AtomicBool,
    shrunk: OnceLock<Shrunk>,
}

/// A partition that ends before what was read of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shrunk {
    pub(super) partition: i32,
    /// The offset that is read next.
    pub(super) next: i64,
    /// The offset after its last record.
    pub(super) end: i64,
}

impl Scout {
    /// Begins to look at a topic that had so many partitions a moment ago.
    pub(super) fn start(consumer: &Arc<BaseConsumer<Reporter>>, topic: &str, partitions: i32) -> io::Result<Self> {
        let partitions = AtomicI32::new(partitions);
        let found = Arc::new(Found { partitions, is_gone: AtomicBool::new(false), shrunk: OnceLock::new() });
        let (stop, stopped) = channel();
        let (into, topic, consumer) = (Arc::clone(&found), topic.to_owned(), Arc::downgrade(consumer));
        let look = move || look_until(&stopped, &consumer, &topic, &into);
        let thread = std::thread::Builder::new().name("topic".to_owned()).spawn(look)?;
        Ok(Self { found, stop: Some(stop), thread: Some(thread) })
    }

    /// How many partitions the topic has.
    pub(super) fn partitions(&self) -> i32 {
        self.found.partitions.load(Ordering::Acquire)
    }

    /// Whether brokers answer that there is no such topic.
    pub(super) fn is_gone(&self) -> bool {
        self.found.is_gone.load(Ordering::Acquire)
    }

    /// The first partition that was found to end before what was read of it.
    pub(super) fn shrunk(&self) -> Option<Shrunk> {
        self.found.shrunk.get().copied()
    }
}

impl Drop for Scout {
    fn drop(&mut self) {
        drop(self.stop.take());
        // NB: the client library must not outlive the reader in a thread of its own, which the end of the program would cut off.
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that looks for added partitions has panicked");
        }
    }
}

fn look_until(stopped: &Receiver<()>, consumer: &Weak<BaseConsumer<Reporter>>, topic: &str, found: &Found) {
    let mut missing_since = None;
    loop {
        let wait = if missing_since.is_some() { AGAIN } else { EVERY };
        if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Some(consumer) = consumer.upgrade() else { return };
        match topic::partitions_seen(&consumer, topic, PATIENCE) {
            Ok(Some(count)) => {
                missing_since = None;
                found.partitions.fetch_max(count, Ordering::AcqRel);
                if let Some(shrunk) = find_shrunk(&consumer, topic) {
                    found.shrunk.get_or_init(|| shrunk);
                }
            }
            Ok(None) => {
                let since = *missing_since.get_or_insert_with(Instant::now);
                found.is_gone.fetch_or(since.elapsed() >= GONE_AFTER, Ordering::AcqRel);
            }
            // The reader finds out by itself whether brokers answer.
            Err(_) => {}
        }
    }
}

/// A partition that ends before what was read of it: it does not hold the same records any more.
fn find_shrunk(consumer: &BaseConsumer<Reporter>, topic: &str) -> Option<Shrunk> {
    // NB: positions are asked first. Meanwhile partitions only grow.
    let positions = consumer.position().ok()?;
    for position in positions.elements() {
        let (partition, Offset::Offset(next)) = (position.partition(), position.offset()) else { continue };
        // A broker that does not answer is asked again next time.
        let (_, end) = consumer.fetch_watermarks(topic, partition, PATIENCE).ok()?;
        if end < next {
            return Some(Shrunk { partition, next, end });
        }
    }
    None
}
