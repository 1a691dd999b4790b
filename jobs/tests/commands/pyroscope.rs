//! `pull pyroscope:URL`. Two servers answer: one that has recorded what a real server of Pyroscope (1.7.1) answered, so that its requests are
//! checked byte by byte, and, where `FLEETDIFF_PYROSCOPE` names its program (`make test-pyroscope`), a real one.
//!
//! With `FLEETDIFF_PYROSCOPE_RECORD=1` too, the answers of the real one are recorded anew, in `tests/pyroscope/recorded.jsonl`; [`RECORDED`]
//! must then be within the last hour, and the log of the change says which release it was.

#[path = "../support/pyroscope/http.rs"]
mod http;
#[path = "../support/pyroscope/recorded.rs"]
mod recorded;
#[path = "pyroscope/server.rs"]
mod server;
#[path = "pyroscope/shop.rs"]
mod shop;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use serde_json::Value;
use tempfile::TempDir;

use self::recorded::{Book, RECORDED, base64};
use self::server::{Server, TENANT};
use self::shop::{PODS, TIMES, Values};
use super::hook::{Act, Hook};
use super::program::{Run, done, run, run_with};

/// Nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// A server that has stored what the pods did.
struct Stored {
    address: String,
    start: u64,
    server: Option<Server>,
    book: Option<Arc<Mutex<Book>>>,
}

impl Stored {
    /// The recorded one, and the real one if there is one.
    fn all() -> Vec<Self> {
        let recorded = || Self { address: recorded::play(), start: RECORDED, server: None, book: None };
        let Some(program) = Server::program() else { return vec![recorded()] };
        let server = Server::start(&program);
        let is_recorded = std::env::var_os("FLEETDIFF_PYROSCOPE_RECORD").is_some();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let now = u64::try_from(now).unwrap();
        let start = if is_recorded { RECORDED } else { now / MINUTE * MINUTE - 30 * MINUTE };
        for pod in PODS {
            server.push(&pod.pushed("shop", start));
        }
        for pod in TIMES {
            server.push(&pod.pushed("cart", start));
        }
        let address = server.address.clone();
        if is_recorded {
            let (address, book) = recorded::record(address);
            return vec![Self { address, start, server: Some(server), book: Some(book) }];
        }
        vec![recorded(), Self { address, start, server: Some(server), book: None }]
    }

    /// What of its answers is to be kept.
    fn keep(self) {
        if let Some(book) = &self.book {
            recorded::keep(&book.lock().unwrap());
        }
        drop(self.server);
    }

    /// So many minutes after the beginning, in RFC 3339.
    fn minute(&self, minutes: u64) -> String {
        rfc3339(Nanos(i64::try_from(self.start + minutes * MINUTE).unwrap()))
    }

    /// Pulls what was stored in the second and third minute, in slices of one.
    fn pull(&self, args: &[&str]) -> Run {
        let (target, from, until) = (format!("pyroscope:http://{}", self.address), self.minute(1), self.minute(3));
        run(&[&["pull", &target, "--from", &from, "--until", &until, "--tenant", TENANT][..], args].concat())
    }
}

