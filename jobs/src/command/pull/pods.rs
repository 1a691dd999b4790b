//! One thread a pod, each of which asks its pod for profiles, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fleetdiff_connectors::pull::{Endpoint, Pull, Puller};
use fleetdiff_formats::Labels;
use fleetdiff_schemas::time::TimeRange;

use super::tally::Tally;
use super::{labels, now, wait};

/// More pods than this are not followed by one process.
const MOST: usize = 2_000;
/// Room of a thread that does nothing but ask.
const STACK: usize = 512 << 10;
/// How many answers may wait to be written.
const WAITING: usize = 64;

/// What is asked for, and when.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) types: Vec<Pull>,
    pub(super) every: Duration,
    /// When to end: a round of which half would be later does not begin.
    pub(super) until: Option<Instant>,
}

impl Schedule {
    /// Whether another round may begin.
    fn has_room(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() + self.every / 2 <= until)
    }
}

/// What came of a request.
pub(super) enum Taken {
    Profile(Profile),
    Nothing { pod: String, what: &'static str, why: String },
}

/// A profile as it came.
pub(super) struct Profile {
    pub(super) labels: Labels,
    pub(super) bytes: Vec<u8>,
}

/// Why pods are not followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfollowed {
    #[error("nothing says which {what} {pod} is of")]
    Unlabelled { what: &'static str, pod: String },
    #[error("{0} pods, more than the {MOST} that one process follows")]
    TooMany(usize),
    #[error("no thread for a pod")]
    Thread(#[source] io::Error),
}

impl Unfollowed {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Unlabelled { .. } => "say it with --service and --build, or by labels in --targets-file",
            Self::TooMany(_) | Self::Thread(_) => {
                "give the targets to several commands; they may write into one folder or topic"
            }
        }
    }
}

/// All pods that are followed.
pub(super) struct Pods {
    puller: Puller,
    schedule: Schedule,
    /// Set when nothing more is to be asked for.
    stop: Arc<AtomicBool>,
    /// Each with the flag that ends it.
    threads: BTreeMap<Endpoint, (Arc<AtomicBool>, JoinHandle<()>)>,
    sender: SyncSender<Taken>,
    receiver: Receiver<Taken>,
    tally: Tally,
}

impl Pods {
    pub(super) fn new(puller: Puller, schedule: Schedule, stop: Arc<AtomicBool>) -> Self {
        let (sender, receiver) = sync_channel(WAITING);
        Self { puller, schedule, stop, threads: BTreeMap::new(), sender, receiver, tally: Tally::default() }
    }

    /// Follows these pods, and no others if these are known to be all.
    pub(super) fn follow(&mut self, found: BTreeSet<Endpoint>, are_all: bool) -> Result<(), Unfollowed> {
        if found.len() > MOST {
            return Err(Unfollowed::TooMany(found.len()));
        }
        for endpoint in &found {
            let identity = &endpoint.identity;
            let labels = [("service", identity.service.as_str()), ("build", identity.build.as_str())];
            if let Some((what, _)) = labels.into_iter().find(|(_, label)| label.is_empty()) {
                return Err(Unfollowed::Unlabelled { what, pod: identity.pod.to_string() });
            }
        }
        // NB: one that is gone ends with the answer that it waits for.
        self.threads.retain(|endpoint, (gone, thread)| {
            let is_followed = !are_all || found.contains(endpoint);
            gone.store(!is_followed, Ordering::Relaxed);
            is_followed || !thread.is_finished()
        });
        for endpoint in found {
            if self.threads.get(&endpoint).is_none_or(|(_, thread)| thread.is_finished()) {
                let gone = Arc::new(AtomicBool::new(false));
                let asking = Asking {
                    endpoint: endpoint.clone(),
                    puller: self.puller.clone(),
                    schedule: self.schedule.clone(),
                    ends: [Arc::clone(&self.stop), Arc::clone(&gone)],
                    sender: self.sender.clone(),
                };
                let named = thread::Builder::new().name("pull".to_owned()).stack_size(STACK);
                let thread = named.spawn(move || asking.run()).map_err(Unfollowed::Thread)?;
                self.threads.insert(endpoint, (gone, thread));
            }
        }
        Ok(())
    }

    /// What came until now, or within this time if that is nothing.
    pub(super) fn wait(&mut self, most: Duration) -> Vec<Taken> {
        let first = match self.receiver.recv_timeout(most) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Vec::new(),
        };
        let taken: Vec<Taken> = [first].into_iter().chain(self.receiver.try_iter()).collect();
        for one in &taken {
            match one {
                Taken::Profile(profile) => self.tally.profile(&profile.labels.identity.pod),
                Taken::Nothing { .. } => self.tally.failure(),
            }
        }
        taken
    }

    /// Whether it is time to end, and every answer has come.
    pub(super) fn are_done(&self) -> bool {
        !self.schedule.has_room() && self.threads.values().all(|(_, thread)| thread.is_finished())
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// A thread's work.
struct Asking {
    endpoint: Endpoint,
    puller: Puller,
    schedule: Schedule,
    ends: [Arc<AtomicBool>; 2],
    sender: SyncSender<Taken>,
}

impl Asking {
    fn run(self) {
        while self.schedule.has_room() && !self.is_ended() {
            let begun = Instant::now();
            for what in &self.schedule.types {
                // Nobody waits for it any more.
                if self.is_ended() || self.sender.send(self.ask(*what)).is_err() {
                    return;
                }
            }
            // Also where a profile of the processor was refused at once.
            wait(self.schedule.every.saturating_sub(begun.elapsed()), || self.is_ended());
        }
    }

    fn is_ended(&self) -> bool {
        self.ends.iter().any(|end| end.load(Ordering::Relaxed))
    }

    fn ask(&self, what: Pull) -> Taken {
        let Endpoint { identity, .. } = &self.endpoint;
        let begun = now();
        match self.puller.pull(&self.endpoint, what, self.schedule.every.as_secs()) {
            Ok(bytes) => {
                let labels = labels(identity, what, TimeRange { start: begun, end: now() });
                Taken::Profile(Profile { labels, bytes })
            }
            Err(why) => {
                Taken::Nothing { pod: identity.pod.to_string(), what: what.profile_type().name(), why: why.to_string() }
            }
        }
    }
}
