use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetdiff_pipeline::run::pulse::diagnosis::{Now, diagnose};
use fleetdiff_pipeline::run::pulse::{Given, PartitionState, PartitionVitals, Vitals};
use fleetdiff_report::AaCheckRate;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::Limited;

use super::*;
use crate::command::watch::console::InUse;
use crate::command::watch::done::Done;

pub(in super::super) fn overview(vitals: Vitals, done: Done) -> Overview {
    let (wall, clock) = (Nanos::from_seconds(1_000), HopClock::new(Nanos::from_seconds(10)));
    let now = Now { instant: Instant::now(), wall, clock, idle_after: None };
    let diagnosis = diagnose(&vitals, &now);
    Overview {
        vitals,
        done,
        now,
        diagnosis,
        receivers: Vec::new(),
        in_use: InUse::default(),
        resident_bytes: Some(4096),
    }
}

fn partition(records: u64, refused: u64) -> PartitionVitals {
    let given = Given {
        records,
        taken: records - refused,
        refused: [(Reason::FromFuture, refused)].into(),
        last_sent_at: Some(Nanos::from_seconds(970)),
        ..Given::default()
    };
    PartitionVitals {
        state: PartitionState::Watermark(Hop(90)),
        next_offset: 70,
        end: Some(75),
        held_back: false,
        early: 0,
        given,
    }
}

fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_text_holds_what_was_done_in_all_however_often_it_is_written() {
    let latencies = Latencies::new();
    let metrics = Metrics::new(&latencies);
    let nothing = || overview(Vitals::at_start(Instant::now()), Done::default());
    assert!(!metrics.text(&nothing()).unwrap().contains("bound="), "no rate before the first test");
    latencies.closed(Nanos::from_seconds(40), Some(Duration::from_millis(30)));
    let aa_check = AaCheckRate { reports: 2, tests: 1000, flags: 1 };
    let done = Done {
        hops: 3,
        through: Hop(5),
        decoded: 70,
        rejected: [(Reason::FromFuture, 2)].into(),
        flags: 4,
        aa_check,
        ..Done::default()
    };
    let mut vitals = Vitals::at_start(Instant::now());
    vitals.partitions.insert((Arc::from("t"), 3), partition(70, 2));
    let mut text = String::new();
    for _ in 0..2 {
        text = metrics.text(&overview(vitals.clone(), done.clone())).unwrap();
    }
    assert_lines(
        &text,
        &[
            "fleetdiff_profiles_decoded_total 70",
            "fleetdiff_records_rejected_total{reason=\"from_future\"} 2",
            "fleetdiff_rows_rejected_total{reason=\"from_future\"} 2",
            "fleetdiff_flag_changes_total 4",
            "fleetdiff_closed_through_seconds 60.0",
            "fleetdiff_aa_check_tests_total 1000",
            "fleetdiff_aa_check_flags_total 1",
            "fleetdiff_aa_check_rate_ratios{bound=\"estimate\"} 0.001",
            "fleetdiff_resident_memory_bytes 4096",
            "fleetdiff_condition{condition=\"catching_up\"} 1",
            "fleetdiff_condition{condition=\"all_refused\"} 0",
            "fleetdiff_partition_records_total{topic=\"t\",partition=\"3\"} 70",
            "fleetdiff_partition_lag_records{topic=\"t\",partition=\"3\"} 5",
            "fleetdiff_partition_lag_seconds{topic=\"t\",partition=\"3\"} 30.0",
            "fleetdiff_partition_watermark_age_seconds{topic=\"t\",partition=\"3\"} 100.0",
            "fleetdiff_partition_holds_frontier{topic=\"t\",partition=\"3\"} 1",
            "fleetdiff_close_latency_seconds_bucket{le=\"45.0\"} 1",
            "fleetdiff_evaluation_latency_seconds_bucket{le=\"0.05\"} 1",
        ],
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn refusals_are_counted_although_nothing_was_closed() {
    let mut vitals = Vitals::at_start(Instant::now());
    vitals.partitions.insert((Arc::from("t"), 0), PartitionVitals { state: PartitionState::Silent, ..partition(9, 9) });
    let text = Metrics::new(&Latencies::new()).text(&overview(vitals, Done::default())).unwrap();
    assert_lines(
        &text,
        &[
            "fleetdiff_records_rejected_total{reason=\"from_future\"} 9",
            "fleetdiff_condition{condition=\"all_refused\"} 1",
            "fleetdiff_hops_closed_total 0",
        ],
    );
}

/// Every metric that the alerts and the dashboard of `deploy` ask for is there.
#[test]
fn what_is_deployed_asks_for_metrics_that_exist() {
    let mut vitals = Vitals::at_start(Instant::now());
    vitals.partitions.insert((Arc::from("t"), 0), partition(9, 1));
    let aa_check = AaCheckRate { reports: 2, tests: 1000, flags: 1 };
    let exceeded = [(Limited::Functions, (7, ["s".into()].into()))].into();
    let done = Done { samples: [("too_late", 1)].into(), exceeded, aa_check, ..Done::default() };
    let receivers = vec![("r".to_owned(), fleetdiff_connectors::receivers::ReceiverCounts::default())];
    let text = Metrics::new(&Latencies::new()).text(&Overview { receivers, ..overview(vitals, done) }).unwrap();
    let exported = |name: &str| {
        text.lines().any(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")))
    };
    for deployed in [
        include_str!("../../../../../deploy/prometheus/fleetdiff.rules.yml"),
        include_str!("../../../../../deploy/grafana/fleetdiff.json"),
    ] {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = deployed.split(|c| !is_of_name(c)).filter(|word| word.starts_with("fleetdiff_"));
        let names = words.collect::<std::collections::BTreeSet<_>>();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(exported(name), "{name} is missing in\n{text}");
        }
    }
}

/// The dashboard has what Grafana needs of one: panels side by side, each with queries of the chosen data source.
#[test]
fn the_dashboard_has_the_form_of_one() {
    let text = include_str!("../../../../../deploy/grafana/fleetdiff.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    assert!(dashboard["schemaVersion"].as_i64().unwrap() >= 36, "with data sources by uid");
    let mut places = std::collections::BTreeSet::new();
    let mut numbers = std::collections::BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(
            panel["title"].is_string() && ["stat", "timeseries"].contains(&panel["type"].as_str().unwrap()),
            "{panel}"
        );
        assert!(numbers.insert(panel["id"].as_i64().unwrap()), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_i64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(places.insert(cell), "two panels at {cell:?}: {panel}");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
            assert!(target["expr"].as_str().unwrap().contains("instance=~\"$instance\""), "{target}");
        }
    }
}