fn manifest(fleet: &Path) -> Vec<Value> {
    let text = fs::read_to_string(fleet.join("manifest.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The self count of a function in what was pulled of a build.
fn of_leaf(all: &[(&str, Values)], build: &str, leaf: &str) -> i64 {
    let of_build = all.iter().filter(|(known, _)| *known == build).flat_map(|(_, values)| values);
    of_build.filter(|(stack, _)| stack[0] == leaf).map(|(_, values)| values[0]).sum()
}

fn pods_are_pulled(stored: &Stored) {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let to = fleet.to_str().unwrap();
    let pulled = stored.pull(&["--query", r#"{service_name="shop"}"#, "--types", "cpu,heap,mutex,block", "--to", to]);
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    assert!(pulled.stdout.starts_with("24 profiles of 4 pods, 0 requests gave none"), "{}", pulled.stdout);
    let no_block = "no pod has stored block profiles that can be counted; stored are memory:alloc_objects:count";
    assert!(pulled.stderr.contains(no_block), "{}", pulled.stderr);

    let lines = manifest(&fleet);
    let (mut of_cpu, mut expected) = (Vec::new(), BTreeMap::new());
    for (minute, pod) in [1, 2].into_iter().flat_map(|minute| PODS.map(|pod| (minute, pod))) {
        let (from, until) = (stored.start + minute * MINUTE, stored.start + (minute + 1) * MINUTE);
        let cpu = (vec!["samples/count", "cpu/nanoseconds"], pod.cpu(stored.start, from, until));
        let mutex = (vec!["contentions/count", "delay/nanoseconds"], pod.mutex(stored.start, from, until));
        let heap = (vec!["alloc_objects/count", "alloc_space/bytes"], pod.heap(stored.start, from, until));
        for (kind, (columns, values)) in [("cpu", cpu), ("mutex", mutex), ("heap", heap)] {
            *expected.entry(kind.to_owned()).or_insert(0) += values.values().map(|values| values[0]).sum::<i64>();
            let is_it = |line: &&Value| {
                line["pod"] == pod.name && line["profile_type"] == kind && line["start_unix_nano"] == from
            };
            let found: Vec<&Value> = lines.iter().filter(is_it).collect();
            let [line] = found[..] else { panic!("{} of minute {minute}: {found:?}", pod.name) };
            assert_eq!((&line["end_unix_nano"], &line["temporality"]), (&until.into(), &"delta".into()), "{line}");
            let identity = ["service", "build", "region", "cohort"].map(|part| line[part].as_str().unwrap());
            assert_eq!(identity, ["shop", pod.build, "eu-west-1", "unknown"]);
            let read = shop::read(&fs::read(fleet.join(line["file"].as_str().unwrap())).unwrap());
            assert_eq!(read.0, columns);
            assert_eq!(read.1, values, "{kind} of {} in minute {minute}", pod.name);
        }
        of_cpu.push((pod.build, pod.cpu(stored.start, from, until)));
    }
    assert_eq!(lines.len(), 24);

    let replayed = done(&["replay", to, "--base", "v41", "--head", "v42", "--warm-up", "0s", "--cell", "cohort"]);
    assert!(replayed.tables.rejected.is_empty(), "{:?}", replayed.tables.rejected);
    let mut counted = BTreeMap::new();
    for row in replayed.tables.ledger.iter().filter(|row| row.samples_counted > 0) {
        *counted.entry(row.profile_type.clone()).or_insert(0) += row.samples_counted;
    }
    assert_eq!(counted, expected, "every sample is counted once");
    let is_it = |row: &&CellRow| row.function == "main.price" && row.comparison.profile_type.name() == "cpu";
    let price = replayed.tables.cells.iter().filter(is_it).max_by_key(|row| row.head.count + row.base.count).unwrap();
    let expected = ["v41", "v42"].map(|build| of_leaf(&of_cpu, build, "main.price").unsigned_abs());
    assert_eq!([price.base.count, price.head.count].map(|count| u64::try_from(count).unwrap()), expected);
}

fn times_are_counted_by_a_period(stored: &Stored) {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let to = fleet.to_str().unwrap();
    let labels = ["--label", "cohort=region", "--label", "build=version"];
    let query = ["--query", r#"{service_name="cart"}"#, "--period", "10ms", "--every", "2m", "--to", to];
    let pulled = stored.pull(&[&query[..], &labels].concat());
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    let lines = manifest(&fleet);
    assert_eq!(lines.len(), TIMES.len(), "one slice of two minutes");
    let mut expected = 0;
    for pod in TIMES {
        let line = lines.iter().find(|line| line["pod"] == pod.name).unwrap();
        assert_eq!((&line["period"], &line["cohort"]), (&"10000000ns".into(), &"eu-west-1".into()), "{line}");
        let values = pod.cpu(stored.start, stored.start + MINUTE, stored.start + 3 * MINUTE);
        expected += values.values().map(|values| values[0] / 10_000_000).sum::<i64>();
        let read = shop::read(&fs::read(fleet.join(line["file"].as_str().unwrap())).unwrap());
        assert_eq!(read, (vec!["cpu/nanoseconds".to_owned()], values));
    }
    let replayed = done(&["replay", to, "--base", "v7", "--head", "v8", "--warm-up", "0s"]);
    let counted: i64 = replayed.tables.ledger.iter().map(|row| row.samples_counted).sum();
    assert_eq!(counted, expected);
}

fn what_is_not_there_says_why(stored: &Stored) {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let to = fleet.to_str().unwrap();
    let nothing = stored.pull(&["--query", r#"{service_name="cellar"}"#, "--to", to]);
    assert_eq!(nothing.code, 1, "{}", nothing.stderr);
    let said = format!("no series match {{service_name=\"cellar\"}} from {}", stored.minute(1));
    assert!(nothing.stderr.contains(&said), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("is of service_name cart, shop"), "{}", nothing.stderr);
    assert!(!fleet.exists(), "nothing is written");

    let unlabelled = stored.pull(&["--query", r#"{service_name="shop"}"#, "--label", "build=commit", "--to", to]);
    assert_eq!(unlabelled.code, 2, "{}", unlabelled.stderr);
    let said = "no label says which build series are of (looked for: commit); their labels are pod, region, service_name, version";
    assert!(unlabelled.stderr.contains(said), "{}", unlabelled.stderr);
    assert!(unlabelled.stderr.contains("--label build=LABEL, or give --build"), "{}", unlabelled.stderr);

    let malformed = stored.pull(&["--query", "{service_name=}", "--to", to]);
    assert_eq!(malformed.code, 1, "{}", malformed.stderr);
    assert!(malformed.stderr.contains("hint: write --query as in"), "{}", malformed.stderr);

    let (from, until) = (stored.minute(1), stored.minute(3));
    let brief = ["--to", to, "--from", &from, "--until", &until];
    let pull = |url: &str, more: &[&str]| run(&[&["pull", &format!("pyroscope:{url}")], &brief[..], more].concat());
    let nobody = pull(&format!("http://{}", stored.address), &[]);
    assert_eq!(nobody.code, 1, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("status 401") && nobody.stderr.contains("--tenant"), "{}", nobody.stderr);
    let elsewhere = pull(&format!("http://{}/elsewhere", stored.address), &["--tenant", TENANT]);
    assert_eq!(elsewhere.code, 1, "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains("give the URL of Pyroscope itself"), "{}", elsewhere.stderr);
}

/// What comes while it is pulled is counted once, whichever slice it is in. NB: its times are those of the clock, so that nothing of it is
/// recorded.
fn what_comes_is_followed(stored: &Stored) {
    let (Some(server), None) = (&stored.server, &stored.book) else { return };
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let to = fleet.to_str().unwrap().to_owned();
    let target = format!("pyroscope:http://{}", stored.address);
    let pulling = std::thread::spawn(move || {
        let args = ["--query", r#"{service_name="live"}"#, "--every", "2s", "--delay", "2s", "--for", "6s"];
        run(&[&["pull", &target, "--tenant", TENANT, "--to", &to][..], &args].concat())
    });
    // From before what is pulled to behind it.
    let times: Vec<u64> = (0..24)
        .map(|nth| {
            let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
            server.push(&PODS[0].pushed_now("live", nth, now));
            std::thread::sleep(std::time::Duration::from_millis(400));
            now
        })
        .collect();
    let pulled = pulling.join().unwrap();
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    let lines = manifest(&fleet);
    let window = |line: &Value| ["start_unix_nano", "end_unix_nano"].map(|end| line[end].as_u64().unwrap());
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.windows(2).all(|pair| window(&pair[0])[1] == window(&pair[1])[0]), "they adjoin: {lines:?}");
    for line in &lines {
        let [from, until] = window(line);
        let within = |bound: u64| u64::try_from(times.partition_point(|at| *at < bound)).unwrap();
        let read = shop::read(&fs::read(fleet.join(line["file"].as_str().unwrap())).unwrap());
        assert_eq!(read.1, PODS[0].all(within(from)..within(until)), "{line}");
    }
}

#[test]
fn what_pyroscope_has_stored_is_pulled_pod_by_pod() {
    for stored in Stored::all() {
        pods_are_pulled(&stored);
        times_are_counted_by_a_period(&stored);
        what_is_not_there_says_why(&stored);
        what_comes_is_followed(&stored);
        if let (Some(server), None) = (&stored.server, &stored.book) {
            // From a block on the disk it selects by nanoseconds, and not by milliseconds as in memory.
            server.flush();
            pods_are_pulled(&stored);
        }
        stored.keep();
    }
}

#[test]
fn secrets_are_sent_and_not_shown() {
    let refusing = Hook::start(vec![Act::Answer(401, "who are you"); 2]);
    let target = format!("pyroscope:{}", refusing.url("/prefix/"));
    let pull = |more: &[&str]| {
        let args = ["pull", &target, "--to", "nowhere", "--from", "now-5m", "--until", "now"];
        run_with(&[&args[..], more].concat(), &[("SECRET", "hunter2")])
    };
    let basic = pull(&["--user", "7", "--password-env", "SECRET"]);
    assert_eq!(basic.code, 1, "{}", basic.stderr);
    assert!(basic.stderr.contains("status 401: who are you") && !basic.stderr.contains("hunter2"), "{}", basic.stderr);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "hunter3\n").unwrap();
    pull(&["--bearer-token-file", file.to_str().unwrap(), "--tenant", "7"]);
    let heads: Vec<String> = refusing.requests().into_iter().map(|request| request.head.to_lowercase()).collect();
    assert!(heads[0].starts_with("post /prefix/querier.v1.querierservice/series "), "{}", heads[0]);
    let encoded = base64(b"7:hunter2").to_lowercase();
    assert!(heads[0].contains(&format!("authorization: basic {encoded}")), "{}", heads[0]);
    assert!(
        heads[1].contains("authorization: bearer hunter3") && heads[1].contains("x-scope-orgid: 7"),
        "{}",
        heads[1]
    );
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn command_lines_that_cannot_be_meant_are_refused() {
    let refused = |args: &[&str], why: &str| {
        let run = run(&[&["pull", "--to", "nowhere", "--service", "shop", "--build", "v1"], args].concat());
        assert_eq!(run.code, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{args:?}: {}", run.stderr);
    };
    refused(&["10.0.0.1:1", "--query", "{}"], "--query is of Pyroscope");
    refused(&["pyroscope:http://127.0.0.1:1", "10.0.0.1:1"], "the only target");
    refused(&["pyroscope:127.0.0.1:1"], "needs a URL");
    refused(&["pyroscope:http://me:secret@127.0.0.1:1"], "must not hold a user or password");
    refused(&["pyroscope:http://127.0.0.1:1", "--user", "me"], "password");
    refused(&["pyroscope:http://127.0.0.1:1", "--label", "colour=blue"], "colour is no part of an identity");
    refused(&["pyroscope:http://127.0.0.1:1", "--from", "now", "--until", "now-1h"], "--until is not after --from");
    refused(&["pyroscope:http://127.0.0.1:1", "--from", "yesterday"], "expected a time such as");
    refused(
        &["pyroscope:http://127.0.0.1:1", "--bearer-token-env", "NO_SUCH_VARIABLE"],
        "no variable NO_SUCH_VARIABLE",
    );
}
