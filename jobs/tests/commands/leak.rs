//! A hidden leak of a canary, from its profiles to who is told: the file of alerts, a webhook, Slack and Alertmanager.

use std::fs;
use std::path::Path;

use fleetdiff_connectors::files::{FileFormat, write_fleet};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Fleet;
use fleetdiff_simulation::memory::{first_moment, with_memory};
use serde_json::Value;
use tempfile::TempDir;

use crate::alertmanager::Alertmanager;
use crate::hook::Hook;
use crate::program::run;

/// How long the canary serves.
const SERVES: Nanos = Nanos::from_seconds(1500);

/// A canary that allocates a fifth less for a request, in one of two regions holds more from minute to minute, and is rolled back in the
/// end.
fn leaking(folder: &Path) {
    let fleet = Fleet::seeded(3)
        .regions(["north", "south"])
        .cohorts(["tv"])
        .pods_per_cell(8, 12)
        .size_cv(0.1)
        .samples_per_second(60.0)
        .requests_per_second(20.0)
        .already_deployed()
        .period(Nanos::from_seconds(60))
        .lasts(Nanos::from_seconds(3000))
        .stacks()
        .build();
    let head = fleet.head().clone();
    let mut partitions = fleet.partitions(1);
    let start = first_moment(&partitions);
    let is_head = |profile: &Profile| profile.identity.build == head;
    let leaks = |profile: &Profile| is_head(profile) && profile.identity.region.as_str() == "north";
    with_memory(
        &mut partitions,
        |profile, _| if is_head(profile) { 800 } else { 1000 },
        |profile, _| {
            let seconds = u64::try_from(profile.window.end.since(start).0 / 1_000_000_000).unwrap();
            4000 + seconds * if leaks(profile) { 8 } else { 1 }
        },
    );
    let served = partitions.into_iter().flatten().flat_map(|record| record.parts).map(Result::unwrap);
    let kept: Vec<Profile> =
        served.filter(|profile| !is_head(profile) || profile.window.end.since(start) <= SERVES).collect();
    write_fleet(folder, FileFormat::Otlp, &kept).unwrap();
}

#[test]
fn a_hidden_leak_reaches_every_receiver_and_ends_with_the_roll_back() {
    let (server, hook, chat) = (Alertmanager::start(), Hook::start(Vec::new()), Hook::start(Vec::new()));
    let scratch = TempDir::new().unwrap();
    let [fleet, output, config] = ["fleet", "output", "fleetdiff.toml"].map(|name| scratch.path().join(name));
    leaking(&fleet);
    let toml = format!(
        "[[receivers]]\nname = \"oncall\"\nkind = \"alertmanager\"\nurl = \"{}\"\n\
         [[receivers]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"\nevents = [\"heap\"]\n\
         [[receivers]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"{}\"\nevents = [\"heap\"]\n",
        server.url(),
        hook.url("/hook"),
        chat.url("/chat"),
    );
    fs::write(&config, toml).unwrap();
    let [fleet, output, config] = [&fleet, &output, &config].map(|path| path.to_str().unwrap());
    let named = ["replay", fleet, "--output", output, "--config", config, "--receivers", "--count-kind", "self"];
    let done =
        run(&[&named[..], &["--base", "v41", "--head", "v42", "--window", "10m", "--report-every", "5m"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);

    let alerts = fs::read_to_string(Path::new(output).join("alerts.jsonl")).unwrap();
    let announced: Vec<&str> = alerts.lines().filter(|line| line.contains("dev.fleetdiff.heap.v1")).collect();
    let sent: Vec<String> = hook.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(sent, announced, "the webhook gets the lines of the file, in order");
    let events: Vec<Value> = announced.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let states: Vec<&str> = events.iter().map(|event| event["data"]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["raised", "cleared"], "{announced:?}");
    let [raised, cleared] = [&events[0]["data"], &events[1]["data"]];
    assert_eq!((&raised["class"], &raised["severity"]), (&Value::from("hidden_leak"), &Value::from("ticket")));
    assert_eq!(raised["leaks_in"], serde_json::json!(["tv in north"]));
    let summary = raised["summary"].as_str().unwrap();
    let parts = [
        "Hidden leak: v42 keeps more memory than v41 in tv in north, and ever more. A request allocates 20 % less (",
        "), but a pod has ",
        " in use there, and within 10 minutes that becomes ",
        " than in v41. Most is kept by ",
    ];
    assert!(summary.starts_with(parts[0]) && parts.iter().all(|part| summary.contains(part)), "{summary}");
    assert_eq!(cleared["cleared_because"], "comparison_closed");

    let texts: Vec<Value> = chat
        .requests()
        .iter()
        .map(|request| serde_json::from_str::<Value>(&request.body).unwrap()["text"].clone())
        .collect();
    let action = raised["action"].as_str().unwrap();
    let expected = format!("Raised, ticket: video-delivery, v42 against v41\n{summary}\n{action}");
    assert_eq!((texts.len(), &texts[0]), (2, &Value::from(expected)));
    let names: Vec<Value> = server.firing().iter().map(|alert| alert["labels"]["alertname"].clone()).collect();
    assert!(!names.contains(&Value::from("FleetdiffHeap")), "{names:?}");
}
