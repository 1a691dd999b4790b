//! What is sent to receivers, without a network: whatever happens to incidents, and however often requests fail.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetdiff_schemas::alert::{Alert, AlertType, Guidance};
use fleetdiff_schemas::rows::IncidentRow;
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{IncidentState, Severity, Support};
use proptest::prelude::*;
use serde_json::Value;

use super::event::Event;
use super::line::{Line, Note, ReceiverCounts, Step};
use super::parcel::Parcel;
use super::retry::Answer;
use super::settings::{Endpoint, Filter, ReceiverKind, ReceiverSettings};
use super::state::Saved;

const START: i64 = 1_772_358_000;

fn settings(kind: ReceiverKind) -> ReceiverSettings {
    ReceiverSettings::new("r", kind, Endpoint::parse("http://receiver.example").unwrap())
}

fn line(settings: &ReceiverSettings) -> Line {
    Line::new(settings, Saved::default(), at(0)).unwrap()
}

fn at(seconds: i64) -> Nanos {
    Nanos::from_seconds(START + seconds)
}

fn alert(cause: &str, state: IncidentState, severity: Severity, second: i64, text: &str) -> Alert {
    let row = IncidentRow {
        service: "checkout".into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        cause: cause.to_owned(),
        incident_id: format!("incident of {cause}"),
        state,
        severity,
        support: Support::Firm,
        raised_at: at(0),
        changed_at: at(second),
        sequence: Hop(u64::try_from(second).unwrap()),
        superseded_by: (state == IncidentState::Superseded).then(|| "g".to_owned()),
        summary: format!("{text} costs 10 % more."),
        action: format!("Roll back {text}."),
        confidence: "p = 1e-9.".to_owned(),
        impact: "+1.4 %.".to_owned(),
        ..IncidentRow::blank()
    };
    let guidance = Guidance { link: "https://d.example/{cause}".to_owned(), ..Guidance::default() };
    Alert::of_incident(&row, &guidance).unwrap()
}

fn event(cause: &str, state: IncidentState, severity: Severity, second: i64) -> Event {
    Event::of(&alert(cause, state, severity, second, cause)).unwrap()
}

/// Alertmanager as far as its API shows: labels to whether the alert ends, and when.
#[derive(Default)]
struct Alertmanager {
    alerts: BTreeMap<String, i64>,
}

