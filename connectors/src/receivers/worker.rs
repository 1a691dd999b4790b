//! The thread of one receiver.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::IncidentState;

use super::ReceiverError;
use super::event::Event;
use super::http::Client;
use super::line::{Line, Note, ReceiverCounts, Step};
use super::retry::{Answer, nanos};
use super::sample;
use super::settings::{ReceiverKind, ReceiverSettings};
use super::state::{Saved, StateFile};
use crate::store::Place;

/// Nothing is asked of the clock for longer than this, in case it was set.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// How long the last request of a receiver that is taken away is waited for at most: nothing else is reloaded meanwhile.
const PARTING: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct State {
    settings: Arc<ReceiverSettings>,
    client: Arc<Client>,
    line: Line,
    /// The run is over: what waits is sent until then.
    closing: Option<Instant>,
    is_over: bool,
}

#[derive(Debug)]
struct Shared {
    name: String,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle of the thread.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn start(settings: &ReceiverSettings, place: &Place) -> Result<Self, ReceiverError> {
        let name = || settings.name.clone();
        let refused = |source| ReceiverError::State { name: name(), source };
        let file = StateFile::create(place, &settings.name).map_err(refused)?;
        let saved = file.read().map_err(refused)?;
        let line =
            Line::new(settings, saved, now()).map_err(|detail| ReceiverError::Template { name: name(), detail })?;
        let client = Arc::new(Client::new(settings));
        let state = State { settings: Arc::new(settings.clone()), client, line, closing: None, is_over: false };
        let shared = Arc::new(Shared { name: name(), state: Mutex::new(state), changed: Condvar::new() });
        let thread = std::thread::Builder::new().name(format!("receiver-{}", settings.name));
        let of_thread = Arc::clone(&shared);
        let started = thread.spawn(move || work(&of_thread, file));
        started.map_err(|error| ReceiverError::Thread { name: name(), detail: error.to_string() })?;
        tracing::info!("incidents also to {}: {} at {}", settings.name, settings.kind.name(), settings.endpoint);
        Ok(Self { shared })
    }

    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    /// From now on, it has these settings, of the same kind. What waits stays, and is tried at once.
    pub(super) fn change(&self, settings: &ReceiverSettings) -> Result<(), ReceiverError> {
        let mut state = self.shared.lock();
        if *state.settings != *settings {
            let name = || settings.name.clone();
            let changed = state.line.change(settings);
            changed.map_err(|detail| ReceiverError::Template { name: name(), detail })?;
            state.client = Arc::new(Client::new(settings));
            state.settings = Arc::new(settings.clone());
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// It is taken away: nothing more is sent after the request of this moment, for which this waits, so that a receiver of the
    /// same name may be started.
    pub(super) fn part(&self) {
        let now = Instant::now();
        self.close(now);
        let timeout = self.shared.lock().settings.timeout;
        self.wait(now + timeout.min(PARTING));
        tracing::info!("incidents no longer to {}", self.name());
    }

    pub(super) fn offer(&self, events: &[Event], through: Nanos) {
        let mut state = self.shared.lock();
        let now = now();
        state.line.reached(through, now);
        for event in events {
            state.line.offer(event, now);
        }
        self.shared.changed.notify_all();
    }

    pub(super) fn counts(&self) -> ReceiverCounts {
        self.shared.lock().line.counts()
    }

    /// The run is over; what waits is sent until the deadline.
    pub(super) fn close(&self, deadline: Instant) {
        let mut state = self.shared.lock();
        state.line.ended();
        state.closing = Some(deadline);
        self.shared.changed.notify_all();
    }

    /// Waits for the thread until the deadline, and logs what it did not deliver. A thread that hangs in a request is left behind.
    pub(super) fn wait(&self, deadline: Instant) {
        let mut state = self.shared.lock();
        while !state.is_over {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let ReceiverCounts { waiting, dropped, failed, outdated, .. } = state.line.counts();
        let ReceiverSettings { name, endpoint, maximum_age, .. } = &*state.settings;
        if waiting > 0 {
            tracing::warn!(
                "receiver {name} ({endpoint}): {waiting} not delivered; the next run with this output folder sends them"
            );
        }
        if dropped > 0 || failed > 0 {
            tracing::warn!("receiver {name} ({endpoint}): {dropped} dropped because too many waited, {failed} refused");
        }
        if outdated > 0 {
            let age = maximum_age.as_secs();
            tracing::info!("receiver {name} ({endpoint}): {outdated} events older than {age} s were not sent");
        }
    }
}

fn work(shared: &Shared, mut file: StateFile) {
    let mut state = shared.lock();
    loop {
        if state.closing.is_some_and(|deadline| state.line.waiting() == 0 || Instant::now() >= deadline) {
            break;
        }
        let mut notes = Vec::new();
        let step = state.line.next(now(), &mut notes);
        notes.iter().for_each(|note| log(&state.settings, note));
        let sleep = match step {
            Step::Send(parcel) => {
                let left = state.closing.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                let timeout = left.unwrap_or(Duration::MAX).min(state.settings.timeout).max(Duration::from_millis(1));
                let client = Arc::clone(&state.client);
                drop(state);
                let answer = client.send(&parcel, timeout, now());
                state = shared.lock();
                if answer != Answer::Accepted && !Arc::ptr_eq(&client, &state.client) {
                    // It was sent by settings that have changed meanwhile: the new ones are tried at once.
                    continue;
                }
                if let Some(note) = state.line.answered(&parcel, &answer, now()) {
                    log(&state.settings, &note);
                }
                if answer == Answer::Accepted {
                    state = save(state, shared, &mut file);
                }
                continue;
            }
            Step::Wait(at) => Duration::from_nanos(u64::try_from(at.since(now()).0).unwrap_or(0)),
            Step::Rest => LONGEST_SLEEP,
        };
        // Nothing more is due before the end.
        if state.closing.is_some_and(|deadline| Instant::now() + sleep > deadline) {
            break;
        }
        let sleep = sleep.clamp(Duration::from_millis(1), LONGEST_SLEEP);
        state = shared.changed.wait_timeout(state, sleep).unwrap_or_else(PoisonError::into_inner).0;
    }
    state = save(state, shared, &mut file);
    state.is_over = true;
    shared.changed.notify_all();
}

/// Delivery matters more than its record: without it, the next run sends some events twice. Nobody waits for the disk or the store.
fn save<'a>(state: MutexGuard<'a, State>, shared: &'a Shared, file: &mut StateFile) -> MutexGuard<'a, State> {
    let saved = state.line.saved();
    drop(state);
    if let Err(error) = file.write(&saved) {
        tracing::warn!("receiver {}: what was delivered is not recorded: {error}", shared.name);
    }
    shared.lock()
}

fn log(settings: &ReceiverSettings, note: &Note) {
    let ReceiverSettings { name, endpoint, .. } = settings;
    match note {
        Note::Failing(why) => tracing::warn!("receiver {name} ({endpoint}): {why}; trying again"),
        Note::Recovered(failures) => {
            tracing::info!("receiver {name} ({endpoint}): delivered again after {failures} failures");
        }
        Note::Refused(why) => tracing::warn!("receiver {name} ({endpoint}): not delivered, and not tried again: {why}"),
    }
}

/// Sends a test message to a receiver, once, and returns what it answered, in words.
///
/// # Errors
/// Why it does not have the message, in words.
pub fn test(settings: &ReceiverSettings) -> Result<String, String> {
    let everything = ReceiverSettings {
        filter: super::Filter::default(),
        maximum_age: Duration::ZERO,
        // Long enough to be seen, and resolved by itself.
        resend_every: Duration::from_secs(15),
        ..settings.clone()
    };
    let mut line = Line::new(&everything, Saved::default(), now())?;
    let alert = sample::incident(IncidentState::Raised, now()).map_err(|error| error.to_string())?;
    line.offer(&Event::of(&alert).map_err(|error| error.to_string())?, now());
    let mut notes = Vec::new();
    let Step::Send(parcel) = line.next(now(), &mut notes) else { return Err(format!("{notes:?}")) };
    match Client::new(settings).send(&parcel, settings.timeout, now()) {
        Answer::Accepted if settings.kind == ReceiverKind::Alertmanager => {
            Ok("accepted; the test alert of service fleetdiff-test ends by itself in a minute".to_owned())
        }
        Answer::Accepted => Ok("accepted".to_owned()),
        answer => Err(answer.to_string()),
    }
}

/// The wall clock.
fn now() -> Nanos {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Nanos(0), nanos)
}
