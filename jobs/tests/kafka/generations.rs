//! Settings that rows depend on have changed: the service refuses the output of before, or puts it aside and begins anew in its folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::alerts_once::{assert_each_once, watching};
use crate::checkpoints::{checkpoints, has_gone_on, read};
use crate::program::{fail, start, succeed};
use crate::results::{Results, read_alerts, with_topic};
use crate::service::{files_of, generate, stop, wait_for};
use crate::together::assert_same;

const TOPIC: &str = "changed";
const ALERTS: &str = "changed-alerts";
const OFTEN: [&str; 2] = ["--checkpoint-every", "30s"];
/// Other settings than those of the first generation.
const OTHERS: [&str; 4] = ["--min-count", "31", "--lateness", "50s"];

/// A service that is stopped once it has written so many intervals, and a checkpoint.
fn lives(output: &Path, log: &Path, intervals: usize, more: &[&str]) {
    let service = start(&watching(TOPIC, output, ALERTS, &[&OFTEN[..], more].concat()), log);
    wait_for("reading", log, || read(log).contains("reading topic"));
    let has_all = || files_of(output, "ledger") >= intervals && !checkpoints(output).is_empty();
    wait_for("intervals and a checkpoint", log, has_all);
    assert_eq!(stop(service, "TERM"), Some(0), "{}", read(log));
}

/// The rows of a run that reads once, in another folder, with the decisions of this output.
fn anew(output: &Path, folder: PathBuf, alerts: &str, settings: &[&str]) -> Results {
    let decisions = output.join("decisions.jsonl");
    let known = ["--until-end", "--decisions", decisions.to_str().unwrap()];
    succeed(&watching(TOPIC, &folder, alerts, &[&known[..], settings].concat()));
    with_topic(&folder, alerts)
}

#[test]
fn settings_that_have_changed_begin_a_new_generation_only_if_that_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("out"), scratch.path().join("log"));
    generate(TOPIC, "8m", "3");
    lives(&output, &log, 6, &["--new-generation"]);
    assert!(!output.join("generations").exists(), "an empty folder has nothing to put aside");
    let announced = read_alerts(ALERTS);
    assert!(!announced.is_empty(), "no alert in the first generation");

    let said = fail(1, &watching(TOPIC, &output, ALERTS, &OTHERS));
    let changed = "dataflow.lateness was \"30s\", now it is \"50s\", dataflow.min_count was 30, now it is 31";
    for part in ["was made with other settings", changed, "--new-generation"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    // A file that is no part of the output.
    fs::write(output.join("notes.txt"), "ours").unwrap();

    let kept = output.join("generations").join("1");
    let begin = [&OTHERS[..], &["--new-generation"]].concat();
    lives(&output, &log, 6, &begin);
    let said = read(&log);
    let aside = format!("the output of before is in {}; the topic is read from its beginning", kept.display());
    assert!(said.contains(changed) && said.contains(&aside) && !has_gone_on(&log), "{said}");
    let parts = ["alerts.jsonl", "checkpoints", "decisions.jsonl", "flags", "guidance.jsonl", "ledger"];
    let missing = |folder: &Path| {
        parts.map(|part| folder.join(part)).into_iter().filter(|path| !path.exists()).collect::<Vec<_>>()
    };
    // Its alerts are on the topic, so there is no file of them.
    assert_eq!(
        (missing(&kept), missing(&output)),
        (vec![kept.join("alerts.jsonl")], vec![output.join("alerts.jsonl")])
    );
    assert_eq!(fs::read_to_string(output.join("notes.txt")).unwrap(), "ours");

    // Asked for once more, with the same settings, it goes on.
    generate(TOPIC, "12m", "3");
    lives(&output, &log, 9, &begin);
    assert!(has_gone_on(&log) && !kept.with_file_name("2").exists(), "{}", read(&log));

    // NB: this compares every file that the services wrote. Alerts of before the change are those of the first generation.
    succeed(&watching(TOPIC, &output, ALERTS, &[&begin[..], &["--until-end"]].concat()));
    let got = with_topic(&output, ALERTS);
    let whole = anew(&output, scratch.path().join("second"), "second-alerts", &OTHERS);
    assert_same(&got.tables, &whole.tables, "the second generation");
    assert!(whole.sizes().iter().all(|size| *size > 0), "{:?}", whole.sizes());
    assert_each_once(&got.alerts, "over two generations");
    let latest = announced.iter().map(|alert| alert["time"].as_str().unwrap()).max().unwrap();
    let [got, expected] = [&got.alerts, &whole.alerts]
        .map(|alerts| alerts.iter().filter(|alert| alert["time"].as_str().unwrap() > latest).collect::<Vec<_>>());
    assert!(!expected.is_empty(), "no alert is later than {latest}");
    assert_eq!(got, expected);

    // A run that was killed while it put an output aside: the next one completes that, and begins with whatever settings it has.
    let (part, second) = (kept.with_file_name("2.unfinished"), kept.with_file_name("2"));
    fs::create_dir(&part).unwrap();
    fs::rename(output.join("ledger"), part.join("ledger")).unwrap();
    succeed(&watching(TOPIC, &output, ALERTS, &["--until-end", "--min-count", "32"]));
    assert!(missing(&second).iter().all(|path| path.ends_with("alerts.jsonl")), "{:?}", missing(&second));
    assert!(!part.exists() && output.join("ledger").exists());

    // What was put aside is an output like any other: with its settings, a run compares its files and goes on in it.
    succeed(&watching(TOPIC, &kept, "kept-alerts", &["--until-end"]));
    let first = anew(&kept, scratch.path().join("first"), "first-alerts", &[]);
    assert_same(&with_topic(&kept, "kept-alerts").tables, &first.tables, "the first generation");
    assert_ne!(first.tables.cells, whole.tables.cells);
}
