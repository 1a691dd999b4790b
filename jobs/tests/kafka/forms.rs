//! A fleet gives the rows of its folder from a topic of every form that `publish` writes, whatever format its files have.

use std::path::Path;

use crate::program::{brokers, fail, recorded, run, succeed, text};
use crate::results::{Results, of_folder, with_topic};

const FORMS: [&str; 5] = ["pprof", "otlp", "folded", "perf_script", "delta"];

const SETTINGS: [&str; 8] = ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B"];

/// What the folder gives.
fn replayed(fleet: &Path, settings: &[&str]) -> Results {
    let scratch = tempfile::tempdir().unwrap();
    succeed(&[&["replay", text(fleet), "--output", text(scratch.path())], settings].concat());
    of_folder(scratch.path())
}

/// Publishes a fleet in a form; gives what was said of what is lost by that, and the results of watching the topic.
fn published(fleet: &Path, format: &str, settings: &[&str]) -> (String, Results) {
    let scratch = tempfile::tempdir().unwrap();
    let topic = format!("form-{format}-{}", text(fleet).rsplit('/').next().unwrap());
    let to_topic = ["--brokers", brokers(), "--topic", &topic, "--format", format];
    let publish = run(&[&["publish", text(fleet), "--key", "none", "--partitions", "3"][..], &to_topic].concat());
    let said = String::from_utf8(publish.stderr).unwrap();
    assert!(publish.status.success(), "{said}");
    let summary = String::from_utf8(publish.stdout).unwrap();
    assert!(summary.contains(" 0 lines of the manifest left out"), "{summary}");
    let (output, alerts) = (scratch.path().join("out"), format!("alerts-{topic}"));
    let watch = ["watch", "--until-end", "--output", text(&output), "--alerts-topic", &alerts, "--workers", "2"];
    succeed(&[&watch[..], &to_topic, settings].concat());
    (said, with_topic(&output, &alerts))
}

/// Files of folded stacks.
#[test]
fn order_counts_are_the_same_in_every_form() {
    let fleet = recorded("rd-listpack");
    let expected = replayed(&fleet, &SETTINGS);
    let [cells, flags, comparisons, ledger, _] = expected.sizes();
    assert!(cells > 100 && flags > 0 && comparisons > 10 && ledger > 10, "{:?}", expected.sizes());
    for format in FORMS {
        let (said, found) = published(&fleet, format, &SETTINGS);
        found.assert_same(&expected, format);
        assert!(!said.contains("WARN"), "{format} loses something: {said}");
    }
}

/// Files of pprof, whose heap and mutex profiles are snapshots with bytes and delays.
#[test]
fn order_snapshots_and_levels_are_the_same_in_every_form_and_lost_values_are_named() {
    let fleet = recorded("kv-snapshot");
    let mut expected = replayed(&fleet, &SETTINGS);
    assert!(expected.sizes()[0] > 100 && !expected.tables.heap.is_empty() && !expected.tables.waiting.is_empty());
    for format in ["otlp", "folded", "perf_script"] {
        let (said, mut found) = published(&fleet, format, &SETTINGS);
        for (kind, unit) in [("heap", "bytes"), ("live_heap", "bytes"), ("mutex", "nanoseconds")] {
            let warning = format!("{format} holds the samples of {kind} profiles, but not their {unit}");
            assert_eq!(said.matches(&warning).count(), usize::from(format != "otlp"), "{said}");
        }
        if format != "otlp" {
            // Texts of stacks hold counts, no bytes, and no delays.
            assert!(found.tables.heap.iter().all(|row| row.alloc.change.is_none() && row.live.change.is_none()));
            (found.tables.heap, expected.tables.heap) = (Vec::new(), Vec::new());
            (found.tables.waiting, expected.tables.waiting) = (Vec::new(), Vec::new());
        }
        found.assert_same(&expected, format);
    }
}

/// Off-CPU time by thread, declared in the manifest: as the files are, and as pprof.
#[test]
fn order_functions_of_threads_are_the_same_in_every_form() {
    let fleet = recorded("rd-fsync");
    let expected = replayed(&fleet, &SETTINGS);
    assert!(expected.tables.cells.iter().any(|row| row.function.contains(" @ ")));
    for format in ["folded", "otlp"] {
        published(&fleet, format, &SETTINGS).1.assert_same(&expected, format);
    }
}

/// Cohorts are labels of samples.
#[test]
fn order_cohorts_of_samples_are_the_same_or_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let fleet = scratch.path().join("cohorts");
    let shape = ["--preset", "null-request-labels", "--pods", "2:3", "--duration", "6m", "--requests", "50"];
    let said = succeed(&[&["generate", "--output", text(&fleet)][..], &shape].concat());
    let builds = said.split_once("build ").and_then(|(_, rest)| rest.split_once(" beside ")).unwrap();
    let (head, base) = (builds.0, builds.1.split_once(',').unwrap().0);
    let settings = ["--report-every", "2m", "--base", base, "--head", head];
    let expected = replayed(&fleet, &settings);
    assert!(expected.sizes()[0] > 100, "{:?}", expected.sizes());
    published(&fleet, "otlp", &settings).1.assert_same(&expected, "otlp");
    for format in ["folded", "perf_script"] {
        let topic = format!("refused-{format}");
        let said = fail(1, &["publish", text(&fleet), "--brokers", brokers(), "--topic", &topic, "--format", format]);
        let expected = format!("{format} cannot hold the cohort");
        assert!(said.contains("the cpu profile of pod") && said.contains(&expected), "{said}");
    }
}

#[test]
fn a_format_that_is_only_read_is_refused_with_those_that_are_written() {
    let fleet = recorded("rd-listpack");
    let said = fail(2, &["publish", text(&fleet), "--brokers", brokers(), "--topic", "no", "--format", "speedscope"]);
    assert!(said.contains("records cannot be written as speedscope"), "{said}");
    assert!(said.contains("pprof, otlp, folded, perf_script, delta"), "{said}");
}
