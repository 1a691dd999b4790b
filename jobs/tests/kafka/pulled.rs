//! Profiles of running programs, and those that Pyroscope has stored, onto a topic.

use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;

use crate::program::{brokers, fail, run, succeed, text};
use crate::recorded;
use crate::results::with_topic;
use crate::served::Served;

#[test]
fn programs_are_recorded_onto_a_topic_that_watch_reads() {
    let (base, head) = (Served::start(900), Served::start(1_200));
    let to_topic = ["--brokers", brokers(), "--topic", "pulled", "--cohort", "web", "--service", "shop"];
    let brief = ["--every", "1s", "--for", "4s", "--types", "cpu,heap"];
    for (build, served) in [("v41", &base), ("v42", &head)] {
        let pulled = run(&[&["pull", &served.address, "--build", build][..], &to_topic, &brief].concat());
        let said = String::from_utf8(pulled.stdout).unwrap();
        assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
        assert!(said.contains(" of 1 pod, ") && said.contains("of topic pulled"), "{said}");
    }
    let refused =
        fail(2, &[&["pull", &base.address, "--build", "v41", "--format", "folded"][..], &to_topic, &brief].concat());
    assert!(refused.contains("kept as they come"), "{refused}");

    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    let watch =
        ["watch", "--until-end", "--output", text(&output), "--alerts-topic", "alerts-pulled", "--warm-up", "0s"];
    succeed(&[&watch[..], &["--brokers", brokers(), "--topic", "pulled", "--base", "v41", "--head", "v42"]].concat());
    let found = with_topic(&output, "alerts-pulled");
    assert!(found.tables.rejected.is_empty(), "{:?}", found.tables.rejected);
    let counted: i64 = found.tables.ledger.iter().map(|row| row.samples_counted).sum();
    assert!(counted > 50, "{counted} samples counted");
}

/// The server answers what a real one has answered, and nothing else.
#[test]
fn what_pyroscope_has_stored_is_recorded_onto_a_topic_as_into_a_folder() {
    let minute = |minutes: i64| {
        rfc3339(Nanos(i64::try_from(recorded::RECORDED).unwrap()).plus(Nanos::from_seconds(60 * minutes)))
    };
    let (target, from, until) = (format!("pyroscope:http://{}", recorded::play()), minute(1), minute(3));
    let pull = ["pull", &target, "--tenant", "shop-team", "--from", &from, "--until", &until];
    let query = ["--query", r#"{service_name="shop"}"#, "--types", "cpu,mutex"];
    let scratch = tempfile::tempdir().unwrap();
    let [fleet, replayed, watched] = ["fleet", "replayed", "watched"].map(|name| scratch.path().join(name));
    succeed(&[&pull[..], &query, &["--to", text(&fleet)]].concat());
    succeed(&[&pull[..], &query, &["--brokers", brokers(), "--topic", "stored"]].concat());

    let sides = ["--base", "v41", "--head", "v42", "--warm-up", "0s"];
    succeed(&[&["replay", text(&fleet), "--output", text(&replayed)][..], &sides].concat());
    let watch = ["watch", "--until-end", "--output", text(&watched), "--brokers", brokers(), "--topic", "stored"];
    succeed(&[&watch[..], &["--alerts-topic", "alerts-stored"], &sides].concat());
    let counted = |output: &std::path::Path| {
        let tables = fleetdiff_connectors::parquet::read_tables(output).unwrap();
        assert!(tables.rejected.is_empty(), "{:?}", tables.rejected);
        tables.ledger.iter().map(|row| row.samples_counted).sum::<i64>()
    };
    assert!(counted(&replayed) > 1_000);
    assert_eq!(counted(&watched), counted(&replayed));
}
