//! A service that is stopped ends in time, whatever hangs, and the next one completes what it began.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::broker::Broker;
use crate::hook::{Act, Hook};
use crate::program::{start, succeed, text};
use crate::results::{of_folder, read_alerts_at};
use crate::service::{files_of, generate, generate_at, stop, wait_for, watch};

/// How long a service may take to end; Kubernetes kills it after 60 s with the manifests of `deploy`, after 30 s without.
const GRACE: Duration = Duration::from_secs(30);

fn said(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

#[test]
fn a_service_that_is_stopped_while_it_reads_ends_in_time_and_the_next_one_completes_its_tables() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("stopped"), scratch.path().join("log"));
    generate("drained", "12m", "3");
    let whole = scratch.path().join("whole");
    succeed(&watch("drained", &whole, &["--until-end"]));
    let expected = of_folder(&whole);
    for _ in 0..2 {
        let before = files_of(&output, "ledger");
        let service = start(&watch("drained", &output, &[]), &log);
        wait_for("more files", &log, || files_of(&output, "ledger") > before);
        let asked = Instant::now();
        assert_eq!(stop(service, "TERM"), Some(0), "{}", said(&log));
        assert!(asked.elapsed() < GRACE, "{:?}: {}", asked.elapsed(), said(&log));
    }
    assert!(files_of(&output, "ledger") < files_of(&whole, "ledger"), "it was stopped in the middle");
    succeed(&watch("drained", &output, &["--until-end"]));
    of_folder(&output).assert_same(&expected, "after two stops");
}

#[test]
fn a_receiver_that_hangs_does_not_hold_up_the_end_for_long() {
    let (scratch, hook) = (tempfile::tempdir().unwrap(), Hook::start(vec![Act::Hang; 20]));
    let (output, log) = (scratch.path().join("out"), scratch.path().join("log"));
    let config = scratch.path().join("fleetdiff.toml");
    let receiver = "[[receivers]]\nname = \"hook\"\nkind = \"webhook\"\nmaximum_age = \"0s\"\ntimeout = \"60s\"\n";
    fs::write(&config, format!("{receiver}url = \"{}\"\n", hook.url("/x"))).unwrap();
    generate("hanging-receiver", "5m", "3");
    let service = start(&watch("hanging-receiver", &output, &["--config", text(&config)]), &log);
    wait_for("a request", &log, || !hook.requests().is_empty());
    let asked = Instant::now();
    assert_eq!(stop(service, "TERM"), Some(0), "{}", said(&log));
    // It has 10 s to answer.
    assert!(asked.elapsed() < GRACE + Duration::from_secs(5), "{:?}: {}", asked.elapsed(), said(&log));
    assert!(said(&log).contains("not delivered; the next run with this output folder sends them"), "{}", said(&log));
}

/// A transaction is in flight when the broker stops to answer, so the end cannot be a clean one; it is in time, and says so.
#[test]
fn brokers_that_hang_do_not_hold_up_the_end_and_the_next_service_sends_what_is_missing() {
    let broker = Broker::start();
    generate_at(broker.address(), "hung", &["--seed", "3", "--duration", "5m", "--partitions", "3"]);
    let scratch = tempfile::tempdir().unwrap();
    let (output, whole, log) = (scratch.path().join("out"), scratch.path().join("whole"), scratch.path().join("log"));
    let args = |output, alerts| {
        let mut args = watch("hung", output, &["--alerts-partitions", "1"]);
        for (flag, value) in [("--brokers", broker.address()), ("--alerts-topic", alerts)] {
            let place = args.iter().position(|arg| *arg == flag).unwrap();
            args[place + 1] = value;
        }
        args
    };
    succeed(&[&args(&whole, "hung-whole")[..], &["--until-end"]].concat());
    let service = start(&args(&output, "hung-alerts"), &log);
    // It is logged just before it is sent.
    wait_for("an incident", &log, || said(&log).contains("incident raised"));
    broker.signal("STOP");
    let asked = Instant::now();
    let code = stop(service, "TERM");
    let took = asked.elapsed();
    broker.signal("CONT");
    assert!(took < GRACE, "{took:?}: {}", said(&log));
    assert!(code == Some(0) || said(&log).contains("hung-alerts"), "{code:?}: {}", said(&log));

    // Nothing is being sent when they hang: the end is a clean one.
    let idle = scratch.path().join("idle");
    let service = start(&args(&idle, ""), &log);
    wait_for("a closed interval", &log, || files_of(&idle, "ledger") > 0);
    broker.signal("STOP");
    let asked = Instant::now();
    let code = stop(service, "TERM");
    let took = asked.elapsed();
    broker.signal("CONT");
    assert!(took < GRACE && code == Some(0), "{took:?} {code:?}: {}", said(&log));

    succeed(&[&args(&output, "hung-alerts")[..], &["--until-end"]].concat());
    let alerts = |topic| read_alerts_at(broker.address(), topic);
    assert!(!alerts("hung-whole").is_empty());
    assert_eq!(alerts("hung-alerts"), alerts("hung-whole"));
}
