//! Alertmanager.

use std::thread::sleep;
use std::time::Duration;

use fleetdiff_connectors::receivers::{Endpoint, ReceiverKind, ReceiverSettings, Receivers};
use fleetdiff_schemas::verdict::{IncidentState, Severity};
use serde_json::Value;
use tempfile::TempDir;

use crate::alertmanager::Alertmanager;
use crate::incidents::{ago, alert};

const GRACE: Duration = Duration::from_secs(5);

fn receivers(server: &Alertmanager, output: &TempDir) -> Receivers {
    let settings = ReceiverSettings {
        resend_every: Duration::from_secs(1),
        first_retry: Duration::from_millis(100),
        ..ReceiverSettings::new("oncall", ReceiverKind::Alertmanager, Endpoint::parse(&server.url()).unwrap())
    };
    Receivers::start(&[settings], output.path()).unwrap()
}

fn of(alert: &Value, kind: &str, name: &str) -> String {
    alert[kind][name].as_str().unwrap_or_default().to_owned()
}

fn causes(firing: &[Value]) -> Vec<String> {
    let mut causes: Vec<String> = firing.iter().map(|alert| of(alert, "labels", "cause")).collect();
    causes.sort();
    causes
}

#[test]
fn one_alert_per_incident_from_raised_to_its_end() {
    let (mut server, output) = (Alertmanager::start(), TempDir::new().unwrap());
    let receivers = receivers(&server, &output);
    let offer = |cause: &str, state, severity, sequence| {
        receivers.offer(&[alert(cause, state, severity, sequence)], ago(5));
    };
    offer("f", IncidentState::Raised, Severity::Ticket, 1);
    offer("caller", IncidentState::Raised, Severity::Page, 1);
    let firing = server.wait_until("two are raised", |firing| causes(firing) == ["caller", "f"]);
    let f = firing.iter().find(|alert| of(alert, "labels", "cause") == "f").unwrap();
    for (name, value) in
        [("summary", "f costs 10 % more, 1."), ("action", "Roll back v2."), ("link", "https://d.example/f")]
    {
        assert_eq!(of(f, "annotations", name), value);
    }
    assert_eq!(of(f, "annotations", "runbook_url"), "https://runbooks.example/canary");
    assert_eq!((of(f, "labels", "owner"), of(f, "labels", "severity")), ("team-shop".into(), "ticket".into()));
    assert_eq!(f["generatorURL"], "https://d.example/f");

    offer("f", IncidentState::Updated, Severity::Ticket, 2);
    let updated = |firing: &[Value]| firing.iter().any(|alert| of(alert, "annotations", "summary").ends_with(", 2."));
    let firing = server.wait_until("one is updated", updated);
    assert_eq!(causes(&firing), ["caller", "f"]);

    offer("f", IncidentState::Updated, Severity::Page, 3);
    let is_page = |firing: &[Value]| firing.iter().any(|alert| of(alert, "annotations", "summary").ends_with(", 3."));
    let firing = server.wait_until("its severity changes", is_page);
    assert_eq!(causes(&firing), ["caller", "f"], "still one alert for it");
    assert!(firing.iter().all(|alert| of(alert, "labels", "severity") == "page"));

    // An alert expires 4 s after it was sent, unless it is sent again.
    sleep(Duration::from_secs(6));
    assert_eq!(causes(&server.firing()), ["caller", "f"]);

    // NB: Alertmanager forgets its alerts when it restarts.
    server.restart();
    server.wait_until("they are there again", |firing| causes(firing) == ["caller", "f"]);

    offer("caller", IncidentState::Superseded, Severity::Page, 4);
    server.wait_until("one is superseded", |firing| causes(firing) == ["f"]);
    offer("f", IncidentState::Cleared, Severity::Page, 5);
    server.wait_until("one is cleared", <[Value]>::is_empty);
    receivers.finish(GRACE);
    let counts = receivers.counts()[0].1;
    assert!((counts.waiting, counts.dropped, counts.failed) == (0, 0, 0) && counts.sent >= 6, "{counts:?}");
}

#[test]
fn a_service_that_starts_again_goes_on_with_its_alerts() {
    let (server, output) = (Alertmanager::start(), TempDir::new().unwrap());
    let raised = ["f", "g"].map(|cause| alert(cause, IncidentState::Raised, Severity::Page, 1));
    let first = receivers(&server, &output);
    first.offer(&raised, ago(5));
    server.wait_until("both are raised", |firing| firing.len() == 2);
    first.finish(GRACE);
    server.wait_until("both expire without the service", <[Value]>::is_empty);

    // Before it has read anything, its alerts are there again; of what it reads again, nothing is news.
    let second = receivers(&server, &output);
    server.wait_until("both are there again", |firing| firing.len() == 2);
    second.offer(&raised, ago(5));
    second.offer(&[alert("f", IncidentState::Cleared, Severity::Page, 2)], ago(5));
    server.wait_until("one is cleared", |firing| causes(firing) == ["g"]);
    second.finish(GRACE);
}

#[test]
fn an_end_during_an_outage_arrives_after_it() {
    let (mut server, output) = (Alertmanager::start(), TempDir::new().unwrap());
    let receivers = receivers(&server, &output);
    receivers.offer(&[alert("f", IncidentState::Raised, Severity::Page, 1)], ago(5));
    server.wait_until("it is raised", |firing| firing.len() == 1);
    server.stop();
    receivers.offer(&[alert("f", IncidentState::Cleared, Severity::Page, 2)], ago(5));
    sleep(Duration::from_millis(500));
    assert_eq!(receivers.counts()[0].1.waiting, 1);
    server.restart();
    receivers.finish(GRACE);
    assert_eq!(receivers.counts()[0].1.waiting, 0);
    assert_eq!(server.firing(), Vec::<Value>::new());
}
