//! A topic on which one pod's clock is wrong for one record.

use std::time::{SystemTime, UNIX_EPOCH};

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::publish::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::{Cells, Fleet};

use crate::program::{brokers, run, text};
use crate::results::{Results, with_topic};

const AHEAD: Nanos = Nanos::from_seconds(59 * 60);

/// A deploy with a regression that ends now, as its pods send it.
fn profiles() -> Vec<Profile> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let length = 600;
    let fleet = Fleet::seeded(7)
        .regions(["east", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(3, 4)
        .samples_per_second(100.0)
        .starts_at(Nanos::from_seconds(i64::try_from(now / 10 * 10).unwrap() - length))
        .lasts(Nanos::from_seconds(length))
        .deploy_after(Nanos::from_seconds(100))
        .regress("serialize_video_chunk", Cells::all(), 1.6)
        .stacks()
        .build();
    fleet.partition(0, 1).flat_map(|record| record.parts).map(Result::unwrap).collect()
}

/// The place of a profile in the middle of the run.
fn in_the_middle(profiles: &[Profile]) -> usize {
    let first = profiles.iter().position(|profile| profile.identity.build.as_str() == "v41").unwrap();
    first + 200
}

/// Sets the clock of a profile ahead.
fn set_ahead(profile: &mut Profile) {
    let TimeRange { start, end } = profile.window;
    profile.window = TimeRange { start: start.plus(AHEAD), end: end.plus(AHEAD) };
}

fn put_onto(topic: &str, stamps: &str, profiles: Vec<Profile>) {
    let configuration = [("retention.ms", "-1"), ("message.timestamp.type", stamps)];
    let plan = TopicPlan { name: topic, partitions: 3, replication: None, configuration: &configuration };
    let client = ClientSettings::new(brokers());
    topic::ensure(&client, plan).unwrap();
    let settings = PublishSettings { partitions: 3, ..PublishSettings::new(topic, RecordForm::Pprof, Key::Pod) };
    let mut publisher = Publisher::open(&client, settings).unwrap();
    profiles.into_iter().for_each(|profile| publisher.publish(Outgoing::Profile(profile)).unwrap());
    publisher.finish(|_| {}).unwrap();
}

/// The results, and what was logged.
fn watched(topic: &str, name: &str, more: &[&str]) -> (Results, String) {
    let scratch = tempfile::tempdir().unwrap();
    let (output, alerts) = (scratch.path().join("out"), format!("alerts-{topic}-{name}"));
    let metrics = scratch.path().join("metrics");
    let watch = ["watch", "--until-end", "--brokers", brokers(), "--topic", topic, "--output", text(&output)];
    let settings = ["--alerts-topic", &alerts, "--warm-up", "0s", "--report-every", "2m", "--metrics", text(&metrics)];
    let ran = run(&[&watch[..], &settings, more].concat());
    let log = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{log}");
    (with_topic(&output, &alerts), log + &std::fs::read_to_string(metrics).unwrap())
}

/// What follows from the profiles that are counted.
fn assert_same_rows(results: &Results, expected: &Results, about: &str) {
    let (a, b) = (&results.tables, &expected.tables);
    assert_eq!(a.cells.len(), b.cells.len(), "{about}");
    assert!(a.cells == b.cells, "{about}: cells");
    assert!(a.flags == b.flags && a.incidents == b.incidents && a.comparisons == b.comparisons, "{about}: flags");
    assert_eq!(results.alerts, expected.alerts, "{about}");
}

fn late_dropped(results: &Results) -> i64 {
    results.tables.ledger.iter().map(|row| row.samples_late_dropped + row.samples_late_counted).sum()
}

/// The rows are those of a topic without that record.
#[test]
fn regression_one_record_59_minutes_ahead_costs_no_other_pod_a_sample() {
    let mut wrong = profiles();
    let place = in_the_middle(&wrong);
    set_ahead(&mut wrong[place]);
    let pod = wrong[place].identity.pod.to_string();
    let without = [&wrong[..place], &wrong[place + 1..]].concat();
    for stamps in ["CreateTime", "LogAppendTime"] {
        let [plain, off] = ["without", "wrong"].map(|name| format!("clocks-{name}-{stamps}"));
        put_onto(&plain, stamps, without.clone());
        put_onto(&off, stamps, wrong.clone());
        let (expected, quiet) = watched(&plain, "1", &[]);
        assert!(expected.tables.clocks.is_empty() && !expected.tables.flags.is_empty(), "{stamps}");
        assert!(quiet.contains("fleetdiff_pods_wrong_clock{direction=\"ahead\"} 0"), "{quiet}");
        for workers in ["1", "4"] {
            let (results, log) = watched(&off, workers, &["--workers", workers]);
            let about = format!("{stamps} with {workers} workers");
            assert_eq!(late_dropped(&results), 0, "{about}");
            assert_same_rows(&results, &expected, &about);
            let [row] = &results.tables.clocks[..] else { panic!("{about}: {:?}", results.tables.clocks) };
            assert_eq!((row.pod.to_string(), row.profiles), (pod.clone(), 1), "{about}");
            assert!(row.ahead > 50 * 60 * 1_000_000_000 && row.ahead <= AHEAD.0, "{about}: {row:?}");
            assert_eq!(row.samples_rejected, row.samples, "{about}");
            assert_eq!(results.reasons(), [Reason::FromFuture], "{about}");
            assert!(log.contains("WARN") && log.contains(&format!("/{pod} (build ")), "{log}");
            assert!(log.contains("fleetdiff_pods_wrong_clock{direction=\"ahead\"} 1"), "{log}");
        }
    }
    // The test can fail: where one pod's word is enough, the others are late.
    let (results, _) = watched("clocks-wrong-CreateTime", "one", &["--agreement", "1"]);
    assert!(late_dropped(&results) > 1_000, "{}", late_dropped(&results));
}
