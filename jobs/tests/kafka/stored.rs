//! A service whose output is in an object store: any machine goes on with it, a newer one ends the older, and a store that does not
//! answer is waited for. The server is a real one of the protocol of S3.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fleetdiff_connectors::crash::{CrashPoint, VARIABLE};
use serde_json::Value;

use crate::company::Company;
use crate::hook::Hook;
use crate::program::{command, succeed, text};
use crate::receivers::{accepted, configured};
use crate::results::{read_alerts, with_topic};
use crate::s3::S3;
use crate::service::{stop, wait_for};
use crate::shards::{publish, read, watch};
use crate::status::{get, port_of};
use crate::tree::{files_below, tables_below};

/// A service with a bucket of its name; each start is on another machine, whose folder is empty.
struct Stored {
    name: &'static str,
    server: S3,
    store: String,
    /// For how long its archive is kept; each hop takes the server several requests.
    archive: &'static str,
    scratch: tempfile::TempDir,
}

impl Stored {
    fn new(name: &'static str) -> Self {
        let server = S3::start();
        server.make(name);
        let (store, scratch) = (format!("s3://{name}/of/one"), tempfile::tempdir().unwrap());
        Self { name, server, store, archive: "24h", scratch }
    }

    fn without_archive(name: &'static str) -> Self {
        Self { archive: "0s", ..Self::new(name) }
    }

    fn log(&self, machine: &str) -> PathBuf {
        self.scratch.path().join(format!("{machine}.log"))
    }

    fn start(&self, machine: &str, alerts: &str, more: &[&str], crash: Option<&str>) -> Child {
        let folder = self.scratch.path().join(machine);
        let own = ["--store", &self.store, "--archive-keep", self.archive];
        let mut program = command(&watch(self.name, &folder, alerts, &[&own, more].concat()));
        program.envs(self.server.variables()).envs(crash.map(|point| (VARIABLE, point)));
        program.stdout(Stdio::null()).stderr(fs::File::create(self.log(machine)).unwrap()).spawn().unwrap()
    }

    fn publish(&self, from: i64, until: i64) {
        publish(self.name, &self.scratch.path().join(format!("published-{from}")), from, until);
    }

    fn waits(&self, machine: &str, what: &str) {
        let log = self.log(machine);
        wait_for(what, &log, || read(&log).contains(what));
    }

