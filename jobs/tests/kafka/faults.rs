//! Errors are clear, with an exit code that a script can distinguish.

use std::fs;

use crate::program::{brokers, command, fail, recorded, succeed, text};

fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
}

#[test]
fn a_broker_that_does_not_answer_is_named() {
    let fleet = recorded("rd-listpack");
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    // Port 1 of this machine, on which no process listens.
    let nowhere = ["--brokers", "127.0.0.1:1", "--connect-timeout", "1s"];
    for args in [
        vec!["watch", "--until-end", "--output", text(&output)],
        vec!["publish", text(&fleet)],
        vec!["generate", "--duration", "1m", "--pods", "2:2"],
    ] {
        let said = fail(1, &[&args[..], &nowhere].concat());
        assert_says(&said, &["error: no Kafka broker answers at 127.0.0.1:1", "hint: check host and port"]);
    }
    assert!(!output.exists(), "nothing is written before the topic is known");
}

#[test]
fn a_topic_that_is_not_there_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let said = fail(
        1,
        &["watch", "--until-end", "--brokers", brokers(), "--topic", "absent", "--output", text(scratch.path())],
    );
    assert_says(&said, &["error: there is no topic absent at", brokers(), "hint: check its name"]);
}

#[test]
fn a_fleet_that_is_not_there_is_named() {
    let said = fail(1, &["publish", "/no/such/fleet", "--brokers", brokers(), "--topic", "never-made"]);
    assert_says(&said, &["no recorded fleet at /no/such/fleet", "hint: name the folder"]);
    let said = fail(1, &["watch", "--brokers", brokers(), "--topic", "never-made", "--until-end"]);
    assert_says(&said, &["there is no topic never-made"]);
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "in the way").unwrap();
    succeed(&[
        "publish",
        text(&recorded("rd-listpack")),
        "--brokers",
        brokers(),
        "--topic",
        "unwritable",
        "--format",
        "delta",
    ]);
    let said = fail(
        1,
        &[
            "watch",
            "--until-end",
            "--brokers",
            brokers(),
            "--topic",
            "unwritable",
            "--output",
            text(&file),
            "--format",
            "delta",
        ],
    );
    assert_says(&said, &["cannot write", text(&file)]);
}

#[test]
fn every_problem_of_a_configuration_is_reported_at_once_and_no_secret() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("wrong.toml");
    fs::write(&file, "[dataflow]\nwindw = \"30m\"\nq = 7.0\n[kafka.client]\n\"sasl.password\" = \"hunter2\"\n")
        .unwrap();
    let mut watch = command(&["watch", "--config", text(&file), "--warm-up", "soon"]);
    let output = watch
        .env("FLEETDIFF_RUN_WORKERS", "many")
        .env("FLEETDIFF_KAFKA_CLIENT_SASL_USERNAME", "hunter3")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let line = format!("{}:2: dataflow.windw: unknown key", text(&file));
    assert_says(
        &said,
        &[
            "4 reasons",
            &line,
            "dataflow.q: must be between 0 and 1",
            "FLEETDIFF_RUN_WORKERS: run.workers",
            "--warm-up: dataflow.warm_up: \"soon\"",
        ],
    );
    assert!(!said.contains("hunter"), "{said}");
}

#[test]
fn what_makes_no_sense_is_usage() {
    for (args, part) in [
        (vec!["watch", "--config", "/no/such/file.toml"], "/no/such/file.toml: cannot be read"),
        (vec!["replay", "x", "--output", "y", "--base", "A"], "dataflow.head: must name a build"),
        (vec!["publish", text(&recorded("rd-listpack")), "--format", "speedscope"], "cannot be written as speedscope"),
        (vec!["publish", text(&recorded("rd-listpack")), "--key", "node"], "invalid value 'node'"),
        (vec!["generate"], "nowhere to put the fleet"),
        (vec!["generate", "--output", "x", "--topic", "y"], "one place"),
        (vec!["generate", "--output", "x", "--regress", "no_such_function"], "no_such_function"),
        (vec!["generate", "--output", "x", "--pods", "5"], "expected HEAD:BASE"),
    ] {
        assert_says(&fail(2, &args), &[part]);
    }
}

/// The client library knows the property, so the message comes from it; the value must not.
#[test]
fn a_client_property_with_a_bad_value_is_named_without_it() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    let mut watch =
        command(&["watch", "--until-end", "--brokers", brokers(), "--topic", "any", "--output", text(&output)]);
    let output = watch.env("FLEETDIFF_KAFKA_CLIENT_SECURITY_PROTOCOL", "hunter2").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_says(&said, &["Kafka client property security.protocol"]);
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn the_configuration_in_effect_can_be_written_and_used() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("own.toml");
    let shown = succeed(&["watch", "--show-config", "--window", "20m", "--brokers", "kafka:9092"]);
    fs::write(&file, &shown).unwrap();
    assert_eq!(succeed(&["watch", "--show-config", "--config", text(&file)]), shown);
    assert_says(&shown, &["window = \"20m\"", "brokers = \"kafka:9092\""]);
}
