//! Services that bring ever new names, on a topic: they cost no other service a row, and no memory without end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::publish::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::day::Day;
use fleetdiff_simulation::fleet::{Cells, Fleet};
use fleetdiff_simulation::hostile;
use serde_json::Value;

use crate::broker::Broker;
use crate::program::{brokers, succeed, text};
use crate::results::of_folder;
use crate::rows::rows_of;
use crate::service::{decisions, files_of, wait_for};
use crate::status::{Watched, is_read};

fn put_onto(brokers: &str, topic: &str, profiles: impl Iterator<Item = Profile>) {
    let settings = PublishSettings::new(topic, RecordForm::Delta, Key::Pod);
    let mut publisher = Publisher::open(&ClientSettings::new(brokers), settings).unwrap();
    profiles.for_each(|profile| publisher.publish(Outgoing::Profile(profile)).unwrap());
    publisher.finish(|_| {}).unwrap();
}

const SETTINGS: [&str; 14] = [
    "--window",
    "4m",
    "--report-every",
    "1m",
    "--limit-functions",
    "1000",
    "--limit-paths",
    "1500",
    "--limit-cells",
    "20",
    "--limit-builds",
    "5",
    "--limit-pods",
    "100",
];

fn to_end(topic: &str, output: &Path, workers: &str) -> Tables {
    let own = ["watch", "--until-end", "--brokers", brokers(), "--topic", topic, "--format", "delta"];
    let rest = ["--output", text(output), "--alerts-topic", "", "--workers", workers];
    succeed(&[&own[..], &rest, &SETTINGS].concat());
    of_folder(output).tables
}

