//! When a number of a function or a call path may be given to another one.
//!
//! Workers share the tables of names and paths, and numbers are in flight between them. What has become unused is therefore found in
//! rounds: in each, every worker marks what it holds for long, and whoever meets a name marks it. Once all workers have done so, what
//! was marked neither in this round nor in the one before is forgotten, if all that was met earlier has arrived: who meets names says
//! before up to which hop they are in flight.
//!
//! No row depends on numbers, so none depends on rounds.
//!
//! If a run has several processes, the first one gives all numbers ([`super::numbers`]). What another process has met and not forgotten
//! is held there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The first round. Nothing was met before.
pub(super) const FIRST: u32 = 1;

/// The number of the current round, and who has finished it.
#[derive(Debug)]
pub(super) struct Rounds {
    now: AtomicU32,
    /// The last hop of anything that was met in this round.
    last_hop: AtomicU64,
    finishing: Mutex<Finishing>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { now: AtomicU32::new(FIRST), last_hop: AtomicU64::default(), finishing: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct Finishing {
    /// What each worker that has finished this round had closed by then.
    closed: BTreeMap<usize, u64>,
    /// The last hops of what was met in the round before this one, and in any before that.
    last_hops: [u64; 2],
}

impl Rounds {
    /// The number of the current round.
    pub fn now(&self) -> u32 {
        self.now.load(Ordering::Acquire)
    }

    /// What is met from now on is in flight until this hop.
    pub fn in_flight(&self, until: u64) {
        if self.last_hop.load(Ordering::Acquire) < until {
            self.last_hop.fetch_max(until, Ordering::AcqRel);
        }
    }

    /// A worker has marked what it holds, and has closed this hop. If it was the last, `forget` is called with the first round whose
    /// marks still count, and the next round begins; unless what was met before that may still be in flight.
    pub fn finish(&self, worker: usize, workers: usize, hop: u64, forget: impl FnOnce(u32)) {
        let mut finishing = self.finishing.lock().unwrap_or_else(PoisonError::into_inner);
        finishing.closed.insert(worker, hop);
        let [before, earlier] = finishing.last_hops;
        if finishing.closed.len() < workers || finishing.closed.values().any(|&closed| closed < earlier) {
            return;
        }
        let round = self.now();
        forget(round.saturating_sub(1));
        finishing.closed.clear();
        // NB: in this order. Whoever says a hop first and then meets a name never has the name in an earlier round than the hop.
        self.now.store(round + 1, Ordering::Release);
        finishing.last_hops = [self.last_hop.swap(0, Ordering::AcqRel), before.max(earlier)];
    }
}

/// The last round in which something was marked, and which other processes hold it.
#[derive(Debug)]
pub(super) struct Mark {
    round: AtomicU32,
    /// A bit each.
    holders: AtomicU32,
}

impl Mark {
    /// Of what nobody has met.
    pub fn none() -> Self {
        Self::new(0)
    }

    pub fn new(round: u32) -> Self {
        Self { round: AtomicU32::new(round), holders: AtomicU32::new(0) }
    }

    /// Whether somebody has met it and it is not forgotten.
    pub fn is_met(&self) -> bool {
        self.get() > 0
    }

    /// Whether it was marked since round `first`, or another process holds it.
    pub fn counts_since(&self, first: u32) -> bool {
        self.get() >= first || self.holders.load(Ordering::Relaxed) > 0
    }

    /// Another process holds it.
    pub fn hold(&self, process: usize) {
        self.holders.fetch_or(bit(process), Ordering::Relaxed);
    }

    /// Another process has forgotten it. What it has sent of it may still be in flight, so it is marked in this round.
    pub fn let_go(&self, process: usize, round: u32) {
        self.set(round);
        self.holders.fetch_and(!bit(process), Ordering::Relaxed);
    }

    /// Marks it in this round. Whoever forgets holds the lock of the table alone, so no order of memory is needed.
    #[inline]
    pub fn set(&self, round: u32) {
        // Most marks are there already, and a cache line that is only read stays shared.
        if self.get() < round {
            self.round.fetch_max(round, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn get(&self) -> u32 {
        self.round.load(Ordering::Relaxed)
    }
}

/// The bit of a process. A run has at most as many as there are bits.
fn bit(process: usize) -> u32 {
    u32::try_from(process).ok().and_then(|process| 1_u32.checked_shl(process)).unwrap_or(0)
}