impl Alertmanager {
    fn take(&mut self, parcel: &Parcel) {
        let body: Value = serde_json::from_str(&parcel.body).unwrap();
        for alert in body.as_array().unwrap() {
            let second = |name: &str| alert[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second();
            assert!(second("startsAt") <= second("endsAt"), "{alert}");
            self.alerts.insert(alert["labels"].to_string(), second("endsAt"));
        }
    }

    fn firing(&self, now: Nanos) -> BTreeSet<(String, String)> {
        let labels = self.alerts.iter().filter(|(_, end)| Nanos::from_seconds(**end) > now).map(|(labels, _)| labels);
        let read = |labels: &String| {
            let labels: Value = serde_json::from_str(labels).unwrap();
            (labels["cause"].as_str().unwrap().to_owned(), labels["severity"].as_str().unwrap().to_owned())
        };
        labels.map(read).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Incident(u8, IncidentState, Severity),
    /// The next request is answered so.
    Answered(u16),
    /// It arrives, but the answer is lost.
    Lost,
    /// It is accepted, and an incident changes before the answer is there.
    Overtaken(u8, Severity),
    /// The service is stopped and started again.
    Restarted,
    Seconds(u16),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let state = prop::sample::select(vec![
        IncidentState::Raised,
        IncidentState::Updated,
        IncidentState::Updated,
        IncidentState::Superseded,
        IncidentState::Cleared,
    ]);
    let severity = prop::sample::select(vec![Severity::Page, Severity::Ticket, Severity::Info]);
    let happening = prop_oneof![
        4 => (0_u8..4, state, severity).prop_map(|(cause, state, severity)| Happening::Incident(cause, state, severity)),
        3 => prop::sample::select(vec![200_u16, 429, 500, 503]).prop_map(Happening::Answered),
        1 => Just(Happening::Lost),
        2 => (0_u8..4, prop::sample::select(vec![Severity::Page, Severity::Ticket]))
            .prop_map(|(cause, severity)| Happening::Overtaken(cause, severity)),
        1 => Just(Happening::Restarted),
        2 => (1_u16..400).prop_map(Happening::Seconds),
    ];
    prop::collection::vec(happening, 1..60)
}

fn answer(status: u16) -> Answer {
    if status == 200 {
        return Answer::Accepted;
    }
    Answer::Refused { status, excerpt: String::new(), retry_after: None }
}

/// Sends what is due, as long as requests are accepted.
fn drain(line: &mut Line, alertmanager: &mut Alertmanager, now: Nanos) {
    for _ in 0..20 {
        let Step::Send(parcel) = line.next(now, &mut Vec::new()) else { return };
        alertmanager.take(&parcel);
        line.answered(&parcel, &Answer::Accepted, now);
    }
    panic!("it never rests");
}

proptest! {
    /// The law: once requests pass again, Alertmanager's firing alerts are the incidents that stand, each once, with its present
    /// severity, and they still are long after, as long as the service runs.
    #[test]
    fn the_firing_alerts_are_the_standing_incidents(happenings in happenings()) {
        let settings = settings(ReceiverKind::Alertmanager);
        let (mut line, mut alertmanager) = (line(&settings), Alertmanager::default());
        line.reached(at(0), at(0));
        let (mut standing, mut second) = (BTreeMap::new(), 0_i64);
        let mut all = Vec::new();
        for happening in happenings {
            second += 1;
            let now = at(second);
            line.reached(now, now);
            match happening {
                Happening::Incident(cause, state, severity) => {
                    let cause = format!("f{cause}");
                    let is_end = matches!(state, IncidentState::Cleared | IncidentState::Superseded);
                    if is_end && !standing.contains_key(&cause) {
                        continue;
                    }
                    let severity = if is_end { standing[&cause] } else { severity };
                    let event = event(&cause, state, severity, second);
                    line.offer(&event, now);
                    all.push(event);
                    if is_end { standing.remove(&cause) } else { standing.insert(cause, severity) };
                }
                Happening::Answered(status) => {
                    if let Step::Send(parcel) = line.next(now, &mut Vec::new()) {
                        if status == 200 {
                            alertmanager.take(&parcel);
                        }
                        line.answered(&parcel, &answer(status), now);
                    }
                }
                Happening::Lost => {
                    if let Step::Send(parcel) = line.next(now, &mut Vec::new()) {
                        alertmanager.take(&parcel);
                        line.answered(&parcel, &Answer::Silence("lost".to_owned()), now);
                    }
                }
                Happening::Overtaken(cause, severity) => {
                    let Step::Send(parcel) = line.next(now, &mut Vec::new()) else { continue };
                    alertmanager.take(&parcel);
                    let cause = format!("f{cause}");
                    // An incident that stands ends, another one is raised.
                    let ended = standing.remove(&cause);
                    let state = if ended.is_some() { IncidentState::Cleared } else { IncidentState::Raised };
                    let event = event(&cause, state, ended.unwrap_or(severity), second);
                    line.offer(&event, now);
                    all.push(event);
                    if ended.is_none() {
                        standing.insert(cause, severity);
                    }
                    line.answered(&parcel, &Answer::Accepted, now);
                }
                Happening::Restarted => {
                    let saved = serde_json::to_string(&line.saved()).unwrap();
                    line = Line::new(&settings, serde_json::from_str(&saved).unwrap(), now).unwrap();
                    // It reads the topic again from its beginning.
                    all.iter().for_each(|event| line.offer(event, now));
                    line.reached(now, now);
                }
                Happening::Seconds(seconds) => second += i64::from(seconds),
            }
        }
        // NB: longer than any wait between retries.
        for later in [120, 150, 200, 240, 290, 340] {
            drain(&mut line, &mut alertmanager, at(second + later));
            let expected: BTreeSet<(String, String)> =
                standing.iter().map(|(cause, severity)| (cause.clone(), severity.name().to_owned())).collect();
            prop_assert_eq!(alertmanager.firing(at(second + later)), expected);
        }
    }
}

#[test]
fn alerts_that_stand_are_sent_again_before_they_expire() {
    let mut line = line(&settings(ReceiverKind::Alertmanager));
    line.reached(at(0), at(0));
    line.offer(&event("f", IncidentState::Raised, Severity::Page, 0), at(0));
    let Step::Send(parcel) = line.next(at(0), &mut Vec::new()) else { panic!("nothing is sent") };
    let body: Value = serde_json::from_str(&parcel.body).unwrap();
    assert_eq!(
        (body[0]["startsAt"].as_str(), body[0]["endsAt"].as_str()),
        (Some("2026-03-01T09:40:00Z"), Some("2026-03-01T09:44:00Z"))
    );
    assert_eq!(body[0]["generatorURL"], "https://d.example/f");
    line.answered(&parcel, &Answer::Accepted, at(1));
    assert_eq!(line.next(at(2), &mut Vec::new()), Step::Wait(at(61)));
    assert!(matches!(line.next(at(61), &mut Vec::new()), Step::Send(_)));
    // After the end it is repeated for a quarter of an hour.
    line.offer(&event("f", IncidentState::Cleared, Severity::Page, 70), at(70));
    let mut sent = 0;
    for second in (70..2000).step_by(10) {
        if let Step::Send(parcel) = line.next(at(second), &mut Vec::new()) {
            assert!(parcel.body.contains("\"endsAt\":\"2026-03-01T09:41:10Z\""), "{}", parcel.body);
            line.answered(&parcel, &Answer::Accepted, at(second));
            sent += 1;
        }
    }
    assert!((14..=16).contains(&sent), "{sent} times");
    assert_eq!(line.next(at(2000), &mut Vec::new()), Step::Rest);
}

#[test]
fn a_service_that_catches_up_wakes_nobody_for_what_is_over() {
    let mut line = line(&settings(ReceiverKind::Alertmanager));
    let now = at(100_000);
    line.offer(&event("old", IncidentState::Raised, Severity::Page, 10), now);
    line.offer(&event("stands", IncidentState::Raised, Severity::Page, 20), now);
    line.reached(at(30), now);
    assert_eq!(line.next(now, &mut Vec::new()), Step::Rest);
    line.offer(&event("old", IncidentState::Cleared, Severity::Page, 40), now);
    line.reached(at(99_990), now);
    let mut alertmanager = Alertmanager::default();
    drain(&mut line, &mut alertmanager, now);
    assert_eq!(alertmanager.firing(now), [("stands".to_owned(), "page".to_owned())].into());

    let mut messages = self::line(&settings(ReceiverKind::Webhook));
    messages.offer(&event("old", IncidentState::Raised, Severity::Page, 10), now);
    assert_eq!(messages.next(now, &mut Vec::new()), Step::Rest);
    assert_eq!(messages.counts(), ReceiverCounts { outdated: 1, ..ReceiverCounts::default() });
}

/// The causes and types of all events that are sent.
fn sent(line: &mut Line, now: Nanos) -> Vec<(String, String)> {
    let mut sent = Vec::new();
    while let Step::Send(parcel) = line.next(now, &mut Vec::new()) {
        let body: Value = serde_json::from_str(&parcel.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        sent.push((text(&body["data"]["cause"]), text(&body["data"]["state"])));
        line.answered(&parcel, &Answer::Accepted, now);
    }
    sent
}

#[test]
fn a_full_queue_keeps_the_latest_of_each_incident_and_their_order() {
    let mut line = line(&ReceiverSettings { queue: 3, ..settings(ReceiverKind::Webhook) });
    for (second, cause) in [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "c")] {
        let state = if second < 3 { IncidentState::Raised } else { IncidentState::Updated };
        line.offer(&event(cause, state, Severity::Page, second), at(second));
    }
    assert_eq!((line.counts().dropped, line.counts().waiting), (2, 3));
    let order: Vec<String> = sent(&mut line, at(6)).into_iter().map(|(cause, _)| cause).collect();
    // b's update replaced its predecessor; a's raise was the oldest when c came.
    assert_eq!(order, ["a", "b", "c"]);
}

#[test]
fn an_incident_is_followed_to_its_end_once_it_was_severe() {
    let filter = Filter { minimum_severity: Severity::Page, services: vec!["check*".to_owned()], ..Filter::default() };
    let mut line = line(&ReceiverSettings { filter: filter.clone(), ..settings(ReceiverKind::Webhook) });
    for (second, cause, state, severity) in [
        (1, "mild", IncidentState::Raised, Severity::Ticket),
        (2, "f", IncidentState::Raised, Severity::Ticket),
        (3, "f", IncidentState::Updated, Severity::Page),
        (4, "f", IncidentState::Updated, Severity::Ticket),
        (5, "f", IncidentState::Cleared, Severity::Ticket),
        (6, "mild", IncidentState::Cleared, Severity::Ticket),
    ] {
        line.offer(&event(cause, state, severity, second), at(second));
    }
    let states: Vec<String> = sent(&mut line, at(7)).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["updated", "updated", "cleared"]);
    let elsewhere = Filter { services: vec!["search".to_owned()], ..filter };
    let mut line = self::line(&ReceiverSettings { filter: elsewhere, ..settings(ReceiverKind::Webhook) });
    line.offer(&event("f", IncidentState::Raised, Severity::Page, 1), at(1));
    assert_eq!(line.counts().waiting, 0);
}

#[test]
fn a_webhook_that_refuses_one_event_for_an_hour_gets_the_next_one() {
    let mut line = line(&settings(ReceiverKind::Webhook));
    for (second, cause) in [(1, "poison"), (2, "f")] {
        line.offer(&event(cause, IncidentState::Raised, Severity::Page, second), at(second));
    }
    let (mut second, mut notes) = (3, 0);
    let passed = loop {
        match line.next(at(second), &mut Vec::new()) {
            Step::Send(parcel) if parcel.body.contains("poison") => {
                notes += usize::from(line.answered(&parcel, &answer(500), at(second)).is_some());
            }
            Step::Send(parcel) => break line.answered(&parcel, &Answer::Accepted, at(second)),
            Step::Wait(_) => second += 1,
            Step::Rest => panic!("it rests"),
        }
    };
    assert_eq!(passed, None);
    assert!((3600..3800).contains(&second), "after {second} s");
    assert!((25..70).contains(&notes), "at most one line a minute, not {notes}");
    assert_eq!(line.counts().failed, 1);
    // While there is no answer at all, nothing is given up.
    line.offer(&event("g", IncidentState::Raised, Severity::Page, second), at(second));
    for later in (second..second + 100_000).step_by(60) {
        if let Step::Send(parcel) = line.next(at(later), &mut Vec::new()) {
            let note = line.answered(&parcel, &Answer::Silence("no route".to_owned()), at(later));
            assert!(!matches!(note, Some(Note::Refused(_))));
        }
    }
    assert_eq!((line.counts().waiting, line.counts().failed), (1, 1));
}

#[test]
fn a_receiver_gets_no_event_again_from_a_run_that_makes_it_again() {
    let settings = settings(ReceiverKind::Webhook);
    let mut first = line(&settings);
    let events = [1, 2].map(|second| event("f", IncidentState::Updated, Severity::Page, second));
    first.offer(&event("f", IncidentState::Raised, Severity::Page, 0), at(0));
    first.offer(&events[0], at(1));
    assert_eq!(sent(&mut first, at(2)).len(), 2);
    let mut second = Line::new(&settings, first.saved(), at(3)).unwrap();
    second.offer(&event("f", IncidentState::Raised, Severity::Page, 0), at(3));
    events.iter().for_each(|event| second.offer(event, at(3)));
    assert_eq!(sent(&mut second, at(3)).len(), 1);
}

/// Texts that want out of their string, or to wake a channel.
fn hostile() -> Vec<String> {
    vec![
        "\"},{\"text\":\"x".to_owned(),
        "<!channel> <!here> <@U123> @channel & \n> quote".to_owned(),
        "{{ id }} {% include 'x' %}".to_owned(),
        "\u{0}\u{1b}[31m\u{7f}\u{202e}\r\n\t\\".to_owned(),
        "std::vector<std::pair<const char*, f&&>>::".repeat(2500),
    ]
}

#[test]
fn hostile_texts_make_valid_messages_that_mention_nobody() {
    let mut line = line(&settings(ReceiverKind::Slack));
    for (second, text) in (0..).zip(hostile()) {
        let alert = alert(&text, IncidentState::Raised, Severity::Page, second, &text);
        line.offer(&Event::of(&alert).unwrap(), at(second));
        let Step::Send(parcel) = line.next(at(second), &mut Vec::new()) else { panic!("{text:.60}: not sent") };
        let message: Value = serde_json::from_str(&parcel.body).unwrap();
        let members: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert_eq!(members, ["blocks", "text"]);
        let texts = texts_of(&message);
        assert!(texts.len() > 4, "{texts:?}");
        for text in texts {
            let length = text.chars().count();
            assert!((1..=3000).contains(&length) || std::ptr::eq(text, message["text"].as_str().unwrap()), "{length}");
            assert!(length < 8000, "{length}");
            for mention in ["<!", "<@", "<#", "@channel"] {
                assert!(!text.contains(mention), "{text:.200}");
            }
            // The only angle brackets are those of our links.
            let links = text.matches("|Dashboard>").count();
            assert_eq!((text.matches('<').count(), text.matches('>').count()), (links, links), "{text:.200}");
        }
        let heading = message["blocks"][0]["text"]["text"].as_str().unwrap();
        assert!(heading.chars().count() <= 150 && heading.starts_with("Raised, page: checkout"), "{heading}");
        line.answered(&parcel, &Answer::Accepted, at(second));
    }
}

/// Every text that Slack would show.
fn texts_of(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(parts) => parts.iter().flat_map(texts_of).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if name == "text" => vec![text.as_str()],
                other => texts_of(other),
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_template_of_ones_own_writes_whole_values() {
    let template = r#"{"what": {{ state }}, "about": {{ data.summary }}, "more": {{ ["a", data.cause] }}}"#;
    let own =
        |template: &str| ReceiverSettings { template: Some(template.to_owned()), ..settings(ReceiverKind::Webhook) };
    let mut line = line(&own(template));
    for (second, text) in (0..).zip(hostile()) {
        let alert = alert(&text, IncidentState::Raised, Severity::Page, second, &text);
        line.offer(&Event::of(&alert).unwrap(), at(second));
        let Step::Send(parcel) = line.next(at(second), &mut Vec::new()) else { panic!("not sent") };
        let body: Value = serde_json::from_str(&parcel.body).unwrap();
        assert_eq!(body["more"][1], text.as_str());
        line.answered(&parcel, &Answer::Accepted, at(second));
    }
    for (template, part) in [
        ("{", "not JSON"),
        ("{\"text\": \"{{ state }}\"}", "without quotes"),
        ("{{ sate }}", "line 1 of the template: undefined"),
        ("{}\n{% if %}", "line 2 of the template: syntax error"),
    ] {
        let refusal = Line::new(&own(template), Saved::default(), at(0)).unwrap_err();
        assert!(refusal.contains(part), "{template}: {refusal}");
    }
}

#[test]
fn verdicts_are_sent_to_who_asks_for_them() {
    let verdicts: Vec<Event> = super::sample::events()
        .unwrap()
        .into_iter()
        .filter(|event| event.alert.alert_type == AlertType::Verdict)
        .collect();
    for (events, waiting) in [(Filter::default().events, 0), (AlertType::ALL.to_vec(), 1)] {
        let filter = Filter { events, ..Filter::default() };
        let settings = ReceiverSettings { filter, maximum_age: Duration::ZERO, ..settings(ReceiverKind::Slack) };
        let mut line = line(&settings);
        line.offer(&verdicts[0], at(0));
        assert_eq!(line.counts().waiting, waiting);
        if waiting > 0 {
            let Step::Send(parcel) = line.next(at(0), &mut Vec::new()) else { panic!("not sent") };
            assert!(parcel.body.contains("Verdict: fleetdiff-test"), "{}", parcel.body);
        }
    }
}