    /// The report of an output, a folder or a store.
    fn report(&self, output: &str) -> String {
        let mut program = command(&["report", output, "--output", "-", "--format", "markdown"]);
        let ended = program.envs(self.server.variables()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Writes what is left, and compares everything with an undisturbed run into a folder.
    fn ends_as_one(&self, alerts: &str) {
        let last = self.start("last", alerts, &["--until-end"], None);
        assert_eq!(last.wait_with_output().unwrap().status.code(), Some(0), "{}", read(&self.log("last")));
        let [whole, copy] = ["whole", "copy"].map(|name| self.scratch.path().join(name));
        self.server.copy(self.name, &copy);
        let copy = copy.join("of/one");
        let decided = self.scratch.path().join("decisions.jsonl");
        fs::write(&decided, decisions(&copy)).unwrap();
        let of_whole = format!("{}-whole", self.name);
        let own = ["--until-end", "--archive-keep", "24h", "--workers", "3", "--decisions", text(&decided)];
        succeed(&watch(self.name, &whole, &of_whole, &own));
        let [got, expected] = [&copy, &whole].map(|folder| tables_below(folder));
        assert!(expected.len() > 200, "{} files", expected.len());
        assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (path, bytes) in &expected {
            assert!(got[path] == *bytes, "{} has other bytes", path.display());
        }
        with_topic(&copy, alerts).assert_same(&with_topic(&whole, &of_whole), self.name);
        assert_eq!(self.report(&self.store), self.report(text(&whole)));
        println!("{}: {} files of equal bytes, {} alerts", self.name, expected.len(), read_alerts(alerts).len());
    }
}

#[test]
fn what_receivers_have_got_is_in_the_store_too() {
    let (stored, hook) = (Stored::without_archive("received-store"), Hook::start(Vec::new()));
    let config = configured(stored.scratch.path(), &hook);
    let of_receiver = ["--config", text(&config)];
    let states = || {
        let objects = stored.server.objects("received-store").into_iter();
        objects.filter(|object| object.starts_with("of/one/receivers/")).collect::<Vec<_>>()
    };
    // Some incidents begin before that, and others after it.
    stored.publish(0, 200);
    let first = stored.start("first", "received-store-alerts", &of_receiver, None);
    wait_for("an event", &stored.log("first"), || !accepted(&hook).is_empty());
    assert_eq!(stop(first, "TERM"), Some(0), "{}", read(&stored.log("first")));
    assert_eq!(states(), ["of/one/receivers/hook/0000000001.json"]);
    let before = accepted(&hook);
    stored.publish(200, 10_000);
    let second = stored.start("second", "received-store-alerts", &[&of_receiver[..], &["--until-end"]].concat(), None);
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(0), "{}", read(&stored.log("second")));
    assert_eq!(states(), ["of/one/receivers/hook/0000000002.json"]);
    let is_incident = |alert: &Value| alert["type"].as_str().unwrap().starts_with("dev.fleetdiff.incident.");
    let sent: Vec<Value> = read_alerts("received-store-alerts").into_iter().filter(is_incident).collect();
    let ids = |events: &[Value]| events.iter().map(|event| event["id"].to_string()).collect::<Vec<_>>();
    let got: Vec<Value> = accepted(&hook).iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(ids(&got), ids(&sent), "each once, in the order of the topic");
    assert!(sent.len() > before.len(), "the second machine has announced nothing");
}

/// The decisions among the commits, as the log of a folder has them.
fn decisions(store: &Path) -> String {
    let commits = files_below(&store.join("commits")).into_values();
    let commits = commits.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap());
    let lines =
        commits.filter(|commit| commit["log"] == "decisions.jsonl").map(|commit| format!("{}\n", commit["line"]));
    let lines: Vec<String> = lines.collect();
    assert!(!lines.is_empty(), "where each partition began is decided");
    lines.concat()
}

#[test]
fn another_machine_goes_on_after_every_step_of_a_checkpoint() {
    let stored = Stored::new("goes-on");
    let parts = [0, 180, 300, 420, 10_000];
    let points = [
        CrashPoint::CheckpointTaken,
        CrashPoint::CheckpointUnfinished,
        CrashPoint::CheckpointNamed,
        CrashPoint::CheckpointDone,
    ];
    for (machine, (point, part)) in points.iter().zip(parts.windows(2)).enumerate() {
        stored.publish(part[0], part[1]);
        let name = machine.to_string();
        let service = stored.start(&name, "goes-on-alerts", &["--workers", "2"], Some(point.name()));
        let ended = service.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), None, "{}", read(&stored.log(&name)));
        let said = read(&stored.log(&name));
        assert!(said.contains(&format!("generation {}", machine + 1)), "{said}");
        assert_eq!(
            said.contains("going on from the checkpoint of"),
            machine > 2,
            "only the third one has committed\n{said}"
        );
    }
    // Of several processes, the first one has the store.
    let mut company = Company::start(&stored.scratch.path().join("kept"), (2, 2), |own, _, process| {
        stored.start(&format!("kept.{process}"), "goes-on-alerts", own, None)
    });
    company.wait(0, "going on", || company.log(0).contains("going on from the checkpoint of"));
    company.wait(1, "reading", || company.log(1).contains("reads its part of topic"));
    company.signal(1, "TERM");
    assert_eq!(company.end(Duration::from_secs(60)), [Some(0), Some(0)], "{}", company.logs());
    let objects = stored.server.objects("goes-on");
    let kept = objects.iter().filter(|object| object.starts_with("of/one/checkpoints/")).count();
    assert!((1..=3).contains(&kept), "{kept} checkpoints");
    stored.ends_as_one("goes-on-alerts");
}

