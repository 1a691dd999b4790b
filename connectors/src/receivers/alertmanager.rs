//! What Alertmanager should know: one alert per incident that stands.
//!
//! Alertmanager identifies an alert by its labels. Everything that changes while an incident stands is an annotation, except
//! the severity, by which people route: when it changes, the alert with the former severity ends in the same request in which
//! the new one begins. As Prometheus does, alerts that stand are sent again and again, with an end in the near future, so that
//! they end by themselves if fleetdiff is gone; alerts that have ended are repeated for a while, in case Alertmanager restarts.
//!
//! NB: the board knows no network. It decides what to send, and learns what was accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event::Event;
use super::parcel::Parcel;
use super::retry::nanos;

/// For how long the end of an alert is repeated; Prometheus does the same.
const ENDED_FOR: Duration = Duration::from_secs(900);

/// Alerts of one request.
const BATCH: usize = 64;

/// Alertmanager ends an alert by itself after this many resend intervals without news.
const EXPIRES_AFTER: i64 = 4;

/// Longest value of a label, and of an annotation, in bytes.
const LONGEST_LABEL: usize = 1024;
const LONGEST_ANNOTATION: usize = 8192;

type Labels = BTreeMap<String, String>;

/// One alert as Alertmanager should know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Card {
    /// The key of the incident.
    key: String,
    labels: Labels,
    annotations: BTreeMap<String, String>,
    link: Option<String>,
    starts_at: Nanos,
    ended_at: Option<Nanos>,
    /// When it is sent next.
    due: Nanos,
    /// Whether Alertmanager has accepted it as it is.
    accepted: bool,
    /// Increases with each change.
    version: u64,
    /// The events that made it, and that are not accepted yet.
    events: Vec<String>,
}

impl Card {
    fn end(&mut self, now: Nanos) {
        self.ended_at = Some(now);
        self.change(now);
    }

    fn change(&mut self, now: Nanos) {
        self.due = now;
        self.accepted = false;
        self.version += 1;
    }

    fn as_json(&self, now: Nanos, resend_every: Nanos) -> Value {
        let expires = Nanos(resend_every.0.saturating_mul(EXPIRES_AFTER));
        let ends_at = self.ended_at.unwrap_or_else(|| now.plus(expires));
        let mut alert = json!({
            "labels": self.labels,
            "annotations": self.annotations,
            // Alertmanager refuses an alert that ends before it starts.
            "startsAt": rfc3339(self.starts_at.min(ends_at)),
            "endsAt": rfc3339(ends_at),
        });
        if let (Some(link), Some(alert)) = (&self.link, alert.as_object_mut()) {
            alert.insert("generatorURL".to_owned(), json!(link));
        }
        alert
    }
}

/// What Alertmanager should know.
#[derive(Debug)]
pub(super) struct Board {
    resend_every: Nanos,
    cards: BTreeMap<Labels, Card>,
}

impl Board {
    pub(super) fn new(resend_every: Duration) -> Self {
        Self { resend_every: nanos(resend_every), cards: BTreeMap::new() }
    }

    /// From now on, alerts are sent again so often.
    pub(super) fn change(&mut self, resend_every: Duration) {
        self.resend_every = nanos(resend_every);
    }

    /// The alerts of an earlier run; those that were accepted are sent again at once.
    pub(super) fn restore(&mut self, cards: Vec<Card>, now: Nanos) {
        self.cards = cards.into_iter().map(|card| (card.labels.clone(), Card { due: now, ..card })).collect();
    }

    /// For the next run.
    pub(super) fn cards(&self) -> Vec<Card> {
        self.cards.values().cloned().collect()
    }

    /// Takes an event of an incident or of a finding.
    pub(super) fn offer(&mut self, event: &Event, now: Nanos) {
        let labels = labels_of(event);
        let former = self.cards.values_mut().filter(|card| card.key == event.alert.key && card.labels != labels);
        for card in former.filter(|card| card.ended_at.is_none()) {
            card.end(now);
        }
        let card = self.cards.entry(labels).or_insert_with_key(|labels| Card {
            key: event.alert.key.clone(),
            labels: labels.clone(),
            annotations: BTreeMap::new(),
            link: None,
            starts_at: event.since().min(now),
            ended_at: None,
            due: now,
            accepted: false,
            version: 0,
            events: Vec::new(),
        });
        if card.ended_at.is_some() {
            card.starts_at = event.since().min(now);
        }
        card.annotations = annotations_of(event);
        card.link.clone_from(&event.data.link);
        card.events.push(event.alert.id.clone());
        card.ended_at = event.ends().then_some(now);
        card.change(now);
    }

