//! What is sent to one receiver, and when: its plan, its retries and its counts, without a network.

use std::collections::BTreeSet;
use std::time::Duration;

use fleetdiff_schemas::alert::AlertType;
use fleetdiff_schemas::time::Nanos;

use super::alertmanager::Board;
use super::event::{Admission, Event};
use super::messages::Messages;
use super::parcel::Parcel;
use super::retry::{Answer, Fate, Retry, nanos};
use super::settings::{ReceiverKind, ReceiverSettings};
use super::state::Saved;
use super::template::Template;

/// A webhook that answers, but refuses an event for this long, does not get it: others wait behind it.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3600);

/// Longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What happened at one receiver so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Requests that were accepted.
    pub sent: u64,
    /// Requests that failed and are repeated.
    pub retried: u64,
    /// Requests that were refused for good, and events that could not be written.
    pub failed: u64,
    /// Events that were given up because too many waited.
    pub dropped: u64,
    /// Events that were too old to be sent.
    pub outdated: u64,
    /// Events that wait; for Alertmanager, alerts that it does not know as they are.
    pub waiting: usize,
}

#[derive(Debug)]
enum Plan {
    Board(Board),
    Messages(Box<Messages>),
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send it, and say how it went.
    Send(Parcel),
    /// Ask again then.
    Wait(Nanos),
    /// Ask again after the next event.
    Rest,
}

/// What is worth a line in the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The first failure, or another one after a minute of failures.
    Failing(String),
    /// Delivered again after this many failures.
    Recovered(u32),
    /// Given up.
    Refused(String),
}

/// One receiver.
#[derive(Debug)]
pub(super) struct Line {
    plan: Plan,
    admission: Admission,
    retry: Retry,
    maximum_age: Duration,
    capacity: usize,
    delivered: BTreeSet<String>,
    caught_up: bool,
    noted_at: Option<Nanos>,
    counts: ReceiverCounts,
}

impl Line {
    /// A receiver that has got what an earlier run says.
    ///
    /// # Errors
    /// The template cannot be used, in words.
    pub(super) fn new(settings: &ReceiverSettings, saved: Saved, now: Nanos) -> Result<Self, String> {
        let plan = match settings.kind {
            ReceiverKind::Alertmanager => {
                let mut board = Board::new(settings.resend_every);
                board.restore(saved.alerts, now);
                Plan::Board(board)
            }
            ReceiverKind::Slack | ReceiverKind::Webhook => {
                Plan::Messages(Box::new(Messages::new(settings.queue, Template::of(settings)?)))
            }
        };
        Ok(Self {
            plan,
            admission: Admission::new(settings.filter.clone()),
            retry: retry(settings),
            maximum_age: settings.maximum_age,
            capacity: settings.queue,
            delivered: saved.delivered,
            caught_up: settings.maximum_age.is_zero(),
            noted_at: None,
            counts: ReceiverCounts::default(),
        })
    }

    /// From now on, it has these settings, of the same kind. What waits stays, and is tried at once.
    ///
    /// # Errors
    /// The template cannot be used, in words; nothing has changed then.
    pub(super) fn change(&mut self, settings: &ReceiverSettings) -> Result<(), String> {
        match &mut self.plan {
            Plan::Board(board) => board.change(settings.resend_every),
            Plan::Messages(messages) => messages.change(settings.queue, Template::of(settings)?),
        }
        self.admission.change(settings.filter.clone());
        self.retry = retry(settings);
        self.noted_at = None;
        self.maximum_age = settings.maximum_age;
        self.capacity = settings.queue;
        self.caught_up |= settings.maximum_age.is_zero();
        Ok(())
    }

    /// Event time has come this far.
    pub(super) fn reached(&mut self, through: Nanos, now: Nanos) {
        // Once reached, the present is not left again: a fleet that is silent for hours is no reason to be silent too.
        self.caught_up |= self.is_recent(through, now);
    }

    fn is_recent(&self, at: Nanos, now: Nanos) -> bool {
        self.maximum_age.is_zero() || now.since(at) <= nanos(self.maximum_age)
    }

    /// There will be no more events: what waits for the present is due.
    pub(super) fn ended(&mut self) {
        self.caught_up = true;
    }

