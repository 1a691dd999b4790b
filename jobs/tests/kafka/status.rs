//! What a service says about itself, by the wall clock, while nothing closes: within 15 seconds the log, `/status` and the
//! metrics name the reason.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;
use serde_json::Value;

use crate::broker::Broker;
use crate::program::{brokers, start, succeed, text};
use crate::service::{generate, stop, wait_for};

/// How long a service may need to say what is wrong.
const WITHIN: Duration = Duration::from_secs(15);

/// A service with its log and its metrics in a file.
pub struct Watched {
    pub folder: tempfile::TempDir,
    pub service: Child,
    port: u16,
}

impl Watched {
    pub fn start(brokers: &str, topic: &str, format: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (output, metrics) = (folder.path().join("out"), folder.path().join("metrics.prom"));
        let own = ["watch", "--brokers", brokers, "--topic", topic, "--format", format, "--output", text(&output)];
        let settings = ["--alerts-topic", "", "--flush", "60s", "--metrics", text(&metrics), "--log-format", "json"];
        let log = folder.path().join("log");
        let service = start(&[&own[..], &settings, more].concat(), &log);
        let port = port_of(&log);
        Self { folder, service, port }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn metrics_file(&self) -> String {
        fs::read_to_string(self.folder.path().join("metrics.prom")).unwrap_or_default()
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        get(self.port, path)
    }

    pub fn status(&self) -> Value {
        let (code, body) = self.get("/status");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Log, status, both metrics and readiness agree, in time.
    pub fn says(&self, condition: &str, words: &str) -> Value {
        let (begun, mut status) = (Instant::now(), Value::Null);
        let metric = format!("fleetdiff_condition{{condition=\"{condition}\"}} 1");
        loop {
            status = if is_with(&status, condition, "reason", words) { status } else { self.status() };
            let logged = self.log().lines().any(|line| is_said(line, condition, words));
            if is_with(&status, condition, "reason", words) && logged && self.metrics_file().contains(&metric) {
                break;
            }
            assert!(begun.elapsed() < WITHIN, "{condition} is not said: {status:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{condition}: said after {:.1} s", begun.elapsed().as_secs_f64());
        assert!(self.get("/metrics").1.contains(&metric));
        assert_eq!(self.get("/healthz").0, 200, "the process works");
        status
    }

    /// The status, once every record that is there was read. It may name a reason before that.
    fn status_once_read(&self) -> Value {
        let mut status = Value::Null;
        wait_for("reading all", &self.folder.path().join("log"), || {
            status = self.status();
            is_read(&status)
        });
        status
    }

    /// Something else holds in time: what log, status and metrics name.
    pub fn names(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < WITHIN, "{what} is not said: {:#}\n{}", self.status(), self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{what}: said after {:.1} s", begun.elapsed().as_secs_f64());
    }

    pub fn stop(self) {
        self.stop_and_keep();
    }

    /// Stops it, and gives the folder of its output and log.
    pub fn stop_and_keep(self) -> tempfile::TempDir {
        assert_eq!(stop(self.service, "TERM"), Some(0));
        self.folder
    }
}

/// The port of a service, once it serves.
pub fn port_of(log: &Path) -> u16 {
    let mut port = None;
    wait_for("serving", log, || {
        let said = fs::read_to_string(log).unwrap();
        let after = said.split("status at http://127.0.0.1:").nth(1);
        port = after.and_then(|rest| rest.split('/').next()).and_then(|port| port.parse().ok());
        port.is_some()
    });
    port.unwrap()
}

/// Whether a line of the log is an object of a warning with this condition and these words.
fn is_said(line: &str, condition: &str, words: &str) -> bool {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("one object a line: {line}"));
    event["level"] == "WARN" && is_with(&event, condition, "message", words)
}

/// Whether an object has this condition, and these words in a member of it.
fn is_with(object: &Value, condition: &str, member: &str, words: &str) -> bool {
    object["condition"] == condition && object[member].as_str().is_some_and(|text| text.contains(words))
}

/// Whether a status has partitions, and nothing of them is still to be read.
pub fn is_read(status: &Value) -> bool {
    let partitions = status["partitions"].as_array().unwrap();
    !partitions.is_empty() && partitions.iter().all(|partition| partition["lag_records"] == 0)
}

/// Status and body of an answer.
pub fn get(port: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, if head.contains("transfer-encoding: chunked") { panic!("chunked: {head}") } else { body.to_owned() })
}

pub fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &process.to_string()]).status().unwrap().success());
}

/// What the service has committed for programs that watch lag, over all partitions.
fn committed(topic: &str) -> i64 {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", brokers()).set("group.id", "fleetdiff").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, 2);
    let list = consumer.committed_offsets(list, Duration::from_secs(10)).unwrap();
    list.elements().iter().map(|found| found.offset().to_raw().unwrap_or(0).max(0)).sum()
}

