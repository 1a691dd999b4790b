//! Whether the other processes of a run are alive.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a process says that it is alive.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// How long a process may say nothing.
const SILENT: Duration = Duration::from_secs(15);

/// Ends this process, since the run has lost one: (which, why).
pub type Lose = dyn Fn(usize, &str) + Send + Sync;

/// Says to another process that one is lost, and why.
pub(super) type LastWords = Box<dyn FnMut(&str) + Send>;

/// What is known of the life of a run.
pub(super) struct Life {
    /// Until all workers of this process have ended.
    running: AtomicBool,
    lost: AtomicBool,
    lose: Box<Lose>,
    /// What is said before the process ends.
    last_words: Mutex<Vec<LastWords>>,
}

impl Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Life {
    pub(super) fn new(lose: Box<Lose>) -> Self {
        Self { running: AtomicBool::new(true), lost: AtomicBool::new(false), lose, last_words: Mutex::default() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// All workers of this process have ended.
    pub(super) fn ended(&self) {
        self.running.store(false, Ordering::Release);
    }

    /// What is to be said to another process when one is lost.
    pub(super) fn last_words(&self, say: LastWords) {
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner).push(say);
    }

    /// A process is lost, and with it the run.
    pub(super) fn lose(&self, process: usize, why: &str) {
        if self.lost.swap(true, Ordering::AcqRel) {
            return;
        }
        let text = format!("process {process}: {why}");
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|say| say(&text));
        (self.lose)(process, why);
    }
}

/// Another process with which this one exchanges messages.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) process: usize,
    began: Instant,
    /// When it was last heard, in milliseconds since then.
    heard: AtomicU64,
    /// Whether something that it has said is being done, so that it is not listened to.
    busy: AtomicBool,
    ended: AtomicBool,
}

impl Peer {
    pub(super) fn new(process: usize) -> Arc<Self> {
        let [busy, ended] = [false, false].map(AtomicBool::new);
        Arc::new(Self { process, began: Instant::now(), heard: AtomicU64::new(0), busy, ended })
    }

    pub(super) fn heard(&self) {
        self.heard.store(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Does something for it.
    pub(super) fn busy<T>(&self, with: impl FnOnce() -> T) -> T {
        self.busy.store(true, Ordering::Release);
        let done = with();
        self.heard();
        self.busy.store(false, Ordering::Release);
        done
    }

    /// It has said that it has ended.
    pub(super) fn ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether it has said nothing for too long.
    pub(super) fn is_silent(&self) -> bool {
        let heard = Duration::from_millis(self.heard.load(Ordering::Acquire));
        !self.has_ended() && !self.busy.load(Ordering::Acquire) && self.began.elapsed().saturating_sub(heard) > SILENT
    }

    /// How long it may say nothing, for people.
    pub(super) fn why_silent() -> String {
        format!("it has said nothing for {} s", SILENT.as_secs())
    }
}
