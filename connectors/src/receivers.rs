//! Delivery of incidents to people: Alertmanager, Slack, and webhooks.
//!
//! The topic or file of alerts is where alerts are certain to be; a receiver gets them from there on, as well as the network
//! allows. Each receiver has a thread and a bounded queue of its own, so that none delays the dataflow or another receiver. What
//! is sent, and when it is repeated, is decided without a network (`line`); `http` sends it.

mod alertmanager;
mod event;
mod http;
mod line;
mod messages;
mod parcel;
mod queue;
mod retry;
mod sample;
mod settings;
mod slack;
mod state;
mod template;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::time::Nanos;

pub use self::line::ReceiverCounts;
pub use self::settings::{Endpoint, Filter, ReceiverKind, ReceiverSettings, Secret};
pub use self::state::RECEIVERS_FOLDER;
pub use self::worker::test;

use self::event::Event;
use self::state::{Saved, StateFile};
use self::template::Template;
use self::worker::Worker;
use crate::output::OutputError;
use crate::store::Place;

/// A receiver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// Its template is wrong.
    #[error("receiver {name}: the template cannot be used: {detail}")]
    Template {
        /// The receiver.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// What it has got cannot be read or written.
    #[error("receiver {name}: {source}")]
    State {
        /// The receiver.
        name: String,
        /// Why not.
        source: OutputError,
    },
    /// No thread can be started.
    #[error("receiver {name}: no thread can be started: {detail}")]
    Thread {
        /// The receiver.
        name: String,
        /// The system's message.
        detail: String,
    },
}

impl ReceiverError {
    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Template { .. } => "unusable_template",
            Self::State { source, .. } => source.code(),
            Self::Thread { .. } => "no_thread",
        }
    }
}

/// All receivers of a run. Clones are handles to the same receivers.
#[derive(Clone, Debug, Default)]
pub struct Receivers {
    workers: Arc<Mutex<Vec<Worker>>>,
}

impl Receivers {
    /// Starts them. What they have got is kept in [`RECEIVERS_FOLDER`] in the output, so that a run that makes the same
    /// events again does not send them again.
    ///
    /// # Errors
    /// [`ReceiverError`].
    pub fn start(settings: &[ReceiverSettings], place: impl Into<Place>) -> Result<Self, ReceiverError> {
        let place = place.into();
        let workers = settings.iter().map(|settings| Worker::start(settings, &place)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { workers: Arc::new(Mutex::new(workers)) })
    }

    /// Before they are started for an output that is begun anew: which alerts stand follows from that one, so Alertmanager hears of them
    /// as from a first run, and ends those by itself of which it does not. What messages have said is not said again.
    ///
    /// # Errors
    /// [`ReceiverError::State`].
    pub fn begin_anew(settings: &[ReceiverSettings], place: impl Into<Place>) -> Result<(), ReceiverError> {
        let place = place.into();
        for ReceiverSettings { name, .. } in settings.iter().filter(|one| one.kind == ReceiverKind::Alertmanager) {
            let written = StateFile::create(&place, name).and_then(|mut file| file.write(&Saved::default()));
            written.map_err(|source| ReceiverError::State { name: name.clone(), source })?;
        }
        Ok(())
    }

    /// Goes on with other settings, each known by its name: one that is known changes and keeps what waits for it, one that is new
    /// gets what happens from now on, and one that is not named any more gets nothing further, not even what waits for it. The kind
    /// of a known receiver must stay.
    ///
    /// # Errors
    /// [`ReceiverError`]; nothing has changed then.
    pub fn change(&self, settings: &[ReceiverSettings], place: impl Into<Place>) -> Result<(), ReceiverError> {
        let place = place.into();
        for one in settings {
            let unusable = |detail| ReceiverError::Template { name: one.name.clone(), detail };
            Template::of(one).map(drop).map_err(unusable)?;
        }
        let known = self.lock().clone();
        let mut workers = Vec::with_capacity(settings.len());
        let mut new: Vec<Worker> = Vec::new();
        for one in settings {
            if let Some(worker) = known.iter().find(|worker| worker.name() == one.name) {
                workers.push(worker.clone());
                continue;
            }
            match Worker::start(one, &place) {
                Ok(worker) => new.push(worker),
                Err(error) => {
                    new.iter().for_each(Worker::part);
                    return Err(error);
                }
            }
        }
        for worker in &workers {
            let same = settings.iter().find(|one| one.name == worker.name());
            same.map_or(Ok(()), |one| worker.change(one))?;
        }
        workers.extend(new);
        let gone = known.iter().filter(|worker| !settings.iter().any(|one| one.name == worker.name()));
        *self.lock() = workers;
        gone.for_each(Worker::part);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the alerts of one hop, in order, and how far event time has come. Returns at once.
    pub fn offer(&self, alerts: &[Alert], through: Nanos) {
        let workers = self.lock();
        if workers.is_empty() {
            return;
        }
        let mut events = Vec::with_capacity(alerts.len());
        for alert in alerts {
            match Event::of(alert) {
                Ok(event) => events.push(event),
                Err(error) => tracing::error!("alert {} is not sent to receivers: {error}", alert.id),
            }
        }
        for worker in workers.iter() {
            worker.offer(&events, through);
        }
    }

    /// What happened so far, by receiver.
    pub fn counts(&self) -> Vec<(String, ReceiverCounts)> {
        self.lock().iter().map(|worker| (worker.name().to_owned(), worker.counts())).collect()
    }

    /// Sends what waits, for at most this long, and logs what could not be delivered. Alerts that stand are not resolved: they
    /// were not cleared.
    pub fn finish(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        // NB: a copy, so that whoever asks for counts meanwhile is answered.
        let workers = self.lock().clone();
        for worker in &workers {
            worker.close(deadline);
        }
        for worker in &workers {
            worker.wait(deadline);
        }
    }
}