#[test]
fn a_hostile_service_is_named_within_seconds_and_changes_no_row_of_another() {
    let fleet = Fleet::seeded(11)
        .regions(["east", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(3, 4)
        .lasts(Nanos::from_seconds(600))
        .deploy_after(Nanos::from_seconds(100))
        .regress("serialize_video_chunk", Cells::all(), 1.6)
        .stacks()
        .build();
    let good: Vec<Profile> = fleet.partition(0, 1).flat_map(|record| record.parts).map(Result::unwrap).collect();
    let service = good[0].identity.service.clone();
    put_onto(brokers(), "alone", good.iter().cloned());
    let mut beside = good;
    beside.extend(hostile::profiles(fleet.time().start, Nanos::from_seconds(10), 60));
    beside.sort_by_key(|profile| profile.window.end);
    put_onto(brokers(), "beside", beside.into_iter());

    let scratch = tempfile::tempdir().unwrap();
    let expected = to_end("alone", &scratch.path().join("alone"), "2");
    assert!(expected.limits.is_empty() && !expected.flags.is_empty(), "{} flags", expected.flags.len());
    let rows = rows_of(&expected, service.as_str());
    assert!(rows.len() > 1_000, "{} rows", rows.len());
    for workers in ["1", "3"] {
        let got = to_end("beside", &scratch.path().join(workers), workers);
        assert_eq!(rows_of(&got, service.as_str()), rows, "{workers} workers");
        assert!(got.limits.iter().all(|row| row.service.as_str() == hostile::SERVICE) && !got.limits.is_empty());
    }

    let watched = Watched::start(brokers(), "beside", "delta", &SETTINGS);
    let closed = || watched.status()["last_close"].is_object();
    wait_for("closing a hop", &watched.folder.path().join("log"), closed);
    watched.names("a service above four limits", || {
        let (status, metrics, log) = (watched.status(), watched.get("/metrics").1, watched.log());
        let is_said = |limit: &str| {
            let exceeded = status["limits_exceeded"].as_array().unwrap();
            let is_it = |one: &Value| one["limit"] == limit && one["services"] == Value::from([hostile::SERVICE]);
            let metric = format!("fleetdiff_services_above_limit{{limit=\"{limit}\"}} 1");
            let warning = format!("service {} exceeds limits.{limit} ", hostile::SERVICE);
            exceeded.iter().any(is_it) && log.contains(&warning) && metrics.contains(&metric)
        };
        ["functions", "paths", "cells", "builds"].into_iter().all(is_said)
    });
    watched.stop();
}

/// They hold from a hop on that the log of decisions has: another run with it makes the same rows.
#[test]
fn limits_that_change_hold_for_what_comes_then_and_in_later_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("fleetdiff.toml");
    let rest = "builds = 100000\ncells = 100000";
    let write = |functions: u32| fs::write(&file, format!("[limits]\nfunctions = {functions}\n{rest}\n")).unwrap();
    let start = Nanos::from_seconds(1_790_000_000);
    let hop = Nanos::from_seconds(10);
    let sent = |hops: i64| hostile::profiles(start, hop, hops);
    put_onto(brokers(), "squeezed", sent(20));
    write(100_000);
    let more = ["--config", text(&file), "--window", "4m", "--report-every", "1m"];
    let watched = Watched::start(brokers(), "squeezed", "delta", &more);
    let (log, output) = (watched.folder.path().join("log"), watched.folder.path().join("out"));
    wait_for("closing hops", &log, || files_of(&output, "ledger") >= 2);
    assert_eq!(watched.status()["limits_exceeded"], Value::from(Vec::<Value>::new()));
    write(1_000);
    wait_for("other limits", &log, || watched.log().contains("limits have changed"));
    put_onto(brokers(), "squeezed", sent(40).skip(20 * 20));
    wait_for("exceeding them", &log, || watched.status()["limits_exceeded"][0]["limit"] == "functions");
    let kept = watched.stop_and_keep();
    let logged = decisions(&output).into_iter().filter(|made| made["decision"] == "limits").collect::<Vec<_>>();
    let functions: Vec<&Value> = logged.iter().map(|made| &made["limits"]["functions"]).collect();
    assert_eq!(functions, [100_000, 1_000], "{logged:?}");

    let to_end = |folder: &Path, decided: &[&str]| {
        let own = ["watch", "--until-end", "--brokers", brokers(), "--topic", "squeezed", "--format", "delta"];
        let rest = ["--output", text(folder), "--alerts-topic", "", "--flush", "60s"];
        succeed(&[&own[..], &rest, &more, decided].concat());
        of_folder(folder).tables
    };
    let whole = to_end(&output, &[]);
    assert!(
        !whole.limits.is_empty() && whole.limits.iter().all(|row| row.limit == 1_000),
        "{:?}",
        whole.limits.first()
    );
    let again = to_end(&scratch.path().join("anew"), &["--decisions", text(&output.join("decisions.jsonl"))]);
    assert!(again == whole, "other rows with the same decisions");
    drop(kept);
}

/// Resident bytes of a service while it reads a day, by the hour of event time that it has closed.
#[test]
#[ignore = "takes a minute; docs/limits.md has what it prints"]
fn memory_of_a_day_on_a_topic() {
    let broker = Broker::start();
    put_onto(broker.address(), "day", Day::share(0, 1));
    let mut watched = Watched::start(broker.address(), "day", "delta", &["--report-every", "10m"]);
    let mut hours: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    loop {
        assert!(watched.service.try_wait().unwrap().is_none(), "the service ended:\n{}", watched.log());
        let status = watched.status();
        if let Some(through) = status["last_close"]["through"].as_str() {
            let bytes = status["memory"]["resident_bytes"].as_f64().unwrap();
            hours.entry(through[..13].to_owned()).or_default().push(bytes);
            if is_read(&status) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{:#}", watched.status()["memory"]);
    let mean = |bytes: &[f64]| bytes.iter().sum::<f64>() / f64::from(u32::try_from(bytes.len()).unwrap()) / 1e6;
    let hours: Vec<f64> = hours.values().map(|bytes| mean(bytes)).collect();
    hours.iter().zip(1..).for_each(|(megabytes, hour)| println!("hour {hour}: {megabytes:.1} MB"));
    assert_eq!(hours.len(), 24, "hours of which something is known");
    let growth = hours[12..].iter().sum::<f64>() / 12.0 / (hours[6..12].iter().sum::<f64>() / 6.0);
    println!("hours 13 to 24 hold {growth:.3} times what hours 7 to 12 hold");
    assert!(growth <= 1.05, "{growth:.3}");
    watched.stop();
}