/// The wrong format: refusals are said as they are read, and reach the tables although nothing good comes.
#[test]
fn records_of_another_format_are_said_and_written_although_nothing_good_comes() {
    generate("wrong-format", "5m", "3");
    let service = Watched::start(brokers(), "wrong-format", "pprof", &["--idle-after", "2s"]);
    service.says("all_refused", "records were refused");
    let log = service.folder.path().join("log");
    let status = service.status_once_read();
    let refused: i64 = status["rejected"].as_object().unwrap().values().map(|count| count.as_i64().unwrap()).sum();
    let records: i64 =
        status["partitions"].as_array().unwrap().iter().map(|each| each["records"].as_i64().unwrap()).sum();
    assert!(records > 0 && refused == records, "{status:#}");
    assert_eq!(service.get("/readyz").0, 503);
    assert!(status["partitions"][0]["last_rejection"]["detail"].is_string(), "{status:#}");
    let output = service.folder.path().join("out/rejected");
    wait_for("rows of refused records", &log, || fs::read_dir(&output).is_ok_and(|mut days| days.next().is_some()));
    wait_for("committing what was read", &log, || committed("wrong-format") == records);
    let decisions = fs::read_to_string(service.folder.path().join("out/decisions.jsonl")).unwrap();
    assert!(decisions.contains("\"decision\":\"refused\"") && !decisions.contains("\"back\""), "{decisions}");
    service.stop();
}

#[test]
fn a_partition_that_event_time_waits_for_is_named() {
    generate("holds-frontier", "2m", "2");
    let service = Watched::start(brokers(), "holds-frontier", "delta", &["--idle-after", "0s"]);
    service.says("partition_silent", "partition 2 of holds-frontier, which has given no record");
    let status = service.status_once_read();
    assert_eq!(status["frontier"]["partition"], 2, "{status:#}");
    assert_eq!(service.get("/readyz").0, 200, "everything there is was read");
    assert_eq!(service.get("/nowhere").0, 404);
    assert_checked(&service.get("/metrics").1);
    assert_scraped(service.port);
    service.stop();
}

/// The metrics are as Prometheus' own checker wants them.
fn assert_checked(metrics: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("error"), "{said}");
}

/// Prometheus scrapes a service, and the alert about the partition is pending.
fn assert_scraped(port: u16) {
    let folder = tempfile::tempdir().unwrap();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus/fleetdiff.rules.yml");
    let configuration = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{}\"]\nscrape_configs:\n- job_name: fleetdiff\n  static_configs: [{{targets: [\"127.0.0.1:{port}\"]}}]\n",
        fs::canonicalize(rules).unwrap().display()
    );
    let file = folder.path().join("prometheus.yml");
    fs::write(&file, configuration).unwrap();
    // NB: the port is free for a moment only; another process may take it.
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{own}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (begun, mut alerts) = (Instant::now(), String::new());
    while begun.elapsed() < Duration::from_secs(60) && !alerts.contains("FleetdiffPartitionHoldsFrontier") {
        std::thread::sleep(Duration::from_millis(200));
        if TcpStream::connect(("127.0.0.1", own)).is_ok() {
            alerts = get(own, "/api/v1/alerts").1;
        }
    }
    prometheus.kill().unwrap();
    prometheus.wait().unwrap();
    assert!(alerts.contains("FleetdiffPartitionHoldsFrontier") && alerts.contains("pending"), "{alerts}");
}

#[test]
fn a_broker_that_hangs_is_said_with_since_when_and_forgotten_once_it_answers() {
    let broker = Broker::start();
    let to_topic = ["generate", "--brokers", broker.address(), "--topic", "hangs", "--format", "delta"];
    succeed(&[&to_topic[..], &["--duration", "1m", "--pods", "2:3", "--partitions", "1"]].concat());
    let service = Watched::start(broker.address(), "hangs", "delta", &[]);
    let log = service.folder.path().join("log");
    service.status_once_read();
    broker.signal("STOP");
    let status = service.says("broker_unreachable", "no broker has answered for topic hangs since");
    broker.signal("CONT");
    // Each worker has a client of its own, which finds it out by itself.
    let mut transports = status["transports"].as_array().unwrap().iter();
    assert!(transports.any(|transport| transport["unreachable_since"].is_string()), "{status:#}");
    wait_for("answers again", &log, || service.get("/metrics").1.contains("fleetdiff_brokers_unreachable 0"));
    wait_for("nothing is wrong", &log, || service.status()["condition"] != "broker_unreachable");
    service.stop();
}

#[test]
fn a_port_that_is_taken_is_named() {
    generate("port-taken", "1m", "1");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, folder) = (taken.local_addr().unwrap().to_string(), tempfile::tempdir().unwrap());
    let own = ["watch", "--brokers", brokers(), "--topic", "port-taken", "--format", "delta"];
    let rest = ["--output", text(folder.path()), "--alerts-topic", "", "--listen", &address];
    let said = crate::program::fail(1, &[&own[..], &rest].concat());
    assert!(said.contains(&format!("cannot serve the status at {address}")) && said.contains("--listen"), "{said}");
}
