//! Receivers that change while events come: nothing that waits is lost, and nothing goes where it should not.

use std::time::{Duration, Instant};

use fleetdiff_connectors::receivers::{Endpoint, Filter, ReceiverKind, ReceiverSettings, Receivers};
use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::verdict::{IncidentState, Severity};
use tempfile::TempDir;

use crate::hook::{Act, Hook};
use crate::incidents::{ago, alert};

fn webhook(name: &str, hook: &Hook) -> ReceiverSettings {
    ReceiverSettings {
        first_retry: Duration::from_secs(30),
        ..ReceiverSettings::new(name, ReceiverKind::Webhook, Endpoint::parse(&hook.url("/x")).unwrap())
    }
}

fn only(services: &str, settings: ReceiverSettings) -> ReceiverSettings {
    ReceiverSettings { filter: Filter { services: vec![services.to_owned()], ..Filter::default() }, ..settings }
}

/// Incidents of the service checkout, each with its own cause.
fn raised(cause: &str) -> Vec<Alert> {
    vec![alert(cause, IncidentState::Raised, Severity::Page, 1)]
}

/// The causes that a webhook has accepted, once there are so many.
fn accepted(hook: &Hook, count: usize) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let requests: Vec<_> = hook.requests().into_iter().filter(|request| request.accepted).collect();
        if requests.len() >= count || Instant::now() > deadline {
            let cause = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["data"]["cause"].clone();
            return requests.iter().map(|request| cause(&request.body).as_str().unwrap().to_owned()).collect();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_new_route_holds_from_the_next_event_on() {
    let [old, new] = [(); 2].map(|()| Hook::start(Vec::new()));
    let output = TempDir::new().unwrap();
    let receivers = Receivers::start(&[webhook("a", &old)], output.path()).unwrap();
    receivers.offer(&raised("first"), ago(5));
    assert_eq!(accepted(&old, 1), ["first"]);

    // The known one no longer gets this service, the new one does.
    receivers.change(&[only("other", webhook("a", &old)), only("check*", webhook("b", &new))], output.path()).unwrap();
    receivers.offer(&raised("second"), ago(5));
    assert_eq!(accepted(&new, 1), ["second"]);
    assert_eq!(receivers.counts().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    // The first is taken away, and comes back with what it has got.
    receivers.change(&[webhook("b", &new)], output.path()).unwrap();
    receivers.offer(&raised("third"), ago(5));
    receivers.change(&[webhook("a", &old), webhook("b", &new)], output.path()).unwrap();
    receivers.offer(&[raised("first"), raised("fourth")].concat(), ago(5));
    receivers.finish(Duration::from_secs(10));
    assert_eq!(accepted(&old, 2), ["first", "fourth"]);
    assert_eq!(accepted(&new, 4), ["second", "third", "first", "fourth"]);
}

#[test]
fn what_waits_goes_to_the_new_address_at_once() {
    let (busy, good) = (Hook::start(vec![Act::Answer(503, "busy"); 100]), Hook::start(Vec::new()));
    let output = TempDir::new().unwrap();
    let receivers = Receivers::start(&[webhook("a", &busy)], output.path()).unwrap();
    receivers.offer(&[raised("f"), raised("g")].concat(), ago(5));
    let deadline = Instant::now() + Duration::from_secs(20);
    while busy.requests().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    // It would be tried again after half a minute.
    receivers.change(&[webhook("a", &good)], output.path()).unwrap();
    assert_eq!(accepted(&good, 2), ["f", "g"]);
    receivers.finish(Duration::from_secs(5));
    assert_eq!(receivers.counts()[0].1.waiting, 0);
}

#[test]
fn a_template_that_cannot_be_used_changes_nothing() {
    let [first, second] = [(); 2].map(|()| Hook::start(Vec::new()));
    let output = TempDir::new().unwrap();
    let receivers = Receivers::start(&[webhook("a", &first)], output.path()).unwrap();
    let broken = ReceiverSettings { template: Some("{{ no_such }}".to_owned()), ..webhook("b", &second) };
    let error = receivers.change(&[only("other", webhook("a", &first)), broken], output.path()).unwrap_err();
    assert_eq!(error.code(), "unusable_template");
    receivers.offer(&raised("f"), ago(5));
    assert_eq!(accepted(&first, 1), ["f"]);
    assert_eq!(receivers.counts().len(), 1);
    receivers.finish(Duration::from_secs(5));
    assert!(second.requests().is_empty());
}
