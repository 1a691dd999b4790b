//! Webhooks.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use fleetdiff_connectors::receivers::{self, Endpoint, ReceiverKind, ReceiverSettings, Receivers, Secret};
use fleetdiff_schemas::alert::Alert;
use fleetdiff_schemas::verdict::{IncidentState, Severity};
use serde_json::Value;
use tempfile::TempDir;

use crate::hook::{Act, Hook, Request};
use crate::incidents::{ago, alert};

/// A path as secret as those of incoming webhooks.
const PATH: &str = "/services/T00000000/hunter2hunter2";

/// Everything that is logged in this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let of_writer = log.clone();
        let lines = tracing_subscriber::fmt().with_writer(move || of_writer.clone()).with_ansi(false);
        lines.with_max_level(tracing::Level::TRACE).init();
        log
    })
}

fn logged() -> String {
    String::from_utf8(log().0.lock().unwrap().clone()).unwrap()
}

fn settings(name: &str, kind: ReceiverKind, url: &str) -> ReceiverSettings {
    log();
    ReceiverSettings {
        headers: vec![("Authorization".to_owned(), Secret::new("Bearer hunter3hunter3"))],
        timeout: Duration::from_millis(400),
        first_retry: Duration::from_millis(50),
        ..ReceiverSettings::new(name, kind, Endpoint::parse(url).unwrap())
    }
}

fn updates(causes: &[&str]) -> Vec<Alert> {
    (1..).zip(causes).map(|(sequence, cause)| alert(cause, IncidentState::Updated, Severity::Page, sequence)).collect()
}

fn id(request: &Request) -> String {
    let line = request.head.lines().find(|line| line.to_lowercase().starts_with("idempotency-key:")).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

fn ids(alerts: &[Alert]) -> Vec<String> {
    alerts.iter().map(|alert| alert.id.clone()).collect()
}

#[test]
fn each_event_arrives_once_and_in_order_whatever_fails() {
    let script = vec![
        Act::Answer(200, "ok"),
        Act::Answer(500, "no hunter2hunter2 here, hunter3hunter3"),
        Act::Later(1),
        Act::Hang,
        Act::Close,
        Act::Answer(503, ""),
        Act::Answer(200, "ok"),
        Act::Answer(403, "hunter2hunter2 is not allowed"),
    ];
    let (hook, output) = (Hook::start(script), TempDir::new().unwrap());
    let receivers =
        Receivers::start(&[settings("flaky", ReceiverKind::Webhook, &hook.url(PATH))], output.path()).unwrap();
    let alerts = updates(&["f", "g", "f", "h", "g"]);
    let before = Instant::now();
    receivers.offer(&alerts[..2], ago(5));
    receivers.offer(&alerts[2..], ago(5));
    assert!(before.elapsed() < Duration::from_millis(100), "offering waits for nobody");
    receivers.finish(Duration::from_secs(20));
    let requests = hook.requests();
    let accepted: Vec<String> = requests.iter().filter(|request| request.accepted).map(id).collect();
    // The third was refused for good.
    let expected = ids(&[&alerts[..2], &alerts[3..]].concat());
    assert_eq!(accepted, expected);
    let counts = receivers.counts()[0].1;
    assert_eq!((counts.sent, counts.retried, counts.failed, counts.waiting), (4, 5, 1, 0));
    for request in &requests {
        assert!(request.head.starts_with(&format!("POST {PATH} ")) && request.head.contains("Bearer hunter3hunter3"));
        assert!(request.head.contains("application/cloudevents+json"), "{}", request.head);
        let event: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(event["id"].as_str().unwrap(), id(request));
    }
    // Retry-After of the third request, and backoff after the second.
    let gap = |number: usize| requests[number].at.duration_since(requests[number - 1].at);
    assert!(gap(3) >= Duration::from_secs(1), "{:?}", gap(3));
    assert!(gap(2) >= Duration::from_millis(25), "{:?}", gap(2));
    let logged = logged();
    let lines =
        |part: &str| logged.lines().filter(|line| line.contains("receiver flaky") && line.contains(part)).count();
    assert_eq!(
        (lines("trying again"), lines("delivered again after 5 failures"), lines("status 403")),
        (1, 1, 1),
        "{logged}"
    );
    assert!(!logged.contains("hunter"), "{logged}");
}

#[test]
fn an_outage_costs_bounded_memory_and_time() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = TempDir::new().unwrap();
    let to = |url: &str| ReceiverSettings { queue: 3, ..settings("gone", ReceiverKind::Webhook, url) };
    let receivers = Receivers::start(&[to(&format!("http://{closed}{PATH}"))], output.path()).unwrap();
    let alerts = updates(&["a", "b", "c", "d", "e", "f", "g", "h", "f", "g"]);
    for alert in &alerts {
        receivers.offer(std::slice::from_ref(alert), ago(5));
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = Instant::now();
    receivers.finish(Duration::from_millis(300));
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    let counts = receivers.counts()[0].1;
    // One is held by the thread, three wait.
    assert_eq!((counts.sent, counts.dropped, counts.waiting), (0, 6, 4), "{counts:?}");
    assert!(counts.retried >= 2, "{counts:?}");
    let logged = logged();
    assert!(logged.contains("receiver gone") && logged.contains("4 not delivered"), "{logged}");
    assert!(!logged.contains("hunter"), "{logged}");

    // The next run makes the same events again, and sends what is missing.
    let hook = Hook::start(Vec::new());
    let to = ReceiverSettings { queue: 100, ..to(&hook.url(PATH)) };
    for _ in 0..2 {
        let receivers = Receivers::start(std::slice::from_ref(&to), output.path()).unwrap();
        receivers.offer(&alerts, ago(5));
        receivers.finish(Duration::from_secs(5));
    }
    let sent: Vec<String> = hook.requests().iter().map(id).collect();
    assert_eq!(sent, ids(&alerts), "each once, over both runs");
}

#[test]
fn slack_gets_a_message_that_reads_alone() {
    let (hook, output) = (Hook::start(Vec::new()), TempDir::new().unwrap());
    let settings = settings("chat", ReceiverKind::Slack, &hook.url(PATH));
    let receivers = Receivers::start(std::slice::from_ref(&settings), output.path()).unwrap();
    receivers.offer(&[alert("Vec<T>::push", IncidentState::Raised, Severity::Page, 1)], ago(5));
    receivers.finish(Duration::from_secs(5));
    let body: Value = serde_json::from_str(&hook.requests()[0].body).unwrap();
    let text = body["text"].as_str().unwrap();
    for part in [
        "Raised, page: checkout, v2 against v1\n",
        "Vec&lt;T&gt;::push costs 10 % more, 1.\n",
        "Roll back v2.\n",
        "<https://d.example/Vec%3CT%3E%3A%3Apush|Dashboard>  <https://runbooks.example/canary|Runbook>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(receivers::test(&settings), Ok("accepted".to_owned()));
    let test = &hook.requests()[1].body;
    assert!(test.contains("This is a test message from fleetdiff"), "{test}");
}

#[test]
fn a_test_message_says_why_it_failed_and_no_secret() {
    let hook = Hook::start(vec![Act::Answer(404, "no_team at hunter2hunter2")]);
    let why = receivers::test(&settings("chat", ReceiverKind::Slack, &hook.url(PATH))).unwrap_err();
    assert_eq!(why, "status 404: no_team at (secret)");
    let why = receivers::test(&settings("chat", ReceiverKind::Slack, "http://receiver.invalid/hunter2")).unwrap_err();
    assert!(!why.contains("hunter"), "{why}");
}
