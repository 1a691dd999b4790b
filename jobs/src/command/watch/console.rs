//! What a service shows of itself: one overview, from which the log, the metrics and the answers over HTTP are made, so that
//! they cannot disagree.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetdiff_connectors::receivers::{ReceiverCounts, Receivers};
use fleetdiff_pipeline::run::pulse::diagnosis::{Diagnosis, Now, diagnose};
use fleetdiff_pipeline::run::pulse::{PartitionVitals, Pulse, Vitals};
use fleetdiff_pipeline::run::wall::wall_now;
use fleetdiff_schemas::time::{HopClock, Nanos};
use serde_json::Value as Json;

use super::done::Done;
use crate::configuration::Configuration;

/// How long a worker may be at one step before the process counts as hanging (guess: far above the longest look).
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// What an overview needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) clock: HopClock,
    pub(crate) idle_after: Option<Duration>,
}

/// The configuration that a service has, and how its changes went.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    /// How far behind a service may be that is ready.
    pub(crate) ready_within: Duration,
    /// The configuration, without secrets.
    pub(crate) configuration: Json,
    /// When it was read, since 1970.
    pub(crate) read_at: Nanos,
    /// How often it was read again, and used or refused.
    pub(crate) reloads: u64,
    pub(crate) refusals: u64,
    /// Why the last one was refused, if it was.
    pub(crate) refused: Option<String>,
    /// Keys that have changed and need a restart.
    pub(crate) needs_restart: Vec<String>,
}

impl InUse {
    /// What a service begins with.
    pub(crate) fn new(configuration: &Configuration, now: Nanos) -> Self {
        let ready_within = configuration.status.ready_within;
        Self { ready_within, configuration: configuration.shown(), read_at: now, ..Self::default() }
    }

    /// Another configuration was taken, but for these keys.
    pub(crate) fn reloaded(&mut self, configuration: &Configuration, needs_restart: Vec<String>, now: Nanos) {
        let (reloads, refusals) = (self.reloads + 1, self.refusals);
        *self = Self { reloads, refusals, needs_restart, ..Self::new(configuration, now) };
    }

    /// Another configuration could not be used.
    pub(crate) fn refused(&mut self, why: String) {
        self.refusals += 1;
        self.refused = Some(why);
    }
}

/// Where the state of a service is kept for whoever asks.
pub(crate) struct Console {
    pulse: Pulse,
    done: Mutex<Done>,
    receivers: Receivers,
    terms: Terms,
    in_use: Mutex<InUse>,
}

/// The state of a service at one moment.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) vitals: Vitals,
    pub(crate) done: Done,
    pub(crate) now: Now,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) receivers: Vec<(String, ReceiverCounts)>,
    pub(crate) in_use: InUse,
    /// Memory of the process, where the system tells.
    pub(crate) resident_bytes: Option<u64>,
}

impl Console {
    pub(crate) fn new(pulse: Pulse, receivers: Receivers, terms: Terms, in_use: InUse) -> Arc<Self> {
        Arc::new(Self { pulse, done: Mutex::default(), receivers, terms, in_use: Mutex::new(in_use) })
    }

    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The configuration that it has. NB: not to be held while anything is written.
    pub(crate) fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was done so far. NB: not to be held while anything is written.
    pub(crate) fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state at this moment.
    pub(crate) fn overview(&self) -> Overview {
        let Terms { clock, idle_after, .. } = self.terms;
        let vitals = self.pulse.read();
        let now = Now { instant: Instant::now(), wall: wall_now(), clock, idle_after };
        let diagnosis = diagnose(&vitals, &now);
        let receivers = self.receivers.counts();
        Overview {
            diagnosis,
            now,
            vitals,
            done: self.done().clone(),
            receivers,
            in_use: self.in_use().clone(),
            resident_bytes: resident_bytes(),
        }
    }
}

impl Overview {
    /// Why the process must be started again, if it must.
    pub(crate) fn hangs(&self) -> Option<String> {
        // What waits for room or for brokers goes on by itself; a restart would only wait again.
        if !self.vitals.output.waiting.is_empty() {
            return None;
        }
        let steps = self.vitals.workers.iter().map(|(worker, &step)| (self.now.age(step), worker));
        let (age, worker) = steps.max()?;
        (age > HANGS_AFTER).then(|| format!("worker {worker} has taken no step for {} s", age.as_secs()))
    }

    /// Why the service is not ready: not connected, nothing readable, or further behind than it may be.
    pub(crate) fn not_ready(&self) -> Option<String> {
        use fleetdiff_pipeline::run::pulse::diagnosis::Condition::{
            AllRefused, BrokerUnreachable, SinkBlocked, Starting,
        };
        if matches!(self.diagnosis.condition, Starting | BrokerUnreachable | SinkBlocked | AllRefused) {
            return Some(self.diagnosis.reason.clone());
        }
        let within = Nanos(i64::try_from(self.in_use.ready_within.as_nanos()).unwrap_or(i64::MAX));
        let behind = |partition: &&PartitionVitals| self.lag_time(partition).is_none_or(|lag| lag > within);
        let count = self.vitals.partitions.values().filter(behind).count();
        let waiting = self.vitals.lag();
        (count > 0).then(|| {
            format!("{count} partitions are further behind than status.ready_within, {waiting} records in all")
        })
    }

    /// How old the last record of a partition is, if more are waiting.
    pub(crate) fn lag_time(&self, partition: &PartitionVitals) -> Option<Nanos> {
        partition.lag_time(self.now.wall)
    }
}

/// Memory of this process that is in use, by Linux.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}
