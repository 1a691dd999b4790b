//! A topic on which one pod's clock is wrong.

use std::time::{SystemTime, UNIX_EPOCH};

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::publish::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::{Cells, Fleet};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::program::{brokers, run, text};
use crate::results::{Results, with_topic};
use crate::rows::rows_of;
use crate::status::Watched;

const AHEAD: Nanos = Nanos::from_seconds(59 * 60);

/// A deploy with a regression that ends now, as its pods send it.
fn profiles() -> Vec<Profile> {
    profiles_of("video-delivery", 7, now())
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 10 * 10).unwrap()
}

fn profiles_of(service: &str, seed: u64, now: i64) -> Vec<Profile> {
    let length = 600;
    let fleet = Fleet::seeded(seed)
        .service(service)
        .regions(["east", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(3, 4)
        .samples_per_second(100.0)
        .starts_at(Nanos::from_seconds(now - length))
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

/// Sets the clock of a profile ahead, or behind.
fn set_ahead(profile: &mut Profile, by: Nanos) {
    let TimeRange { start, end } = profile.window;
    profile.window = TimeRange { start: start.plus(by), end: end.plus(by) };
}

fn put_onto(topic: &str, stamps: &str, profiles: Vec<Profile>) {
    // So that clocks may be wrong by more than the hour that brokers allow.
    let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
    let configuration = [("retention.ms", "-1"), ("message.timestamp.type", stamps), any_time];
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
    set_ahead(&mut wrong[place], AHEAD);
    let pod = wrong[place].identity.pod.to_string();
    let without = [&wrong[..place], &wrong[place + 1..]].concat();
    let (plain, off) = ("clocks-without", "clocks-wrong");
    put_onto(plain, "CreateTime", without);
    put_onto(off, "CreateTime", wrong);
    let (expected, quiet) = watched(plain, "1", &[]);
    assert!(expected.tables.clocks.is_empty() && !expected.tables.flags.is_empty());
    assert!(quiet.contains("fleetdiff_pods_wrong_clock{direction=\"ahead\"} 0"), "{quiet}");
    for workers in ["1", "4"] {
        let (results, log) = watched(off, workers, &["--workers", workers]);
        let about = format!("{workers} workers");
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
    // The test can fail: where one pod's word is enough, the others are late.
    let (results, _) = watched("clocks-wrong", "one", &["--agreement", "1"]);
    assert!(late_dropped(&results) > 1_000, "{}", late_dropped(&results));
}

/// Two services, of which one pod of the other has a wrong clock from some moment on.
struct Two {
    good: Vec<Profile>,
    other: Vec<Profile>,
    place: usize,
    end: i64,
}

impl Two {
    fn until(end: i64) -> Self {
        let (good, other) = (profiles_of("good", 7, end), profiles_of("other", 8, end));
        Self { good, place: in_the_middle(&other), other, end }
    }

    fn pod(&self) -> &str {
        self.other[self.place].identity.pod.as_str()
    }

    /// In the order in which they are sent: by the time at which they end on the right clock.
    fn put_onto(&self, topic: &str, stamps: &str, seconds: i64) {
        let mut others = self.other.clone();
        let of_pod = others[self.place..].iter_mut().filter(|profile| profile.identity.pod.as_str() == self.pod());
        of_pod.for_each(|profile| set_ahead(profile, Nanos::from_seconds(seconds)));
        let sent_at = self.good.iter().chain(&self.other).map(|profile| profile.window.end);
        let mut sent: Vec<_> = sent_at.zip(self.good.iter().cloned().chain(others)).collect();
        sent.sort_by_key(|(at, _)| *at);
        put_onto(topic, stamps, sent.into_iter().map(|(_, profile)| profile).collect());
    }

    /// No row of the good service depends on how far off the clock is.
    fn assert_same(&self, (right, topics): (&str, &[(i64, String)]), stamps: &str, more: &[&str]) {
        let (expected, _) = watched(right, "1", more);
        let rows = before(self.end, &expected);
        assert!(rows.len() > 1_000 && !expected.tables.flags.is_empty(), "{stamps}: {} rows", rows.len());
        for (seconds, topic) in topics {
            let (results, _) = watched(topic, "1", &[more, &["--workers", "2"]].concat());
            let found = before(self.end, &results);
            let same = rows.iter().zip(&found).take_while(|(a, b)| a == b).count();
            assert_eq!((rows.len(), found.len()), (same, same), "{stamps}, {seconds} s: {:?}", found.get(same));
            println!("{stamps}: a clock {seconds} s off changes none of {same} rows");
        }
    }
}

/// As far off as is drawn: no row of another service changes, and a running service says which pod it is.
#[test]
fn order_a_clock_that_is_off_changes_no_row_of_another_service() {
    let seed = 20_261_126;
    println!("seed {seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (day, year) = (86_400, 31_536_000);
    let [near, hours, days, past] = [10..120, 120..day, day..year, -year..-day].map(|range| random.random_range(range));
    let two = Two::until(now());
    let named = |seconds: i64| (seconds, format!("off-{seconds}"));
    let topics = [near, days, past].map(named);
    two.put_onto("off-0", "CreateTime", 0);
    topics.iter().for_each(|(seconds, topic)| two.put_onto(topic, "CreateTime", *seconds));
    two.assert_same(("off-0", &topics), "CreateTime", &[]);
    said_live(&topics[1].1, two.pod(), "ahead");
    said_live(&topics[2].1, two.pod(), "behind");

    // The brokers' stamps say when records came, so topics can be compared that were written in one hop.
    let written = (0..5).find_map(|attempt| {
        let minute = now() / 60;
        let named = |seconds: i64| (seconds, format!("stamped-{attempt}-{seconds}"));
        let topics = [0, hours, past].map(named);
        topics.iter().for_each(|(seconds, topic)| two.put_onto(topic, "LogAppendTime", *seconds));
        (now() / 60 == minute).then_some(topics)
    });
    let [(_, right), topics @ ..] = written.unwrap();
    two.assert_same((&right, &topics), "LogAppendTime", &["--hop", "1m"]);
}

/// Rows of the good service before its last moment: a clock ahead lets more time pass after it.
fn before(end: i64, results: &Results) -> Vec<String> {
    let mut tables = results.tables.clone();
    let end = Nanos::from_seconds(end);
    tables.cells.retain(|row| row.window_end_at < end);
    tables.flags.retain(|row| row.row.window_end_at < end);
    tables.comparisons.retain(|row| row.window_end_at < end);
    rows_of(&tables, "good")
}

/// Log, status and metrics name the pod in time.
fn said_live(topic: &str, pod: &str, direction: &str) {
    let watched = Watched::start(brokers(), topic, "pprof", &[]);
    watched.names(&format!("a clock that is {direction}"), || {
        let named = &watched.status()["wrong_clocks"][direction];
        let is_named = named["pods"].as_array().unwrap().iter().any(|one| one == &format!("other/{pod}"));
        let logged = watched.log().contains(&format!("the clock of pod other/{pod} "));
        let metric = format!("fleetdiff_pods_wrong_clock{{direction=\"{direction}\"}} 1");
        is_named && logged && watched.get("/metrics").1.contains(&metric)
    });
    watched.stop();
}
