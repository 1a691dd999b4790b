//! Findings about load and memory on their way to people: each receiver gets the same words, and an end.

use std::time::Duration;

use fleetdiff_connectors::receivers::{Endpoint, ReceiverKind, ReceiverSettings, Receivers};
use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::rows::{HeapFindingRow, Interval, ScalingFindingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{FlagState, HeapClass, Severity};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::alertmanager::Alertmanager;
use crate::hook::Hook;
use crate::incidents::{ago, guidance};

const GRACE: Duration = Duration::from_secs(10);

/// A hidden leak; `sequence` orders what is said about it.
fn leak(state: FlagState, sequence: u64) -> Alert {
    let row = HeapFindingRow {
        service: "checkout".into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        class: HeapClass::HiddenLeak,
        state,
        severity: Severity::Ticket,
        raised_at: ago(20),
        changed_at: ago(10),
        sequence: Hop(sequence),
        leaks_in: vec!["tv in north".to_owned()],
        carried_by: vec!["Vec<T>::push".to_owned()],
        live_ratio: Some(Interval { value: 1.5, low: 1.4, high: 1.6 }),
        cleared_because: (state == FlagState::Cleared).then(|| "no_longer_found".to_owned()),
        summary: format!("Hidden leak: v2 keeps more memory, {sequence}. Most is kept by Vec<T>::push."),
        action: "Before v2 runs out of memory, roll v2 back there.".to_owned(),
        ..HeapFindingRow::blank()
    };
    Alert::of_heap(&row, &guidance()).unwrap()
}

/// A function that scales worse.
fn under_load(state: FlagState, sequence: u64) -> Alert {
    let row = ScalingFindingRow {
        service: "checkout".into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        cause: "encode".into(),
        state,
        severity: Severity::Ticket,
        raised_at: ago(20),
        changed_at: ago(10),
        sequence: Hop(sequence),
        cleared_because: (state == FlagState::Cleared).then(|| "scales_equally".to_owned()),
        summary: format!("encode: v2 scales worse than v1, {sequence}."),
        action: "Add pods.".to_owned(),
        ..ScalingFindingRow::blank()
    };
    Alert::of_scaling(&row, &guidance()).unwrap()
}

/// One finding of each kind, from raised to its end.
fn both() -> Vec<Alert> {
    let states = [FlagState::Raised, FlagState::Updated, FlagState::Cleared];
    (1..).zip(states).flat_map(|(sequence, state)| [leak(state, sequence), under_load(state, sequence)]).collect()
}

fn settings(kind: ReceiverKind, url: &str) -> ReceiverSettings {
    ReceiverSettings {
        resend_every: Duration::from_secs(1),
        first_retry: Duration::from_millis(50),
        ..ReceiverSettings::new("r", kind, Endpoint::parse(url).unwrap())
    }
}

/// The bodies of the requests that a receiver gets.
fn bodies(kind: ReceiverKind, alerts: &[Alert]) -> Vec<Value> {
    let (hook, output) = (Hook::start(Vec::new()), TempDir::new().unwrap());
    let receivers = Receivers::start(&[settings(kind, &hook.url("/hook"))], output.path()).unwrap();
    receivers.offer(alerts, ago(5));
    receivers.finish(GRACE);
    hook.requests().iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

#[test]
fn a_webhook_gets_each_change_of_a_finding_as_its_event() {
    let alerts = both();
    let got = bodies(ReceiverKind::Webhook, &alerts);
    let lines: Vec<Value> = alerts.iter().map(|alert| serde_json::from_str(&alert.line()).unwrap()).collect();
    assert_eq!(got, lines, "as in the file of alerts, and in order");
    let heap: Vec<&Value> = got.iter().filter(|event| event["type"] == "dev.fleetdiff.heap.v1").collect();
    assert_eq!(heap.len(), 3);
    assert_eq!(heap[0]["subject"], "v2 against v1: memory");
    assert_eq!(heap[0]["partitionkey"], r#"["checkout","v2","v1",null,"heap"]"#);
    assert_eq!(heap[0]["data"]["class"], "hidden_leak");
    assert_eq!(heap[0]["data"]["carried_by"], json!(["Vec<T>::push"]));
    assert_eq!(heap[0]["data"]["live_ratio"], json!(1.5));
    assert_eq!(heap[2]["data"]["cleared_because"], "no_longer_found");
}

#[test]
fn slack_gets_findings_in_words() {
    let got = bodies(ReceiverKind::Slack, &both());
    let texts: Vec<&str> = got.iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 6);
    assert_eq!(
        texts[0],
        "Raised, ticket: checkout, v2 against v1\nHidden leak: v2 keeps more memory, 1. Most is kept by Vec&lt;T&gt;::push.\n\
         Before v2 runs out of memory, roll v2 back there.\n<https://runbooks.example/canary|Runbook>"
    );
    assert!(texts[1].starts_with("Raised, ticket: checkout, v2 against v1\nencode: v2 scales worse than v1, 1.\n"));
    assert!(texts[4].starts_with("Cleared, ticket: "), "{}", texts[4]);
    assert_eq!(got[0]["blocks"][0]["text"]["text"], "Raised, ticket: checkout, v2 against v1");
}

#[test]
fn alertmanager_has_one_alert_for_each_finding_until_its_end() {
    let (server, output) = (Alertmanager::start(), TempDir::new().unwrap());
    let receivers = Receivers::start(&[settings(ReceiverKind::Alertmanager, &server.url())], output.path()).unwrap();
    let of = |alert: &Value, kind: &str, name: &str| alert[kind][name].as_str().unwrap_or_default().to_owned();
    let names = |firing: &[Value]| {
        let mut names: Vec<String> = firing.iter().map(|alert| of(alert, "labels", "alertname")).collect();
        names.sort();
        names
    };
    receivers.offer(&[leak(FlagState::Raised, 1), under_load(FlagState::Raised, 1)], ago(5));
    server.wait_until("both are raised", |firing| names(firing) == ["FleetdiffHeap", "FleetdiffScaling"]);
    receivers.offer(&[leak(FlagState::Updated, 2)], ago(5));
    let is_new = |alert: &Value| of(alert, "annotations", "summary").contains("more memory, 2.");
    let firing = server.wait_until("the leak has grown", |firing| firing.iter().any(is_new));
    assert_eq!(names(&firing), ["FleetdiffHeap", "FleetdiffScaling"], "still one for it");
    let leaking = firing.iter().find(|alert| is_new(alert)).unwrap();
    assert_eq!(of(leaking, "annotations", "action"), "Before v2 runs out of memory, roll v2 back there.");
    let labels = ["service", "head", "base", "cause", "severity", "owner"].map(|name| of(leaking, "labels", name));
    assert_eq!(labels, ["checkout", "v2", "v1", "", "ticket", "team-shop"]);
    receivers.offer(&[leak(FlagState::Cleared, 3)], ago(5));
    server.wait_until("the leak is over", |firing| names(firing) == ["FleetdiffScaling"]);
    receivers.offer(&[under_load(FlagState::Cleared, 3)], ago(5));
    server.wait_until("both are over", <[Value]>::is_empty);
    receivers.finish(GRACE);
}