#[test]
fn a_newer_run_ends_the_older_one_at_its_next_commit() {
    let stored = Stored::new("two-at-once");
    stored.publish(0, 300);
    // NB: with one topic of alerts, the newer one would end the older one there as well.
    let older = stored.start("older", "two-at-once-older", &[], None);
    stored.waits("older", "generation 1");
    let checkpoints =
        || stored.server.objects("two-at-once").iter().filter(|object| object.contains("/checkpoints/")).count();
    wait_for("a checkpoint", &stored.log("older"), || checkpoints() > 0);
    let newer = stored.start("newer", "two-at-once-newer", &[], None);
    stored.waits("newer", "generation 2");
    stored.publish(300, 10_000);
    let began = Instant::now();
    let ended = older.wait_with_output().unwrap().status.code();
    let said = read(&stored.log("older"));
    assert_eq!(ended, Some(1), "{said}");
    let process = format!("generation 2 (process {}", newer.id());
    for part in ["s3://two-at-once/of/one belongs to another run of fleetdiff", &process] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    println!("the older one ended {:.1} s after new records came", began.elapsed().as_secs_f64());
    stored.waits("newer", "closed through");
    assert_eq!(stop(newer, "TERM"), Some(0), "{}", read(&stored.log("newer")));
    // A read to the end also sends what the older one had announced elsewhere.
    stored.ends_as_one("two-at-once-newer");
}

#[test]
fn a_store_that_does_not_answer_is_waited_for() {
    let stored = Stored::new("silent-store");
    stored.publish(0, 120);
    let service = stored.start("one", "silent-store-alerts", &[], None);
    stored.waits("one", "generation 1");
    let port = port_of(&stored.log("one"));
    let status = || get(port, "/status").1;
    wait_for("the end of the topic", &stored.log("one"), || status().contains("\"condition\": \"caught_up\""));
    stored.server.signal("STOP");
    stored.publish(120, 10_000);
    let began = Instant::now();
    wait_for("a wait", &stored.log("one"), || status().contains("\"condition\": \"sink_blocked\""));
    let within = began.elapsed();
    stored.waits("one", "are tried again until they are written");
    wait_for("the reason", &stored.log("one"), || status().contains("s3://silent-store/of/one"));
    stored.server.signal("CONT");
    wait_for("the end of the topic", &stored.log("one"), || status().contains("\"condition\": \"caught_up\""));
    assert_eq!(stop(service, "TERM"), Some(0), "{}", read(&stored.log("one")));
    let said = read(&stored.log("one"));
    for part in ["are written again", "nothing is lost"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    println!("said after {:.1} s", within.as_secs_f64());
    stored.ends_as_one("silent-store-alerts");
}

#[test]
fn a_store_that_cannot_be_used_is_named_with_what_to_do() {
    let s3 = S3::start();
    let scratch = tempfile::tempdir().unwrap();
    publish("no-store", &scratch.path().join("published"), 0, 60);
    let output = scratch.path().join("out");
    let fails = |store: &str, alerts: &str, server: &str, code: i32| {
        let args = watch("no-store", &output, alerts, &["--store", store, "--until-end"]);
        let mut program = command(&args);
        let ended = program.envs(s3.variables()).env("AWS_ENDPOINT_URL", server).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert!(!said.contains("of fleetdiff\""), "a secret: {said}");
        said
    };
    let [(_, server), ..] = s3.variables();
    for (store, alerts, server, code, parts) in [
        ("s3://no-such-bucket/x", "a", &*server, 1, ["s3://no-such-bucket/x", "the bucket must exist"]),
        ("s3://b/x", "a", "http://127.0.0.1:1", 1, ["s3://b/x", "AWS_ENDPOINT_URL"]),
        ("/a/folder", "a", &server, 2, ["output.store", "must be s3://BUCKET"]),
        ("s3://b/x", "", &server, 2, ["alerts.topic", "must name a topic if there is an output.store"]),
    ] {
        let said = fails(store, alerts, server, code);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    // Settings that rows depend on: nobody is superseded for them.
    s3.make("other-settings");
    let run = |more: &[&str]| {
        let own = ["--store", "s3://other-settings", "--until-end"];
        let args = watch("no-store", &output, "other-settings-alerts", &[&own, more].concat());
        command(&args).envs(s3.variables()).output().unwrap()
    };
    assert_eq!(run(&[]).status.code(), Some(0));
    let objects = s3.objects("other-settings");
    let refused = run(&["--min-count", "31"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && said.contains("min_count"), "{said}");
    assert!(objects.iter().any(|object| object.starts_with("commits/")), "{objects:?}");
    assert_eq!(s3.objects("other-settings"), objects);
}
