//! `power`: its figures before a deploy agree with the published vectors and with those of an earlier run.

use std::collections::BTreeMap;
use std::path::Path;

use fleetdiff_schemas::profile::CountKind;
use serde_json::Value as Json;

use super::demo;
use super::program::{is_cell, run};

fn json(args: &[&str]) -> Json {
    let run = run(&[&["power", "--format", "json"], args].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn text(args: &[&str]) -> String {
    let run = run(&[&["power"], args].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    run.stdout
}

fn close(actual: f64, expected: f64, at: &str) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual}, not {expected}: {at}");
}

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Every published case, asked of the program as a user would; SciPy computed them.
#[test]
fn published_power_through_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipeline/statistics/testdata/power.json");
    let cases: Vec<Json> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut groups: BTreeMap<Vec<String>, Vec<&Json>> = BTreeMap::new();
    for case in &cases {
        let flags = [
            ("--head-pods", "canary_pods"),
            ("--base-pods", "control_pods"),
            ("--rate", "rate_hz"),
            ("--cv", "tau"),
            ("--alpha", "alpha"),
            ("--power", "power"),
        ];
        let args = flags.iter().flat_map(|(flag, key)| [(*flag).to_owned(), case[key].to_string()]);
        groups.entry(args.collect()).or_default().push(case);
    }
    let (mut finite, mut never) = (0, 0);
    for (args, cases) in groups {
        for case in cases {
            let change = format!("{}", number(&case["ratio"]) - 1.0);
            let share = case["share"].to_string();
            let args: Vec<&str> =
                args.iter().map(String::as_str).chain(["--share", &share, "--change", &change]).collect();
            let study = &json(&args)["studies"][0];
            let wait = &study["changes"][0];
            if case["seconds"] == "inf" {
                never += 1;
                assert_eq!((&wait["never"], &wait["seconds"]), (&Json::Bool(true), &Json::Null), "{case}");
            } else {
                finite += 1;
                close(number(&wait["seconds"]), number(&case["seconds"]), &case.to_string());
            }
            let half_an_hour =
                study["smallest"].as_array().unwrap().iter().find(|row| row["after_seconds"] == 1800.0).unwrap();
            close(number(&half_an_hour["ratio"]), number(&case["mde_ln_30min"]).exp(), &case.to_string());
        }
    }
    eprintln!("{finite} waits and {never} nevers as published");
    assert_eq!(finite + never, 375);
    assert!(never > 50);
}

/// 40 against 760 pods that differ by 5 %, 1 % share, +5 %: by hand 1/K1 + 1/K0 = .026316, z = 3.8906 + .8416 = 4.7322, so that
/// .0487902^2 / (z^2 .026316) - .0025 = .0015395, and .99 / (.01 x 100 x .0015395) = 643.1 s.
#[test]
fn the_defaults_are_answered_in_words() {
    let text = text(&[]);
    let line = text.lines().find(|line| line.trim_start().starts_with("1 %") && line.contains("+5 %")).unwrap();
    assert!(line.contains("11 min (644 s)"), "{text}");
    assert!(line.contains("40000 head samples, 10 s"), "{text}");
    assert!(text.contains("40 pods against 760, 100 samples per pod and second, pods that differ by 5 %"), "{text}");
    assert!(text.contains("as if samples were independent: not calibrated"), "{text}");
    assert!(!text.contains("never"), "{text}");
}

