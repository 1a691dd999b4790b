//! A fleet gives the same rows and alerts from a topic as from its folder.

use std::collections::BTreeSet;
use std::path::Path;

use fleetdiff_schemas::profile::ProfileType;

use crate::program::{brokers, recorded, succeed, text};
use crate::results::{Results, of_folder, with_topic};

/// Replays a folder with 1 and 4 workers, which must agree.
fn replayed(fleet: &Path, settings: &[&str]) -> Results {
    let scratch = tempfile::tempdir().unwrap();
    let run = |workers: &str| {
        let output = scratch.path().join(workers);
        let args = ["replay", text(fleet), "--output", text(&output), "--workers", workers];
        succeed(&[&args, settings].concat());
        of_folder(&output)
    };
    let one = run("1");
    one.assert_same(&run("4"), "replay with 1 and 4 workers");
    one
}

/// Publishes to three of four partitions, keyed and unkeyed, watches with 1, 2 and 4 workers, and compares the results
/// with the replay.
fn same_from_topic(name: &str, fleet: &Path, format: &str, settings: &[&str]) -> Results {
    same_as(replayed(fleet, settings), name, fleet, format, settings)
}

fn same_as(expected: Results, name: &str, fleet: &Path, format: &str, settings: &[&str]) -> Results {
    let scratch = tempfile::tempdir().unwrap();
    for (key, numbers) in [("pod", &["1", "4"][..]), ("none", &["2"])] {
        let topic = format!("{name}-{key}");
        let to_topic = ["--brokers", brokers(), "--topic", &topic, "--format", format];
        let publish = ["publish", text(fleet), "--key", key, "--partitions", "4", "--partitions-used", "3"];
        let said = succeed(&[&publish[..], &to_topic].concat());
        assert!(said.contains("to the first 3 of 4 partitions") && said.contains(&topic), "{said}");
        for workers in numbers {
            let about = format!("{topic} with {workers} workers");
            let output = scratch.path().join(format!("{topic}-{workers}"));
            let alerts = format!("alerts-{topic}-{workers}");
            let watch =
                ["watch", "--until-end", "--output", text(&output), "--alerts-topic", &alerts, "--workers", workers];
            succeed(&[&watch[..], &to_topic, settings].concat());
            with_topic(&output, &alerts).assert_same(&expected, &about);
        }
    }
    expected
}

const LISTPACK: [&str; 10] =
    ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "self"];

#[test]
fn folded_stacks_as_pprof() {
    let results = same_from_topic("rd-listpack", &recorded("rd-listpack"), "pprof", &LISTPACK);
    assert!(results.tables.flags.iter().any(|flag| flag.row.detail.is_some()), "stacks show where work went");
}

#[test]
fn regression_folded_stacks_as_delta() {
    let fleet = recorded("rd-listpack");
    let results = same_as(replayed(&fleet, &LISTPACK), "rd-listpack-delta", &fleet, "delta", &LISTPACK);
    assert!(results.tables.flags.iter().any(|flag| flag.row.detail.is_some()), "stacks show where work went");
    let [cells, flags, comparisons, ledger, _] = results.sizes();
    assert!(cells > 100 && flags > 0 && comparisons > 10 && ledger > 10, "{:?}", results.sizes());
    assert_eq!(results.refused(), 0);
}

/// Its heap and mutex profiles are snapshots of what was counted since processes began.
#[test]
fn pprof_files_as_they_are_and_as_delta() {
    let settings = ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "total"];
    let fleet = recorded("kv-snapshot");
    let results = same_from_topic("kv-snapshot", &fleet, "pprof", &settings);
    let results = same_as(results, "kv-snapshot-delta", &fleet, "delta", &settings);
    let [cells, _, comparisons, ledger, _] = results.sizes();
    assert!(cells > 100 && comparisons > 10 && ledger > 10, "{:?}", results.sizes());
    assert_eq!(results.refused(), 0);
    let types: BTreeSet<ProfileType> = results.tables.cells.iter().map(|row| row.comparison.profile_type).collect();
    assert_eq!(types.len(), 4, "{types:?}");
}

/// Builds follow each other as deploys, and flags are raised.
#[test]
fn a_synthetic_fleet_with_a_regression() {
    let scratch = tempfile::tempdir().unwrap();
    let fleet = scratch.path().join("fleet");
    let shape = ["--seed", "5", "--pods", "3:5", "--duration", "6m", "--factor", "1.6", "--cells", "ap-south-1:*"];
    succeed(&[&["generate", "--output", text(&fleet)][..], &shape].concat());
    let results = same_from_topic("synthetic", &fleet, "pprof", &["--report-every", "2m"]);
    let [cells, flags, comparisons, ledger, alerts] = results.sizes();
    assert!(cells > 1000 && flags > 0 && comparisons > 100 && ledger > 30 && alerts > 0, "{:?}", results.sizes());
    let raised = |row: &fleetdiff_schemas::rows::FlagRow| row.row.function == "serialize_video_chunk";
    assert!(results.tables.flags.iter().any(raised));
}
