//! The file of alerts: order, repetition and what happens if a run has a different result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../schemas/tests/generated/rows.rs"]
#[expect(dead_code, reason = "other tests use the other tables")]
mod generated;

use std::fs;
use std::path::Path;

use fleetdiff_connectors::alerts::{ALERTS_FILE, AlertLog};
use fleetdiff_connectors::output::OutputError;
use fleetdiff_schemas::alert::{Alert, Guidance};
use fleetdiff_schemas::rows::IncidentRow;
use fleetdiff_schemas::time::Hop;
use generated::Generator;
use tempfile::TempDir;

/// Alerts of five hops, unordered within a hop.
fn hops(seed: u64) -> Vec<Vec<Alert>> {
    let mut generator = Generator(seed);
    let mut of_hop = |hop| {
        let row = IncidentRow { sequence: Hop(hop), ..generator.incident() };
        Alert::of_incident(&row, &Guidance::default()).unwrap()
    };
    (100..105).map(|hop| (0..6).map(|_| of_hop(hop)).collect()).collect()
}

fn run(root: &Path, hops: &[Vec<Alert>]) -> Result<(), OutputError> {
    let mut log = AlertLog::create(root)?;
    hops.iter().try_for_each(|alerts| log.append(alerts))?;
    log.finish()
}

fn text(root: &Path) -> String {
    fs::read_to_string(root.join(ALERTS_FILE)).unwrap()
}

#[test]
fn one_line_an_alert_ordered_by_sequence_and_key() {
    let folder = TempDir::new().unwrap();
    let hops = hops(1);
    run(&folder.path().join("new"), &hops).unwrap();
    let text = text(&folder.path().join("new"));
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let order_of = |event: &serde_json::Value| {
        (event["data"]["sequence"].as_i64().unwrap(), event["partitionkey"].as_str().unwrap().to_owned())
    };
    assert_eq!(events.len(), 30);
    assert!(events.is_sorted_by_key(order_of));
    assert!(text.ends_with('\n'));
    let unordered = hops.iter().flatten().map(|alert| (alert.sequence, alert.key.clone()));
    assert!(!unordered.is_sorted(), "the alerts were handed over in another order");
}

#[test]
fn order_within_a_hop_does_not_matter() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut hops = hops(2);
    run(first.path(), &hops).unwrap();
    hops.iter_mut().for_each(|alerts| alerts.reverse());
    run(second.path(), &hops).unwrap();
    assert_eq!(text(first.path()), text(second.path()));
}

#[test]
fn a_run_broken_off_anywhere_can_be_run_again() {
    let whole = TempDir::new().unwrap();
    let hops = hops(3);
    run(whole.path(), &hops).unwrap();
    let expected = text(whole.path());
    for kept in (0..expected.len()).step_by(997).chain([expected.len()]) {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(ALERTS_FILE), &expected.as_bytes()[..kept]).unwrap();
        run(folder.path(), &hops).unwrap();
        assert_eq!(text(folder.path()), expected, "broken off after {kept} bytes");
    }
}

#[test]
fn a_run_that_comes_out_differently_stops_and_overwrites_nothing() {
    let folder = TempDir::new().unwrap();
    let hops = hops(4);
    run(folder.path(), &hops).unwrap();
    let before = text(folder.path());

    let mut changed = hops.clone();
    changed[2].remove(0);
    let error = run(folder.path(), &changed).unwrap_err();
    assert_eq!(error.code(), "nondeterministic_output");
    let message = error.to_string();
    assert!(message.contains(ALERTS_FILE) && message.contains("another alert in line 1"), "{message}");

    let error = run(folder.path(), &hops[..4]).unwrap_err();
    assert!(error.to_string().contains("it goes on after the 24 alerts of this run"), "{error}");
    assert_eq!(text(folder.path()), before);
}

#[test]
fn a_run_without_alerts_leaves_an_empty_file() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), &[vec![], vec![]]).unwrap();
    assert_eq!(text(folder.path()), "");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join(ALERTS_FILE)).unwrap();
    let error = AlertLog::create(folder.path()).unwrap_err();
    assert_eq!(error.code(), "unwritable_output");
    assert!(error.to_string().contains(ALERTS_FILE), "{error}");
}