#[test]
fn where_time_cannot_help_the_pods_are_named_that_can() {
    let args = ["--head-pods", "5", "--base-pods", "760", "--share", "1%", "--change", "5%"];
    let text = text(&args);
    let (_, rest) = text.split_once("never: more time cannot help, ").unwrap_or_else(|| panic!("{text}"));
    let more: u32 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(rest.contains("more head pods can, within "), "{text}");
    let seconds = |more: u32| {
        let pods = (5 + more).to_string();
        json(&[&args[2..], &["--head-pods", &pods]].concat())["studies"][0]["changes"][0]["seconds"].as_f64()
    };
    assert!(seconds(more).is_some_and(|seconds| seconds <= 1800.0), "{more} more: {:?}", seconds(more));
    assert!(seconds(more - 1).is_none_or(|seconds| seconds > 1800.0), "one fewer would do");
    assert_eq!(json(&args)["studies"][0]["changes"][0]["more_head_pods"].as_u64(), Some(more.into()));
    let both = ["--head-pods", "3", "--base-pods", "20", "--cv", "10%", "--share", "1%", "--change", "10%"];
    let wait = &json(&both)["studies"][0]["changes"][0];
    let (head, base) = (wait["more_head_pods"].as_u64().unwrap() + 3, wait["more_base_pods"].as_u64().unwrap() + 20);
    assert_eq!(head, base, "head pods alone do not help, so that both arms grow to one size");
    let seconds = |pods: u64| {
        let pods = pods.to_string();
        json(&[&both[4..], &["--head-pods", &pods, "--base-pods", &pods]].concat())["studies"][0]["changes"][0]["seconds"].as_f64()
    };
    assert!(
        seconds(head).is_some_and(|seconds| seconds <= 1800.0)
            && seconds(head - 1).is_none_or(|seconds| seconds > 1800.0)
    );
    let said = self::text(&both);
    assert!(
        said.contains(&format!(
            "never: more time cannot help, {} more head pods and {} more base pods can, within ",
            head - 3,
            base - 20
        )),
        "{said}"
    );
    let slow = self::text(&["--cv", "0%", "--rate", "1", "--share", "0.01%", "--change", "5%"]);
    assert!(slow.contains(" days (") && slow.contains(" s), longer than evidence is kept: "), "{slow}");
}

#[test]
fn an_earlier_run_gives_pods_samples_and_spread_of_each_cell() {
    let folder = demo::demo().folder.path().to_str().unwrap();
    let verdicts = demo::demo().verdicts(CountKind::SelfCount);
    let answer = json(&["--from", folder]);
    let studies = answer["studies"].as_array().unwrap();
    assert_eq!(studies.len(), 9, "the row over all cells is no cell");
    for study in studies {
        let of_cell = |row: &&&fleetdiff_schemas::rows::ComparisonRow| {
            study["region"] == row.cell.region.as_str() && study["cohort"] == row.cell.cohort.as_str()
        };
        let row = verdicts.iter().find(of_cell).unwrap();
        let seconds = row.window_end_at.since(row.window_start_at).0 / 1_000_000_000;
        let (samples, pods) = (row.head_total + row.base_total, row.head_pods + row.base_pods);
        assert_eq!(
            (study["head_pods"].as_f64(), study["count_kind"].as_str()),
            (Some(f64::from(i32::try_from(row.head_pods).unwrap())), Some("self"))
        );
        close(
            number(&study["samples_per_pod_second"]),
            samples.to_string().parse::<f64>().unwrap() / (pods * seconds).to_string().parse::<f64>().unwrap(),
            "rate",
        );
        close(number(&study["head_tau"]), row.head_pod_variance.unwrap().sqrt(), "head tau");
        close(number(&study["base_tau"]), row.base_pod_variance.unwrap().sqrt(), "base tau");
        assert!(number(&study["changes"][0]["share"]) > 0.0);
    }
    let more = json(&["--from", folder, "--head-pods", "60"]);
    assert!(
        more["studies"]
            .as_array()
            .unwrap()
            .iter()
            .all(|study| study["head_pods"] == 60.0 && study["base_pods"] != 760.0)
    );
    assert!(demo::demo().tables.cells.iter().any(is_cell));
    let text = text(&["--from", folder]);
    assert_eq!(text.matches("video-delivery cpu (self samples), v42 against v41: ").count(), 9, "{text}");
}

#[test]
fn what_makes_no_sense_is_an_error() {
    for wrong in [
        ["--share", "0"],
        ["--share", "1"],
        ["--change", "0%"],
        ["--cv", "-1%"],
        ["--alpha", "1"],
        ["--rate", "0"],
        ["--head-pods", "0"],
    ] {
        let wrong = run(&[&["power"][..], &wrong].concat());
        assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    }
    let empty = tempfile::TempDir::new().unwrap();
    let wrong = run(&["power", "--from", empty.path().to_str().unwrap()]);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("no cell in") && wrong.stderr.contains("hint"), "{}", wrong.stderr);
    assert!(run(&["power", "--help"]).stdout.contains("fleetdiff power --from out"));
}

#[test]
fn the_output_for_few_pods_states_what_they_cannot_show() {
    assert!(text(&["--head-pods", "1"]).contains("one pod is not a replicate"));
    assert!(text(&["--head-pods", "3"]).contains("a significant row is tentative"));
    assert!(!text(&["--head-pods", "5"]).contains("in an arm"));
}