    /// Takes an event if the receiver should get it.
    pub(super) fn offer(&mut self, event: &Event, now: Nanos) {
        if !self.admission.admits(event) || self.delivered.contains(&event.alert.id) {
            return;
        }
        let is_recent = self.is_recent(event.alert.at, now);
        match &mut self.plan {
            Plan::Board(board) => {
                if event.alert.alert_type != AlertType::Verdict {
                    board.offer(event, now);
                    self.counts.dropped += board.shrink(self.capacity);
                }
            }
            Plan::Messages(_) if !is_recent => self.counts.outdated += 1,
            Plan::Messages(messages) => self.counts.dropped += u64::from(messages.offer(event.clone()).is_some()),
        }
    }

    /// What to do now; notes are for the log.
    pub(super) fn next(&mut self, now: Nanos, notes: &mut Vec<Note>) -> Step {
        if let Some(at) = self.retry.not_before(now) {
            return Step::Wait(at);
        }
        let parcel = match &mut self.plan {
            Plan::Board(board) => board.next(now, self.caught_up),
            Plan::Messages(messages) => loop {
                match messages.next() {
                    Ok(parcel) => break parcel,
                    Err(why) => {
                        self.counts.failed += 1;
                        notes.push(Note::Refused(why));
                    }
                }
            },
        };
        parcel.map_or_else(|| self.rest(now), Step::Send)
    }

    fn rest(&self, now: Nanos) -> Step {
        match &self.plan {
            Plan::Board(board) => board.due(now, self.caught_up).map_or(Step::Rest, Step::Wait),
            Plan::Messages(_) => Step::Rest,
        }
    }

    /// Learns what became of a request.
    pub(super) fn answered(&mut self, parcel: &Parcel, answer: &Answer, now: Nanos) -> Option<Note> {
        match answer.fate() {
            Fate::Delivered => {
                self.counts.sent += 1;
                self.delivered.extend(parcel.events.iter().cloned());
                match &mut self.plan {
                    Plan::Board(board) => board.delivered(parcel, now),
                    Plan::Messages(messages) => messages.settled(),
                }
                let failures = self.retry.failures();
                self.retry.reset();
                self.noted_at = None;
                (failures > 0).then_some(Note::Recovered(failures))
            }
            Fate::Repeat if !self.gives_up(answer, now) => {
                self.counts.retried += 1;
                self.retry.failed(answer, now);
                let silent_since = self.noted_at.map(|at| now.since(at));
                let due = silent_since.is_none_or(|since| since >= nanos(LONGEST_WAIT));
                due.then(|| {
                    self.noted_at = Some(now);
                    Note::Failing(answer.to_string())
                })
            }
            Fate::Repeat | Fate::Hopeless => {
                self.counts.failed += 1;
                match &mut self.plan {
                    Plan::Board(board) => board.refused(parcel, now),
                    Plan::Messages(messages) => messages.settled(),
                }
                self.retry.reset();
                Some(Note::Refused(answer.to_string()))
            }
        }
    }

    fn gives_up(&self, answer: &Answer, now: Nanos) -> bool {
        let is_answer = matches!(answer, Answer::Refused { .. });
        is_answer && matches!(self.plan, Plan::Messages(_)) && self.retry.refused_for(now) > GIVE_UP_AFTER
    }

    /// How much is not delivered.
    pub(super) fn waiting(&self) -> usize {
        match &self.plan {
            Plan::Board(board) => board.waiting(),
            Plan::Messages(messages) => messages.waiting(),
        }
    }

    /// What happened so far.
    pub(super) fn counts(&self) -> ReceiverCounts {
        ReceiverCounts { waiting: self.waiting(), ..self.counts }
    }

    /// What the next run must know.
    pub(super) fn saved(&self) -> Saved {
        let alerts = match &self.plan {
            Plan::Board(board) => board.cards(),
            Plan::Messages(_) => Vec::new(),
        };
        Saved { delivered: self.delivered.clone(), alerts }
    }
}

fn retry(settings: &ReceiverSettings) -> Retry {
    Retry::new(settings.first_retry, LONGEST_WAIT.min(settings.resend_every), &settings.name)
}