    /// The next request, if it is time for one. Until the service has caught up with the topic, changes wait: what was raised
    /// long ago may have been cleared since.
    pub(super) fn next(&mut self, now: Nanos, caught_up: bool) -> Option<Parcel> {
        let long_over = |card: &Card| card.ended_at.is_some_and(|at| now.since(at) > nanos(ENDED_FOR)) && card.accepted;
        self.cards.retain(|_, card| !long_over(card));
        let is_due = |card: &&Card| self.due_of(card, now, caught_up).is_some_and(|at| at <= now);
        let due: Vec<&Card> = self.cards.values().filter(is_due).take(BATCH).collect();
        if due.is_empty() {
            return None;
        }
        let body: Vec<Value> = due.iter().map(|card| card.as_json(now, self.resend_every)).collect();
        Some(Parcel {
            body: Value::from(body).to_string(),
            content_type: "application/json",
            idempotency_key: None,
            events: due.iter().flat_map(|card| card.events.iter().cloned()).collect(),
            alerts: due.iter().map(|card| (card.labels.clone(), card.version)).collect(),
        })
    }

    /// When the next request is due.
    pub(super) fn due(&self, now: Nanos, caught_up: bool) -> Option<Nanos> {
        self.cards.values().filter_map(|card| self.due_of(card, now, caught_up)).min()
    }

    fn due_of(&self, card: &Card, now: Nanos, caught_up: bool) -> Option<Nanos> {
        // A wall clock that was set back must not let alerts expire.
        (caught_up || card.accepted).then(|| card.due.min(now.plus(self.resend_every)))
    }

    /// Alertmanager has accepted a request.
    pub(super) fn delivered(&mut self, parcel: &Parcel, now: Nanos) {
        for (labels, version) in &parcel.alerts {
            let Some(card) = self.cards.get_mut(labels) else { continue };
            card.events.retain(|id| !parcel.events.contains(id));
            // What changed meanwhile is still due.
            if card.version == *version {
                card.accepted = true;
                card.due = now.plus(self.resend_every);
            }
        }
    }

    /// Alertmanager has refused a request for good; what stands is sent again with the others, in case it changes its mind.
    pub(super) fn refused(&mut self, parcel: &Parcel, now: Nanos) {
        for (labels, version) in &parcel.alerts {
            match self.cards.get_mut(labels) {
                Some(card) if card.version == *version && card.ended_at.is_none() => {
                    card.due = now.plus(self.resend_every);
                }
                Some(card) if card.version == *version => {
                    self.cards.remove(labels);
                }
                _ => {}
            }
        }
    }

    /// How many alerts Alertmanager does not know as they are.
    pub(super) fn waiting(&self) -> usize {
        self.cards.values().filter(|card| !card.accepted).count()
    }

    /// Gives up ends that Alertmanager did not accept, down to this many alerts that wait: it ends those alerts by itself. Returns
    /// how many were given up.
    pub(super) fn shrink(&mut self, capacity: usize) -> u64 {
        let mut surplus = self.waiting().saturating_sub(capacity);
        let mut ended: Vec<(Nanos, Labels)> = self
            .cards
            .iter()
            .filter(|(_, card)| !card.accepted)
            .filter_map(|(labels, card)| Some((card.ended_at?, labels.clone())))
            .collect();
        ended.sort();
        surplus = surplus.min(ended.len());
        for (_, labels) in ended.iter().take(surplus) {
            self.cards.remove(labels);
        }
        u64::try_from(surplus).unwrap_or(u64::MAX)
    }
}

/// What identifies the alert of an incident or a finding: nothing in it changes while the incident stands, except the severity.
fn labels_of(event: &Event) -> Labels {
    let data = &event.data;
    let severity = data.severity.map(|severity| severity.name().to_owned()).unwrap_or_default();
    let labels = [
        ("alertname", event.alert_name().to_owned()),
        ("service", data.service.clone()),
        ("head", data.head_build.clone()),
        ("base", data.base_build.clone()),
        ("cause", data.cause.clone().unwrap_or_default()),
        ("owner", data.owner.clone().unwrap_or_default()),
        ("severity", severity),
    ];
    // Alertmanager takes a label without a value for one that is absent.
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    labels.map(|(name, value)| (name.to_owned(), identifying(value))).collect()
}

/// A long value is cut, and still differs from others that begin alike.
fn identifying(value: String) -> String {
    if value.len() <= LONGEST_LABEL {
        return value;
    }
    format!("{}... {:016x}", cut(&value, LONGEST_LABEL - 20), stable_hash(value.as_bytes()))
}

fn annotations_of(event: &Event) -> BTreeMap<String, String> {
    let data = &event.data;
    let evidence = (!data.evidence.is_empty()).then(|| Value::from(data.evidence.clone()).to_string());
    let annotations = [
        ("summary", Some(data.summary.clone())),
        ("action", Some(data.action.clone())),
        ("confidence", data.confidence.clone()),
        ("impact", data.impact.clone()),
        ("evidence", evidence),
        ("provisional_until", data.provisional_until_at.clone()),
        ("runbook_url", data.runbook.clone()),
        ("link", data.link.clone()),
        ("incident", data.incident_id.clone()),
        ("superseded_by", data.superseded_by.clone()),
        ("superseded_by_incident", data.superseded_by_id.clone()),
        ("cleared_because", data.cleared_because.clone()),
    ];
    let known = annotations.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.map(|(name, value)| (name.to_owned(), cut(&value, LONGEST_ANNOTATION).to_owned())).collect()
}

/// At most this many bytes from the beginning of a text.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
